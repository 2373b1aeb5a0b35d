//===- Backward.cpp - What a backward takes -------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Training.h"

#include "Sequences.h"

#include <algorithm>

using namespace gdn::cost;

// Fitted by a random search to the times of "clusters" in
// docs/data/backward-segments-h200.csv, which the model meets within 6 %
// (BackwardSegmentsTest.cpp): K = V = 128, a CTA for each V tile of a
// recurrence.

namespace {
struct Costs {
  /// A chunk of 32 tokens of replay and of adjoint one after the other, and the
  /// same if they run at the same time.
  double recurrence, beside;
  /// A chunk of an adjoint that reads saved states, and what it takes longer if
  /// all multiprocessors have one.
  double adjoint, adjointBusy;
  /// A token of a value head in the gradients, and what it takes longer if all
  /// multiprocessors have one.
  double gradient, gradientBusy;
  /// What a segment adds, its map, and what it adds to the gradients: a chunk
  /// of all three, which have two CTAs a head in the last, and items without
  /// chunks.
  double pass, passItem;
  /// The same of a head whose gates decay: some chunks, and no map.
  double forgetfulItem;
  /// Where the passes of a head end after the others: by chunks, and at least.
  double passTail, passLeast;
  /// Where segments begin and end, by chunks; kernels that begin behind others.
  double endsChunk, splitHops;
};
} // namespace

static constexpr Costs kHeadCosts = {.recurrence = 1.5e-6,
                                     .beside = 0.806e-6,
                                     .adjoint = 0.79e-6,
                                     .adjointBusy = 0.21e-6,
                                     .gradient = 0.0462e-6,
                                     .gradientBusy = 0.0347e-6,
                                     .pass = 3.16e-6,
                                     .passItem = 18e-6,
                                     .forgetfulItem = 26e-6,
                                     .passTail = 0.7e-6,
                                     .passLeast = 5e-6,
                                     .endsChunk = 0.18e-6,
                                     .splitHops = 24e-6};
/// With a gate a channel: whole sequences by eye from the times in
/// docs/experiments/kda.md, segments by a random search over those of
/// docs/data/backward-segments-channels-h200.csv, which it meets within 23 %.
static constexpr Costs kChannelCosts = {.recurrence = 2.7e-6,
                                        .beside = 1.5e-6,
                                        .adjoint = 1.45e-6,
                                        .adjointBusy = 0,
                                        .gradient = 0.11e-6,
                                        .gradientBusy = 0.08e-6,
                                        .pass = 7e-6,
                                        .passItem = 0,
                                        .forgetfulItem = 27e-6,
                                        .passTail = 0.28e-6,
                                        .passLeast = 0,
                                        .endsChunk = 1.25e-6,
                                        .splitHops = 44e-6};

static const Costs &backwardCosts(const Workload &p) {
  return p.gatesChannels ? kChannelCosts : kHeadCosts;
}

/// A work item of replay and adjoint besides its chunks.
static constexpr double kRecurrenceItem = 14e-6;
/// A work item of the gradients besides its tokens: each has a q/k head, with
/// its value heads, and every sixteenth chunk of a sequence.
static constexpr double kGradientItem = 3.6e-6;
static constexpr int64_t kGradientParts = 16;
/// The two scans, which run at the same time, and a segment of both.
static constexpr double kScanSeconds = 4.5e-6, kScanStep = 0.89e-6;
/// Where segments begin and end for a head, besides its chunks.
static constexpr double kEndsSeconds = 4e-6;
/// Kernels of whole sequences that begin behind others.
static constexpr double kWholeHops = 6.6e-6;
/// From states that the forward saved, there is no replay: a work item of
/// adjoint besides its chunks. In segments there is no B and one scan: the part
/// of the passes that is left, and kernels that begin behind others. By eye
/// from docs/data/saving-h200.csv, and the times since kernels are in another
/// order.
static constexpr double kAdjointItem = 10e-6, kPassesFromStates = 0.65,
                        kSplitHopsFromStates = 14e-6;
/// A chunk of both V tiles of such an adjoint in a CTA for a head, and what it
/// takes longer if all multiprocessors have one. Gradients that follow an
/// adjoint: what they take more, in blocks, and until the first of them
/// begin and the last ones end. Fitted by eye to docs/data/following-h200.csv,
/// which the model meets within 12 % (SavingTest.cpp).
static constexpr double kHeadAdjointSeconds = 1.14e-6,
                        kHeadAdjointBusy = 0.3e-6, kFollowingGradients = 1.12,
                        kFollowingSeconds = 62e-6;
/// Gradients that make a state before every second chunk, of those that read
/// one before each: 832 us and 853 of long sequences on an H100, 253 and 234 of
/// short ones (docs/experiments/backward.md).
static constexpr double kHalfwayGradients = 1.08;
static constexpr int64_t kVTiles = 2, kChunk = 32;
/// Tokens of a chunk of the gradients.
static constexpr int64_t kReadTokens = 64;

/// A work item of replay or adjoint.
static double recurrenceSeconds(int64_t tokens, double chunk, double item) {
  return static_cast<double>(divideCeil(tokens, kChunk)) * chunk + item;
}

/// Of work items that each sequence has so many of.
template <typename SecondsOf>
static double scheduleItems(const Chip &chip, const Sequences &sequences,
                            int64_t each, SecondsOf secondsOf) {
  return scheduleWorkItems(
      chip.multiprocessors, {each, secondsOf(sequences.longest)},
      {(sequences.count - 1) * each, secondsOf(sequences.other)});
}

/// A token in the gradients of a q/k head with its value heads.
static double gradientSeconds(const Workload &p, double busy,
                              int64_t stateTokens) {
  int64_t group =
      std::max<int64_t>(p.heads / std::max<int64_t>(p.keyHeads, 1), 1);
  return static_cast<double>(group) *
         (backwardCosts(p).gradient + busy * backwardCosts(p).gradientBusy) *
         (stateTokens > kReadTokens ? kHalfwayGradients : 1);
}

/// The gradients of such sequences, in parts of them.
static double gradientsSeconds(const Workload &p, const Chip &chip,
                               const Sequences &sequences,
                               int64_t stateTokens) {
  int64_t parts = sequences.count * p.keyHeads * kGradientParts;
  double busy = std::min(1., static_cast<double>(parts) /
                                 static_cast<double>(chip.multiprocessors));
  double token = gradientSeconds(p, busy, stateTokens);
  return scheduleItems(
      chip, sequences, p.keyHeads * kGradientParts, [&](int64_t tokens) {
        return static_cast<double>(tokens) / kGradientParts * token +
               kGradientItem;
      });
}

/// Replay and adjoint of such sequences, or, with saved states, adjoint alone.
static double recurrencesSeconds(const Workload &p, const Chip &chip,
                                 const Sequences &sequences,
                                 int64_t stateTokens) {
  // Adjoint does not wait for replay while both fit.
  int64_t items = sequences.count * p.heads * kVTiles;
  bool isBeside = items <= chip.multiprocessors / 2;
  const Costs &costs = backwardCosts(p);
  double chunk = stateTokens ? costs.adjoint
                 : isBeside  ? costs.beside
                             : costs.recurrence;
  double item = stateTokens ? kAdjointItem : kRecurrenceItem;
  return scheduleItems(chip, sequences, p.heads * kVTiles, [&](int64_t tokens) {
    return recurrenceSeconds(tokens, chunk, item);
  });
}

double gdn::cost::estimateFollowingBackward(const Workload &p, const Chip &chip,
                                            int64_t longest,
                                            int64_t stateTokens,
                                            Schedule schedule) {
  Sequences sequences = sequencesOf(p, longest);
  bool isPerHead = schedule == Schedule::CtaPerHead;
  int64_t each = isPerHead ? p.heads : p.heads * kVTiles;
  double processors = chip.multiprocessors,
         items = static_cast<double>(sequences.count * each);
  // On half of the multiprocessors they do not slow each other.
  double busy = std::clamp(2 * items / processors - 1, 0., 1.);
  double chunk = isPerHead ? kHeadAdjointSeconds + busy * kHeadAdjointBusy
                           : backwardCosts(p).adjoint +
                                 busy * backwardCosts(p).adjointBusy;
  auto adjoint = [&](int64_t tokens) {
    return recurrenceSeconds(tokens, chunk, kAdjointItem);
  };
  double last = scheduleItems(chip, sequences, each, adjoint);
  auto sumOf = [&](auto ofSequence) {
    return ofSequence(sequences.longest) +
           static_cast<double>(sequences.count - 1) *
               ofSequence(sequences.other);
  };
  double tokens =
      sumOf([](int64_t tokens) { return static_cast<double>(tokens); });
  double gradients = kFollowingGradients * tokens *
                     static_cast<double>(p.keyHeads) *
                     gradientSeconds(p, /*busy=*/1, stateTokens);
  double work = static_cast<double>(each) * sumOf(adjoint);
  // A CTA of a head beside one of the gradients, on the two multiprocessors
  // that share instructions, is slower by as much as it could gain.
  double seconds = isPerHead ? last + gradients / processors
                             : std::max(last, (work + gradients) / processors);
  return kFollowingSeconds + seconds;
}

PassEstimate gdn::cost::estimateBackward(const Workload &p, const Chip &chip,
                                         int64_t longest, int64_t length,
                                         int64_t stateTokens) {
  PassEstimate result;
  result.schedule = Schedule::CtaPerVTile;
  Sequences whole = sequencesOf(p, longest);
  if (!length) {
    result.seconds = kWholeHops + recurrencesSeconds(p, chip, whole, 0) +
                     gradientsSeconds(p, chip, whole, 0);
    return result;
  }
  // Lengths that differ are taken for equal ones.
  int64_t segments = whole.countPieces(length),
          mean = divideCeil(whole.tokens, std::max<int64_t>(segments, 1)),
          ofLongest = divideCeil(whole.longest, length);
  auto chunks = static_cast<double>(divideCeil(mean, kChunk));
  int64_t items = segments * p.heads;
  int64_t live = segments * liveHeads(p);
  const Costs &costs = backwardCosts(p);
  double part = stateTokens ? kPassesFromStates : 1;
  double item = part * (chunks * costs.pass + costs.passItem);
  double forgetful = std::min(part * costs.forgetfulItem, item);
  double processors = chip.multiprocessors;
  double some = (static_cast<double>(live) * item +
                 static_cast<double>(items - live) * forgetful) /
                    processors +
                part * chunks * costs.passTail + costs.passLeast;
  double all = std::max(some, static_cast<double>(items) * item / processors);
  Sequences cut = {segments, whole.tokens, mean, mean};
  result.length = length;
  result.seconds = (stateTokens ? kSplitHopsFromStates : costs.splitHops) +
                   kEndsSeconds + chunks * costs.endsChunk + some +
                   kScanSeconds + static_cast<double>(ofLongest) * kScanStep +
                   recurrencesSeconds(p, chip, cut, stateTokens) +
                   gradientsSeconds(p, chip, cut, stateTokens);
  result.noDecaySeconds = all - some;
  return result;
}
