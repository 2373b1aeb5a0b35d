//===- Forward.cpp - Which function a forward runs ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Choice.h"

#include <algorithm>
#include <optional>

using namespace gdn::calls;
namespace cost = gdn::cost;
using cost::Schedule;

GdnRuntimeStatus gdn::calls::readChip(int32_t device, cost::Chip &chip) {
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (gdnDeviceGetInfo(device, &info))
    return fail(GDN_ERROR_NO_DEVICE, gdnGetLastErrorMessage());
  chip = *cost::findChip("sm_90a", std::max(info.multiprocessors, 1));
  return GDN_SUCCESS;
}

//===----------------------------------------------------------------------===//
// What a call must be
//===----------------------------------------------------------------------===//

/// What the functions' arithmetic relies on.
static GdnRuntimeStatus checkSizes(const Call &call) {
  if (call.tokens > INT32_MAX)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("q") +
                    ": expected T of at most 2^31 - 1 on a GPU, got " +
                    std::to_string(call.tokens));
  if (!call.hasUsualScale())
    return fail(GDN_ERROR_NOT_SERVED,
                call.say("scale") +
                    ": expected K^(-1/2) on a GPU in this version, got " +
                    std::to_string(call.get().scale));
  return GDN_SUCCESS;
}

/// Parameters are float32, and both states of one type.
static GdnRuntimeStatus checkTypes(const Call &call) {
  for (const char *name : {"a_log", "dt_bias"})
    if (call.fact("gate_domain") == "softplus" &&
        call.typeOf(name) != GDN_DTYPE_F32)
      return fail(GDN_ERROR_NOT_SERVED,
                  call.say(name) +
                      ": expected float32 with a raw gate on a GPU, got " +
                      typeName(call.typeOf(name)));
  int32_t initial = call.typeOf("initial_state"),
          last = call.typeOf("final_state");
  if (!initial || initial == last)
    return GDN_SUCCESS;
  if (!last)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("final_state") + ": expected a tensor with " +
                    call.say("initial_state") + " on a GPU, got None");
  return fail(GDN_ERROR_NOT_SERVED,
              call.say("final_state") + ": expected " + typeName(initial) +
                  " as " + call.say("initial_state") +
                  " is, on a GPU in this version, got " + typeName(last));
}

/// Whether two arrays are one.
static bool areOne(const GdnTensor &a, const GdnTensor &b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
         std::equal(a.shape, a.shape + a.rank, b.shape) &&
         stridesOf(a) == stridesOf(b);
}

/// States in a pool are read and written in place.
static GdnRuntimeStatus checkPool(const Call &call) {
  if (!call.find("state_indices"))
    return GDN_SUCCESS;
  const GdnTensor *pool = call.find("initial_state"),
                  *last = call.find("final_state");
  constexpr int32_t kRank = 4;
  if (!pool || pool->rank != kRank)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("initial_state") +
                    ": expected a pool of states with " +
                    call.say("state_indices") + ", got " +
                    (pool ? "another rank" : "None"));
  if (!last || !areOne(*pool, *last))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("final_state") + ": expected " +
                    call.say("initial_state") + ", the pool, with " +
                    call.say("state_indices") + ", got " +
                    (last ? "another array" : "None"));
  return GDN_SUCCESS;
}

/// Whether functions that want rows of states side by side read a call's pool,
/// which nobody copies.
static bool hasPoolOfRows(const Call &call) {
  const GdnTensor *pool = call.find("initial_state");
  return !call.find("state_indices") || pool->shape[3] == 1 ||
         stridesOf(*pool)[3] == 1;
}

/// Refuses long sequences in a form that only functions token by token have, if
/// functions of chunks serve one that it can be converted to.
static GdnRuntimeStatus checkLength(const GdnCallTable &table, const Call &call,
                                    const Signature &wanted) {
  constexpr int64_t kFewTokens = 64;
  int64_t tokens = call.get().longest > 0 ? call.get().longest
                   : call.isPacked()
                       ? call.tokens / std::max<int64_t>(call.sequences, 1)
                       : call.tokens;
  if (call.isByToken() || tokens <= kFewTokens)
    return GDN_SUCCESS;
  Signature near = wanted;
  near.state = GDN_DTYPE_F32;
  bool nearHasChunks = findEntry(table, near);
  Signature plain = near;
  plain.gateDomain = "log";
  plain.betaDomain = "value";
  plain.gate = plain.beta = GDN_DTYPE_F32;
  if (!nearHasChunks && !findEntry(table, plain))
    return GDN_SUCCESS;
  std::string rest = " for more than " + std::to_string(kFewTokens) +
                     " tokens a sequence on a GPU in this version, got ";
  if (nearHasChunks)
    return fail(GDN_ERROR_NOT_SERVED,
                call.say("initial_state") + ", " + call.say("final_state") +
                    ": expected float32" + rest + typeName(wanted.state));
  return fail(GDN_ERROR_NOT_SERVED,
              call.say("beta") + ": expected " + call.say("beta_domain=value") +
                  rest +
                  call.say("beta_domain=" + std::string(wanted.betaDomain)));
}

/// What a call says that asks for segments.
static std::string sayOfSplit(const Call &call, const char *what) {
  return call.say(std::string(call.isFixed() ? "split_length" : "split_into") +
                  what);
}

static GdnRuntimeStatus explainNoSegments(const Call &call) {
  return fail(
      GDN_ERROR_NOT_SERVED,
      sayOfSplit(call, "") + ": expected a form of " + call.say("q") + ", " +
          call.say("v") + ", " + call.say("gate") + ", " + call.say("beta") +
          " and states with kernels of segments on a GPU in this version, got "
          "one without; pass " +
          sayOfSplit(call, "=none"));
}

/// Whether an array's batch rows lie one behind the other.
static bool areRowsJoined(const GdnTensor *array) {
  // What strides rows of one token or none have is of no account.
  return !array || !array->strides || array->shape[0] == 1 ||
         array->shape[1] <= 1 ||
         array->strides[0] == array->shape[1] * array->strides[1];
}

/// Says why the sequences of a call cannot be cut, whatever functions there
/// are: these take packed sequences, as which they see batch rows.
static GdnRuntimeStatus checkRows(const Call &call) {
  for (const char *name : {"q", "k", "v", "gate", "beta", "o"})
    if (!areRowsJoined(call.find(name)))
      return fail(GDN_ERROR_NOT_SERVED,
                  sayOfSplit(call, "") + ": expected batch rows of " +
                      call.say(name) +
                      " that lie one behind the other on a GPU in this "
                      "version, got rows with gaps");
  return GDN_SUCCESS;
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
static GdnRuntimeStatus chooseSegments(const Call &call,
                                       const GdnEntryDesc *chunks,
                                       const cost::Problem &problem,
                                       const cost::Chip &chip, Choice &chosen) {
  cost::SplitRequest request = call.splitRequest();
  using Kind = cost::SplitRequest::Kind;
  bool isWanted = request.kind == Kind::Length ||
                  (request.kind == Kind::Segments && request.value > 1);
  bool byToken = chosen.plan.variant->schedule == Schedule::Token.name;
  if (!isWanted && (request.kind != Kind::Model || call.isByToken() || byToken))
    return GDN_SUCCESS;
  CutKind waiting = {.isCut = true};
  if (!findVariant(chunks, Schedule::CtaPerHead.name, waiting) ||
      !findVariant(chunks, Schedule::CtaPerVTile.name, waiting))
    return isWanted ? explainNoSegments(call) : GDN_SUCCESS;
  if (GdnRuntimeStatus status = checkRows(call))
    return isWanted ? status : GDN_SUCCESS;
  // All of them begin with gdn.stage.segment_starts.
  request.forgets = true;
  request.sideBySide = true;
  request.ownStarts = findVariant(chunks, Schedule::CtaPerHead.name,
                                  {.isCut = true, .hasParts = true});
  request.samplesGates =
      call.find("gate") &&
      findVariant(chunks, Schedule::CtaPerHead.name,
                  {.isCut = true, .hasParts = true, .isSampled = true});
  chosen.split = cost::chooseSplit(problem, chip, chosen.whole, request);
  if (!chosen.split.splits)
    return GDN_SUCCESS;
  const cost::SplitEstimate &best = *chosen.split.best;
  GdnCallPlan &plan = chosen.plan;
  plan.segment_length = best.length;
  plan.segment_parts = request.ownStarts ? best.parts : 0;
  plan.longer_segment_length = best.longerLength;
  plan.entry = chunks;
  plan.variant = findVariant(chunks,
                             request.ownStarts ? Schedule::CtaPerHead.name
                                               : best.schedule.name,
                             cutOf(best, request.ownStarts));
  plan.seconds = chosen.split.seconds();
  return GDN_SUCCESS;
}

/// The one schedule that an entry has functions of whole sequences by; nothing
/// if it has both.
static std::optional<Schedule> findOnlySchedule(const GdnEntryDesc *entry) {
  bool hasPerHead = findVariant(entry, Schedule::CtaPerHead.name),
       hasPerVTile = findVariant(entry, Schedule::CtaPerVTile.name);
  if (hasPerHead == hasPerVTile)
    return std::nullopt;
  return hasPerHead ? Schedule::CtaPerHead : Schedule::CtaPerVTile;
}

/// Chooses among the functions of whole sequences.
static void chooseWhole(const Call &call, const GdnEntryDesc *chunks,
                        const GdnEntryDesc *tokens, bool byToken,
                        const cost::Chip &chip, cost::Problem problem,
                        Choice &chosen) {
  // Functions that no length chooses have a CTA a head, as their segments have.
  std::optional<Schedule> forced = findOnlySchedule(chunks);
  if (call.isFixed())
    forced = Schedule::CtaPerHead;
  if (!byToken)
    chosen.whole = cost::choose(problem, chip, forced);
  if (tokens && !call.isFixed()) {
    problem.stage = cost::kTokenStage;
    cost::Choice other = cost::choose(problem, chip);
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
      byToken ? nullptr : findVariant(chunks, chosen.whole.schedule.name);
  chosen.plan.entry = entry;
  chosen.plan.variant = variant ? variant : &entry->variants[0];
  chosen.plan.seconds = chosen.whole.chosen().seconds;
}

GdnRuntimeStatus gdn::calls::chooseForward(const GdnCallTable &table,
                                           const Call &call, Choice &chosen) {
  Signature wanted = signatureOf(call, kChunkOp), step = wanted;
  step.op = kTokenOp;
  if (!hasChannels(table, wanted))
    return explainMissing(table, call, wanted);
  if (GdnRuntimeStatus status = checkSizes(call))
    return status;
  if (GdnRuntimeStatus status = checkPool(call))
    return status;
  if (GdnRuntimeStatus status = checkTypes(call))
    return status;
  const GdnEntryDesc *chunks = findEntry(table, wanted),
                     *tokens = findEntry(table, step);
  if (chunks && !hasPoolOfRows(call))
    tokens = nullptr;
  if (!chunks && !tokens)
    return explainMissing(table, call, wanted);
  if (!chunks && call.isFixed())
    return explainNoSegments(call);
  if (!chunks)
    if (GdnRuntimeStatus status = checkLength(table, call, wanted))
      return status;
  cost::Chip chip;
  if (GdnRuntimeStatus status = readChip(call.get().device, chip))
    return status;
  chosen.plan.struct_size = sizeof(GdnCallPlan);
  chosen.plan.table = &table;
  chosen.plan.multiprocessors = static_cast<int32_t>(chip.multiprocessors);
  // A function of tokens gets their float32 arithmetic, whatever is faster.
  bool byToken = tokens && !call.isFixed() && (call.isByToken() || !chunks);
  cost::Problem problem = call.describe();
  chooseWhole(call, chunks, tokens, byToken, chip, problem, chosen);
  if (GdnRuntimeStatus status =
          chooseSegments(call, chunks, problem, chip, chosen))
    return status;
  return placeArguments(call, chosen.plan);
}
