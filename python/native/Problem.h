//===- Problem.h - A call's arguments ---------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_PROBLEM_H
#define GDN_PYTHON_NATIVE_PROBLEM_H

#include "gdn-c/Calls.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// The numbers of the manifest (gdn/kernels.json), whose tables the build
/// writes as macros: a file defines those that it wants and includes
/// Manifest.inc.
namespace gdn::manifest {
#define GDN_NUMBER(name, value) inline constexpr int64_t name = value;
#include "Manifest.inc"
} // namespace gdn::manifest

namespace gdn::cpu {

/// The types of the manifest, and all others.
enum class Element : uint8_t {
#define GDN_TYPE(key, ...) key,
#include "Manifest.inc"
  Other
};

/// What there is to know of a type: its name in Python, its bits, and what the
/// runtime calls it.
struct ElementInfo {
  const char *name;
  int64_t bits;
  int32_t dtype;
};

inline constexpr ElementInfo allElements[] = {
#define GDN_TYPE(key, name, bits, dlpack) {name, bits, GDN_DTYPE_##key},
#include "Manifest.inc"
    {"another type", 0, 0}};

constexpr const ElementInfo &infoOf(Element element) {
  return allElements[static_cast<int>(element)];
}
constexpr int64_t sizeOf(Element element) { return infoOf(element).bits / 8; }
constexpr const char *nameOf(Element element) { return infoOf(element).name; }

/// Largest number of dimensions of an array.
inline constexpr int kMaxRank = 4;

/// A view of an array; absent if `rank` is negative.
struct Array {
  Element element = Element::Other;
  /// DLPack's name of the type, for messages about others.
  uint8_t typeCode = 0, typeBits = 0;
  int rank = -1;
  std::array<int64_t, kMaxRank> sizes{}, strides{};
  /// Null if only the description counts.
  void *data = nullptr;

  bool isPresent() const { return rank >= 0; }
  int64_t countElements() const;
  /// Gives it the strides of a dense array.
  void makeDense();
  char *at(int64_t index) const {
    return static_cast<char *>(data) + index * sizeOf(element);
  }
  /// Element i of a list of integers, or that of a table in column j.
  int64_t integerAt(int64_t i, int64_t j = 0) const {
    int64_t at = i * strides[0] + (j ? j * strides[1] : 0);
    return element == Element::I32 ? static_cast<const int32_t *>(data)[at]
                                   : static_cast<const int64_t *>(data)[at];
  }
  bool hasShapeOf(const Array &other) const {
    return rank == other.rank && sizes == other.sizes;
  }
  /// Whether both are one view of the same memory.
  bool isSameView(const Array &other) const;
};

/// Where all arrays of a call lie, as DLPack names it.
struct Device {
  enum Type : int32_t { CPU = 1, CUDA = 2 };
  int32_t type = CPU;
  int32_t index = 0;

  bool operator==(const Device &) const = default;
};

/// What there is to know of a gate's domain.
struct GateDomain {
  /// Whether it has parameters, A_log and dt_bias.
  bool hasParameters;
  /// Its name in functions, and the least logarithm that it makes, or null.
  const char *fact, *lowerBound;

  /// Whether a gate is the decay itself, not its logarithm.
  bool isLinear() const { return std::string_view(fact) == "linear"; }
};

/// What there is to know of beta's domain.
struct BetaDomain {
  /// What the sigmoid of beta is multiplied by; 0 where beta is a value.
  int sigmoid;
  /// Its name in functions.
  const char *fact;
};

inline constexpr GateDomain allGateDomains[] = {
#define GDN_GATE_DOMAIN(key, name, hasParameters, fact, bound)                 \
  {hasParameters, fact, bound},
#include "Manifest.inc"
};
inline constexpr BetaDomain allBetaDomains[] = {
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) {sigmoid, fact},
#include "Manifest.inc"
};

/// The options of a call as the package packs them into an integer
/// (_library.py): from the lowest bit on, a field each. The manifest says what
/// they mean.
struct Options {
#define GDN_OPTION(field, width) uint64_t field : width = 0;
#include "Manifest.inc"

  const GateDomain &gateForm() const { return allGateDomains[gateDomain]; }
  const BetaDomain &betaForm() const { return allBetaDomains[betaDomain]; }
  /// Whether types and options alone choose the kernels. The bits of a sequence
  /// then depend on nothing beside it: kernels of chunks compute segments of
  /// the caller's length, however long the sequences are.
  bool hasFixedKernels() const { return split == GDN_SPLIT_LENGTH; }
};

/// The arrays of a call, or their gradients. B, T, N, H, Hq, K, V as in
/// docs/Spec.md.
struct Arrays {
  /// [B, T, Hq, K], the same, [B, T, H, V].
  Array q, k, v;
  /// [B, T, H], and a gate per key channel [B, T, H, K]; an absent gate is no
  /// decay, an absent beta is 1.
  Array gate, beta;
  /// Parameters of a raw gate: [H], and dtBias [H K] or [H, K] of one per
  /// channel.
  Array aLog, dtBias;
  /// [N, H, K, V], or [N, H, V, K] with `stateVFirst`; with `stateIndices` a
  /// pool [P, ...] of such.
  Array initialState;
  /// [N + 1].
  Array cuSeqlens;
  /// [N]: the row of the pool that has a sequence's state. A sequence with a
  /// row below `firstState`, or of P and more, has none, and an output of
  /// zeros.
  Array stateIndices;
  /// [N], with `stateIndices`: a sequence with 0 begins with zeros, whatever
  /// its row holds.
  Array hasInitialState;
  /// States after tokens, [R, ...]: of sequence n that after its token t is row
  /// stepIndices[n, t], [N, steps]. It begins with the row of its step
  /// numAccepted[n] - 1, [N], and with parents, [N, steps], tokens with the
  /// states after others. Until settleSteps they may be those of the pool.
  Array stepStates, stepIndices, numAccepted, parents;
  /// Or, [N + 1] and [N], those after each stepIntervals[n] tokens in rows from
  /// stepStarts[n] to before stepStarts[n + 1].
  Array stepStarts, stepIntervals;
  /// Outputs: as v, and as the state. In a backward they are the gradients of
  /// these, and inputs.
  Array o, finalState;
};

/// The number of arrays, which are in the package's order.
inline constexpr int kNumArrays = 0
#define GDN_ARRAY(...) +1
#include "Manifest.inc"
    ;
/// How many of these, the first ones, have gradients.
inline constexpr int kNumGradients = manifest::Gradients;

/// The arrays in this order.
template <typename Arrays> auto arraysOf(Arrays &a) {
  return std::array{
#define GDN_ARRAY(field, ...) &a.field,
#include "Manifest.inc"
  };
}

/// What a call computes: outputs, these and what its gradients need, or
/// gradients.
enum class Kind : uint8_t { Forward, Saving, Backward };

/// The arguments of a call.
struct Problem : Options, Arrays {
  Kind kind = Kind::Forward;
  Device device;
  /// Factor of the read-out.
  double scale = 1.0;
  /// Most threads to use, at least 1.
  int threads = 1;
  /// Tokens of the longest sequence if the caller knows them on the host, or 0.
  int64_t maxSeqlen = 0;
  /// What a forward on a GPU saves, as gdn.chunk_gated_delta_rule returns it
  /// with a `state_interval` of HopperSavedTokens.
  Array writes, states;
  /// Of a backward the gradients to be written, each with the shape of its
  /// input. On a CPU those that nobody wants are absent.
  const Arrays *gradients = nullptr;

  bool isOnCPU() const { return device.type == Device::CPU; }
  int64_t batches() const { return q.sizes[0]; }
  int64_t tokens() const { return q.sizes[1]; }
  int64_t keyHeads() const { return q.sizes[2]; }
  int64_t keyChannels() const { return q.sizes[3]; }
  int64_t valueHeads() const { return v.sizes[2]; }
  int64_t valueChannels() const { return v.sizes[3]; }
  bool hasChannelGates() const { return gate.rank == 4; }
  /// Gates of a token and value head.
  int64_t gatesOfHead() const { return hasChannelGates() ? keyChannels() : 1; }
  bool hasPool() const { return stateIndices.isPresent(); }
  /// Whether it keeps the states after every so many tokens.
  bool keepsEvery() const { return stepIntervals.isPresent(); }
  /// Tokens between the states that a sequence keeps, none from 0 down.
  int64_t keptEvery(int64_t sequence) const {
    return keepsEvery() ? stepIntervals.integerAt(sequence)
                        : stepIndices.isPresent();
  }
  int64_t sequences() const {
    return cuSeqlens.isPresent() ? cuSeqlens.sizes[0] - 1 : batches();
  }
  /// What messages call one of its arrays; a gradient, what they call its
  /// input.
  const char *nameOf(const Array &array) const;
};

/// Why a call is refused, which is thrown: the Python exception and its
/// message.
struct Error {
  const char *kind;
  std::string message;
};

/// Throws "<name>: expected <rule>, got <got>".
[[noreturn]] void fail(const std::string &name, const std::string &rule,
                       const std::string &got, const char *kind = "ValueError");

/// Says where a call keeps the states after tokens that has them in its pool,
/// in place of a final state: rows [N, steps] may be those of the pool.
void settleSteps(Problem &problem);

/// Compares the arguments with the rules of the call. Overlaps are looked at
/// where addresses are known, contents where these are the CPU's. Outputs may
/// be absent.
void check(const Problem &problem);

/// The part of `check` that looks at outputs: elements of these have memory
/// apart from one another,
void checkOutputs(const Problem &problem);
/// and outputs of a forward have memory apart from one another and from inputs.
void checkOverlaps(const Problem &problem);

/// Refuses arrays with elements and no address, which a call cannot read.
void checkMemory(const Problem &problem);

/// Boundaries that lie on the host: they ascend from 0 to at most `tokens`.
void checkBoundaries(const Array &boundaries, int64_t tokens);

/// Rows of a pool of `count` states that lie on the host: of those from `first`
/// on no two are equal. If others are refused, each is one of the pool, or -1,
/// which engines write for none.
void checkStateIndices(const Array &rows, int64_t first, int64_t count,
                       bool refusesOthers = false,
                       const char *name = "state_indices");

/// "cpu", "cuda:0".
std::string nameOf(Device device);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_PROBLEM_H
