//===- Gradients.cpp - Forwards that save, and backwards ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Target.h"

#include <algorithm>

using namespace gdn::calls;
namespace cost = gdn::cost;
using cost::Schedule;

//===----------------------------------------------------------------------===//
// What is saved
//===----------------------------------------------------------------------===//

cost::SavingChoice gdn::calls::chooseSaving(const Call &call, bool hasSegments,
                                            const cost::Chip &chip) {
  cost::Workload workload;
  workload.packed = true;
  workload.sequences = call.sequences;
  workload.tokens = call.tokens;
  workload.keyHeads = call.keyHeads;
  workload.heads = call.heads;
  workload.stateBytes = 2 * sizeOf(GDN_DTYPE_F32);
  workload.gatesChannels = call.hasChannelGates();
  cost::SavingLimits limits;
  limits.stateTokens = call.savedTokens();
  // Segments are of whole intervals between states, and between their
  // gradients.
  limits.chunk = std::max(limits.stateTokens, cost::kGradientTokens);
  limits.segments = call.get().saved_segments;
  limits.hasSegments = hasSegments;
  limits.isPerHead = call.isFixed();
  cost::SplitRequest request = call.splitRequest();
  // A forward that saves nothing has segments in most forms that may save, and
  // with a gate a channel even if the others have none, of either of two
  // lengths.
  request.hasTwoLengths = call.hasChannelGates();
  request.ownStarts = hasSegments || call.hasChannelGates();
  if (!request.ownStarts)
    request = {cost::SplitRequest::Kind::Never};
  return cost::chooseSaving(workload, chip, cost::choose(workload, chip),
                            limits, request);
}

/// The states that a call with a plan saves or reads. Functions of segments ask
/// for a state more in each segment than they number.
static int64_t countSavedStates(const Call &call, int64_t length) {
  int64_t segments = length ? cost::countSegments(call.sequences, call.tokens,
                                                  length, call.isPacked())
                            : call.sequences;
  return call.tokens / call.savedTokens() + segments;
}

/// Says how many of the states in memory a plan's function takes.
static void fitStates(const Call &call, GdnCallPlan &plan) {
  plan.saved_states = countSavedStates(call, plan.segment_length);
  const GdnTensor *states = call.find("states");
  if (!states || states->rank != 4)
    call.refuse("states", "4 dimensions",
                std::to_string(states ? states->rank : 0));
  if (states->shape[0] < plan.saved_states)
    call.refuse("states",
                "room for " + std::to_string(plan.saved_states) +
                    " states of all sequences or segments",
                std::to_string(states->shape[0]));
}

/// What a call hears that no functions with saved states serve.
[[noreturn]] static void refuseSaving(const Call &call, const char *what) {
  call.refuse("state_interval", std::string(what) + " in this version",
              "another call; pass " + call.say("state_interval=none"),
              GDN_ERROR_NOT_SERVED);
}

static void begin(const GdnCallTable &table, const GdnEntryDesc *entry,
                  GdnCallPlan &plan) {
  plan.struct_size = sizeof(GdnCallPlan);
  plan.table = &table;
  plan.entry = entry;
}

void gdn::calls::chooseSavingForward(const GdnCallTable &table,
                                     const Call &call, Choice &chosen) {
  const char *what = "packed sequences of a form with a forward that saves";
  Signature form = signatureOf(call, kChunkOp);
  const GdnEntryDesc *entry = findNear(table, call, form, /*isWidened=*/false);
  if (!entry || !call.isPacked())
    refuseSaving(call, what);
  CutKind waiting = {.isCut = true};
  bool hasSegments = findVariant(entry, Schedule::CtaPerHead.name, waiting);
  chosen.saving = chooseSaving(call, hasSegments, chosen.chip);
  const cost::PassEstimate &forward = chosen.saving.forward;
  begin(table, entry, chosen.plan);
  chosen.plan.segment_length = forward.length;
  chosen.plan.seconds = forward.seconds;
  chosen.plan.variant = findFaster(call, entry, forward.schedule.name,
                                   forward.length ? waiting : CutKind());
  if (!chosen.plan.variant)
    refuseSaving(call, what);
  fitStates(call, chosen.plan);
  placeArguments(call, chosen.plan);
}

//===----------------------------------------------------------------------===//
// Backwards
//===----------------------------------------------------------------------===//

[[noreturn]] static void explainNoGradients(const GdnCallTable &table,
                                            const Call &call,
                                            const Signature &wanted) {
  if (call.savedTokens())
    refuseSaving(call, "a form whose gradients can read states");
  explainMissing(table, call, wanted);
}

/// Tokens of a segment of the function `cut`; 0 for whole sequences.
static int64_t chooseLength(const Call &call, const Signature &form,
                            const GdnVariantDesc &cut, const cost::Chip &chip) {
  cost::Workload workload = describe(call, form);
  // The longest sequence, as somebody says it is or as the model guesses.
  int64_t longest = cost::choose(workload, chip).longest;
  cost::SplitRequest request = call.splitRequest();
  request.looksAtGates = cut.looks_at_gates;
  return cost::chooseBackward(workload, chip, longest, request).length;
}

/// The function of whole sequences by that schedule, or by the one that there
/// is.
static const GdnVariantDesc *findWhole(const Call &call,
                                       const GdnEntryDesc *entry,
                                       std::string_view schedule) {
  const GdnVariantDesc *found = findFaster(call, entry, schedule);
  for (std::string_view other :
       {Schedule::CtaPerVTile.name, Schedule::CtaPerHead.name})
    if (!found)
      found = findFaster(call, entry, other);
  return found;
}

void gdn::calls::chooseBackward(const GdnCallTable &table, const Call &call,
                                Choice &chosen) {
  if (!call.isPacked())
    call.refuse("cu_seqlens", "a tensor for gradients on a GPU in this version",
                "None", GDN_ERROR_NOT_SERVED);
  Signature wanted = signatureOf(call, kBackwardOp);
  // States in other types are cast.
  wanted.state = GDN_DTYPE_F32;
  const GdnEntryDesc *entry =
      findNear(table, call, wanted, !call.savedTokens());
  if (!entry)
    explainNoGradients(table, call, wanted);
  // Without functions of segments the gradients are those of whole sequences.
  const GdnVariantDesc *cut =
      findFaster(call, entry, Schedule::CtaPerVTile.name, {.isCut = true});
  GdnCallPlan &plan = chosen.plan;
  begin(table, entry, plan);
  std::string_view schedule = Schedule::CtaPerVTile.name;
  bool readsSaved = call.savedTokens();
  if (readsSaved) {
    chosen.saving = chooseSaving(call, cut, chosen.chip);
    plan.segment_length = chosen.saving.backward.length;
    schedule = chosen.saving.backward.schedule.name;
  } else if (cut && call.get().split != GDN_SPLIT_NEVER) {
    plan.segment_length = chooseLength(call, wanted, *cut, chosen.chip);
  }
  plan.variant = plan.segment_length ? cut : findWhole(call, entry, schedule);
  if (!plan.variant)
    explainNoGradients(table, call, wanted);
  if (readsSaved)
    fitStates(call, plan);
  placeArguments(call, plan);
}
