//===- ValidateTest.cpp - Refused problems and their messages ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace gdn::reference;
using namespace gdn::reference::test;

/// validate() after one change of a good problem.
template <typename Change>
static std::string messageAfter(Change change, GateKind kind = GateKind::Head) {
  Problem p = makeProblem(kind, 1, 6);
  EXPECT_EQ(validate(p), "");
  change(p);
  return validate(p);
}

TEST(ValidateTest, Dimensions) {
  EXPECT_EQ(messageAfter([](Problem &p) { p.K = 0; }),
            "expected K >= 1, got 0");
  EXPECT_EQ(messageAfter([](Problem &p) { p.B = -1; }),
            "expected B >= 1, got -1");
  EXPECT_EQ(messageAfter([](Problem &p) { p.T = -2; }),
            "expected T >= 0, got -2");
  EXPECT_EQ(messageAfter([](Problem &p) { p.Hq = 2, p.H = 3; }),
            "expected H to be a multiple of Hq=2, got 3");
}

TEST(ValidateTest, CuSeqlens) {
  auto message = [](std::vector<int64_t> cu) {
    return messageAfter([&](Problem &p) {
      p.cuSeqlens = cu;
      p.initialState.clear();
    });
  };
  EXPECT_EQ(message({0, 2, 2, 6}), "");
  EXPECT_EQ(message({0}), "expected cu_seqlens of at least 2 entries, got 1");
  EXPECT_EQ(message({1, 6}), "expected cu_seqlens to start at 0, got 1");
  EXPECT_EQ(message({0, 4, 3, 6}), "expected sorted cu_seqlens, got 3 after 4");
  EXPECT_EQ(message({0, 5}), "expected cu_seqlens to end at T=6, got 5");
  EXPECT_EQ(messageAfter([](Problem &p) {
              p.B = 2;
              p.cuSeqlens = {0, 6};
            }),
            "expected B = 1 with cu_seqlens, got 2");
}

TEST(ValidateTest, ArraySizes) {
  EXPECT_EQ(messageAfter([](Problem &p) { p.q.pop_back(); }),
            "expected q of shape [B=1, T=6, Hq=1, K=3], 18 values, got 17");
  EXPECT_EQ(messageAfter([](Problem &p) { p.v.clear(); }),
            "expected v of shape [B=1, T=6, H=2, V=10], 120 values, got 0");
  EXPECT_EQ(messageAfter([](Problem &p) { p.beta.resize(3); }),
            "expected beta of shape [B=1, T=6, H=2], 12 values, got 3");
  EXPECT_EQ(messageAfter([](Problem &p) { p.initialState.resize(7); }),
            "expected initial_state of shape [N=1, H=2, K=3, V=10], 60 values, "
            "got 7");
  EXPECT_EQ(messageAfter([](Problem &p) {
              p.stateLayout = StateLayout::VK;
              p.initialState.resize(7);
            }),
            "expected initial_state of shape [N=1, H=2, V=10, K=3], 60 values, "
            "got 7");
}

// The product of the dimensions must not wrap around to a size that fits.
TEST(ValidateTest, HugeDimensions) {
  EXPECT_NE(messageAfter([](Problem &p) {
              p.T = int64_t(1) << 62;
              p.K = 4;
              p.q.clear();
              p.k.clear();
            }),
            "");
}

TEST(ValidateTest, GateMustFitItsKind) {
  EXPECT_EQ(messageAfter([](Problem &p) { p.gateKind = GateKind::Channel; }),
            "expected gate of shape [B=1, T=6, H=2, K=3], 36 values, got 12");
  EXPECT_EQ(messageAfter([](Problem &p) { p.gateKind = GateKind::Head; },
                         GateKind::Channel),
            "expected gate of shape [B=1, T=6, H=2], 12 values, got 36");
  EXPECT_EQ(messageAfter([](Problem &p) { p.gateKind = GateKind::None; }),
            "expected no gate for gate kind none, got 12 values");
}

TEST(ValidateTest, GateParameters) {
  EXPECT_EQ(messageAfter([](Problem &p) { p.aLog = {0, 0}; }),
            "expected a_log only with a raw gate, got 2 values");
  EXPECT_EQ(messageAfter([](Problem &p) { p.dtBias = {0, 0}; }),
            "expected dt_bias only with a raw gate, got 2 values");
  auto raw = [](Problem &p) { p.gateDomain = GateDomain::Softplus; };
  EXPECT_EQ(messageAfter(raw),
            "expected a_log of shape [H=2], 2 values, got 0");
  EXPECT_EQ(messageAfter([&](Problem &p) {
              raw(p);
              p.aLog = {0, 0};
              p.dtBias = {0};
            }),
            "expected dt_bias of shape [H=2], 2 values, got 1");
  EXPECT_EQ(messageAfter(
                [&](Problem &p) {
                  raw(p);
                  p.aLog = p.dtBias = {0, 0};
                },
                GateKind::Channel),
            "expected dt_bias of shape [H=2, K=3], 6 values, got 2");
}

TEST(ValidateTest, LowerBound) {
  auto message = [](double bound) {
    return messageAfter([&](Problem &p) {
      p.gateDomain = GateDomain::Bounded;
      p.lowerBound = bound;
    });
  };
  EXPECT_EQ(message(-1), "");
  EXPECT_EQ(message(2), "expected lower_bound < 0, got 2.000000");
  EXPECT_EQ(message(std::nan("")), "expected lower_bound < 0, got nan");
}

TEST(ValidateTest, LogitsNeedBeta) {
  EXPECT_EQ(messageAfter([](Problem &p) {
              p.betaIsLogit = true;
              p.beta.clear();
            }),
            "expected beta of shape [B=1, T=6, H=2], 12 values, got 0");
}

// forward() and backward() report instead of reading out of bounds.
TEST(ValidateTest, RunsReport) {
  Problem p = makeProblem(GateKind::Head, 1, 6);
  Result<Gradients> result = backward(p, {1, 2}, {});
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error,
            "expected d_o of shape [B=1, T=6, H=2, V=10], 120 values, got 2");
  EXPECT_EQ(backward(p, p.v, {1}).error,
            "expected d_final_state of shape [N=1, H=2, K=3, V=10], 60 values, "
            "got 1");
  p.k.clear();
  EXPECT_FALSE(forward(p));
  EXPECT_EQ(forward(p).error,
            "expected k of shape [B=1, T=6, Hq=1, K=3], 18 values, got 0");
  EXPECT_EQ(backward(p, p.v, {}).error, forward(p).error);
}

TEST(ValidateTest, StateIndices) {
  auto message = [](std::vector<int64_t> indices, int64_t size) {
    Problem p = makeProblem(GateKind::Head, 2, 6);
    p.stateIndices = std::move(indices);
    p.poolSize = size;
    return validate(p);
  };
  EXPECT_EQ(message({1, 0}, 2), "");
  EXPECT_EQ(message({-1, -1}, 2), "");
  EXPECT_EQ(message({1, 1}, 2),
            "expected a row of the pool for each sequence, got row 1 twice");
  EXPECT_EQ(message({1}, 2),
            "expected state_indices of shape [N=2], got 1 values");
  EXPECT_EQ(message({0, 1}, 3),
            "expected initial_state of shape [P=3, H=2, K=3, V=10], 180 "
            "values, got 120");
  Problem p = makeProblem(GateKind::Head, 1, 6);
  p.stateIndices = {0};
  p.poolSize = 1;
  p.hasInitialState = {true, false};
  EXPECT_EQ(validate(p), "expected has_initial_state of shape [N=1] with "
                         "state_indices, got 2 values");
  p.hasInitialState.clear();
  EXPECT_EQ(backward(p, {}, {}).error,
            "expected no state_indices with gradients, got 1 values");
}
