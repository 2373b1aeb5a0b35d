//===- Entries.cpp - The functions of a table -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <unordered_map>

using namespace gdn::calls;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
struct IndexedEntry {
  Signature signature;
  const GdnEntryDesc *entry;
};

/// What tells entries apart at a glance.
uint64_t keyOf(const Signature &s) {
  constexpr int kSize = 12, kType = 8;
  uint64_t key = static_cast<uint64_t>(s.keyChannels) << kSize |
                 static_cast<uint64_t>(s.valueChannels);
  for (int32_t type : {s.element, s.gate, s.beta})
    key = key << kType | static_cast<uint64_t>(type);
  return key << 3 | static_cast<uint64_t>(s.hasChannelGates) << 2 |
         static_cast<uint64_t>(s.isPacked) << 1 |
         static_cast<uint64_t>(s.stateIndices != 0);
}

/// The entries of a table in its order, and by what tells them apart.
struct Index {
  std::vector<IndexedEntry> entries;
  std::unordered_map<uint64_t, std::vector<const IndexedEntry *>> byKey;
  std::vector<Channels> channels;
};
} // namespace

static std::unique_ptr<Index> makeIndex(const GdnCallTable &table) {
  auto made = std::make_unique<Index>();
  made->entries.reserve(table.num_entries);
  for (int32_t i = 0; i < table.num_entries; ++i) {
    made->entries.push_back({signatureOf(*table.entries[i]), table.entries[i]});
    const IndexedEntry &one = made->entries.back();
    made->byKey[keyOf(one.signature)].push_back(&one);
    Channels own = {one.signature.keyChannels, one.signature.valueChannels};
    auto &all = made->channels;
    if (std::find(all.begin(), all.end(), own) == all.end())
      all.push_back(own);
  }
  std::sort(made->channels.begin(), made->channels.end(),
            [](const Channels &a, const Channels &b) {
              return std::pair(a.first * a.second, a) <
                     std::pair(b.first * b.second, b);
            });
  return made;
}

/// The entries of a table with their signatures, which are made once.
static const Index &indexOf(const GdnCallTable &table) {
  std::atomic_ref<void *> kept(*table.index);
  if (void *index = kept.load(std::memory_order_acquire))
    return *static_cast<const Index *>(index);
  std::unique_ptr<Index> made = makeIndex(table);
  void *other = nullptr;
  if (kept.compare_exchange_strong(other, made.get(),
                                   std::memory_order_acq_rel))
    return *made.release();
  return *static_cast<const Index *>(other);
}

const std::vector<Channels> &gdn::calls::channelsOf(const GdnCallTable &table) {
  return indexOf(table).channels;
}

int64_t gdn::calls::maxChannels(const GdnCallTable &table) {
  int64_t most = 0;
  for (auto [key, value] : channelsOf(table))
    most = std::max({most, key, value});
  for (int32_t i = 0; i < table.num_items; ++i)
    most = std::max<int64_t>(most, table.items[i].channels);
  return most;
}

const GdnEntryDesc *gdn::calls::findEntry(const GdnCallTable &table,
                                          const Signature &wanted) {
  const Index &index = indexOf(table);
  auto found = index.byKey.find(keyOf(wanted));
  if (found == index.byKey.end())
    return nullptr;
  for (const IndexedEntry *one : found->second)
    if (wanted.isServedBy(one->signature))
      return one->entry;
  return nullptr;
}

CutKind gdn::calls::cutOf(const GdnVariantDesc &variant) {
  CutKind kind;
  kind.isLate = variant.is_late;
  kind.looksAtGates = variant.looks_at_gates;
  const GdnFunctionDesc &function = *variant.function;
  for (int32_t i = 0; i < function.num_args; ++i) {
    std::string_view name = function.args[i].name;
    kind.isCut |= name == "segment_length";
    kind.hasParts |= name == "segment_parts";
    kind.hasTwoLengths |= name == "longer_segment_length";
  }
  return kind;
}

const GdnVariantDesc *gdn::calls::findVariant(const GdnEntryDesc *entry,
                                              std::string_view schedule,
                                              CutKind cut) {
  for (int32_t i = 0; entry && i < entry->num_variants; ++i)
    if (entry->variants[i].schedule == schedule &&
        cutOf(entry->variants[i]) == cut)
      return &entry->variants[i];
  return nullptr;
}

const GdnVariantDesc *gdn::calls::findFaster(const Call &call,
                                             const GdnEntryDesc *entry,
                                             std::string_view schedule,
                                             CutKind cut) {
  CutKind looking = cut;
  looking.looksAtGates = call.get().split != GDN_SPLIT_LENGTH;
  const GdnVariantDesc *found = findVariant(entry, schedule, looking);
  return found ? found : findVariant(entry, schedule, cut);
}

//===----------------------------------------------------------------------===//
// What there is instead
//===----------------------------------------------------------------------===//

namespace {
/// One thing that functions differ in.
struct Trait {
  /// The arrays or the fact that it is of.
  const char *names[2];
  /// In a caller's words; empty of a function that serves all.
  std::string (*describe)(const Signature &, const Call &);
};
} // namespace

/// "K = V = 128".
static std::string describeChannels(const Signature &s, const Call &) {
  std::string key = std::to_string(s.keyChannels),
              value = std::to_string(s.valueChannels);
  return key == value ? "K = V = " + key : "K = " + key + " and V = " + value;
}

static std::string describeEnds(const Signature &s, const Call &) {
  switch (s.ends) {
  case Ends::None:
    return "neither";
  case Ends::Final:
    return "a final state alone";
  case Ends::Both:
    return "both";
  case Ends::Any:
    break;
  }
  return {};
}

template <int32_t Signature::*type>
static std::string describeType(const Signature &s, const Call &) {
  return typeName(s.*type);
}

template <int index>
static std::string describeAsked(const Signature &s, const Call &call) {
  bool asks = s.asked >> index & 1, says = call.find(kAsked[index]);
  return !asks ? "None" : says ? "a tensor" : "";
}

template <int index>
static std::string describeSteps(const Signature &s, const Call &call) {
  bool isMaybe = s.maybeSteps >> index & 1;
  bool has =
      isMaybe ? call.find(kSteps[index]) != nullptr : s.steps >> index & 1;
  return has ? "a tensor" : "None";
}

/// In the order in which they are looked at: each message lists what there is
/// for a call that agrees in all that stands before.
static constexpr Trait allTraits[] = {
    {{"q", "v"}, describeChannels},
    {{"q"}, describeType<&Signature::element>},
    {{"gate"},
     [](const Signature &s, const Call &) -> std::string {
       return s.hasChannelGates ? "[B, T, HV, K]" : "[B, T, HV]";
     }},
    {{"gate_domain"},
     [](const Signature &s, const Call &call) {
       return call.sayFact("gate_domain", s.gateDomain);
     }},
    {{"lower_bound"},
     [](const Signature &s, const Call &) {
       return std::string(s.lowerBound.empty() ? "none" : s.lowerBound);
     }},
    {{"gate"}, describeType<&Signature::gate>},
    {{"beta"},
     [](const Signature &s, const Call &call) {
       return call.sayFact("beta_domain", s.betaDomain);
     }},
    {{"beta"}, describeType<&Signature::beta>},
    {{"qk_l2norm"},
     [](const Signature &s, const Call &call) {
       return call.sayFact("qk_l2norm", s.norm);
     }},
    {{"cu_seqlens"},
     [](const Signature &s, const Call &) -> std::string {
       return s.isPacked ? "a tensor" : "None";
     }},
    {{"state_indices"}, describeType<&Signature::stateIndices>},
    {{kAsked[0].data()}, describeAsked<0>},
    {{kSteps[0].data()}, describeSteps<0>},
    {{kSteps[1].data()}, describeSteps<1>},
    {{kSteps[2].data()}, describeSteps<2>},
    {{kSteps[3].data()}, describeSteps<3>},
    {{kSteps[4].data()}, describeSteps<4>},
    {{kAsked[1].data()}, describeAsked<1>},
    {{"initial_state", "final_state"}, describeEnds},
    {{"initial_state", "final_state"},
     [](const Signature &s, const Call &) -> std::string {
       return s.ends == Ends::None ? "float32" : typeName(s.state);
     }},
    {{kSteps[0].data()}, describeType<&Signature::stepStates>},
    {{"state_layout"}, [](const Signature &s, const Call &call) -> std::string {
       if (s.ends != Ends::None && s.stateLayout.empty())
         return {};
       bool isKV = s.ends == Ends::None || s.stateLayout == "kv";
       return call.sayFact("state_layout", isKV ? "kv" : "vk");
     }}};

/// "q, v".
static std::string nameTrait(const Trait &trait, const Call &call) {
  std::string text = call.say(trait.names[0]);
  if (trait.names[1])
    text += ", " + call.say(trait.names[1]);
  return text;
}

/// Whether two signatures are alike in the first `count` traits.
static bool agree(const Signature &function, const Signature &wanted,
                  const Call &call, size_t count) {
  return std::all_of(allTraits, allTraits + count, [&](const Trait &trait) {
    std::string own = trait.describe(function, call);
    return own.empty() || own == trait.describe(wanted, call);
  });
}

/// Adds a text to a list of those that differ.
static void addChoice(std::string &list, const std::string &text) {
  if ((" or " + list + " or ").find(" or " + text + " or ") ==
      std::string::npos)
    list += (list.empty() ? "" : " or ") + text;
}

void gdn::calls::explainMissing(const GdnCallTable &table, const Call &call,
                                const Signature &wanted) {
  for (size_t i = 0; i < std::size(allTraits); ++i) {
    const Trait &trait = allTraits[i];
    std::string known, got = trait.describe(wanted, call);
    bool isServed = false;
    for (const auto &[function, entry] : indexOf(table).entries) {
      bool isNear =
          function.stateInterval == wanted.stateInterval &&
          function.op.ends_with("_bwd") == wanted.op.ends_with("_bwd");
      if (!isNear || !agree(function, wanted, call, i))
        continue;
      std::string text = trait.describe(function, call);
      isServed |= text.empty() || text == got;
      if (!text.empty())
        addChoice(known, text);
    }
    if (!isServed)
      refuse(GDN_ERROR_NOT_SERVED,
             nameTrait(trait, call) + ": expected " + known +
                 (call.isBackward() ? " for gradients" : "") +
                 " on a GPU in this version, got " + got);
  }
  refuse(GDN_ERROR_NOT_SERVED, "expected a function for a GPU, got none");
}
