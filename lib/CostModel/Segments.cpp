//===- Segments.cpp - Whether sequences are cut, and into what ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Segments.h"

#include "Sequences.h"

#include <algorithm>
#include <array>
#include <vector>

using namespace gdn::cost;

/// Chunks that a segment has at least if the model chooses.
static constexpr int64_t kLeastChunks = 4;
namespace {
/// When segments that run what is before them themselves may be chosen.
struct OwnRule {
  /// What they must gain, what of that may be lost where all heads decay
  /// slowly, and how much more a time with gates of models weighs than one with
  /// such heads.
  double gain, lossOfGain, weight;
};
} // namespace

/// Times of whole sequences with gates of channels are known better, and those
/// with gates of models have no head in them that decays slowly.
static OwnRule ownRuleOf(const Workload &p) {
  return p.gatesChannels ? OwnRule{0.1, 1, 2} : OwnRule{0.15, 0.5, 1};
}

/// What a second, shorter length must gain, which the device takes where it
/// pays.
static constexpr double kSecondLengthGain = 0.02;
/// Chunks that a part of such a segment has at least, and a second number that
/// is tried. With gates of models a part forgets what is before it from 16
/// chunks on, and with gates of channels from 4 on.
static constexpr int64_t kLeastOwnChunks[] = {8, 16},
                         kLeastChannelChunks[] = {4, 8};
/// Parts of such a segment that the model tries.
static constexpr int64_t kMostParts = 2;
/// Rounds of work items that the model tries to fill, those of a second length,
/// and numbers of segments that are tried for it.
static constexpr int64_t kMostWaves = 3, kMostRounds = 2, kTriedLengths = 6;
/// Multiprocessors that are left free in these rounds: if all are taken, what
/// begins late ends a round late. With 29 segments of 8 heads an H200 takes 127
/// us for 129 with 31, and with 19 of 12 heads 164 for 170 with 20.
static constexpr int64_t kSpareProcessors = 16;
/// Maps that the model allocates at most, for each multiprocessor: 160 KB each
/// at K = V = 128.
static constexpr int64_t kMostMaps = 8;

int64_t gdn::cost::countSegments(int64_t sequences, int64_t tokens,
                                 int64_t length, bool packed) {
  if (sequences <= 0)
    return 0;
  int64_t pieces = std::max<int64_t>(divideCeil(tokens, length), 1);
  return packed ? pieces + sequences - 1 : sequences * pieces;
}

static const auto &leastOwnChunks(const Workload &p) {
  return p.gatesChannels ? kLeastChannelChunks : kLeastOwnChunks;
}

/// The shortest length whose segments are at most `most`, or 0.
static int64_t findLength(const Sequences &sequences, int64_t chunk,
                          int64_t most, int64_t least = kLeastChunks) {
  int64_t chunks = divideCeil(sequences.longest, chunk);
  for (int64_t n = std::min(most, chunks / least); n > 1; --n) {
    int64_t length = divideCeil(chunks, n) * chunk;
    if (sequences.countPieces(length) <= most)
      return length;
  }
  return 0;
}

static constexpr Schedule kSchedules[] = {Schedule::CtaPerHead,
                                          Schedule::CtaPerVTile};

/// Whether a cut may be chosen. With a gate a head the model takes whole
/// sequences of 2048 tokens for 20 % slower than they are. So segments that run
/// what is before them themselves, whose own times are known better, must gain
/// more. Most heads of models decay, so what these gain weighs more than what
/// slow gates lose.
static bool isSafe(const Workload &p, const SplitEstimate &cut,
                   double wholeSeconds, const SplitRequest &request) {
  double gained = 1 - cut.seconds() / wholeSeconds,
         lost = cut.slowSeconds() / wholeSeconds - 1,
         lostUtmost = (cut.seconds() + cut.noDecaySeconds) / wholeSeconds - 1;
  OwnRule own = ownRuleOf(p);
  bool isGain = request.ownStarts
                    ? gained > own.gain && lost <= own.lossOfGain * gained
                    : gained > kGain && lost <= kLoss;
  return isGain &&
         lostUtmost <= (p.gatesChannels ? kUtmostChannelLoss : kUtmostLoss);
}

/// The times of a cut that decide, weighed.
static double weigh(const Workload &p, const SplitEstimate &cut) {
  OwnRule own = ownRuleOf(p);
  return own.weight * cut.seconds() + cut.slowSeconds();
}

/// Whether a cut may be chosen and another may not, or is the faster one.
static bool isBetter(const Workload &p, const SplitEstimate &cut,
                     const SplitEstimate &other, double wholeSeconds,
                     const SplitRequest &request) {
  bool isFirst = isSafe(p, cut, wholeSeconds, request);
  if (isFirst != isSafe(p, other, wholeSeconds, request))
    return isFirst;
  return weigh(p, cut) < weigh(p, other);
}

/// `cut`, or two lengths of which its own is the shorter one: with gates of
/// channels heads that keep their states have whole sequences.
static SplitEstimate addLonger(const Workload &p, const Chip &chip,
                               const Choice &whole, const SplitRequest &request,
                               const SplitEstimate &cut) {
  if (cut.ofLongest <= 1)
    return cut;
  Sequences sequences = sequencesOf(p, whole);
  // The host may not know the longest one of packed sequences.
  int64_t most = p.packed ? sequences.tokens : sequences.longest;
  SplitEstimate shorter = estimateShorter(p, chip, whole, cut.length, request);
  // A slower one than one that may be chosen is not looked at closely.
  double limit =
      isSafe(p, cut, whole.chosen().seconds, request)
          ? weigh(p, cut) - (ownRuleOf(p).weight - 1) * shorter.seconds()
          : kAnySeconds;
  SplitEstimate now = estimateTwoLengths(
      p, chip, whole, shorter, divideCeil(most, p.chunkTokens) * p.chunkTokens,
      request, limit);
  return isBetter(p, now, cut, whole.chosen().seconds, request) ? now : cut;
}

/// `cut`, or two lengths of which its own is the longer one. The shorter one
/// fills some rounds as well as it can, beside the scan of two live heads of
/// eight: with more work items the last ones wait for the first.
static SplitEstimate addShorter(const Workload &p, const Chip &chip,
                                const Choice &whole,
                                const SplitRequest &request,
                                const SplitEstimate &cut) {
  Sequences sequences = sequencesOf(p, whole);
  SplitEstimate best = cut;
  double most = (1 - kSecondLengthGain) * cut.seconds();
  int64_t items = kMostRounds * (chip.multiprocessors - p.heads);
  for (int64_t n = items / p.heads, least = n - kTriedLengths; n > least; --n) {
    int64_t length =
        findLength(sequences, p.chunkTokens, n, leastOwnChunks(p)[0]);
    if (!length || length >= cut.length)
      break;
    SplitEstimate now = estimateShorter(p, chip, whole, length, request);
    if (now.seconds() >= std::min(most, best.seconds()))
      continue;
    now = estimateTwoLengths(p, chip, whole, now, cut.length, request);
    if (isSafe(p, now, whole.chosen().seconds, request))
      best = now;
  }
  return best;
}

/// `cut`, or two lengths of which the device chooses one, in one part each.
static SplitEstimate addSecondLength(const Workload &p, const Chip &chip,
                                     const Choice &whole,
                                     const SplitRequest &request,
                                     const SplitEstimate &cut, int64_t waves) {
  if (!request.hasTwoLengths || !request.decays || cut.parts > 1)
    return cut;
  if (p.gatesChannels)
    return addLonger(p, chip, whole, request, cut);
  return waves == 1 ? addShorter(p, chip, whole, request, cut) : cut;
}

/// `cut` with as few segments of the shorter of two lengths that
/// multiprocessors are left free, which the simulation does not ask for.
static SplitEstimate leaveSpare(const Workload &p, const Chip &chip,
                                const Choice &whole,
                                const SplitRequest &request,
                                const SplitEstimate &cut) {
  int64_t most = kMostRounds * (chip.multiprocessors - kSpareProcessors);
  if (!cut.longerLength || !liveHeads(p) || cut.segments * p.heads <= most)
    return cut;
  int64_t length = findLength(sequencesOf(p, whole), p.chunkTokens,
                              most / p.heads, leastOwnChunks(p)[0]);
  if (!length || length >= cut.longerLength)
    return cut;
  return estimateTwoLengths(p, chip, whole,
                            estimateShorter(p, chip, whole, length, request),
                            cut.longerLength, request);
}

/// The best of the cuts that fill the multiprocessors: of those that may be
/// chosen, or of all where none may.
static std::optional<SplitEstimate> findBest(const Workload &p,
                                             const Chip &chip,
                                             const Choice &whole,
                                             const SplitRequest &request) {
  Sequences sequences = sequencesOf(p, whole);
  double wholeSeconds = whole.chosen().seconds;
  std::optional<SplitEstimate> best;
  std::vector<std::array<int64_t, 4>> tried;
  tried.reserve(16);
  auto consider = [&](int64_t length, int64_t parts, Schedule schedule,
                      int64_t waves) {
    if (!length ||
        countSegments(sequences.count, p.packed ? sequences.tokens : *p.tokens,
                      length, p.packed) *
                parts * p.heads >
            kMostMaps * chip.multiprocessors)
      return;
    // Rounds often ask for the same; only the first may add a shorter length.
    std::array<int64_t, 4> key = {length, parts,
                                  schedule == Schedule::CtaPerHead,
                                  waves == 1 || p.gatesChannels};
    if (std::find(tried.begin(), tried.end(), key) != tried.end())
      return;
    tried.push_back(key);
    SplitEstimate now =
        estimateSplit(p, chip, whole, {length, parts, schedule}, request);
    now = addSecondLength(p, chip, whole, request, now, waves);
    if (!best || isBetter(p, now, *best, wholeSeconds, request))
      best = now;
  };
  for (int64_t waves = 1; waves <= kMostWaves; ++waves) {
    // As above.
    int64_t beside = request.ownStarts && waves > 1 ? p.heads : 0;
    int64_t items = waves * (chip.multiprocessors - beside);
    for (int64_t parts = 1; parts <= kMostParts && request.ownStarts; ++parts)
      for (int64_t least : leastOwnChunks(p))
        consider(findLength(sequences, parts * p.chunkTokens, items / p.heads,
                            least),
                 parts, Schedule::CtaPerHead, waves);
    // Without a scan forwards fill the multiprocessors alone.
    if (request.ownStarts && request.hasTwoLengths && !liveHeads(p))
      consider(
          findLength(sequences, p.chunkTokens,
                     waves * chip.multiprocessors / (p.heads * ctasOfHead(p)),
                     leastOwnChunks(p)[0]),
          1, Schedule::CtaPerHead, waves);
    for (Schedule schedule : kSchedules)
      if (bool isPerHead = schedule == Schedule::CtaPerHead; !request.ownStarts)
        consider(findLength(sequences, p.chunkTokens,
                            items / (p.heads * (isPerHead ? 1 : p.vTiles))),
                 1, schedule, waves);
  }
  return best;
}

/// The cut into segments of a length, or into so many.
static SplitEstimate estimateForced(const Workload &p, const Chip &chip,
                                    const Choice &whole,
                                    const SplitRequest &request) {
  int64_t chunks = divideCeil(whole.longest, p.chunkTokens),
          ofSegment = divideCeil(chunks, std::max<int64_t>(request.value, 1));
  // Of a given length only what does not depend on other sequences is chosen.
  if (request.kind == SplitRequest::Kind::Length)
    return estimateSplit(p, chip, whole, {request.value}, request);
  std::optional<SplitEstimate> best;
  int64_t most = request.ownStarts ? std::min(kMostParts, ofSegment) : 1;
  for (int64_t parts = 1; parts <= std::max<int64_t>(most, 1); ++parts)
    for (Schedule schedule : kSchedules) {
      int64_t length = divideCeil(ofSegment, parts) * parts * p.chunkTokens;
      SplitEstimate now =
          estimateSplit(p, chip, whole, {length, parts, schedule}, request);
      if (!best || now.seconds() < best->seconds())
        best = now;
    }
  return *best;
}

SplitChoice gdn::cost::chooseSplit(const Workload &p, const Chip &chip,
                                   const Choice &whole,
                                   const SplitRequest &request) {
  using Kind = SplitRequest::Kind;
  SplitChoice choice;
  choice.wholeSeconds = whole.chosen().seconds;
  choice.isForced = request.kind != Kind::Model;
  bool hasWork = p.heads > 0 && p.tokens.value_or(0) > 0 &&
                 p.sequences.value_or(0) > 0 && whole.longest > 0;
  if (!hasWork || request.kind == Kind::Never)
    return choice;
  if (request.kind == Kind::Model) {
    choice.best = findBest(p, chip, whole, request);
    choice.splits =
        choice.best && isSafe(p, *choice.best, choice.wholeSeconds, request);
    if (choice.splits)
      choice.best = leaveSpare(p, chip, whole, request, *choice.best);
    return choice;
  }
  choice.best = estimateForced(p, chip, whole, request);
  choice.splits = request.kind == Kind::Length || request.value > 1;
  return choice;
}
