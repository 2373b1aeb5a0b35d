//===- Problem.h - One call of the forward ----------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_PROBLEM_H
#define GDN_PYTHON_NATIVE_PROBLEM_H

#include "Elements.h"

#include "gdn/CostModel/CostModel.h"
#include "gdn/CostModel/Segments.h"

#include <array>
#include <string>

namespace gdn::cpu {

/// Largest number of channels of a head that a kernel takes.
inline constexpr int64_t kMaxChannels = manifest::MaxChannels;
/// Largest number of dimensions of an array.
inline constexpr int kMaxRank = 4;

/// Type, extents and strides of an array; absent if `rank` is negative.
struct ArrayType {
  Element element = Element::Other;
  /// DLPack's name of the type, for messages about others.
  uint8_t typeCode = 0, typeBits = 0;
  int rank = -1;
  std::array<int64_t, kMaxRank> sizes{}, strides{};

  bool isPresent() const { return rank >= 0; }
  bool operator==(const ArrayType &) const = default;
};

/// A view of an array. `data` is null where only the description counts.
struct Array : ArrayType {
  void *data = nullptr;
};

/// Where all arrays of a call lie, as DLPack names it.
struct Device {
  enum Type : int32_t { CPU = 1, CUDA = 2 };
  int32_t type = CPU;
  int32_t index = 0;

  bool operator==(const Device &) const = default;
};

enum class GateDomain : uint8_t {
#define GDN_GATE_DOMAIN(key, ...) key,
#include "Manifest.inc"
};
enum class BetaDomain : uint8_t {
#define GDN_BETA_DOMAIN(key, ...) key,
#include "Manifest.inc"
};

/// How a CPU makes the logarithm of the decay from a gate x; None: not at all.
enum class GateFormula : uint8_t {
  None,
  Identity,
  Log,
  /// -exp(A_log) softplus(x + dt_bias).
  Softplus,
  /// A bound times sigmoid(exp(A_log) (x + dt_bias)).
  Sigmoid
};

/// What there is to know of a gate's domain.
struct GateDomainInfo {
  /// In the words of Python.
  const char *name;
  GateFormula formula;
  /// Whether it has parameters, A_log and dt_bias.
  bool hasParameters;
  /// Its name in functions, and the least logarithm that it makes, or null.
  const char *fact, *lowerBound;
};

/// What there is to know of beta's domain.
struct BetaDomainInfo {
  /// A phrase.
  const char *name;
  /// What the sigmoid of beta is multiplied by; 0 where beta is a value.
  int sigmoid;
};

inline constexpr GateDomainInfo allGateDomains[] = {
#define GDN_GATE_DOMAIN(key, name, formula, hasParameters, fact, bound)        \
  {name, GateFormula::formula, hasParameters, fact, bound},
#include "Manifest.inc"
};
inline constexpr BetaDomainInfo allBetaDomains[] = {
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) {name, sigmoid},
#include "Manifest.inc"
};

constexpr const GateDomainInfo &infoOf(GateDomain domain) {
  return allGateDomains[static_cast<int>(domain)];
}
constexpr const BetaDomainInfo &infoOf(BetaDomain domain) {
  return allBetaDomains[static_cast<int>(domain)];
}

/// The arguments of a forward call that are no arrays.
struct Options {
  /// Factor of the read-out.
  double scale = 1.0;
  GateDomain gateDomain = GateDomain::Log;
  BetaDomain betaDomain = BetaDomain::Value;
  bool l2norm = false;
  bool stateVFirst = false;
  /// Token by token in float32, whatever is faster.
  bool recurrent = false;
  /// Arrays of uint16 are the bits of bf16.
  bool bf16AsBits = false;
  /// A CPU computes arrays of 16 bits in float32, and rounds outputs once.
  bool float32Arithmetic = false;
  /// The gradients on a GPU are made of what the forward saved, beside inputs.
  bool savesStates = false;
  /// Most threads to use, at least 1.
  int threads = 1;
  /// Tokens of the longest sequence if the caller knows them on the host, or 0.
  int64_t maxSeqlen = 0;
  /// Whether sequences are cut into segments.
  cost::SplitRequest split;
  /// With `stateIndices`, the first row of the pool that sequences may name.
  int64_t firstState = 0;

  /// Whether types and options alone choose the kernels. The bits of a sequence
  /// then depend on nothing beside it: kernels of chunks compute segments of
  /// the caller's length, however long the sequences are.
  bool hasFixedKernels() const {
    return split.kind == cost::SplitRequest::Kind::Length;
  }
};

/// The arguments of a forward call. B, T, N, H, Hq, K, V as in docs/Spec.md.
struct Problem : Options {
  Device device;
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
  /// Outputs: as v, and as the state. In a backward they are the gradients of
  /// these, and inputs.
  Array o, finalState;
  /// What messages call the two.
  const char *oName = "out", *finalStateName = "final_state";

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
  int64_t sequences() const {
    return cuSeqlens.isPresent() ? cuSeqlens.sizes[0] - 1 : batches();
  }
};

/// Why a call is refused: the Python exception and its message. No error if
/// `kind` is null.
struct Error {
  const char *kind = nullptr;
  std::string message;

  explicit operator bool() const { return kind; }
};

/// Compares the arguments with the rules of the call. Overlaps are looked at
/// where addresses are known, contents where these are the CPU's.
Error check(const Problem &problem);

/// The part of `check` that looks at no address: outputs may be absent.
Error checkArguments(const Problem &problem);

/// The part of `check` that looks at addresses: outputs have memory apart from
/// other outputs and from the inputs.
Error checkOverlaps(const Problem &problem);

/// Refuses an array with elements and no address, which a call cannot read.
Error checkMemory(const char *name, const Array &array);

/// Whether this build has kernels for a device, and if not, why.
Error checkDevice(Device device);

/// The call as the cost model sees it.
cost::Problem describe(const Problem &problem);

/// "cpu", "cuda:0".
std::string nameOf(Device device);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_PROBLEM_H
