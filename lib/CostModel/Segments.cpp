//===- Segments.cpp - Whether sequences are cut, and into what ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Segments.h"

#include <algorithm>

using namespace gdn::cost;

// Chunks of maps and of what segments add take what those of a state pass take.
// The rest is fitted by eye to 24 splits of six cases on an H200 (2026-11-23),
// which it meets within 10 %.

/// From the end of a kernel to the first instruction of the next.
static constexpr double kHopSeconds = 1.5e-6;
/// The kernel that cuts.
static constexpr double kBoundariesSeconds = 3e-6;
/// A work item of the scan besides its segments, and a segment.
static constexpr double kScanSeconds = 1e-6, kScanStepSeconds = 1.9e-6;
/// What must be predicted to be gained.
static constexpr double kGain = 0.03;
/// Chunks that a segment has at least if the model chooses.
static constexpr int64_t kLeastChunks = 4;
/// Rounds of work items that the model tries to fill.
static constexpr int64_t kMostWaves = 3;
/// Maps that the model allocates at most, for each multiprocessor: 160 KB each
/// at K = V = 128.
static constexpr int64_t kMostMaps = 8;

static int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t gdn::cost::countSegments(int64_t sequences, int64_t tokens,
                                 int64_t length, bool packed) {
  if (sequences <= 0)
    return 0;
  int64_t pieces = divideCeil(tokens, length);
  return packed ? pieces + sequences - 1 : sequences * pieces;
}

namespace {
/// The sequences as the choice without segments took them.
struct Sequences {
  int64_t count, tokens, longest, other;

  /// Segments that are not empty.
  int64_t countPieces(int64_t length) const {
    return divideCeil(longest, length) +
           (count - 1) * divideCeil(other, length);
  }
};
} // namespace

static Sequences sequencesOf(const Problem &p, const Choice &whole) {
  Sequences result = {std::max<int64_t>(p.sequences.value_or(1), 1),
                      p.tokens.value_or(0), whole.longest, whole.longest};
  if (!p.packed)
    result.tokens *= result.count;
  else if (result.count > 1)
    result.other = divideCeil(result.tokens - result.longest, result.count - 1);
  return result;
}

SplitEstimate gdn::cost::estimateSplit(const Problem &p, const Chip &chip,
                                       const Choice &whole, int64_t length,
                                       Schedule schedule) {
  Sequences sequences = sequencesOf(p, whole);
  SplitEstimate result;
  result.length = length;
  result.ofLongest = divideCeil(sequences.longest, length);
  result.segments = std::max<int64_t>(sequences.countPieces(length), 1);
  result.schedule = schedule;

  Problem segments = p;
  segments.packed = true;
  segments.sequences = result.segments;
  segments.tokens = sequences.tokens;
  segments.longest = std::min(length, sequences.longest);
  // States in float32, before and after.
  segments.stateBytes = 8;
  ScheduleCosts forward = costsOf(schedule);
  result.forwardSeconds = estimate(segments, chip, forward).seconds;
  segments.stage = "state_pass";
  ScheduleCosts map = costsOf(Schedule::CtaPerHead, segments.stage);
  double pass =
      estimate(segments, chip, map).seconds - map.launchSeconds + kHopSeconds;
  // The map is a pass of as many columns as K, and what is added one of V.
  result.mapSeconds = kBoundariesSeconds + kHopSeconds + 2 * pass;
  int64_t scans = sequences.count * p.heads * p.vTiles;
  result.scanSeconds =
      kHopSeconds +
      static_cast<double>(divideCeil(scans, chip.multiprocessors)) *
          (kScanSeconds +
           static_cast<double>(result.ofLongest) * kScanStepSeconds);
  return result;
}

/// The shortest length whose segments are at most `most`, or 0.
static int64_t findLength(const Sequences &sequences, int64_t chunk,
                          int64_t most) {
  int64_t chunks = divideCeil(sequences.longest, chunk);
  for (int64_t n = std::min(most, chunks / kLeastChunks); n > 1; --n) {
    int64_t length = divideCeil(chunks, n) * chunk;
    if (sequences.countPieces(length) <= most)
      return length;
  }
  return 0;
}

static constexpr Schedule kSchedules[] = {Schedule::CtaPerHead,
                                          Schedule::CtaPerVTile};

/// The best of the cuts that fill the multiprocessors.
static std::optional<SplitEstimate> findBest(const Problem &p, const Chip &chip,
                                             const Choice &whole) {
  Sequences sequences = sequencesOf(p, whole);
  std::optional<SplitEstimate> best;
  for (Schedule schedule : kSchedules) {
    int64_t ctas = p.heads * (schedule == Schedule::CtaPerHead ? 1 : p.vTiles);
    for (int64_t waves = 1; waves <= kMostWaves; ++waves) {
      int64_t length = findLength(sequences, p.chunkTokens,
                                  waves * chip.multiprocessors / ctas);
      if (!length || countSegments(sequences.count,
                                   p.packed ? sequences.tokens : *p.tokens,
                                   length, p.packed) *
                             p.heads >
                         kMostMaps * chip.multiprocessors)
        continue;
      SplitEstimate now = estimateSplit(p, chip, whole, length, schedule);
      if (!best || now.seconds() < best->seconds())
        best = now;
    }
  }
  return best;
}

SplitChoice gdn::cost::chooseSplit(const Problem &p, const Chip &chip,
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
    choice.best = findBest(p, chip, whole);
    choice.splits = choice.best &&
                    choice.best->seconds() < (1 - kGain) * choice.wholeSeconds;
    return choice;
  }
  if (request.kind == Kind::Length) {
    choice.best =
        estimateSplit(p, chip, whole, request.value, Schedule::CtaPerHead);
    choice.splits = true;
    return choice;
  }
  int64_t chunks = divideCeil(whole.longest, p.chunkTokens);
  int64_t length =
      divideCeil(chunks, std::max<int64_t>(request.value, 1)) * p.chunkTokens;
  for (Schedule schedule : kSchedules) {
    SplitEstimate now = estimateSplit(p, chip, whole, length, schedule);
    if (!choice.best || now.seconds() < choice.best->seconds())
      choice.best = now;
  }
  choice.splits = request.value > 1;
  return choice;
}
