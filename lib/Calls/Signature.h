//===- Signature.h - What functions compute, and calls ask for --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_SIGNATURE_H
#define GDN_LIB_CALLS_SIGNATURE_H

#include "Call.h"

#include <utility>
#include <vector>

namespace gdn::calls {

/// States that a call has: none, one after each sequence, or one before it too.
/// A function for any may find out in a call.
enum class Ends : uint8_t { None, Final, Both, Any };

/// Arrays of which functions find out in a call whether it has them: which
/// sequences begin with their rows, and how many tokens each has accepted.
inline constexpr std::string_view kAsked[] = {"has_initial_state",
                                              "num_accepted"};
/// Arrays of functions that keep the states after tokens.
inline constexpr std::string_view kSteps[] = {
    "step_states", "step_indices", "parents", "step_starts", "step_intervals"};

/// Types, sizes and facts by which a call finds its functions. Element types
/// are GDN_DTYPE_*, 0 of an absent array.
struct Signature {
  int64_t keyChannels = 0, valueChannels = 0;
  int32_t element = 0, gate = 0, beta = 0;
  /// That of the rows of a pool that sequences name.
  int32_t stateIndices = 0;
  /// Bits of kAsked: arrays that a call has; of a function, those that it asks
  /// for, which calls need not have.
  uint8_t asked = 0;
  /// Bits of kSteps: arrays that both have or neither; and of a function, those
  /// among them that calls need not have.
  uint8_t steps = 0, maybeSteps = 0;
  /// The type of step_states.
  int32_t stepStates = 0;
  Ends ends = Ends::None;
  bool isPacked = false;
  /// Whether there is a gate for each key channel.
  bool hasChannelGates = false;
  /// That of states, 0 where there is none.
  int32_t state = 0;
  /// "kv" or "vk"; empty if states may lie in either way, or are absent.
  std::string_view stateLayout;
  std::string_view op, gateDomain, betaDomain, norm, stateInterval;
  /// The bound of a gate whose form has one, as tables print it.
  std::string_view lowerBound;

  bool operator==(const Signature &) const = default;
  /// Whether a function serves what this one asks for.
  bool isServedBy(const Signature &function) const;
};

/// What a call asks for, of the functions of an op.
Signature signatureOf(const Call &call, std::string_view op);
/// What the functions of an entry serve.
Signature signatureOf(const GdnEntryDesc &entry);

/// The channels of a function's heads: of q, and of v.
int64_t keyChannelsOf(const GdnFunctionDesc &function);
int64_t valueChannelsOf(const GdnFunctionDesc &function);

/// Whether an argument of a function is a state that may lie in either way.
bool hasAnyLayout(const GdnArgDesc &arg);
/// Whether it is one of the states of sequences, of a forward or a backward.
bool isState(const GdnArgDesc &arg);

/// K and V.
using Channels = std::pair<int64_t, int64_t>;

/// The channels of heads that functions of a table have, the smallest heads
/// first.
const std::vector<Channels> &channelsOf(const GdnCallTable &table);

/// The most channels that a head may have.
int64_t maxChannels(const GdnCallTable &table);

/// The functions that serve what a call asks for; null if there is none.
const GdnEntryDesc *findEntry(const GdnCallTable &table,
                              const Signature &wanted);

/// Says which part of what is asked for no function of its op serves, with
/// those that there are.
[[noreturn]] void explainMissing(const GdnCallTable &table, const Call &call,
                                 const Signature &wanted);

/// How the functions of a variant cut sequences, and whether the bits of one
/// depend on the gates of others.
struct CutKind {
  bool isCut = false, hasParts = false, hasTwoLengths = false, isLate = false,
       looksAtGates = false;

  bool operator==(const CutKind &) const = default;
};
CutKind cutOf(const GdnVariantDesc &variant);

/// The function of an entry with that schedule and cut; null if there is none.
const GdnVariantDesc *findVariant(const GdnEntryDesc *entry,
                                  std::string_view schedule, CutKind cut = {});

/// The same, or the one that also looks at the gates if there is one and `call`
/// has no segment_length, with which other sequences change no bit.
const GdnVariantDesc *findFaster(const Call &call, const GdnEntryDesc *entry,
                                 std::string_view schedule, CutKind cut = {});

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_SIGNATURE_H
