//===- Tokens.cpp - What a launch token by token costs --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include "WorkItems.h"

#include <algorithm>

using namespace gdn::cost;

namespace {
/// The V tile of a CTA, and CTAs that a multiprocessor has at a time
/// (GDNToTile.cpp, Schedules/recurrent.mlir).
struct TokenTile {
  int64_t channels, resident;
};
} // namespace

static TokenTile tileOf(const Workload &p) {
  constexpr int64_t kShortKey = 128, kLine = 32, kLeast = 16, kMost = 64,
                    kShortEntries = 2048;
  if (p.keyChannels > kShortKey)
    return {kLine, 3};
  int64_t keys = std::max<int64_t>(p.keyChannels, 1);
  if (p.stateVFirst)
    return {std::clamp(kShortEntries / keys, kLeast, kMost), 8};
  return {kLine, keys * kLine <= kShortEntries ? 8 : 5};
}

/// What a launch takes longer with states [K, V]: warps that share K wait for
/// each other's sums.
static constexpr double kSumSeconds = 1.6e-6;
/// Of the chip's bandwidth, what loads and stores of states get.
static constexpr double kBandwidth = 0.968;

/// The first token's time is that of the state. Fitted to 1 to 32 tokens of 1
/// to 256 sequences (docs/experiments/recurrent.md). A further token is a load
/// from memory and two sums over lanes, which follow one another.
ScheduleCosts gdn::cost::tokenSchedule() {
  return {kTokenStage,
          Schedule::Token.name,
          /*folds=*/false,
          /*takesTurns=*/false,
          /*item=*/{1.2e-6, 0},
          /*chunk=*/{1.3e-6, 0},
          /*launchSeconds=*/1.4e-6};
}

Estimate gdn::cost::estimateTokens(const Workload &p, const Chip &chip,
                                   const ScheduleCosts &costs) {
  int64_t sequences = p.sequences.value_or(chip.multiprocessors);
  int64_t tokens = p.tokens.value_or(p.packed ? sequences : 1);
  int64_t longest = tokens;
  if (p.packed)
    longest =
        p.longest.value_or(divideCeil(tokens, std::max<int64_t>(sequences, 1)));
  TokenTile tile = tileOf(p);

  Estimate result = {};
  result.schedule = {costs.name};
  result.predicted = costs.predicted;
  result.ctas = sequences * p.heads *
                std::max<int64_t>(p.valueChannels / tile.channels, 1);
  result.waves = divideCeil(result.ctas, chip.multiprocessors * tile.resident);
  result.longestChunks = longest;
  if (result.ctas == 0)
    return result;
  auto waves = static_cast<double>(result.waves);
  double further = waves * costs.chunk.first *
                   static_cast<double>(std::max<int64_t>(longest - 1, 0));
  double items = waves * costs.item.first;
  double memory = countBytes(p) / (kBandwidth * chip.bytesPerSecond);
  // Of the first tokens, memory or the work items' own time hides the other.
  // Further tokens hide neither: a CTA has loaded its state when they begin.
  result.seconds = costs.launchSeconds + (p.stateVFirst ? 0 : kSumSeconds) +
                   std::max(items, memory + costs.item.first) + further;
  result.bound = memory > items + further ? Bound::Memory
                 : result.waves == 1      ? Bound::Longest
                                          : Bound::Items;
  return result;
}

/// Of the chip's bandwidth, what a transposing copy reaches
/// (docs/experiments/peers.md), and the time from its launch to the next
/// kernel.
static constexpr double kCopyShare = 0.78, kCopyLaunchSeconds = 3e-6;

double gdn::cost::predictCopy(double bytes, const Chip &chip) {
  return kCopyLaunchSeconds + bytes / (kCopyShare * chip.bytesPerSecond);
}
