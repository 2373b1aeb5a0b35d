//===- Saving.cpp - Whether a forward saves states, and how --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Saving.h"

#include "gdn/CostModel/BackwardSegments.h"

#include "WorkItems.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace gdn::cost;

/// What a chunk of a forward takes more where it saves what tokens write, and a
/// state every 64 tokens. By eye from docs/data/saving-h200.csv and the times
/// of 64, 128 and 512 tokens in docs/experiments/backward.md.
static constexpr double kWritesPerHead = 0.18, kStatesPerHead = 0.20,
                        kWritesPerVTile = 0.60, kStatesPerVTile = 0.10;
static constexpr double kStateTokens = 64;
/// The same of both with a gate a channel (docs/experiments/kda.md).
static constexpr double kChannelGatesSave = 0.14;

/// The kernel of the forward, which saves states every so many tokens, or
/// nothing.
static double forwardSeconds(Problem p, const Chip &chip, Schedule schedule,
                             int64_t stateTokens) {
  ScheduleCosts costs = costsOf(schedule);
  if (stateTokens) {
    bool isPerHead = schedule == Schedule::CtaPerHead;
    double often = kStateTokens / static_cast<double>(stateTokens);
    double factor =
        1 + (p.gatesChannels ? kChannelGatesSave
             : isPerHead     ? kWritesPerHead + often * kStatesPerHead
                             : kWritesPerVTile + often * kStatesPerVTile);
    costs.chunk.first *= factor;
    costs.chunk.further *= factor;
    p.stateInterval = stateTokens;
  }
  return estimate(p, chip, costs).seconds;
}

SavingEstimate
gdn::cost::estimateSavingForward(const Problem &p, const Chip &chip,
                                 const Choice &whole, int64_t length,
                                 Schedule schedule, int64_t stateTokens) {
  if (!length)
    return {0, schedule, forwardSeconds(p, chip, schedule, stateTokens)};
  SplitEstimate cut =
      estimateSplit(p, chip, whole, {length, /*parts=*/1, schedule}, {});
  Problem segments = p;
  segments.packed = true;
  segments.sequences = cut.segments;
  segments.longest = std::min(length, whole.longest);
  double more = forwardSeconds(segments, chip, schedule, stateTokens) -
                forwardSeconds(segments, chip, schedule, 0);
  return {length, schedule, cut.seconds() + more, cut.noDecaySeconds};
}

SavingEstimate gdn::cost::estimateSavedBackward(const Problem &p,
                                                const Chip &chip,
                                                const Choice &whole,
                                                int64_t length,
                                                int64_t stateTokens) {
  SavingEstimate result;
  result.length = length;
  if (!length) {
    // With a gate a channel there is one schedule.
    auto by = [&](Schedule schedule) {
      return estimateFollowingBackward(p, chip, whole.longest, stateTokens,
                                       schedule);
    };
    double perVTile = by(Schedule::CtaPerVTile),
           perHead = p.gatesChannels ? perVTile : by(Schedule::CtaPerHead);
    result.schedule = p.gatesChannels || perVTile < perHead
                          ? Schedule::CtaPerVTile
                          : Schedule::CtaPerHead;
    result.seconds = std::min(perHead, perVTile);
    return result;
  }
  result.schedule = Schedule::CtaPerVTile;
  BackwardEstimate cut =
      estimateBackwardSplit(p, chip, whole.longest, length, stateTokens);
  result.seconds = cut.seconds;
  result.noDecaySeconds = cut.worstSeconds - cut.seconds;
  return result;
}

/// Forward and backward of a call that saves its inputs alone.
static double inputsSeconds(const Problem &p, const Chip &chip,
                            const Choice &whole, const SplitRequest &request,
                            bool cutsBackward) {
  SplitRequest never = {SplitRequest::Kind::Never};
  BackwardChoice backward = chooseBackwardSplit(
      p, chip, whole.longest, kGradientTokens, cutsBackward ? request : never);
  return chooseSplit(p, chip, whole, request).seconds() +
         (backward.length ? backward.best->seconds : backward.wholeSeconds);
}

/// The lengths that may be chosen besides whole sequences, in ascending number.
static std::vector<int64_t> lengthsOf(const Problem &p, const Choice &whole,
                                      const SavingLimits &limits,
                                      const SplitRequest &request) {
  using Kind = SplitRequest::Kind;
  auto lengthOf = [&](int64_t tokens) {
    // All but one of the segments that tokens need are beside the sequences'.
    int64_t least = divideCeil(p.tokens.value_or(0), limits.segments + 1);
    return divideCeil(std::max({tokens, least, int64_t(1)}), limits.chunk) *
           limits.chunk;
  };
  std::vector<int64_t> lengths;
  // Of packed sequences the longest is guessed: a caller's length counts.
  int64_t most =
      request.kind == Kind::Length ? p.tokens.value_or(0) : whole.longest;
  auto add = [&](int64_t tokens) {
    int64_t length = lengthOf(tokens);
    if (length < most && (lengths.empty() || lengths.back() != length))
      lengths.push_back(length);
  };
  if (request.kind == Kind::Length)
    add(request.value);
  if (request.kind == Kind::Segments && request.value > 1)
    add(divideCeil(whole.longest, request.value));
  if (request.kind == Kind::Model)
    for (int64_t n = 2; n <= limits.segments + 1; ++n)
      add(divideCeil(whole.longest, n));
  return lengths;
}

/// The fastest of whole sequences and of these lengths, if one is wished for
/// that one.
template <typename EstimateOf>
static SavingEstimate chooseLength(const std::vector<int64_t> &lengths,
                                   const SplitRequest &request,
                                   EstimateOf estimateOf) {
  auto estimate = [&](int64_t length) {
    SavingEstimate result = estimateOf(length);
    if (!request.decays)
      result.seconds += std::exchange(result.noDecaySeconds, 0);
    return result;
  };
  auto sum = [](const SavingEstimate &estimate) {
    return 2 * estimate.seconds + estimate.noDecaySeconds;
  };
  const SavingEstimate plain = estimate(/*length=*/0);
  SavingEstimate chosen = plain;
  for (int64_t length : lengths) {
    SavingEstimate cut = estimate(length);
    bool wins =
        cut.seconds <= (1 - kGain) * plain.seconds &&
        cut.seconds + cut.noDecaySeconds <= (1 + kUtmostLoss) * plain.seconds;
    if (request.kind != SplitRequest::Kind::Model ||
        (wins && sum(cut) < sum(chosen)))
      chosen = cut;
  }
  return chosen;
}

SavingChoice gdn::cost::chooseSaving(const Problem &p, const Chip &chip,
                                     const Choice &whole,
                                     const SavingLimits &limits,
                                     const SplitRequest &request) {
  bool isKnown = whole.longest > 0 && p.heads > 0 && p.keyHeads > 0;
  std::vector<int64_t> lengths;
  if (isKnown && limits.hasSegments)
    lengths = lengthsOf(p, whole, limits, request);
  SavingChoice choice;
  choice.forward = chooseLength(lengths, request, [&](int64_t length) {
    auto by = [&](Schedule schedule) {
      return estimateSavingForward(p, chip, whole, length, schedule,
                                   limits.stateTokens);
    };
    SavingEstimate perHead = by(Schedule::CtaPerHead),
                   perVTile = by(Schedule::CtaPerVTile);
    bool isPerHead = limits.isPerHead || perHead.seconds <= perVTile.seconds;
    return isPerHead ? perHead : perVTile;
  });
  choice.backward = chooseLength(lengths, request, [&](int64_t length) {
    return estimateSavedBackward(p, chip, whole, length, limits.stateTokens);
  });
  if (isKnown)
    // With a gate a channel only what reads saved states has no segments.
    choice.inputsSeconds = inputsSeconds(p, chip, whole, request,
                                         limits.hasSegments || p.gatesChannels);
  return choice;
}
