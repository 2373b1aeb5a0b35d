//===- Recurrence.cpp - The recurrence on a few value columns ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recurrence.h"

#include <algorithm>

using namespace gdn::reference;

/// The sum over the lanes as a tree, which vectorises without reassociation.
static double sum(const double *x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
static_assert(lanes == 8, "sum() adds eight lanes");

/// e = v - Sbar^T k with Sbar = Diag(alpha) S (spec 1).
static void predictionError(int64_t K, const double *k, const double *alpha,
                            const double *state, const double *v, double *e) {
  double prediction[lanes] = {};
  for (int64_t i = 0; i < K; ++i) {
    const double *row = state + i * lanes;
    for (int64_t l = 0; l < lanes; ++l)
      prediction[l] += alpha[i] * row[l] * k[i];
  }
  for (int64_t l = 0; l < lanes; ++l)
    e[l] = v[l] - prediction[l];
}

void gdn::reference::advanceState(const ChunkRows &rows, const double *v,
                                  double *state, double *o) {
  int64_t K = rows.K;
  for (int64_t t = 0; t < rows.tokens; ++t) {
    const double *q = rows.q + t * K, *k = rows.k + t * K;
    const double *alpha = rows.alpha + t * K;
    double u[lanes], out[lanes] = {};
    if (rows.deltaRule)
      predictionError(K, k, alpha, state, v + t * lanes, u);
    else
      std::copy_n(v + t * lanes, lanes, u);
    for (int64_t l = 0; l < lanes; ++l)
      u[l] *= rows.beta[t];
    for (int64_t i = 0; i < K; ++i) {
      double *row = state + i * lanes;
      for (int64_t l = 0; l < lanes; ++l) {
        row[l] = alpha[i] * row[l] + k[i] * u[l];
        out[l] += row[l] * q[i];
      }
    }
    for (int64_t l = 0; l < lanes; ++l)
      o[t * lanes + l] = rows.scale * out[l];
  }
}

void gdn::reference::recordStates(const ChunkRows &rows, const double *v,
                                  double *states, double *e) {
  int64_t K = rows.K;
  for (int64_t t = 0; t < rows.tokens; ++t) {
    const double *k = rows.k + t * K, *alpha = rows.alpha + t * K;
    const double *before = states + t * K * lanes;
    double *after = states + (t + 1) * K * lanes;
    predictionError(K, k, alpha, before, v + t * lanes, e + t * lanes);
    double u[lanes];
    for (int64_t l = 0; l < lanes; ++l)
      u[l] = rows.beta[t] * e[t * lanes + l];
    for (int64_t i = 0; i < K; ++i)
      for (int64_t l = 0; l < lanes; ++l)
        after[i * lanes + l] = alpha[i] * before[i * lanes + l] + k[i] * u[l];
  }
}

/// The read-out of token t backwards: dS += scale q dO^T, dq += scale S dO, and
/// du = dS^T k from the new dS.
static void reverseOutput(const ChunkRows &rows, int64_t t, const double *after,
                          const double *dO, double *dState, double *du,
                          double *dq) {
  const double *q = rows.q + t * rows.K, *k = rows.k + t * rows.K;
  double scaled[lanes], duSum[lanes] = {};
  for (int64_t l = 0; l < lanes; ++l)
    scaled[l] = rows.scale * dO[l];
  for (int64_t i = 0; i < rows.K; ++i) {
    const double *row = after + i * lanes;
    double *dRow = dState + i * lanes, products[lanes];
    for (int64_t l = 0; l < lanes; ++l) {
      products[l] = row[l] * scaled[l];
      dRow[l] += q[i] * scaled[l];
      duSum[l] += dRow[l] * k[i];
    }
    dq[i] += sum(products);
  }
  for (int64_t l = 0; l < lanes; ++l)
    du[l] = duSum[l];
}

/// The write, the prediction and the decay of token t backwards:
/// dk += dS u - Sbar dv, dSbar = dS - k dv^T, dalpha += rowsum(dSbar o S
/// before), dS <- Diag(alpha) dSbar. dalpha is the product form, so alpha = 0
/// is exact.
static void reverseUpdate(const ChunkRows &rows, int64_t t,
                          const double *before, const double *u,
                          const double *dv, double *dState, double *dk,
                          double *dAlpha) {
  const double *k = rows.k + t * rows.K, *alpha = rows.alpha + t * rows.K;
  for (int64_t i = 0; i < rows.K; ++i) {
    const double *row = before + i * lanes;
    double *dRow = dState + i * lanes;
    double keyProducts[lanes], decayProducts[lanes];
    for (int64_t l = 0; l < lanes; ++l) {
      keyProducts[l] = dRow[l] * u[l] - alpha[i] * row[l] * dv[l];
      double dDecayed = dRow[l] - k[i] * dv[l];
      decayProducts[l] = dDecayed * row[l];
      dRow[l] = alpha[i] * dDecayed;
    }
    dk[i] += sum(keyProducts);
    dAlpha[i] += sum(decayProducts);
  }
}

void gdn::reference::reverseState(const ChunkRows &rows, const double *states,
                                  const double *e, const double *dO,
                                  double *dState, double *dV,
                                  const ChunkGradients &gradients) {
  int64_t K = rows.K;
  for (int64_t t = rows.tokens - 1; t >= 0; --t) {
    const double *before = states + t * K * lanes;
    double du[lanes], u[lanes], products[lanes], *dv = dV + t * lanes;
    reverseOutput(rows, t, before + K * lanes, dO + t * lanes, dState, du,
                  gradients.dq + t * K);
    for (int64_t l = 0; l < lanes; ++l) {
      products[l] = du[l] * e[t * lanes + l];
      u[l] = rows.beta[t] * e[t * lanes + l];
      dv[l] = rows.beta[t] * du[l];
    }
    gradients.dBeta[t] += sum(products);
    reverseUpdate(rows, t, before, u, dv, dState, gradients.dk + t * K,
                  gradients.dAlpha + t * K);
  }
}
