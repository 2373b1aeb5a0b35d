//===- Training.cpp - How gradients are cut, and what is saved ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Training.h"

#include "Sequences.h"

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

/// Seconds of the kernel of a forward that saves states, which is launched
/// early if it has segments.
static double savingSeconds(const Workload &p, const Chip &chip,
                            ScheduleCosts costs, bool isCut) {
  bool isPerHead = Schedule{costs.name} == Schedule::CtaPerHead;
  double often = kStateTokens / static_cast<double>(p.stateInterval);
  double factor = 1 + (p.gatesChannels ? kChannelGatesSave
                       : isPerHead ? kWritesPerHead + often * kStatesPerHead
                                   : kWritesPerVTile + often * kStatesPerVTile);
  costs.chunk.first *= factor;
  costs.chunk.further *= factor;
  return estimate(p, chip, costs).seconds - (isCut ? costs.launchSeconds : 0);
}

PassEstimate gdn::cost::estimateSavingForward(
    const Workload &p, const Chip &chip, const Choice &whole, int64_t length,
    std::optional<Schedule> schedule, int64_t stateTokens, double most) {
  Workload forward = p;
  forward.stateInterval = stateTokens;
  if (length) {
    forward.packed = true;
    forward.sequences =
        std::max<int64_t>(sequencesOf(p, whole).countPieces(length), 1);
    forward.longest = std::min(length, whole.longest);
  }
  PassEstimate result;
  result.length = length;
  bool isFirst = true;
  static const ScheduleCosts rows[] = {costsOf(Schedule::CtaPerHead),
                                       costsOf(Schedule::CtaPerVTile)};
  for (const ScheduleCosts &costs : rows) {
    if (costs.name != schedule.value_or(Schedule{costs.name}).name)
      continue;
    double seconds = savingSeconds(forward, chip, costs, length);
    if (isFirst || seconds < result.seconds) {
      result.schedule = {costs.name};
      result.seconds = seconds;
    }
    isFirst = false;
  }
  if (length) {
    // Every schedule has the same kernels before it.
    SplitEstimate cut =
        estimateSplit(p, chip, whole, {length}, {}, most - result.seconds);
    result.seconds += cut.mapSeconds + cut.scanSeconds;
    result.noDecaySeconds = cut.noDecaySeconds;
  }
  return result;
}

PassEstimate gdn::cost::estimateSavedBackward(const Workload &p,
                                              const Chip &chip,
                                              const Choice &whole,
                                              int64_t length,
                                              int64_t stateTokens) {
  PassEstimate result;
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
  return estimateBackward(p, chip, whole.longest, length, stateTokens);
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

namespace {
/// What bounds the lengths of segments.
struct LengthLimits {
  /// They are multiples of it.
  int64_t chunk;
  /// Below this.
  int64_t most;
  /// At least this, whoever chooses, and if the model does.
  int64_t least, leastOfModel;
  /// Segments of the longest sequence that the model tries.
  int64_t segments;
};
} // namespace

/// The lengths that may be chosen besides whole sequences, in ascending number
/// of segments.
static std::vector<int64_t> lengthsOf(int64_t longest,
                                      const LengthLimits &limits,
                                      const SplitRequest &request) {
  using Kind = SplitRequest::Kind;
  std::vector<int64_t> lengths;
  auto lengthOf = [&](int64_t tokens) {
    return divideCeil(std::max({tokens, limits.least, int64_t(1)}),
                      limits.chunk) *
           limits.chunk;
  };
  auto add = [&](int64_t length) {
    if (length < limits.most && (lengths.empty() || lengths.back() != length))
      lengths.push_back(length);
  };
  if (request.kind == Kind::Length)
    add(lengthOf(request.value));
  if (request.kind == Kind::Segments && request.value > 1)
    add(lengthOf(divideCeil(longest, request.value)));
  if (request.kind != Kind::Model)
    return lengths;
  for (int64_t n = 2; n <= limits.segments; ++n) {
    int64_t length = lengthOf(divideCeil(longest, n));
    if (length < limits.leastOfModel)
      break;
    add(length);
  }
  return lengths;
}

/// The fastest of whole sequences and of these lengths that lose so much where
/// nothing decays; if one is wished for that one.
template <typename EstimateOf>
static PassEstimate chooseLength(const std::vector<int64_t> &lengths,
                                 const SplitRequest &request, double mostLoss,
                                 EstimateOf estimateOf) {
  auto estimate = [&](int64_t length, double most) {
    PassEstimate result = estimateOf(length, most);
    if (!request.decays)
      result.seconds += std::exchange(result.noDecaySeconds, 0);
    return result;
  };
  auto sum = [](const PassEstimate &estimate) {
    return estimate.seconds + estimate.worstSeconds();
  };
  const PassEstimate plain = estimate(/*length=*/0, kAnySeconds);
  if (request.kind != SplitRequest::Kind::Model && !lengths.empty())
    return estimate(lengths.back(), kAnySeconds);
  PassEstimate chosen = plain;
  // Some lengths first: most of the others are clearly slower than their best.
  constexpr size_t kFirst = 8;
  for (size_t step : {kFirst, size_t(1)})
    for (size_t i = 0; i < lengths.size(); i += step) {
      if (step == 1 && i % kFirst == 0)
        continue;
      PassEstimate cut = estimate(lengths[i], sum(chosen) / 2);
      bool wins = cut.seconds <= (1 - kGain) * plain.seconds &&
                  cut.worstSeconds() <= (1 + mostLoss) * plain.seconds;
      if (wins && sum(cut) < sum(chosen))
        chosen = cut;
    }
  return chosen;
}

PassEstimate gdn::cost::chooseBackward(const Workload &p, const Chip &chip,
                                       int64_t longest,
                                       const SplitRequest &request) {
  // Of the gradients.
  constexpr int64_t kLeastChunks = 4, kMostSegments = 64;
  // That a backward in segments has more than one of whole sequences.
  constexpr int64_t kMoreKernels = 8;
  bool isLength = request.kind == SplitRequest::Kind::Length;
  LengthLimits limits = {kGradientTokens, isLength ? INT64_MAX : longest,
                         /*least=*/1, kLeastChunks * kGradientTokens,
                         kMostSegments};
  std::vector<int64_t> lengths;
  if (isLength || (longest > 0 && p.heads > 0 && p.keyHeads > 0))
    lengths = lengthsOf(longest, limits, request);
  return chooseLength(lengths, request, kLoss, [&](int64_t length, double) {
    PassEstimate estimate = estimateBackward(p, chip, longest, length);
    if (length)
      estimate.seconds += leavingSeconds(request, kMoreKernels);
    return estimate;
  });
}

SavingChoice gdn::cost::chooseSaving(const Workload &p, const Chip &chip,
                                     const Choice &whole,
                                     const SavingLimits &limits,
                                     const SplitRequest &request) {
  bool isKnown = whole.longest > 0 && p.heads > 0 && p.keyHeads > 0;
  bool isLength = request.kind == SplitRequest::Kind::Length;
  int64_t tokens = p.tokens.value_or(0);
  std::vector<int64_t> lengths;
  // All but one of the segments that tokens need are beside the sequences'. Of
  // packed sequences the longest is guessed: a caller's length counts.
  if (isKnown && limits.hasSegments)
    lengths = lengthsOf(whole.longest,
                        {limits.chunk, isLength ? tokens : whole.longest,
                         divideCeil(tokens, limits.segments + 1),
                         /*leastOfModel=*/0, limits.segments + 1},
                        request);
  SavingChoice choice;
  choice.forward = chooseLength(
      lengths, request, kUtmostLoss, [&](int64_t length, double most) {
        return estimateSavingForward(p, chip, whole, length,
                                     limits.isPerHead
                                         ? std::optional(Schedule::CtaPerHead)
                                         : std::nullopt,
                                     limits.stateTokens, most);
      });
  choice.backward =
      chooseLength(lengths, request, kUtmostLoss, [&](int64_t length, double) {
        return estimateSavedBackward(p, chip, whole, length,
                                     limits.stateTokens);
      });
  if (!isKnown)
    return choice;
  // Of a call that saves its inputs alone. With a gate a channel only what
  // reads saved states has no segments.
  SplitRequest never = {SplitRequest::Kind::Never};
  bool cutsBackward = limits.hasSegments || p.gatesChannels;
  choice.inputsSeconds =
      chooseSplit(p, chip, whole, request).seconds() +
      chooseBackward(p, chip, whole.longest, cutsBackward ? request : never)
          .seconds;
  return choice;
}
