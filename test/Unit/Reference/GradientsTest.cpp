//===- GradientsTest.cpp - Gradients against finite differences -*- C++ -*-===//
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

namespace {
/// A problem and a loss <o, dO> + <finalState, dFinalState> on it.
struct Loss {
  explicit Loss(Problem problem) : problem(std::move(problem)) {
    Numbers numbers(77);
    const Problem &p = this->problem;
    dO = numbers.array(p.B * p.T * p.H * p.V);
    dFinalState = numbers.array(p.numSequences() * p.H * p.K * p.V);
  }

  double value() const {
    Result<Forward> result = forward(problem);
    EXPECT_TRUE(result) << result.error;
    if (!result)
      return NAN;
    double sum = 0;
    for (size_t i = 0; i < dO.size(); ++i)
      sum += result->o[i] * dO[i];
    for (size_t i = 0; i < dFinalState.size(); ++i)
      sum += result->finalState[i] * dFinalState[i];
    return sum;
  }

  /// The derivative along a direction of one input: central differences of
  /// fourth order, whose error here is about 1e-11.
  double derivative(std::vector<double> Problem::*input,
                    const std::vector<double> &direction) {
    constexpr double step = 1e-3;
    std::vector<double> center = problem.*input;
    auto at = [&](double distance) {
      for (size_t i = 0; i < center.size(); ++i)
        (problem.*input)[i] = center[i] + distance * direction[i];
      return value();
    };
    double result =
        (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) /
        (12 * step);
    problem.*input = center;
    return result;
  }

  Problem problem;
  std::vector<double> dO, dFinalState;
};

/// An input and its gradient.
struct Pair {
  const char *name;
  std::vector<double> Problem::*input;
  std::vector<double> Gradients::*gradient;
};

constexpr Pair pairs[] = {
    {"q", &Problem::q, &Gradients::dq},
    {"k", &Problem::k, &Gradients::dk},
    {"v", &Problem::v, &Gradients::dv},
    {"gate", &Problem::gate, &Gradients::dGate},
    {"beta", &Problem::beta, &Gradients::dBeta},
    {"initial state", &Problem::initialState, &Gradients::dInitialState},
    {"a_log", &Problem::aLog, &Gradients::dALog},
    {"dt_bias", &Problem::dtBias, &Gradients::dDtBias},
};
} // namespace

/// Checks the gradient of every input that the problem has.
static void checkGradients(const Problem &problem) {
  Loss loss(problem);
  Result<Gradients> gradients = backward(problem, loss.dO, loss.dFinalState);
  ASSERT_TRUE(gradients) << gradients.error;
  Numbers numbers(5);
  for (const Pair &pair : pairs) {
    const std::vector<double> &gradient = (*gradients).*pair.gradient;
    if ((problem.*pair.input).empty())
      continue;
    ASSERT_EQ(gradient.size(), (problem.*pair.input).size()) << pair.name;
    std::vector<double> direction = numbers.array(gradient.size());
    double expected = loss.derivative(pair.input, direction), actual = 0;
    for (size_t i = 0; i < gradient.size(); ++i)
      actual += gradient[i] * direction[i];
    EXPECT_NEAR(actual, expected, 1e-8 * std::max(1.0, std::abs(expected)))
        << pair.name;
  }
  // What is said of a sum's terms is that of the terms.
  std::vector<double> squares(gradients->dDtBias.size());
  for (size_t i = 0; i < gradients->dGate.size() && !squares.empty(); ++i)
    squares[i % squares.size()] += gradients->dGate[i] * gradients->dGate[i];
  for (size_t i = 0; i < squares.size(); ++i)
    EXPECT_NEAR(gradients->dDtBiasSpread[i], std::sqrt(squares[i]), 1e-12);
  // With one term the spread is its size, with more it is at least their mean.
  double terms = static_cast<double>(gradients->dGate.size());
  for (size_t i = 0; i < gradients->dALog.size(); ++i)
    EXPECT_LE(std::abs(gradients->dALog[i]),
              gradients->dALogSpread[i] * std::sqrt(terms) * (1 + 1e-12));
}

// 130 tokens: two checkpoints inside the sequence.
TEST(GradientsTest, LogGateOverSeveralCheckpoints) {
  checkGradients(makeProblem(GateKind::Head, 1, 130));
  checkGradients(makeProblem(GateKind::Channel, 1, 130));
}

TEST(GradientsTest, NoGateInABatch) {
  checkGradients(makeProblem(GateKind::None, 3, 5));
}

// dalpha is not dg / alpha: at alpha = 0 it is finite and in general not zero.
TEST(GradientsTest, LinearGateWithZeros) {
  for (GateKind kind : {GateKind::Head, GateKind::Channel}) {
    Problem p = makeProblem(kind, 1, 20);
    p.gateDomain = GateDomain::Linear;
    for (size_t i = 0; i < p.gate.size(); ++i)
      p.gate[i] = i % 3 == 0 ? 0.0 : std::exp(p.gate[i]);
    checkGradients(p);
  }
}

TEST(GradientsTest, RawGates) {
  for (GateKind kind : {GateKind::Head, GateKind::Channel})
    for (GateDomain domain : {GateDomain::Softplus, GateDomain::Bounded}) {
      Problem p = makeRawProblem(kind, domain, 12);
      p.lowerBound = -1.5;
      checkGradients(p);
    }
}

// Nothing moves a gate that is as far as it can be, however large its input is.
TEST(GradientsTest, InfiniteRawGates) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (double x : {inf, -inf}) {
    const gdn_gates::GateForm &form = gdn_gates::formOf(GateDomain::Bounded);
    double gate = form.gate(x, 1, -5), slope = form.slope(x, 1, -5);
    EXPECT_EQ(gate, x > 0 ? -5 : 0);
    EXPECT_EQ(slope, 0);
    EXPECT_EQ(form.rateSlope(x, 1, -5, gate, slope), 0);
  }
}

// Without a_log and dt_bias the bounded gate is lowerBound sigmoid(a).
TEST(GradientsTest, BoundedGateWithoutParameters) {
  Problem p = makeRawProblem(GateKind::Channel, GateDomain::Bounded, 12);
  p.aLog.clear();
  p.dtBias.clear();
  checkGradients(p);
}

TEST(GradientsTest, DoubledBeta) {
  Problem p = makeRawProblem(GateKind::Head, GateDomain::Softplus, 12);
  p.allowNegEigval = true;
  checkGradients(p);
}

TEST(GradientsTest, TransposedStateAndOwnScale) {
  Problem p = makeProblem(GateKind::Channel, 2, 6);
  p.stateLayout = StateLayout::VK;
  p.scale = -0.7;
  checkGradients(p);
}
