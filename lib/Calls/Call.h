//===- Call.h - A call as this library reads it -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_CALL_H
#define GDN_LIB_CALLS_CALL_H

#include "gdn-c/Calls.h"
#include "gdn/CostModel/Segments.h"

#include <string>
#include <string_view>

namespace gdn::calls {

/// Makes the message the thread's last one, and throws.
[[noreturn]] void refuse(GdnRuntimeStatus status, const std::string &message);
/// Throws what another library has refused.
void require(GdnRuntimeStatus status);

/// Runs what may be refused, or need memory of the host.
GdnRuntimeStatus runGuarded(void (*body)(void *), void *data);
template <typename Body> GdnRuntimeStatus guarded(Body body) {
  return runGuarded([](void *data) { (*static_cast<Body *>(data))(); }, &body);
}

/// "float32", "bfloat16"; "None" of 0.
std::string typeName(int32_t dtype);
constexpr int64_t sizeOf(int32_t dtype) { return GDN_DTYPE_BYTES(dtype); }

/// Whether a C string is `name`. Each call compares some hundred, of which most
/// differ in the first letter.
inline bool isCalled(const char *text, std::string_view name) {
  for (char letter : name)
    if (*text++ != letter)
      return false;
  return !*text;
}

/// The fact of that name, or `none`.
std::string_view findFact(const GdnFact *facts, int32_t count,
                          std::string_view name,
                          std::string_view none = "false");

/// The type that q, k and v are taken as: theirs, or float32 if they have
/// different ones.
constexpr int32_t commonType(int32_t q, int32_t k, int32_t v) {
  return q == k && q == v ? q : GDN_DTYPE_F32;
}

/// Largest number of dimensions of an array.
inline constexpr int kMaxRank = 4;

/// The ops whose functions serve calls.
inline constexpr std::string_view kChunkOp = "gdn.chunk_gated_delta_rule",
                                  kTokenOp = "gdn.recurrent_gated_delta_rule",
                                  kBackwardOp =
                                      "gdn.chunk_gated_delta_rule_bwd";

/// A call with its arrays and sizes at hand. B, T, N, H, Hq, K, V as in
/// docs/Spec.md.
class Call {
public:
  explicit Call(const GdnCall &given) : given(given), op(fact("op")) {}

  /// Reads the sizes; those of arrays that are not there, or of another rank,
  /// are 0.
  void read();

  const GdnCall &get() const { return given; }
  /// The number of the array of that name, -1 if the call does not list it, and
  /// the array; null for none.
  int32_t indexOf(std::string_view name) const;
  const GdnTensor *find(std::string_view name) const {
    int32_t index = indexOf(name);
    return index < 0 ? nullptr : given.arrays[index].tensor;
  }
  /// Its element type; 0 for none.
  int32_t typeOf(std::string_view name) const;
  /// The type of o, which is q's, or token by token v's.
  int32_t outputType() const { return typeOf(isByToken() ? "v" : "q"); }
  std::string_view fact(std::string_view name) const {
    return findFact(given.facts, given.num_facts, name);
  }
  /// How its states lie: "kv" unless the call says otherwise.
  std::string_view stateLayout() const {
    return given.state_layout ? given.state_layout : "kv";
  }
  /// What messages call something.
  std::string say(std::string_view name) const;
  /// The value of a fact in the caller's words.
  std::string sayFact(std::string_view name, std::string_view value) const;
  /// Throws "<name>: expected <rule>, got <got>".
  [[noreturn]] void
  refuse(std::string_view name, const std::string &rule, const std::string &got,
         GdnRuntimeStatus status = GDN_ERROR_INVALID_ARGUMENT) const;

  bool isOnCPU() const { return given.device == GDN_DEVICE_CPU; }
  bool isPacked() const { return find("cu_seqlens"); }
  /// Whether sequences are to be computed token by token, whatever is faster.
  bool isByToken() const;
  /// Whether there is a gate for each key channel.
  bool hasChannelGates() const {
    const GdnTensor *gate = find("gate");
    return gate && gate->rank == kMaxRank;
  }
  /// Whether it keeps the state after each token.
  bool keepsTokens() const {
    return find("step_indices") && !find("step_intervals");
  }
  bool isBackward() const { return op.ends_with("_bwd"); }
  /// Whether its scale is K^(-1/2), the one that functions have.
  bool hasUsualScale() const;
  /// Tokens between the states that are saved; 0 if none are.
  int64_t savedTokens() const;
  /// Whether types and options alone choose the function, so that the bits of a
  /// sequence depend on nothing beside it.
  bool isFixed() const { return given.split == GDN_SPLIT_LENGTH; }
  /// Whether it is to be computed token by token, and in no other way.
  bool isFixedByToken() const { return isFixed() && isByToken(); }
  /// Whether it says itself that its sequences be cut.
  bool asksForSegments() const;
  cost::SplitRequest splitRequest() const;

  int64_t batches = 0, tokens = 0, sequences = 0, keyHeads = 0, heads = 0;
  int64_t keyChannels = 0, valueChannels = 0;

private:
  const GdnCall &given;
  std::string_view op;
};

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_CALL_H
