//===- OptionsTest.cpp - What options and edge cases mean -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

using namespace gdn::reference;
using namespace gdn::reference::test;

static Forward runForward(const Problem &p) {
  Result<Forward> result = forward(p);
  EXPECT_TRUE(result) << result.error;
  return result ? *result : Forward();
}

static Gradients runBackward(const Problem &p) {
  Numbers numbers(3);
  std::vector<double> dO = numbers.array(p.B * p.T * p.H * p.V);
  Result<Gradients> result = backward(p, dO, {});
  EXPECT_TRUE(result) << result.error;
  return result ? *result : Gradients();
}

static void expectSame(const std::vector<double> &actual,
                       const std::vector<double> &expected) {
  EXPECT_LE(compare(actual, expected).relRms, 1e-14);
}

/// [.., K, V] to [.., V, K].
static std::vector<double> transposed(const std::vector<double> &state,
                                      int64_t K, int64_t V) {
  std::vector<double> result(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    size_t matrix = i / (K * V), row = i / V % K, column = i % V;
    result[(matrix * V + column) * K + row] = state[i];
  }
  return result;
}

// The definition by hand, one token and K = V = 1: S = a h + k b (v - a h k).
TEST(OptionsTest, OneToken) {
  Problem p;
  p.T = 1;
  p.q = {3};
  p.k = {0.5};
  p.v = {2};
  p.gateKind = GateKind::Head;
  p.gateDomain = GateDomain::Linear;
  p.gate = {0.25};
  p.beta = {0.75};
  p.initialState = {8};
  Forward result = runForward(p);
  EXPECT_DOUBLE_EQ(result.finalState[0], 2 + 0.5 * 0.75 * (2 - 2 * 0.5));
  EXPECT_DOUBLE_EQ(result.o[0], 3 * result.finalState[0]);
}

TEST(OptionsTest, LayoutsAreTransposes) {
  Problem kv = makeProblem(GateKind::Head, 2, 4), vk = kv;
  vk.stateLayout = StateLayout::VK;
  vk.initialState = transposed(kv.initialState, kv.K, kv.V);
  Forward a = runForward(kv), b = runForward(vk);
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(transposed(a.finalState, kv.K, kv.V), b.finalState);
  EXPECT_EQ(transposed(runBackward(kv).dInitialState, kv.K, kv.V),
            runBackward(vk).dInitialState);
}

TEST(OptionsTest, LinearGateIsExpOfLogGate) {
  Problem log = makeProblem(GateKind::Channel, 1, 9), linear = log;
  linear.gateDomain = GateDomain::Linear;
  for (double &value : linear.gate)
    value = std::exp(value);
  expectSame(runForward(linear).o, runForward(log).o);
}

TEST(OptionsTest, AbsentInputsHaveTheirDefaults) {
  Problem absent = makeProblem(GateKind::None, 1, 9);
  absent.beta.clear();
  absent.initialState.clear();
  Problem present = absent;
  present.beta.assign(absent.T * absent.H, 1.0);
  present.initialState.assign(absent.H * absent.K * absent.V, 0.0);
  present.scale = 1 / std::sqrt(static_cast<double>(absent.K));
  present.gateKind = GateKind::Head;
  present.gate.assign(absent.T * absent.H, 0.0);
  Forward a = runForward(absent), b = runForward(present);
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(a.finalState, b.finalState);
  Gradients gradients = runBackward(absent);
  EXPECT_TRUE(gradients.dBeta.empty());
  EXPECT_TRUE(gradients.dGate.empty());
  EXPECT_EQ(gradients.dInitialState, runBackward(present).dInitialState);
}

TEST(OptionsTest, DoubledBetaOnlyForLogits) {
  Problem logits = makeProblem(GateKind::Head, 1, 9), values = logits;
  logits.betaIsLogit = logits.allowNegEigval = true;
  for (size_t i = 0; i < values.beta.size(); ++i)
    values.beta[i] = 2 / (1 + std::exp(-logits.beta[i]));
  expectSame(runForward(logits).o, runForward(values).o);
  values.allowNegEigval = true;
  expectSame(runForward(logits).o, runForward(values).o);
}

// Packed sequences are independent: each equals a run of its own.
TEST(OptionsTest, PackedEqualsBatch) {
  Problem batch = makeProblem(GateKind::Head, 3, 4), packed = batch;
  packed.B = 1;
  packed.T = 12;
  packed.cuSeqlens = {0, 4, 8, 12};
  EXPECT_EQ(runForward(batch).o, runForward(packed).o);
  EXPECT_EQ(runBackward(batch).dk, runBackward(packed).dk);
}

TEST(OptionsTest, NoTokensPassTheStateThrough) {
  Problem p = makeProblem(GateKind::Channel, 1, 0);
  p.cuSeqlens = {0, 0, 0};
  p.initialState = Numbers(1).array(2 * p.H * p.K * p.V);
  EXPECT_EQ(runForward(p).finalState, p.initialState);
  Result<Gradients> gradients = backward(p, {}, p.initialState);
  ASSERT_TRUE(gradients) << gradients.error;
  EXPECT_EQ(gradients->dInitialState, p.initialState);
}

static bool allFinite(const std::vector<double> &values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

// A decay of exactly 0 forgets the past; no gradient is NaN.
TEST(OptionsTest, GatesThatEraseTheState) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (GateDomain domain : {GateDomain::Log, GateDomain::Softplus}) {
    Problem p = makeRawProblem(GateKind::Head, GateDomain::Softplus, 5);
    p.gateDomain = domain;
    if (domain == GateDomain::Log) {
      p.aLog.clear();
      p.dtBias.clear();
    }
    p.gate.assign(p.gate.size(),
                  domain == GateDomain::Log ? -infinity : infinity);
    Problem other = p;
    other.initialState = Numbers(9).array(p.initialState.size());
    EXPECT_EQ(runForward(p).o, runForward(other).o);
    Gradients gradients = runBackward(p);
    for (const std::vector<double> *values :
         {&gradients.dq, &gradients.dk, &gradients.dv, &gradients.dGate,
          &gradients.dBeta, &gradients.dInitialState, &gradients.dALog,
          &gradients.dDtBias})
      EXPECT_TRUE(allFinite(*values));
  }
}

TEST(OptionsTest, NanInNanOut) {
  Problem p = makeProblem(GateKind::Head, 1, 3);
  p.v[0] = std::nan("");
  EXPECT_TRUE(std::isnan(runForward(p).o[0]));
}

TEST(OptionsTest, ThreadsDoNotChangeTheResult) {
  Problem p = makeRawProblem(GateKind::Channel, GateDomain::Softplus, 70);
  p.cuSeqlens = {0, 1, 1, 40, 66, 70};
  p.initialState.clear();
  std::vector<double> dO = Numbers(4).array(p.v.size());
  RunOptions one, four;
  one.threads = 1;
  four.threads = 4;
  EXPECT_EQ(forward(p, one)->o, forward(p, four)->o);
  Result<Gradients> a = backward(p, dO, {}, one), b = backward(p, dO, {}, four);
  EXPECT_EQ(a->dq, b->dq);
  EXPECT_EQ(a->dALog, b->dALog);
  EXPECT_EQ(a->dDtBias, b->dDtBias);
}

TEST(OptionsTest, ProgressRisesToOneOnTheCallingThread) {
  Problem p = makeProblem(GateKind::Head, 4, 200);
  std::vector<double> reports;
  std::vector<std::thread::id> threads;
  RunOptions options;
  options.threads = 2;
  options.progress = [&](double fraction) {
    reports.push_back(fraction);
    threads.push_back(std::this_thread::get_id());
  };
  ASSERT_TRUE(backward(p, p.v, {}, options));
  ASSERT_FALSE(reports.empty());
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1.0);
  EXPECT_EQ(std::count(reports.begin(), reports.end(), 1.0), 1);
  for (std::thread::id id : threads)
    EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(OptionsTest, StateIndices) {
  Problem p = makeProblem(GateKind::Head, 3, 6);
  Forward dense = runForward(p);
  // The pool has a row in front; sequence 1 has none.
  int64_t state = p.H * p.K * p.V, output = p.T * p.H * p.V;
  std::vector<double> pool(4 * state, 0.5);
  std::copy_n(p.initialState.begin(), state, pool.begin() + 3 * state);
  std::copy_n(p.initialState.begin() + 2 * state, state, pool.begin() + state);
  p.initialState = pool;
  p.poolSize = 4;
  p.firstState = 1;
  p.stateIndices = {3, 0, 1};
  Forward pooled = runForward(p);
  std::vector<double> o = dense.o;
  std::fill_n(o.begin() + output, output, 0.0);
  expectSame(pooled.o, o);
  std::copy_n(dense.finalState.begin(), state, pool.begin() + 3 * state);
  std::copy_n(dense.finalState.begin() + 2 * state, state,
              pool.begin() + state);
  expectSame(pooled.finalState, pool);
  // Sequence 2 begins with zeros instead of what its row holds.
  std::fill_n(p.initialState.begin() + state, state, 0.0);
  Forward zeros = runForward(p);
  std::fill_n(p.initialState.begin() + state, state, 0.5);
  p.hasInitialState = {true, true, false};
  Forward flagged = runForward(p);
  expectSame(flagged.o, zeros.o);
  expectSame(flagged.finalState, zeros.finalState);
}
