//===- Hopper.cpp - Calls on a Hopper GPU ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include "Relayout.h"
#include "Segments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::nameOf;
using gdn::cpu::sizeOf;
namespace cost = gdn::cost;

//===----------------------------------------------------------------------===//
// What a call asks for, and which kernels serve it
//===----------------------------------------------------------------------===//

static Element elementOf(const Array &array) {
  return array.isPresent() ? array.element : Element::Other;
}

static std::string typeName(Element element) {
  return element == Element::Other ? "None" : nameOf(element);
}

Traits gdn::hopper::traitsOf(const Problem &p) {
  Traits traits = {};
  traits.keyChannels = p.keyChannels();
  traits.valueChannels = p.valueChannels();
  traits.element = p.q.element;
  traits.layout = p.cuSeqlens.isPresent() ? Layout::Packed : Layout::Fixed;
  traits.ends = p.initialState.isPresent() ? Ends::Both
                : p.finalState.isPresent() ? Ends::Final
                                           : Ends::None;
  // Without states there is nothing to lay out.
  bool hasStates = traits.ends != Ends::None;
  traits.stateLayout =
      hasStates && p.stateVFirst ? StateLayout::VK : StateLayout::KV;
  traits.state = p.initialState.isPresent() ? p.initialState.element
                 : p.finalState.isPresent() ? p.finalState.element
                                            : Element::F32;
  traits.gateDomain = p.gateDomain;
  traits.gate = elementOf(p.gate);
  traits.betaDomain = p.betaDomain;
  traits.beta = elementOf(p.beta);
  traits.norm = p.l2norm ? Norm::L2 : Norm::Plain;
  return traits;
}

namespace {
/// One thing that kernels differ in, in the words of Python.
struct Trait {
  const char *argument;
  std::string (*describe)(const Traits &);
};
} // namespace

/// "K = V = 128".
static std::string describeChannels(const Traits &t) {
  std::string value = std::to_string(t.valueChannels);
  if (t.keyChannels == t.valueChannels)
    return "K = V = " + value;
  return "K = " + std::to_string(t.keyChannels) + " and V = " + value;
}

static const char *wordOf(Layout layout) {
  static constexpr const char *words[] = {
#define GDN_HOPPER_LAYOUT(key, says) says,
#include "Manifest.inc"
  };
  return words[static_cast<int>(layout)];
}

static const char *wordOf(Ends ends) {
  static constexpr const char *words[] = {
#define GDN_HOPPER_ENDS(key, says) says,
#include "Manifest.inc"
  };
  return words[static_cast<int>(ends)];
}

static const char *wordOf(StateLayout layout) {
  static constexpr const char *words[] = {
#define GDN_HOPPER_STATE_LAYOUT(key, says) says,
#include "Manifest.inc"
  };
  return words[static_cast<int>(layout)];
}

static const char *wordOf(Norm norm) {
  static constexpr const char *words[] = {
#define GDN_HOPPER_NORM(key, says) says,
#include "Manifest.inc"
  };
  return words[static_cast<int>(norm)];
}

using Text = std::string;

/// In the order in which they are looked at: each message lists what there is
/// for a call that agrees in all that stands before.
static constexpr Trait allTraits[] = {
    {"q, v", describeChannels},
    {"q", [](const Traits &t) { return typeName(t.element); }},
    {"gate_domain",
     [](const Traits &t) -> Text { return infoOf(t.gateDomain).name; }},
    {"g", [](const Traits &t) { return typeName(t.gate); }},
    {"beta", [](const Traits &t) -> Text { return infoOf(t.betaDomain).name; }},
    {"beta", [](const Traits &t) { return typeName(t.beta); }},
    {"use_qk_l2norm_in_kernel",
     [](const Traits &t) -> Text { return wordOf(t.norm); }},
    {"cu_seqlens", [](const Traits &t) -> Text { return wordOf(t.layout); }},
    {"initial_state, final_state",
     [](const Traits &t) -> Text { return wordOf(t.ends); }},
    {"initial_state, final_state",
     [](const Traits &t) { return typeName(t.state); }},
    {"state_layout",
     [](const Traits &t) -> Text { return wordOf(t.stateLayout); }}};

/// Says which trait no kernel has, with those that there are.
static Error explainMissing(const Traits &wanted) {
  auto agrees = [&](const Kernel &kernel, size_t count) {
    return kernel.cut == Cut::None &&
           std::all_of(allTraits, allTraits + count, [&](const Trait &trait) {
             return trait.describe(kernel.traits) == trait.describe(wanted);
           });
  };
  for (size_t i = 0; i < std::size(allTraits); ++i) {
    std::string known;
    bool found = false;
    for (const Kernel &kernel : allKernels()) {
      if (!agrees(kernel, i))
        continue;
      std::string text = allTraits[i].describe(kernel.traits);
      found |= text == allTraits[i].describe(wanted);
      if ((" or " + known + " or ").find(" or " + text + " or ") ==
          std::string::npos)
        known += (known.empty() ? "" : " or ") + text;
    }
    if (!found)
      return {"NotImplementedError", std::string(allTraits[i].argument) +
                                         ": expected " + known +
                                         " on a GPU in this version, got " +
                                         allTraits[i].describe(wanted)};
  }
  return {"RuntimeError", "gdn: expected a GPU kernel, got none"};
}

/// Whether any kernel has these channels.
static bool hasChannels(const Traits &traits) {
  std::span<const Kernel> kernels = allKernels();
  return std::any_of(kernels.begin(), kernels.end(), [&](const Kernel &kernel) {
    return kernel.traits.keyChannels == traits.keyChannels &&
           kernel.traits.valueChannels == traits.valueChannels;
  });
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// What the kernels' arithmetic relies on.
static Error checkSizes(const Problem &p) {
  if (p.tokens() > INT32_MAX)
    return {"ValueError", "q: expected T of at most 2^31 - 1 on a GPU, got " +
                              std::to_string(p.tokens())};
  double scale = p.scale * std::sqrt(static_cast<double>(p.keyChannels()));
  if (std::abs(scale - 1) > 1e-6)
    return {"NotImplementedError",
            "scale: expected K^(-1/2) on a GPU in this version, got " +
                std::to_string(p.scale)};
  for (auto [name, parameter] :
       {std::pair("A_log", &p.aLog), {"dt_bias", &p.dtBias}})
    if (infoOf(p.gateDomain).hasParameters &&
        elementOf(*parameter) != Element::F32)
      return {"NotImplementedError",
              std::string(name) +
                  ": expected float32 with a raw gate on a GPU, got " +
                  typeName(elementOf(*parameter))};
  if (p.initialState.isPresent() && !p.finalState.isPresent())
    return {"ValueError", "final_state: expected a tensor with initial_state "
                          "on a GPU, got None"};
  if (p.initialState.isPresent() &&
      p.initialState.element != p.finalState.element)
    return {"NotImplementedError",
            std::string("final_state: expected ") +
                nameOf(p.initialState.element) +
                " as initial_state is, on a GPU in this version, got " +
                nameOf(p.finalState.element)};
  return {};
}

/// Refuses long sequences in a form that only kernels token by token have, if
/// one that it can be converted to has kernels of chunks: the package does so
/// (_torch_convert.py, which has the same number of tokens).
static Error checkLength(const Problem &p, const Traits &traits) {
  constexpr int64_t kFewTokens = 64;
  int64_t tokens = p.maxSeqlen > 0 ? p.maxSeqlen
                   : p.cuSeqlens.isPresent()
                       ? p.tokens() / std::max<int64_t>(p.sequences(), 1)
                       : p.tokens();
  if (p.recurrent || tokens <= kFewTokens)
    return {};
  Traits near = traits;
  near.state = Element::F32;
  bool nearHasChunks = findKernels(near).perHead;
  Traits plain = near;
  plain.gateDomain = GateDomain::Log;
  plain.betaDomain = BetaDomain::Value;
  plain.gate = plain.beta = Element::F32;
  if (!nearHasChunks && !findKernels(plain).perHead)
    return {};
  std::string rest = " for more than " + std::to_string(kFewTokens) +
                     " tokens a sequence on a GPU in this version, got ";
  if (nearHasChunks)
    return {"NotImplementedError",
            "initial_state, final_state: expected float32" + rest +
                typeName(traits.state)};
  return {"NotImplementedError", Text("beta: expected ") +
                                     infoOf(BetaDomain::Value).name + rest +
                                     infoOf(traits.betaDomain).name};
}

Error gdn::hopper::readChip(int32_t device, cost::Chip &chip) {
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (gdnDeviceGetInfo(device, &info) != GDN_SUCCESS)
    return {"RuntimeError", std::string("gdn: ") + gdnGetLastErrorMessage()};
  chip = *cost::findChip("sm_90a", std::max(info.multiprocessors, 1));
  return {};
}

/// How segments are cut that run what is before them themselves.
static Cut cutOf(const cost::SplitEstimate &split) {
  if (split.longerLength)
    return split.isLate ? Cut::OwnSampledLate : Cut::OwnSampled;
  return split.isLate ? Cut::OwnLate : Cut::Own;
}

/// Decides whether sequences are cut; `chosen` has the choice without.
static Error chooseSegments(const Problem &p, const Traits &traits,
                            const cost::Problem &problem,
                            const cost::Chip &chip, KernelChoice &chosen) {
  using Kind = cost::SplitRequest::Kind;
  bool isWanted = p.split.kind == Kind::Length ||
                  (p.split.kind == Kind::Segments && p.split.value > 1);
  if (!isWanted && (p.split.kind != Kind::Model || p.recurrent ||
                    chosen.plan.kernel->schedule == Schedule::Token))
    return {};
  KernelGroup waiting = findKernels(traits, Cut::Waiting);
  if (!waiting.perHead || !waiting.perVTile)
    return isWanted ? explainNoSegments(p) : Error();
  if (Error error = checkSegments(p))
    return isWanted ? error : Error();
  cost::SplitRequest request = p.split;
  // All of them begin with gdn.stage.segment_starts.
  request.forgets = true;
  request.sideBySide = true;
  request.ownStarts = findKernels(traits, Cut::Own).perHead;
  request.samplesGates =
      p.gate.isPresent() && findKernels(traits, Cut::OwnSampled).perHead;
  chosen.split = cost::chooseSplit(problem, chip, chosen.choice, request);
  if (!chosen.split.splits)
    return {};
  const cost::SplitEstimate &best = *chosen.split.best;
  int64_t parts = request.ownStarts ? best.parts : 0;
  chosen.plan.cut = {best.length, parts, best.longerLength};
  bool isPerHead = best.schedule == Schedule::CtaPerHead;
  if (request.ownStarts)
    chosen.plan.kernel = findKernels(traits, cutOf(best)).perHead;
  else
    chosen.plan.kernel = isPerHead ? waiting.perHead : waiting.perVTile;
  return {};
}

Error gdn::hopper::chooseKernel(const Problem &p, KernelChoice &chosen) {
  Traits traits = traitsOf(p);
  if (!hasChannels(traits))
    return explainMissing(traits);
  if (Error error = checkSizes(p))
    return error;
  KernelGroup group = findKernels(traits);
  bool hasChunks = group.perHead && group.perVTile;
  if (!hasChunks && !group.token)
    return explainMissing(traits);
  bool isFixed = p.hasFixedKernels();
  if (!hasChunks && isFixed)
    return explainNoSegments(p);
  if (!hasChunks)
    if (Error error = checkLength(p, traits))
      return error;
  cost::Chip chip;
  if (Error error = readChip(p.device.index, chip))
    return error;
  chosen.multiprocessors = chip.multiprocessors;
  chosen.items = p.sequences() * p.valueHeads();
  // A function of tokens gets their float32 arithmetic, whatever is faster.
  bool byToken = group.token && !isFixed && (p.recurrent || !hasChunks);
  cost::Problem problem = cpu::describe(p);
  // Kernels that no length chooses have a CTA a head, as their segments have.
  std::optional<Schedule> forced;
  if (isFixed)
    forced = Schedule::CtaPerHead;
  if (!byToken)
    chosen.choice = cost::choose(problem, chip, forced);
  if (group.token && !isFixed) {
    problem.stage = cost::kTokenStage;
    cost::Choice tokens = cost::choose(problem, chip);
    if (byToken || tokens.chosen().seconds < chosen.choice.chosen().seconds) {
      byToken = true;
      std::swap(tokens, chosen.choice);
    }
    chosen.choice.estimates.insert(chosen.choice.estimates.end(),
                                   tokens.estimates.begin(),
                                   tokens.estimates.end());
  }
  chosen.plan.kernel = byToken ? group.token
                       : chosen.choice.schedule == Schedule::CtaPerHead
                           ? group.perHead
                           : group.perVTile;
  problem.stage = "fused";
  return chooseSegments(p, traits, problem, chip, chosen);
}

/// The schedules that lost, each with the reason, as JSON.
static std::string alternativesOf(const cost::Choice &choice) {
  std::string text;
  for (const cost::Estimate &estimate : choice.estimates)
    if (estimate.schedule != choice.schedule)
      text += std::string(text.empty() ? "" : ", ") + "[\"" +
              Text(estimate.schedule.name) + "\", \"" +
              choice.whyNot(estimate) + "\"]";
  return "[" + text + "]";
}

std::string gdn::hopper::toJson(const Problem &p, const KernelChoice &chosen,
                                const Relayouts &copies) {
  const cost::Choice &choice = chosen.choice;
  cost::Chip chip = *cost::findChip("sm_90a", chosen.multiprocessors);
  const Kernel &kernel = *chosen.plan.kernel;
  const bool splits = chosen.split.splits;
  double seconds = splits ? chosen.split.seconds() : choice.chosen().seconds;
  for (const Relayout &copy : copies.get())
    seconds += Relayouts::predictSeconds(copy, chip);
  bool byToken = kernel.schedule == Schedule::Token;
  char text[1024];
  std::snprintf(
      text, sizeof(text),
      "{\"device\": \"%s\", \"kernel\": \"%s\", \"algorithm\": \"%s\", "
      "\"isa\": \"sm_90a\", \"kernel_channels\": %lld, \"padded\": false, "
      "\"chunk_size\": %lld, \"items\": %lld, \"threads\": 0, "
      "\"schedule\": \"%s\", \"ctas\": %lld, \"multiprocessors\": %lld, "
      "\"sequences\": %lld, \"flop\": %.0f, \"bytes\": %.0f, "
      "\"workspace_bytes\": %llu, \"seconds\": %.9g, \"floor_seconds\": %.9g, "
      "\"longest\": %lld, \"knows_longest\": %s, \"alternatives\": ",
      nameOf(p.device).c_str(), kernel.name, byToken ? "recurrent" : "chunk",
      static_cast<long long>(kernel.traits.keyChannels),
      static_cast<long long>(byToken ? 1 : manifest::HopperChunkTokens),
      static_cast<long long>(chosen.items), Text(kernel.schedule.name).c_str(),
      static_cast<long long>(choice.chosen().ctas),
      static_cast<long long>(chosen.multiprocessors),
      static_cast<long long>(p.sequences()), choice.flop, choice.bytes,
      static_cast<unsigned long long>(chosen.workspaceBytes +
                                      copies.getBytes()),
      seconds, choice.floorSeconds, static_cast<long long>(choice.longest),
      choice.knowsLongest ? "true" : "false");
  return text + alternativesOf(choice) +
         ", \"copies\": " + copies.toJson(chip) +
         ", \"split\": " + splitToJson(chosen) + "}";
}
