//===- TestProblem.h - Random problems for the tests ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_REFERENCE_TESTPROBLEM_H
#define GDN_TEST_UNIT_REFERENCE_TESTPROBLEM_H

#include "gdn/Reference/Reference.h"

#include <cstddef>
#include <random>
#include <vector>

namespace gdn::reference::test {

/// Deterministic numbers in a range; the same on every platform.
class Numbers {
public:
  explicit Numbers(unsigned seed) : engine(seed) {}

  double next(double low, double high) {
    return low + (high - low) * static_cast<double>(engine()) / 4294967296.0;
  }
  std::vector<double> array(size_t size, double low = -1, double high = 1) {
    std::vector<double> values(size);
    for (double &value : values)
      value = next(low, high);
    return values;
  }

private:
  std::mt19937 engine;
};

/// A problem with every input present, of small odd sizes: log gates in
/// (-0.5, 0), beta in (0, 1), one sequence of T tokens for each of B.
inline Problem makeProblem(GateKind kind, int64_t batch, int64_t tokens,
                           unsigned seed = 1) {
  Problem p;
  p.B = batch;
  p.T = tokens;
  p.Hq = 1;
  p.H = 2;
  p.K = 3;
  p.V = 10;
  Numbers numbers(seed);
  size_t rows = batch * tokens;
  p.q = numbers.array(rows * p.Hq * p.K);
  p.k = numbers.array(rows * p.Hq * p.K);
  p.v = numbers.array(rows * p.H * p.V);
  p.beta = numbers.array(rows * p.H, 0, 1);
  p.gateKind = kind;
  if (kind != GateKind::None)
    p.gate =
        numbers.array(rows * p.H * (kind == GateKind::Head ? 1 : p.K), -0.5, 0);
  p.initialState = numbers.array(p.numSequences() * p.H * p.K * p.V);
  return p;
}

/// makeProblem() with a raw gate and its parameters, logits and the l2norm.
inline Problem makeRawProblem(GateKind kind, GateDomain domain, int64_t tokens,
                              unsigned seed = 1) {
  Problem p = makeProblem(kind, 1, tokens, seed);
  Numbers numbers(seed + 1000);
  p.gateDomain = domain;
  p.gate = numbers.array(p.gate.size(), -2, 2);
  p.aLog = numbers.array(p.H, -1.5, 0);
  p.dtBias = numbers.array(kind == GateKind::Head ? p.H : p.H * p.K);
  p.beta = numbers.array(p.beta.size(), -3, 3);
  p.betaIsLogit = p.qkL2norm = true;
  return p;
}

} // namespace gdn::reference::test

#endif // GDN_TEST_UNIT_REFERENCE_TESTPROBLEM_H
