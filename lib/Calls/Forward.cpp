//===- Forward.cpp - Which function a forward runs ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Check.h"
#include "Choice.h"
#include "Target.h"

#include <algorithm>
#include <optional>

using namespace gdn::calls;
namespace cost = gdn::cost;
using cost::Schedule;

/// "9.0".
static std::string sayCapability(int32_t capability) {
  return std::to_string(capability / 10) + "." +
         std::to_string(capability % 10);
}

cost::Chip gdn::calls::readChip(int32_t device) {
  int32_t wanted = cost::getDefaultChip().computeCapability;
  auto refuse = [&](GdnRuntimeStatus status, const std::string &got) {
    calls::refuse(status, "expected cuda:" + std::to_string(device) +
                              " to be a GPU of compute capability " +
                              sayCapability(wanted) + " (Hopper), got " + got);
  };
  int32_t count = 0;
  if (gdnDeviceGetCount(&count))
    refuse(GDN_ERROR_NO_DEVICE,
           std::string("none: ") + gdnGetLastErrorMessage());
  if (device < 0 || device >= count)
    refuse(GDN_ERROR_NO_DEVICE,
           std::to_string(count) + " devices in this machine");
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (gdnDeviceGetInfo(device, &info))
    refuse(GDN_ERROR_NO_DEVICE, gdnGetLastErrorMessage());
  if (info.compute_capability != wanted)
    refuse(GDN_ERROR_UNSUPPORTED_DEVICE,
           std::string(info.name) + " of compute capability " +
               sayCapability(info.compute_capability));
  return cost::getDefaultChip(std::max(info.multiprocessors, 1));
}

/// Whether an array's batch rows lie one behind the other.
static bool areRowsJoined(const GdnTensor *array) {
  // What strides rows of one token or none have is of no account.
  return !array || !array->strides || array->shape[0] == 1 ||
         array->shape[1] <= 1 ||
         array->strides[0] == array->shape[1] * array->strides[1];
}

/// Whether an array has other elements or channels in a form: it lies densely
/// there.
static bool isConverted(const Call &call, const Signature &form,
                        std::string_view array) {
  if (array == "gate")
    return call.typeOf(array) != form.gate ||
           call.fact("gate_domain") != form.gateDomain;
  if (array == "beta")
    return call.typeOf(array) != form.beta ||
           call.fact("beta_domain") != form.betaDomain;
  bool isKey = array == "q" || array == "k";
  return call.typeOf(array) != form.element ||
         (isKey ? call.keyChannels != form.keyChannels
                : call.valueChannels != form.valueChannels);
}

/// The array for which the sequences of a call cannot be cut, whatever
/// functions there are: these take packed sequences, as which they see batch
/// rows.
static const char *findGaps(const Call &call, const Signature &form) {
  for (const char *name : {"q", "k", "v", "gate", "beta", "o"})
    if (!isConverted(call, form, name) && !areRowsJoined(call.find(name)))
      return name;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// How a function cuts that makes this split.
static CutKind cutOf(const cost::SplitEstimate &split, bool ownStarts) {
  CutKind cut = {.isCut = true};
  if (ownStarts)
    cut = {true, true, split.longerLength != 0, split.isLate};
  return cut;
}

/// Decides whether sequences are cut; `chosen` has the choice without.
static void chooseSegments(const Call &call, const GdnEntryDesc *chunks,
                           const cost::Workload &workload,
                           const cost::Chip &chip, Choice &chosen) {
  cost::SplitRequest request = call.splitRequest();
  using Kind = cost::SplitRequest::Kind;
  bool isWanted = call.asksForSegments();
  bool byToken = chosen.plan.variant->schedule == Schedule::Token.name;
  if (!isWanted && (request.kind != Kind::Model || call.isByToken() || byToken))
    return;
  bool isServed = hasSegments(call, chunks);
  if (!isServed && isWanted)
    explainNoSegments(call);
  const char *gaps = isServed ? findGaps(call, chosen.form) : nullptr;
  if (gaps && isWanted)
    call.refuse(sayOfSplit(call, ""),
                "batch rows of " + call.say(gaps) +
                    " that lie one behind the other on a GPU in this version",
                "rows with gaps", GDN_ERROR_NOT_SERVED);
  if (!isServed || gaps)
    return;
  request.decays &= call.find("gate") != nullptr;
  const GdnVariantDesc *ownStarts =
      findFaster(call, chunks, Schedule::CtaPerHead.name,
                 {.isCut = true, .hasParts = true});
  request.ownStarts = ownStarts;
  request.looksAtGates = ownStarts && ownStarts->looks_at_gates;
  request.hasTwoLengths =
      findFaster(call, chunks, Schedule::CtaPerHead.name,
                 {.isCut = true, .hasParts = true, .hasTwoLengths = true});
  chosen.split = cost::chooseSplit(workload, chip, chosen.whole, request);
  if (!chosen.split.splits)
    return;
  const cost::SplitEstimate &best = *chosen.split.best;
  GdnCallPlan &plan = chosen.plan;
  plan.segment_length = best.length;
  plan.segment_parts = request.ownStarts ? best.parts : 0;
  plan.longer_segment_length = best.longerLength;
  plan.entry = chunks;
  plan.variant = findFaster(call, chunks,
                            request.ownStarts ? Schedule::CtaPerHead.name
                                              : best.schedule.name,
                            cutOf(best, request.ownStarts));
  plan.seconds = chosen.split.seconds();
}

/// The one schedule that an entry has functions of whole sequences by; nothing
/// if it has both.
static std::optional<Schedule> findOnlySchedule(const Call &call,
                                                const GdnEntryDesc *entry) {
  bool hasPerHead = findFaster(call, entry, Schedule::CtaPerHead.name),
       hasPerVTile = findFaster(call, entry, Schedule::CtaPerVTile.name);
  if (hasPerHead == hasPerVTile)
    return std::nullopt;
  return hasPerHead ? Schedule::CtaPerHead : Schedule::CtaPerVTile;
}

/// Chooses among the functions of whole sequences.
static void chooseWhole(const Call &call, const GdnEntryDesc *chunks,
                        const GdnEntryDesc *tokens, bool byToken,
                        const cost::Chip &chip, cost::Workload workload,
                        Choice &chosen) {
  // Functions that no length chooses have a CTA a head, as their segments have.
  std::optional<Schedule> forced = findOnlySchedule(call, chunks);
  if (call.isFixed())
    forced = Schedule::CtaPerHead;
  if (!byToken)
    chosen.whole = cost::choose(workload, chip, forced);
  if (tokens && (byToken || !call.isFixed())) {
    workload.stage = cost::kTokenStage;
    cost::Choice other = cost::choose(workload, chip);
    if (byToken || other.chosen().seconds < chosen.whole.chosen().seconds) {
      byToken = true;
      std::swap(other, chosen.whole);
    }
    chosen.whole.estimates.insert(chosen.whole.estimates.end(),
                                  other.estimates.begin(),
                                  other.estimates.end());
  }
  const GdnEntryDesc *entry = byToken ? tokens : chunks;
  const GdnVariantDesc *variant =
      byToken ? nullptr : findFaster(call, chunks, chosen.whole.schedule.name);
  chosen.plan.entry = entry;
  chosen.plan.variant = variant ? variant : &entry->variants[0];
  chosen.plan.seconds = chosen.whole.chosen().seconds;
}

void gdn::calls::chooseForward(const GdnCallTable &table, const Call &call,
                               Choice &chosen) {
  Target target = findTarget(table, call);
  chosen.form = target.form;
  const GdnEntryDesc *chunks = target.chunks, *tokens = target.tokens;
  const cost::Chip &chip = chosen.chip;
  chosen.plan.struct_size = sizeof(GdnCallPlan);
  chosen.plan.table = &table;
  chosen.plan.multiprocessors = static_cast<int32_t>(chip.multiprocessors);
  // A function of tokens gets their float32 arithmetic, whatever is faster.
  bool isCut = call.isFixed() && call.asksForSegments();
  bool byToken = tokens && !isCut && (call.isByToken() || !chunks);
  cost::Workload workload = describe(call, target.form);
  chooseWhole(call, chunks, tokens, byToken, chip, workload, chosen);
  chooseSegments(call, chunks, workload, chip, chosen);
  placeArguments(call, chosen.plan);
}
