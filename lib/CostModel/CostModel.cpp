//===- CostModel.cpp - What a launch costs, before it is made -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include "WorkItems.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace gdn::cost;

//===----------------------------------------------------------------------===//
// What was measured
//===----------------------------------------------------------------------===//

const std::vector<ScheduleCosts> &gdn::cost::measuredSchedules() {
  static const std::vector<ScheduleCosts> rows = {
#include "Rows.inc"
  };
  return rows;
}

/// What a change of work item in a CTA costs less than a CTA that ends and one
/// that begins (docs/experiments/work-items.md).
static constexpr double kTurnSeconds = 2e-6;

namespace {
/// What a stage computes for a token and value head of a chunk of C tokens:
/// FLOP by C K, C V and K V; and the arrays of K and of V channels that it
/// reads or writes.
struct StageWork {
  std::string_view stage;
  double byKeys, byValues, byState;
  double keyArrays, valueArrays;
};
} // namespace

static constexpr StageWork stageWorks[] = {
    {"fused", 4, 4, 6, 2, 2},
    {"state_pass", 2, 2, 4, 1, 1},
    {"linear_attention", 2, 2, 4, 2, 2},
    {kTokenStage, 0, 0, 8, 2, 2},
};

static const StageWork &workOf(std::string_view stage) {
  for (const StageWork &work : stageWorks)
    if (work.stage == stage)
      return work;
  return stageWorks[0];
}

/// What the constants were measured with.
static constexpr double kMeasuredChannels = 128, kMeasuredTokens = 32;

/// Tokens of a sequence of which only is known that it is there. What is
/// compared hardly depends on them.
static constexpr int64_t kAssumedTokens = 4096;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

std::vector<ScheduleCosts> gdn::cost::schedulesOf(std::string_view stage) {
  if (stage == kTokenStage)
    return {tokenSchedule()};
  std::vector<ScheduleCosts> rows, forward;
  for (const ScheduleCosts &costs : measuredSchedules()) {
    if (costs.stage == stage)
      rows.push_back(costs);
    if (costs.stage == "fused")
      forward.push_back(costs);
  }
  if (!rows.empty())
    return rows;
  double work = flopPerToken(kMeasuredChannels, kMeasuredChannels, stage) /
                flopPerToken(kMeasuredChannels, kMeasuredChannels);
  for (ScheduleCosts &costs : forward) {
    costs.chunk = {costs.chunk.first * work, costs.chunk.further * work};
    costs.predicted = true;
  }
  return forward;
}

ScheduleCosts gdn::cost::costsOf(Schedule schedule, std::string_view stage) {
  for (const ScheduleCosts &costs : measuredSchedules())
    if (costs.stage == stage && costs.name == schedule.name)
      return costs;
  std::vector<ScheduleCosts> rows = schedulesOf(stage);
  for (const ScheduleCosts &costs : rows)
    if (costs.name == schedule.name)
      return costs;
  return rows.front();
}

std::optional<Schedule> gdn::cost::findSchedule(std::string_view name) {
  for (const ScheduleCosts &costs : measuredSchedules())
    if (costs.name == name)
      return Schedule{costs.name};
  return name == Schedule::Token.name ? std::optional(Schedule::Token)
                                      : std::nullopt;
}

Chip gdn::cost::getChip(const mlir::gdn::warp::Arch &arch,
                        int64_t multiprocessors) {
  return {multiprocessors > 0 ? multiprocessors : arch.multiprocessors,
          arch.flopPerSecond, arch.bytesPerSecond, arch.computeCapability,
          arch.chip};
}

Chip gdn::cost::getDefaultChip(int64_t multiprocessors) {
  return getChip(mlir::gdn::warp::getDefaultArch(), multiprocessors);
}

namespace {
/// The lengths that are reckoned with: one of `longest`, and the others.
struct Lengths {
  int64_t sequences, longest, other;
  bool known;
};
} // namespace

/// Tokens of the longest of packed sequences that nobody told.
static int64_t guessLongest(int64_t sequences, int64_t tokens) {
  return divideCeil(sequences == 2 ? 3 * tokens : tokens,
                    sequences == 2 ? 4 : sequences);
}

/// Sizes beyond these are nobody's, and products of them fit 64 bits.
static constexpr int64_t kMaxSequences = int64_t(1) << 31,
                         kMaxTokens = int64_t(1) << 31,
                         kMaxHeads = int64_t(1) << 20,
                         kMaxVTiles = int64_t(1) << 8;

static Lengths resolve(const Workload &p, const Chip &chip) {
  Lengths lengths = {};
  lengths.sequences = std::clamp<int64_t>(
      p.sequences.value_or(chip.multiprocessors), 0, kMaxSequences);
  int64_t count = std::max<int64_t>(lengths.sequences, 1);
  int64_t assumed = p.packed ? count * kAssumedTokens : kAssumedTokens;
  int64_t tokens = std::clamp<int64_t>(p.tokens.value_or(assumed), 0,
                                       p.packed ? kMaxSequences * kMaxTokens / 4
                                                : kMaxTokens);
  int64_t mean = p.packed ? divideCeil(tokens, count) : tokens;
  lengths.known = !p.packed || count == 1 || p.longest;
  if (!p.packed || count == 1) {
    lengths.longest = lengths.other = mean;
    return lengths;
  }
  lengths.longest =
      std::clamp(p.longest.value_or(guessLongest(count, tokens)), mean, tokens);
  lengths.other = divideCeil(tokens - lengths.longest, count - 1);
  return lengths;
}

double gdn::cost::flopPerToken(double keyChannels, double valueChannels,
                               std::string_view stage) {
  constexpr double chunk = 64;
  const StageWork &work = workOf(stage);
  return chunk * (work.byKeys * keyChannels + work.byValues * valueChannels) +
         work.byState * keyChannels * valueChannels;
}

/// Tokens of all sequences together, as far as they are known.
static double countTokens(const Workload &p) {
  auto tokens = static_cast<double>(p.tokens.value_or(0));
  return p.packed ? tokens
                  : tokens * static_cast<double>(p.sequences.value_or(0));
}

double gdn::cost::countFlop(const Workload &p) {
  return countTokens(p) * static_cast<double>(p.heads) *
         flopPerToken(static_cast<double>(p.keyChannels),
                      static_cast<double>(p.valueChannels), p.stage);
}

/// What a forward saves for a backward: what tokens write, and states.
static double countSavedBytes(const Workload &p) {
  if (p.stateInterval == 0)
    return 0;
  double tokens = countTokens(p);
  double states = std::floor(tokens / static_cast<double>(p.stateInterval)) +
                  static_cast<double>(p.sequences.value_or(0));
  return (tokens + states * static_cast<double>(p.keyChannels)) *
         static_cast<double>(p.heads * p.valueChannels * p.dataBytes);
}

double gdn::cost::countBytes(const Workload &p) {
  auto keys = static_cast<double>(p.keyChannels),
       values = static_cast<double>(p.valueChannels),
       heads = static_cast<double>(p.heads);
  const StageWork &work = workOf(p.stage);
  double data = work.keyArrays * static_cast<double>(p.keyHeads) * keys +
                work.valueArrays * heads * values;
  double states =
      static_cast<double>(p.sequences.value_or(0)) * heads * keys * values;
  return countTokens(p) * (data * static_cast<double>(p.dataBytes) +
                           heads * static_cast<double>(p.gateBytes)) +
         states * static_cast<double>(p.stateBytes) + countSavedBytes(p);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Estimate gdn::cost::estimate(const Workload &p, const Chip &chip,
                             const ScheduleCosts &costs) {
  if (costs.stage == kTokenStage)
    return estimateTokens(p, chip, costs);
  Lengths lengths = resolve(p, chip);
  int64_t vTiles = std::clamp<int64_t>(p.vTiles, 1, kMaxVTiles);
  // A forward with gates of channels has a CTA for a V tile by either name.
  bool isChannelForward = p.gatesChannels && p.stage == "fused";
  bool folds = costs.folds && !isChannelForward;
  int64_t together = folds ? vTiles : 1;
  int64_t apart = folds ? 1 : vTiles;
  auto further = static_cast<double>(together - 1);
  double partSize = static_cast<double>(p.keyChannels) / kMeasuredChannels *
                    static_cast<double>(p.chunkTokens) / kMeasuredTokens;
  bool isPlain = isChannelForward && !p.stateInterval;
  double factor = isPlain            ? kChannelForward
                  : isChannelForward ? kChannelSaving
                                     : chunkFactor(p);
  double chunk =
      (costs.chunk.first + further * costs.chunk.further) * partSize * factor;
  double item = isPlain ? kChannelItemSeconds
                        : costs.item.first + further * costs.item.further;
  auto secondsOf = [&](int64_t tokens) {
    return item +
           static_cast<double>(divideCeil(tokens, p.chunkTokens)) * chunk;
  };

  Estimate result = {};
  result.schedule = {costs.name};
  result.predicted = costs.predicted;
  int64_t ofSequence = std::clamp<int64_t>(p.heads, 0, kMaxHeads) * apart;
  int64_t items = lengths.sequences * ofSequence;
  result.inTurn = costs.takesTurns && together > 1 && !p.packed;
  result.ctas = result.inTurn ? std::min(items, chip.multiprocessors) : items;
  result.waves = divideCeil(items, chip.multiprocessors);
  result.longestChunks = divideCeil(lengths.longest, p.chunkTokens);
  if (together > kMaxFolded) {
    result.bound = Bound::Registers;
    return result;
  }
  if (items == 0)
    return result;
  double longest = secondsOf(lengths.longest);
  double end =
      scheduleWorkItems(chip.multiprocessors, {ofSequence, longest},
                        {items - ofSequence, secondsOf(lengths.other)});
  if (result.inTurn)
    end -= static_cast<double>(result.waves - 1) * kTurnSeconds;
  double memory = countBytes(p) / chip.bytesPerSecond;
  result.bound = memory > end     ? Bound::Memory
                 : end <= longest ? Bound::Longest
                                  : Bound::Items;
  result.seconds = (isPlain ? 0 : costs.launchSeconds) + std::max(end, memory);
  return result;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

const Estimate &Choice::of(Schedule wanted) const {
  for (const Estimate &estimate : estimates)
    if (estimate.schedule == wanted)
      return estimate;
  return estimates.front();
}

double Choice::utilisation() const {
  return chosen().seconds > 0 ? floorSeconds / chosen().seconds : 0;
}

static std::string describe(const Estimate &lost) {
  char text[128] = "";
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  switch (lost.bound) {
  case Bound::Longest:
    std::snprintf(text, sizeof(text),
                  "a CTA has %lld chunks, one after the other",
                  number(lost.longestChunks));
    break;
  case Bound::Items:
    std::snprintf(text, sizeof(text),
                  lost.inTurn
                      ? "%lld CTAs, with up to %lld work items one after "
                        "the other"
                      : "%lld CTAs, up to %lld of them on a "
                        "multiprocessor one after the other",
                  number(lost.ctas), number(lost.waves));
    break;
  case Bound::Memory:
    return "its bytes";
  case Bound::Registers:
    return "the states of all V tiles of a head do not fit the registers of a "
           "CTA";
  }
  return text;
}

std::string Choice::whyNot(const Estimate &lost) const {
  if (lost.bound == Bound::Registers)
    return describe(lost);
  char times[96];
  std::snprintf(times, sizeof(times),
                "%.3g ms predicted, %s %.3g ms: ", lost.seconds * 1e3,
                std::string(schedule.name).c_str(), chosen().seconds * 1e3);
  return times + describe(lost);
}

Choice gdn::cost::choose(const Workload &p, const Chip &chip,
                         std::optional<Schedule> forced) {
  Choice choice = {};
  Lengths lengths = resolve(p, chip);
  choice.longest = lengths.longest;
  choice.knowsLongest = lengths.known;
  choice.flop = countFlop(p);
  choice.bytes = countBytes(p);
  choice.floorSeconds = std::max(choice.flop / chip.flopPerSecond,
                                 choice.bytes / chip.bytesPerSecond);
  const Estimate *best = nullptr;
  std::vector<ScheduleCosts> rows = schedulesOf(p.stage);
  choice.estimates.reserve(rows.size());
  for (const ScheduleCosts &costs : rows) {
    const Estimate &now =
        choice.estimates.emplace_back(estimate(p, chip, costs));
    if (now.bound != Bound::Registers && (!best || now.seconds < best->seconds))
      best = &now;
  }
  choice.schedule =
      forced.value_or(best ? best->schedule : Schedule::CtaPerVTile);
  return choice;
}

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

static constexpr Core cores[] = {
    {CoreLevel::V3, CoreOperand::BF16, 96e9, 5.6e9},
    {CoreLevel::V3, CoreOperand::F16, 90e9, 5.6e9},
    {CoreLevel::V3, CoreOperand::F32, 103e9, 5.6e9},
    {CoreLevel::V4, CoreOperand::BF16, 148e9, 6.9e9},
    {CoreLevel::V4, CoreOperand::F16, 156e9, 6.9e9},
    {CoreLevel::V4, CoreOperand::F32, 177e9, 6.9e9},
    {CoreLevel::V4BF16, CoreOperand::BF16, 150e9, 6.9e9},
};
/// What a work item costs besides its tokens: buffers, the state in and out.
static constexpr double kCoreItemSeconds = 5e-6;
/// How much longer programs with gates per channel take than others of float32:
/// measured on one core of a Xeon, 64 to 2048 tokens, 64 and 128 channels.
static constexpr double kChannelGatesInChunks = 1.5, kChannelGatesByToken = 1.2;

const Core &gdn::cost::coreOf(CoreLevel level, CoreOperand operand) {
  // Only products of bf16 know a third level.
  if (operand != CoreOperand::BF16 && level == CoreLevel::V4BF16)
    level = CoreLevel::V4;
  for (const Core &core : cores)
    if (core.level == level && core.operand == operand)
      return core;
  return cores[0];
}

double gdn::cost::chunkedSeconds(const Core &core, int64_t tokens,
                                 int64_t keyChannels, int64_t valueChannels,
                                 int64_t chunkTokens, bool gatesChannels) {
  int64_t computed = divideCeil(tokens, chunkTokens) * chunkTokens;
  double seconds =
      kCoreItemSeconds + static_cast<double>(computed) *
                             flopPerToken(static_cast<double>(keyChannels),
                                          static_cast<double>(valueChannels)) /
                             core.flopPerSecond;
  return gatesChannels ? kChannelGatesInChunks * seconds : seconds;
}

double gdn::cost::recurrentSeconds(const Core &core, int64_t tokens,
                                   int64_t keyChannels, int64_t valueChannels,
                                   bool gatesChannels) {
  double seconds = kCoreItemSeconds + static_cast<double>(tokens) *
                                          static_cast<double>(keyChannels) *
                                          static_cast<double>(valueChannels) /
                                          core.updatesPerSecond;
  return gatesChannels ? kChannelGatesByToken * seconds : seconds;
}
