//===- CPU.h - Calls on a CPU -----------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_CPU_H
#define GDN_PYTHON_NATIVE_CPU_H

#include "Problem.h"

#include "gdn/CostModel/CostModel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

namespace gdn::cpu {

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
inline float loadFloat(const void *data, Element element, int64_t index) {
  if (element == Element::F32)
    return static_cast<const float *>(data)[index];
  uint16_t bits = static_cast<const uint16_t *>(data)[index];
  return element == Element::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

inline void storeFloat(void *data, Element element, int64_t index,
                       float value) {
  if (element == Element::F32)
    static_cast<float *>(data)[index] = value;
  else
    static_cast<uint16_t *>(data)[index] =
        element == Element::BF16 ? floatToBF16(value) : floatToF16(value);
}

//===----------------------------------------------------------------------===//
// The compiled kernels
//===----------------------------------------------------------------------===//

/// An argument of a kernel in the compiler's C interface
/// (gdn/Pipelines/Pipelines.h): `dims` are the extents, then the strides.
struct MemRef {
  void *allocated, *aligned;
  int64_t offset;
  int64_t dims[2 * kMaxRank];
};

enum class Algorithm : uint8_t {
#define GDN_CPU_ALGORITHM(key) key,
#include "Manifest.inc"
};

/// What a gate decays: the state of a head, or a key channel of it.
enum class Decay : uint8_t {
#define GDN_DECAY(key) key,
#include "Manifest.inc"
};

/// Levels of x86-64 that kernels are compiled for, in ascending order, as the
/// manifest lists them.
using Isa = cost::CoreLevel;

/// The kernels of one size. Each computes an item of the grid, a sequence and a
/// value head, B = Hq = H = 1, of the MemRefs q, k, v, beta, gate and initial
/// state. Gates are logarithms, one a token or one a token and key channel.
struct KernelSet {
  Algorithm algorithm;
  Decay decay;
  Element element;
  /// K = V.
  int64_t channels;
  Isa isa;
  /// What kernels of this type of arrays cost.
  cost::CoreOperand operand;
  /// The name that people see.
  const char *name;
  /// Forwards, whose next arguments are o and the final state: of states [K, V]
  /// and [V, K], each without and with normalised q and k. Or gradients, in
  /// float32 with states [K, V]: their next arguments are the gradients of
  /// these two, and those of the first six, written. They are of gates as
  /// logarithms, and of gates as factors, whose gradient divides by none.
  void (*functions[4])();
};

/// Calls one of these functions.
template <typename... Arguments>
void callKernel(void (*function)(), Arguments... arguments) {
  reinterpret_cast<void (*)(decltype(&arguments)...)>(function)(&arguments...);
}

/// All that this build carries.
std::span<const KernelSet> allKernels();

/// The smallest kernel of at least `channels` channels for this CPU, in its
/// highest level; null if there is none.
const KernelSet *findKernel(Algorithm algorithm, Decay decay, Element element,
                            int64_t channels);

/// The name of the fastest level of this CPU, or of the one of its levels that
/// the environment variable GDN_CPU_ISA names; "none" if it has none.
const char *getIsa();

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
Ranges rangesOf(const Problem &problem);

/// The longest first, so that no thread is left alone with one at the end.
void sortByLength(Ranges &ranges);

using Floats = std::vector<float>;

/// Tokens, or the state of an item, of any float type, with distances in
/// elements. Those of an absent array have no rows.
struct Matrix {
  char *data = nullptr;
  Element element = Element::F32;
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
Matrix tokensOf(const Array &array, const Range &range, int64_t head);
/// What a head has of a parameter, [H] or [H width], or in rows [H, width].
Matrix parameterOf(const Array &parameter, int64_t head, int64_t width);
/// The state of a row and head; `isTurned` as [K, V] if it is [V, K].
Matrix stateOf(const Array &states, int64_t row, int64_t head,
               bool isTurned = false);

/// The row of `problem.initialState` and `problem.finalState` that has the
/// state of a sequence; -1 of a sequence that has none in a pool.
int64_t stateRowOf(const Problem &problem, int64_t sequence);
/// The row of `problem.stepStates` that has a kept state of a sequence, and
/// that of the state before a token; -1 if there is none, or if the token
/// follows the one before.
int64_t stepRowOf(const Problem &problem, int64_t sequence, int64_t step);
int64_t parentRowOf(const Problem &problem, int64_t sequence, int64_t step);
/// The state that a sequence begins with, at a head; without data for zeros.
Matrix stateBefore(const Problem &problem, int64_t sequence, int64_t head,
                   bool isTurned = false);

/// Memory as dense rows.
Matrix matrixOf(Floats &memory, int64_t columns);

/// Copies what both have.
void copy(const Matrix &from, const Matrix &to);

/// Makes memory of a matrix, with zeros where it has nothing.
Matrix load(const Matrix &from, Floats &to, int64_t rows, int64_t columns);

/// Makes outputs of tokens zeros, of all heads.
void clearOutputs(const Problem &problem, const Range &range);

/// Kernels take log gates below this for one in whose decay, 2^-128, nothing is
/// left of a state.
constexpr float kLeastGate = -89.0f;

/// A raw gate of a head: -e^A_log softplus(x), or bound sigmoid(e^A_log x).
/// float has no room for the factors of many a gate that it has room for
/// itself: they are double.
class RawGate {
public:
  RawGate(const Problem &problem, int64_t head);

  /// Those of a token, as many as it has gates.
  Floats biases;

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
  double bound = 0;
};

/// The logarithms of the decay at one head, [tokens]; of gates per channel
/// [tokens, channels], with zeros behind those of the call.
void loadGate(const Problem &problem, const Range &range, int64_t head,
              int64_t channels, Floats &gate);
/// The write strengths at one head.
void loadBeta(const Problem &problem, const Range &range, int64_t head,
              Floats &beta);

/// Does what makeItem() gives for each item, on up to `threads` threads, this
/// one among them. Each has its own. Threads live as long as the call: nothing
/// is left behind that a fork, or another library's threads, could trip over.
/// If no further thread can be had, those that exist do the work.
void forEachItem(int64_t count, int threads,
                 const std::function<std::function<void(int64_t)>()> &makeItem);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What a call runs.
struct KernelChoice {
  const KernelSet *kernel = nullptr;
  /// Arrays are copied to the kernel's number of channels and type.
  bool padded = false;
  int threads = 1;
  /// Predicted seconds of both algorithms on one thread.
  double chunkSeconds = 0, recurrentSeconds = 0;
};

/// Tokens that a padded copy holds at a time.
inline constexpr int64_t kSegmentTokens = 2048;

/// Threads that are worth starting for so many items, which take one thread
/// `seconds`.
int countThreads(const Problem &problem, int64_t items, double seconds);

/// Decides for sequences of a problem that `check` accepts.
KernelChoice chooseKernel(const Problem &problem, const Ranges &sequences);

/// What a call would run as a JSON object.
std::string describe(const Problem &problem);

/// Checks a call and runs it.
void run(const Problem &problem);

/// Computes these sequences as the choice says.
void runForward(const Problem &problem, const KernelChoice &chosen,
                Ranges sequences);

/// Computes segments of the sequences side by side.
void runInSegments(const Problem &problem, const Ranges &sequences);

/// Writes the gradients of a call whose `o` and `finalState` are the gradients
/// of these outputs; absent ones are zero. Nothing but the call's inputs was
/// kept: what the gradients need of the forward is computed again.
void runBackward(const Problem &problem, Ranges sequences);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_CPU_H
