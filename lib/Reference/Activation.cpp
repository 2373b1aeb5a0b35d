//===- Activation.cpp - Input transforms and their chain rule ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activation.h"

#include <algorithm>
#include <cmath>

using namespace gdn::reference;
using namespace gdn_gates;

/// Keeps l2norm finite for a zero row (spec 1).
static constexpr double l2normEpsilon = 1e-6;

namespace {
/// One gate value with its parameters.
struct GateInput {
  double raw, expALog, dtBias;
};

/// Gradients of one gate value.
struct GateGradient {
  double dRaw, dALog;
};
} // namespace

static double dtBias(const Problem &p, int64_t index) {
  return p.dtBias.empty() ? 0.0 : p.dtBias[index];
}

/// The log gate (spec 1).
static double logGate(const Problem &p, const GateInput &in) {
  return formOf(p.gateDomain)
      .gate(in.raw + in.dtBias, in.expALog, p.lowerBound);
}

static double decay(const Problem &p, const GateInput &in) {
  return p.gateDomain == GateDomain::Linear ? in.raw : std::exp(logGate(p, in));
}

/// spec 5.5, from d loss / d alpha, with dg = alpha dalpha.
static GateGradient gateGradient(const Problem &p, const GateInput &in,
                                 double alpha, double dAlpha) {
  // Where alpha is 0, dg / alpha says nothing.
  if (p.gateDomain == GateDomain::Linear)
    return {dAlpha, 0};
  const GateForm &form = formOf(p.gateDomain);
  double dg = alpha * dAlpha, x = in.raw + in.dtBias;
  double slope = form.slope(x, in.expALog, p.lowerBound);
  double rateSlope =
      form.rateSlope(x, in.expALog, p.lowerBound, logGate(p, in), slope);
  return {slope * dg, timesSlope(rateSlope, dg)};
}

ActivatedChunk::ActivatedChunk(const Problem &problem)
    : problem(problem), q(chunkTokens * problem.K), k(q), alpha(q),
      beta(chunkTokens), qFactor(beta), kFactor(beta), dq(q), dk(q), dAlpha(q),
      dBeta(beta) {}

ChunkRows ActivatedChunk::rows() const {
  double scale =
      problem.scale.value_or(1 / std::sqrt(static_cast<double>(problem.K)));
  return {tokens,   problem.K,    scale,       q.data(),
          k.data(), alpha.data(), beta.data(), problem.deltaRule};
}

ChunkGradients ActivatedChunk::gradients() {
  return {dq.data(), dk.data(), dAlpha.data(), dBeta.data()};
}

void ActivatedChunk::load(int64_t newHead, int64_t newFirst,
                          int64_t newTokens) {
  head = newHead;
  first = newFirst;
  tokens = newTokens;
  loadQK(problem.q, q, qFactor);
  loadQK(problem.k, k, kFactor);
  loadGates();
  loadBeta();
  for (std::vector<double> *gradient : {&dq, &dk, &dAlpha, &dBeta})
    std::fill(gradient->begin(), gradient->end(), 0.0);
}

TokenSum ActivatedChunk::storeGradients(Gradients &out) const {
  addQKGradients(q, qFactor, dq, out.dq);
  addQKGradients(k, kFactor, dk, out.dk);
  storeBetaGradients(out.dBeta);
  return storeGateGradients(out.dGate);
}

void ActivatedChunk::loadQK(const std::vector<double> &source,
                            std::vector<double> &rows,
                            std::vector<double> &factors) {
  int64_t K = problem.K, qHead = head / (problem.H / problem.Hq);
  for (int64_t t = 0; t < tokens; ++t) {
    const double *in = &source[((first + t) * problem.Hq + qHead) * K];
    double squares = l2normEpsilon;
    for (int64_t i = 0; i < K; ++i)
      squares += in[i] * in[i];
    factors[t] = problem.qkL2norm ? 1 / std::sqrt(squares) : 1.0;
    for (int64_t i = 0; i < K; ++i)
      rows[t * K + i] = in[i] * factors[t];
  }
}

void ActivatedChunk::addQKGradients(const std::vector<double> &rows,
                                    const std::vector<double> &factors,
                                    const std::vector<double> &gradient,
                                    std::vector<double> &out) const {
  int64_t K = problem.K, qHead = head / (problem.H / problem.Hq);
  for (int64_t t = 0; t < tokens; ++t) {
    const double *y = &rows[t * K], *dy = &gradient[t * K];
    double *dx = &out[((first + t) * problem.Hq + qHead) * K];
    double dot = 0;
    if (problem.qkL2norm)
      for (int64_t i = 0; i < K; ++i)
        dot += y[i] * dy[i];
    for (int64_t i = 0; i < K; ++i)
      dx[i] += factors[t] * (dy[i] - y[i] * dot);
  }
}

void ActivatedChunk::loadGates() {
  const Problem &p = problem;
  double expALog = p.aLog.empty() ? 1.0 : std::exp(p.aLog[head]);
  for (int64_t t = 0; t < tokens; ++t) {
    double *row = &alpha[t * p.K];
    int64_t index = (first + t) * p.H + head;
    switch (p.gateKind) {
    case GateKind::None:
      std::fill_n(row, p.K, 1.0);
      break;
    case GateKind::Head:
      std::fill_n(row, p.K,
                  decay(p, {p.gate[index], expALog, dtBias(p, head)}));
      break;
    case GateKind::Channel:
      for (int64_t i = 0; i < p.K; ++i)
        row[i] = decay(
            p, {p.gate[index * p.K + i], expALog, dtBias(p, head * p.K + i)});
      break;
    }
  }
}

TokenSum ActivatedChunk::storeGateGradients(std::vector<double> &dGate) const {
  const Problem &p = problem;
  double expALog = p.aLog.empty() ? 1.0 : std::exp(p.aLog[head]);
  TokenSum dALog;
  auto store = [&](int64_t index, int64_t biasIndex, double a, double da) {
    GateGradient gradient =
        gateGradient(p, {p.gate[index], expALog, dtBias(p, biasIndex)}, a, da);
    dGate[index] = gradient.dRaw;
    dALog.add(gradient.dALog);
  };
  for (int64_t t = 0; t < tokens; ++t) {
    const double *row = &alpha[t * p.K], *dRow = &dAlpha[t * p.K];
    int64_t index = (first + t) * p.H + head;
    double total = 0;
    switch (p.gateKind) {
    case GateKind::None:
      break;
    case GateKind::Head:
      for (int64_t i = 0; i < p.K; ++i)
        total += dRow[i];
      store(index, head, row[0], total);
      break;
    case GateKind::Channel:
      for (int64_t i = 0; i < p.K; ++i)
        store(index * p.K + i, head * p.K + i, row[i], dRow[i]);
      break;
    }
  }
  return dALog;
}

void ActivatedChunk::loadBeta() {
  const Problem &p = problem;
  double factor = p.allowNegEigval ? 2 : 1;
  for (int64_t t = 0; t < tokens; ++t) {
    double value = p.beta.empty() ? 1.0 : p.beta[(first + t) * p.H + head];
    beta[t] = p.betaIsLogit ? factor * sigmoid(value) : value;
  }
}

void ActivatedChunk::storeBetaGradients(std::vector<double> &out) const {
  const Problem &p = problem;
  if (p.beta.empty())
    return;
  double factor = p.allowNegEigval ? 2 : 1;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t index = (first + t) * p.H + head;
    double slope = p.betaIsLogit ? factor * sigmoidSlope(p.beta[index]) : 1.0;
    out[index] = slope * dBeta[t];
  }
}
