//===- Items.h - Calls on a CPU ---------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled function computes one item of a call (GdnItemDesc), on views of
// the caller's arrays: numbers of sequences and heads, packed sequences and
// strides are settled around it, so one function serves all of them.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_ITEMS_H
#define GDN_LIB_CALLS_ITEMS_H

#include "Check.h"
#include "gdn/GateForms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <vector>

namespace gdn::calls {

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

inline float bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// To the nearest, ties to even; a NaN stays one.
inline uint16_t floatToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // The exponent's bias by a multiplication, which serves subnormals too.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

/// To the nearest, ties to even; beyond the range infinity; a NaN stays one.
inline uint16_t floatToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // 65520 and above round to infinity
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { // subnormal: the sum's last bit is 2^-24
    float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(sum) -
                                        std::bit_cast<uint32_t>(0.5f));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

/// The element at `index` of an array of floats of any type.
inline float loadFloat(const void *data, int32_t dtype, int64_t index) {
  if (dtype == GDN_DTYPE_F32)
    return static_cast<const float *>(data)[index];
  uint16_t bits = static_cast<const uint16_t *>(data)[index];
  return dtype == GDN_DTYPE_BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

inline void storeFloat(void *data, int32_t dtype, int64_t index, float value) {
  if (dtype == GDN_DTYPE_F32)
    static_cast<float *>(data)[index] = value;
  else
    static_cast<uint16_t *>(data)[index] =
        dtype == GDN_DTYPE_BF16 ? floatToBF16(value) : floatToF16(value);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A call on a CPU, with its arrays and facts at hand.
struct ItemCall : CallArrays {
  explicit ItemCall(const Call &call);

  CallArrays gradients;
  bool l2norm, stateVFirst, isFixed, hasChannelGates;
  /// Whether tokens are to be taken one by one, and in float32.
  bool isByToken, isInFloat32;
  /// What q, k and v are taken as.
  int32_t element;
  /// What gates say, whether that is the decay itself, and the bound of those
  /// that have one.
  const gdn_gates::GateForm &gateForm;
  bool hasLinearGates;
  double lowerBound = 0;
  /// What the sigmoid of beta is multiplied by; 0 where beta is a value.
  float sigmoid;
  double scale;
  int32_t threads;
  int64_t firstState, sequences;

  int64_t tokens() const { return q.shape[1]; }
  int64_t keyHeads() const { return q.shape[2]; }
  int64_t keyChannels() const { return q.shape[3]; }
  int64_t valueHeads() const { return v.shape[2]; }
  int64_t valueChannels() const { return v.shape[3]; }
  int64_t channels() const { return std::max(keyChannels(), valueChannels()); }
  /// The function of GdnItemDesc that computes a forward, or a backward.
  int forwardFunction() const { return 2 * stateVFirst + l2norm; }
  int backwardFunction() const { return hasLinearGates && gate.isPresent(); }
  /// Tokens between the states that a sequence keeps, 0 if it keeps none.
  int64_t keptEvery(int64_t sequence) const {
    if (!keepsEvery())
      return stepIndices.isPresent();
    int64_t every = stepIntervals.integerAt(sequence);
    return every > 0 && every % (hasChannelGates ? 16 : 64) == 0 ? every : 0;
  }
  /// Gates of a token and value head.
  int64_t gatesOfHead() const { return hasChannelGates ? keyChannels() : 1; }
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// An argument of a function in the compiler's C interface
/// (gdn/Pipelines/Pipelines.h): `dims` are the extents, then the strides.
struct MemRef {
  void *allocated, *aligned;
  int64_t offset;
  int64_t dims[2 * kMaxRank];
};

/// Calls one of the functions of an item.
template <typename... Arguments>
void callItem(void (*function)(), Arguments... arguments) {
  reinterpret_cast<void (*)(decltype(&arguments)...)>(function)(&arguments...);
}

/// Does what makeItem() gives for each item, on up to `threads` threads, each
/// of which has its own.
template <typename MakeItem>
void forEachItem(int64_t count, int threads, MakeItem makeItem) {
  auto work = [](void *user, GdnItems *items) -> GdnRuntimeStatus {
    return guarded([&] {
      auto item = (*static_cast<MakeItem *>(user))();
      for (int64_t i; (i = gdnItemsNext(items)) >= 0;)
        item(i);
    });
  };
  // Out of memory, which another thread may have said.
  if (gdnItemsRun(count, threads, work, &makeItem))
    throw std::bad_alloc();
}

//===----------------------------------------------------------------------===//
// What items read and write
//===----------------------------------------------------------------------===//

/// Tokens of one sequence, which has a number.
struct Range {
  int64_t batch = 0, begin = 0, end = 0, sequence = 0;
  int64_t length() const { return end - begin; }
};

using Ranges = std::vector<Range>;

/// The sequences of a call. Where boundaries are only described, they are of
/// the same length.
Ranges rangesOf(const ItemCall &call);

/// The longest first, so that no thread is left alone with one at the end.
void sortByLength(Ranges &ranges);

using Floats = std::vector<float>;

/// Tokens, or the state of an item, of any float type, with distances in
/// elements. Those of an absent array have no rows.
struct Matrix {
  char *data = nullptr;
  int32_t dtype = GDN_DTYPE_F32;
  int64_t rows = 0, columns = 0, rowStride = 0, columnStride = 1;

  /// As [1, rows, 1, columns], [1, rows, 1] of a column, and [1, 1, rows,
  /// columns]. Channels lie side by side.
  MemRef asTokens() const {
    return {data, data, 0, {1, rows, 1, columns, 0, rowStride, 0, 1}};
  }
  MemRef asColumn() const {
    return {data, data, 0, {1, rows, 1, rows, rowStride, 1}};
  }
  MemRef asState() const {
    return {data, data, 0, {1, 1, rows, columns, 0, 0, rowStride, 1}};
  }
};

/// The tokens at a head of an array [B, T, H, C] or [B, T, H].
Matrix tokensOf(const View &array, const Range &range, int64_t head);
/// What a head has of a parameter, [H] or [H width], or in rows [H, width].
Matrix parameterOf(const View &parameter, int64_t head, int64_t width);
/// The state of a row and head; `isTurned` as [K, V] if it is [V, K].
Matrix stateOf(const View &states, int64_t row, int64_t head,
               bool isTurned = false);

/// The row of `call.initialState` and `call.finalState` that has the
/// state of a sequence; -1 of a sequence that has none in a pool.
int64_t stateRowOf(const ItemCall &call, int64_t sequence);
/// The row of `call.stepStates` that has a kept state of a sequence, and that
/// of the state before a token; -1 if there is none, or if the token follows
/// the one before.
int64_t stepRowOf(const ItemCall &call, int64_t sequence, int64_t step);
int64_t parentRowOf(const ItemCall &call, int64_t sequence, int64_t step);
/// The state that a sequence begins with, at a head; without data for zeros.
Matrix stateBefore(const ItemCall &call, int64_t sequence, int64_t head,
                   bool isTurned = false);

/// Memory as dense rows.
Matrix matrixOf(Floats &memory, int64_t columns);

/// Copies what both have.
void copy(const Matrix &from, const Matrix &to);

/// Makes memory of a matrix, with zeros where it has nothing.
Matrix load(const Matrix &from, Floats &to, int64_t rows, int64_t columns);

/// Makes outputs of tokens zeros, of all heads.
void clearOutputs(const ItemCall &call, const Range &range);

/// Kernels take log gates below this for one in whose decay, 2^-128, nothing is
/// left of a state.
constexpr float kLeastGate = -89.0f;

/// A raw gate of a head. float has no room for the factors of many a gate that
/// it has room for itself: they are double.
class RawGate {
public:
  RawGate(const ItemCall &call, int64_t head);

  /// Those of a token, as many as it has gates.
  Floats biases;

  /// Raised to kLeastGate; NaN stays NaN.
  float gate(double x) const {
    return static_cast<float>(
        std::max<double>(form.gate(x, rate, bound), kLeastGate));
  }
  /// The derivative of the gate by x.
  double slope(double x) const { return form.slope(x, rate, bound); }
  /// That by A_log, from the gate and its derivative by x.
  double slopeOfRate(double x, float gate, double slope) const {
    return form.rateSlope(x, rate, bound, gate, slope);
  }

private:
  const gdn_gates::GateForm &form;
  double rate, bound;
};

/// The logarithms of the decay at one head, [tokens]; of gates per channel
/// [tokens, channels], with zeros behind those of the call.
void loadGate(const ItemCall &call, const Range &range, int64_t head,
              int64_t channels, Floats &gate);
/// The write strengths at one head.
void loadBeta(const ItemCall &call, const Range &range, int64_t head,
              Floats &beta);

//===----------------------------------------------------------------------===//
// What a call runs
//===----------------------------------------------------------------------===//

/// Which functions compute the items of a forward, and how.
struct ItemChoice {
  const GdnItemDesc *items = nullptr;
  int threads = 1;
  /// Predicted seconds of both ops on one thread.
  double chunkSeconds = 0, recurrentSeconds = 0;

  /// Those of the chosen one.
  double seconds() const {
    return items->op == kTokenOp ? recurrentSeconds : chunkSeconds;
  }
};

/// Tokens that a padded copy holds at a time.
inline constexpr int64_t kSegmentTokens = 2048;

/// Whether arrays are copied to the functions' number of channels and type.
bool isPadded(const ItemCall &call, const GdnItemDesc &items);

/// Decides for these sequences of a forward.
ItemChoice chooseItems(const GdnCallTable &table, const ItemCall &call,
                       const Ranges &sequences);

/// Computes these sequences.
void runForward(const ItemCall &call, const GdnItemDesc &items, int threads,
                Ranges sequences);

/// Computes segments of the sequences side by side: of so many tokens, or as
/// many of the longest sequence.
void runInSegments(const GdnCallTable &table, const ItemCall &call,
                   int64_t split, const Ranges &sequences);

/// Writes the gradients of a call; absent ones of outputs are zero. Nothing but
/// the call's inputs was kept: what the gradients need of the forward is
/// computed again.
void runBackward(const ItemCall &call, const GdnItemDesc &items, int threads,
                 Ranges sequences);

/// Plans a call on a CPU, runs it, and says as JSON what a forward would run.
/// Refusals are thrown.
void planItems(const GdnCallTable &table, const Call &call,
               const ItemCall &onCPU, GdnCallPlan &plan);
void runItems(const GdnCallPlan &plan, const Call &call, const ItemCall &onCPU);
std::string describeItems(const GdnCallTable &table, const Call &call,
                          const ItemCall &onCPU);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_ITEMS_H
