//===- Items.h - What the items of a call read and write --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_ITEMS_H
#define GDN_PYTHON_NATIVE_ITEMS_H

#include "Kernels.h"
#include "Problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace gdn::cpu {

/// Tokens of one sequence.
struct Range {
  int64_t batch = 0, begin = 0, end = 0;
  int64_t length() const { return end - begin; }
};

/// The state of one item, [rows, columns] of any float type.
struct StateView {
  char *data = nullptr;
  Element element = Element::F32;
  int64_t rows = 0, columns = 0, rowStride = 0, columnStride = 1;

  void *row(int64_t i) const { return data + i * rowStride * sizeOf(element); }
  /// Whether a kernel reads and writes it where it lies.
  bool isDirect() const { return element == Element::F32 && columnStride == 1; }
};

/// The sequences of a call.
std::vector<Range> rangesOf(const Problem &problem);

/// Their numbers, the longest first, so that no thread is left alone with one
/// at the end.
std::vector<int64_t> orderByLength(const std::vector<Range> &ranges);

/// Where element [batch, token, head] of an array lies; o, q, k and v have a
/// further dimension.
inline char *at(const Array &array, int64_t batch, int64_t token,
                int64_t head) {
  int64_t index = batch * array.strides[0] + token * array.strides[1] +
                  head * array.strides[2];
  return static_cast<char *>(array.data) + index * sizeOf(array.element);
}

/// Where element `index` of a parameter lies, [H] or [H K], or in rows [H, K].
inline int64_t offsetOf(const Array &parameter, int64_t index) {
  if (parameter.rank == 1)
    return index * parameter.strides[0];
  return index / parameter.sizes[1] * parameter.strides[0] +
         index % parameter.sizes[1] * parameter.strides[1];
}
/// That element; 0 where the parameter is absent.
float loadParameter(const Array &parameter, int64_t index);
/// The biases of the raw gates of a token and head.
std::vector<double> loadBiases(const Problem &problem, int64_t head);

/// Kernels take log gates below this for one in whose decay, 2^-128, nothing is
/// left of a state.
constexpr float kLeastGate = -89.0f;

/// A raw gate of a head: -e^A_log softplus(x), or bound sigmoid(e^A_log x).
/// float has no room for the factors of many a gate that it has room for
/// itself: they are double.
class RawGate {
public:
  RawGate(const GateDomainInfo &domain, float aLog)
      : rate(std::exp(static_cast<double>(aLog))),
        bound(domain.lowerBound ? std::strtod(domain.lowerBound, nullptr) : 0) {
  }

  /// Raised to kLeastGate; NaN stays NaN.
  float gate(double x) const {
    double gate = isBounded() ? bound * sigmoid(rate * x) : -rate * softplus(x);
    return static_cast<float>(std::max<double>(gate, kLeastGate));
  }
  /// The derivative of the gate by x.
  double slope(double x) const {
    double part = sigmoid(isBounded() ? rate * x : x);
    return isBounded() ? bound * rate * part * (1.0 - part) : -rate * part;
  }
  /// That by A_log, from the gate and its derivative by x.
  double slopeOfRate(double x, float gate, double slope) const {
    return isBounded() ? x * slope : static_cast<double>(gate);
  }

private:
  bool isBounded() const { return bound != 0; }
  static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
  static double softplus(double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }

  double rate;
  /// 0 of a gate without one.
  double bound;
};

/// The logarithms of the decay at one head, [tokens]; of gates per channel
/// [tokens, channels], with zeros behind those of the call.
void loadGate(const Problem &problem, const Range &range, int64_t head,
              int64_t channels, std::vector<float> &gate);
/// The write strengths at one head.
void loadBeta(const Problem &problem, const Range &range, int64_t head,
              std::vector<float> &beta);

StateView stateOf(const Array &states, int64_t row, int64_t head);

/// The row of `problem.initialState` and `problem.finalState` that has the
/// state of a sequence; -1 of a sequence that has none in a pool.
int64_t stateRowOf(const Problem &problem, int64_t sequence);

/// Makes outputs of tokens zeros, of all heads.
void clearOutputs(const Problem &problem, const Range &range);

/// Copies what both states have.
void copyState(const StateView &from, const StateView &to);

/// The view [1, tokens, 1, channels] at one head.
MemRef<4> viewOf(void *data, int64_t tokens, int64_t tokenStride,
                 int64_t channels);
MemRef<4> viewOf(const StateView &state);
/// The view [1, tokens, 1] of a dense column.
MemRef<3> viewOf(float *column, int64_t tokens);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_ITEMS_H
