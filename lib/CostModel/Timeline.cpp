//===- Timeline.cpp - What a forward in segments takes --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Processors.h"
#include "Sequences.h"

#include <algorithm>
#include <cmath>

using namespace gdn::cost;

// Fitted to docs/data/own-starts-h200.csv, which the model meets within 17 %
// (OwnStartsTest.cpp); segments that wait for those before them to
// docs/data/segments-sweep-h200.csv, which it meets within 10 %
// (SegmentsSweepTest.cpp).

/// Behind the last CTA.
static constexpr double kEndSeconds = 0.5e-6;
/// Kernels that a forward in segments has more than one of whole sequences.
static constexpr int64_t kMoreKernels = 5;
/// The kernel that cuts, and what it takes more to look at the gates.
static constexpr double kBoundariesSeconds = 1.5e-6, kSampleSeconds = 1.1e-6;
/// The kernel that finds where segments forget, and a chunk of it.
static constexpr double kStartsSeconds = 1.5e-6, kStartsChunkSeconds = 0.01e-6;

namespace {
/// A work item of a CTA a head with two V tiles, besides its chunks, and a
/// chunk, where all multiprocessors have some.
struct ItemCosts {
  double item, chunk;
};
} // namespace

/// What segments add, their maps, and their forward.
static constexpr ItemCosts kAddedCosts = {6.5e-6, 0.7e-6},
                           kMapCosts = {5.5e-6, 0.58e-6},
                           kForwardCosts = {2.8e-6, 1.06e-6};
/// The forward with gates of channels, of a CTA of one V tile that shares its
/// tiles with the CTA of the other one (docs/experiments/kda.md).
static constexpr ItemCosts kChannelForwardCosts = {2.8e-6, 1.15e-6};
/// What a chunk of B and of maps takes with gates of channels, over one with a
/// gate a head (docs/data/own-starts-channels-h200.csv).
static constexpr double kChannelPasses = 3.5;

namespace {
/// What kernels in front of a forward have of their own, by whether its
/// segments start on their own or all wait.
struct PassCosts {
  /// What a chunk of B and of maps takes, over the times above.
  double factor;
  /// What a work item of B of few chunks takes besides: its roles wait for each
  /// other.
  double shortItem;
  /// A CTA of the scan besides its segments, and a segment.
  double scan, scanStep;
};
} // namespace

/// Times of waiting segments are from before scans became faster.
static constexpr PassCosts kOwnPasses = {1, 0, 4.3e-6, 0.7e-6},
                           kWaitingPasses = {1.21, 5.5e-6, 8.5e-6, 1.88e-6};
/// CTAs of the scan for a V tile.
static constexpr int64_t kScansOfVTile = 4;
/// A CTA that has nothing to do. It is less than the fit gives, 3.4 us; alone
/// it takes 1.3 us.
static constexpr double kIdleSeconds = 2e-6;
/// Chunks of a segment from which on forwards beside B and the maps slow these
/// by more than they gain, where all of them begin at once anyway.
static constexpr double kLateChunks = 32;

/// Chunks that show behind a segment of a head that decays: with the mean log
/// gate of -0.05 that libraries are measured with, and with gates of channels
/// as many as gdn.stage.segment_starts looks at.
static int64_t forgetfulChunks(const Workload &p) {
  constexpr int64_t kChunks = 8, kWalkedTokens = 96;
  return p.gatesChannels ? divideCeil(kWalkedTokens, p.chunkTokens) : kChunks;
}

/// How long that stage takes more with gates of channels, whose tokens it walks
/// over: so many seconds (predicted) for so many work items a multiprocessor.
static double walkSeconds(const Workload &p, const Chip &chip,
                          int64_t segments) {
  constexpr double kSeconds = 8e-6;
  constexpr int64_t kItems = 3;
  return p.gatesChannels
             ? kSeconds *
                   static_cast<double>(divideCeil(
                       segments * p.heads, kItems * chip.multiprocessors))
             : 0;
}

/// Whether heads that decay slowly forget what is before a segment: with gates
/// of channels the kernel that finds out looks at too few tokens for that.
static bool forgetsSlowly(const Workload &p) { return !p.gatesChannels; }

/// Tokens that show behind a segment where all heads decay slowly: gates of
/// -0.001 on average, down to exp(-12).
static constexpr int64_t kSlowTokens = 12000;

namespace {
/// The segments of a call: how many there are, how many more its kernels have
/// CTAs for, and of how many heads.
struct Cuts {
  int64_t segments, empty, sequences, heads, vTiles, ofLongest, parts;
  /// Chunks of a segment.
  double chunks;
  /// Whether the forward is launched when the maps are done.
  bool isLate;
  /// Whether a CTA of the forward has one V tile, with gates of channels.
  bool gatesChannels;
  const PassCosts &passes;
  /// What gates and passes make of a chunk of B and of maps.
  double factor;
  /// Whether the forward of all segments waits for the scan.
  bool waits;
};

/// When B and the maps, the scan, and the forward are done.
struct Ends {
  double maps, scan, forward;
};
} // namespace

/// Seconds of a work item with so many chunks, of a CTA a head.
static double itemSeconds(const ItemCosts &costs, const Cuts &cuts,
                          double chunks) {
  double tiles = std::min<double>(static_cast<double>(cuts.vTiles), 2) / 2;
  return costs.item + chunks * costs.chunk * cuts.factor * (1 + tiles) / 2;
}

static double forwardSeconds(const Cuts &cuts, double chunks) {
  return cuts.gatesChannels
             ? kChannelForwardCosts.item + chunks * kChannelForwardCosts.chunk
             : itemSeconds(kForwardCosts, cuts, chunks);
}

static double scanSeconds(const Cuts &cuts) {
  int64_t steps = std::max<int64_t>(cuts.ofLongest * cuts.parts - 2, 0);
  return cuts.passes.scan + static_cast<double>(steps) * cuts.passes.scanStep;
}

/// What segments take at least: those that wait before their forward, in one
/// part each, and others that nothing decays in it.
static double leastSeconds(const Chip &chip, const Cuts &cuts, int64_t live,
                           double shown) {
  if (!cuts.waits)
    return forwardSeconds(cuts, cuts.chunks);
  int64_t behind = cuts.segments - cuts.sequences;
  if (behind <= 0)
    return 0;
  double added = itemSeconds(kAddedCosts, cuts,
                             live ? cuts.chunks : std::min(shown, cuts.chunks));
  double work = static_cast<double>(behind * live) * added +
                static_cast<double>(
                    std::max<int64_t>(behind - cuts.sequences, 0) * live) *
                    itemSeconds(kMapCosts, cuts, cuts.chunks);
  return std::max(added, work / static_cast<double>(chip.multiprocessors)) +
         scanSeconds(cuts);
}

/// The kernels behind `seconds`, where `live` of the heads have maps and the
/// segments of the others forget all but their last `shown` chunks: these are
/// run in front of the segments behind them, or added up by B.
static Ends simulate(const Chip &chip, const Cuts &cuts, double seconds,
                     int64_t live, double shown) {
  int64_t all = (cuts.segments + cuts.empty) * cuts.heads,
          first = cuts.sequences * cuts.heads, forgetful = cuts.heads - live;
  int64_t behind = std::max<int64_t>(cuts.segments - cuts.sequences, 0);
  // Parts that add something for others, and those with a map.
  int64_t adding = behind * cuts.parts,
          mapped = std::max<int64_t>(adding - cuts.sequences, 0);
  double part = std::ceil(cuts.chunks / static_cast<double>(cuts.parts));
  shown = std::min(shown, cuts.chunks);
  Processors timeline(chip, seconds);
  Ends ends;
  auto addIdle = [&](int64_t count) { timeline.add(count, kIdleSeconds); };
  double added = itemSeconds(kAddedCosts, cuts, part), shortAdded = added;
  if (shown < part)
    shortAdded = cuts.passes.shortItem + itemSeconds(kAddedCosts, cuts, shown);
  // Heads of which B adds up what shows.
  int64_t showing = cuts.waits ? forgetful : 0;
  ends.maps = timeline.add(adding * live, added);
  ends.maps = std::max(ends.maps, timeline.add(adding * showing, shortAdded));
  addIdle(all * cuts.parts - adding * (live + showing));
  timeline.launch();
  ends.maps =
      std::max(ends.maps,
               timeline.add(mapped * live, itemSeconds(kMapCosts, cuts, part)));
  addIdle(all * cuts.parts - mapped * live);
  timeline.launch();
  // Whole sequences have nothing to scan.
  int64_t columns = cuts.sequences * cuts.vTiles * kScansOfVTile,
          scanned = behind ? columns * (live + showing) : 0;
  ends.scan = timeline.add(scanned, scanSeconds(cuts), ends.maps);
  ends.forward = ends.scan;
  if (cuts.waits)
    return ends;
  addIdle(columns * cuts.heads - scanned);
  timeline.launch(cuts.isLate ? ends.maps : 0);
  double forward = forwardSeconds(cuts, cuts.chunks);
  int64_t ctas = cuts.gatesChannels ? cuts.vTiles : 1;
  ends.forward = timeline.add(first * ctas, forward);
  ends.forward = std::max(
      ends.forward, timeline.add(behind * forgetful * ctas,
                                 forwardSeconds(cuts, cuts.chunks + shown)));
  addIdle(all * ctas);
  ends.forward = std::max(ends.forward, timeline.add(behind * live * ctas,
                                                     forward, ends.scan)) +
                 kEndSeconds;
  return ends;
}

/// The forward of segments that all wait for the scan.
static double waitingSeconds(const Workload &p, const Chip &chip,
                             const Sequences &sequences, const Cut &cut,
                             int64_t count) {
  Workload segments = p;
  segments.packed = true;
  segments.sequences = count;
  segments.tokens = sequences.tokens;
  segments.longest = std::min(cut.length, sequences.longest);
  // States in float32, before and after.
  segments.stateBytes = 8;
  ScheduleCosts costs = costsOf(cut.schedule);
  return estimate(segments, chip, costs).seconds - costs.launchSeconds;
}

namespace {
/// What a cut shares with another one, of which the device chooses one.
struct Shared {
  /// Segments that the other has more.
  int64_t empty = 0;
  /// Of the sample that chooses.
  double seconds = 0;
  /// Whether the forward is launched late; nothing: as is best for this cut.
  std::optional<bool> isLate;
  /// Which times are asked for: with gates of models, and with gates that decay
  /// slowly or nothing. Without the one they are the other's.
  bool asksDecayed = true, asksSlow = true;
};
} // namespace

static SplitEstimate estimateCut(const Workload &p, const Chip &chip,
                                 const Choice &whole, const Cut &cut,
                                 const SplitRequest &request,
                                 const Shared &shared, double most) {
  Sequences sequences = sequencesOf(p, whole);
  SplitEstimate result;
  static_cast<Cut &>(result) = cut;
  result.ofLongest = divideCeil(sequences.longest, cut.length);
  result.segments = std::max<int64_t>(sequences.countPieces(cut.length), 1);
  // Lengths that differ are taken for equal ones.
  double chunks =
      static_cast<double>(
          std::min(divideCeil(sequences.tokens, result.segments), cut.length)) /
      static_cast<double>(p.chunkTokens);
  chunks = std::ceil(chunks);
  result.isLate =
      request.ownStarts &&
      shared.isLate.value_or(result.segments * p.heads * ctasOfHead(p) <=
                                 chip.multiprocessors &&
                             chunks >= kLateChunks);
  const PassCosts &passes = request.ownStarts ? kOwnPasses : kWaitingPasses;
  Cuts cuts = {result.segments,
               shared.empty,
               sequences.count,
               p.heads,
               p.vTiles,
               result.ofLongest,
               cut.parts,
               chunks,
               result.isLate,
               p.gatesChannels,
               passes,
               passes.factor * (p.gatesChannels ? kChannelPasses : 1),
               !request.ownStarts};
  auto parts = static_cast<double>(cut.parts);
  auto shown = static_cast<double>(forgetfulChunks(p));
  // A part that is shorter than what shows behind it forgets nothing.
  bool forgets = request.decays && chunks > shown * parts;
  double start = kBoundariesSeconds + shared.seconds + 2 * kHopSeconds +
                 kStartsSeconds + walkSeconds(p, chip, result.segments) +
                 chunks / parts * kStartsChunkSeconds +
                 leavingSeconds(request, kMoreKernels);
  auto simulateLive = [&](int64_t live, double behind) {
    return simulate(chip, cuts, start, live, behind);
  };
  double least = start + (leastSeconds(chip, cuts, liveHeads(p), shown) +
                          leastSeconds(chip, cuts, p.heads, shown)) /
                             2;
  if (least >= most) {
    result.scanSeconds = least;
    return result;
  }
  bool isDecayed = forgets && shared.asksDecayed;
  Ends all = {}, some = {};
  if (shared.asksSlow || !isDecayed)
    all = simulateLive(p.heads, 0);
  some = isDecayed ? simulateLive(liveHeads(p), shown) : all;
  Ends slow = all;
  if (shared.asksSlow && forgets && forgetsSlowly(p) &&
      cut.length / cut.parts > kSlowTokens)
    slow = simulateLive(0, static_cast<double>(kSlowTokens / p.chunkTokens));
  result.mapSeconds = some.maps;
  result.scanSeconds = some.scan - some.maps;
  result.forwardSeconds =
      cuts.waits ? waitingSeconds(p, chip, sequences, cut, result.segments)
                 : some.forward - some.scan;
  result.slowGateSeconds = slow.forward - some.forward;
  result.noDecaySeconds = all.forward - some.forward;
  return result;
}

SplitEstimate gdn::cost::estimateSplit(const Workload &p, const Chip &chip,
                                       const Choice &whole, const Cut &cut,
                                       const SplitRequest &request,
                                       double most) {
  Shared shared;
  // A launch that depends on how many segments there are is another kernel.
  if (request.kind == SplitRequest::Kind::Length)
    shared.isLate = false;
  return estimateCut(p, chip, whole, cut, request, shared, most);
}

/// With gates of channels nobody samples: who finds where segments begin knows.
static double sampleSeconds(const Workload &p) {
  return p.gatesChannels ? 0 : kSampleSeconds;
}

SplitEstimate gdn::cost::estimateShorter(const Workload &p, const Chip &chip,
                                         const Choice &whole, int64_t length,
                                         const SplitRequest &request) {
  // Late, the shorter ones have not enough multiprocessors at the end.
  return estimateCut(p, chip, whole, {length}, request,
                     {/*empty=*/0, sampleSeconds(p), /*isLate=*/false,
                      /*asksDecayed=*/true, /*asksSlow=*/false},
                     kAnySeconds);
}

SplitEstimate gdn::cost::estimateTwoLengths(const Workload &p, const Chip &chip,
                                            const Choice &whole,
                                            const SplitEstimate &shorter,
                                            int64_t longer,
                                            const SplitRequest &request,
                                            double most) {
  int64_t empty =
      shorter.segments -
      std::max<int64_t>(sequencesOf(p, whole).countPieces(longer), 1);
  // The scan holds the forward back then (gdn_tile.hold_back).
  SplitEstimate other = estimateCut(p, chip, whole, {longer}, request,
                                    {empty, sampleSeconds(p), /*isLate=*/true,
                                     /*asksDecayed=*/false},
                                    most - shorter.seconds());
  SplitEstimate result = shorter;
  result.longerLength = longer;
  result.slowGateSeconds = other.slowSeconds() - result.seconds();
  result.noDecaySeconds = other.seconds() - result.seconds();
  return result;
}
