//===- Tokens.cpp - What a launch token by token costs --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include <algorithm>

using namespace gdn::cost;

/// CTAs that a multiprocessor has at a time (Schedules/recurrent.mlir).
static constexpr int64_t kResident = 5;
/// Entries of the state that a CTA holds, and the V channels that they are.
static constexpr int64_t kTileEntries = 4096, kLeastChannels = 32,
                         kMostChannels = 64;

/// A token takes a load from memory and two sums over lanes, which follow one
/// another.
ScheduleCosts gdn::cost::tokenSchedule() {
  return {kTokenStage,
          Schedule::Token.name.data(),
          /*folds=*/false,
          /*takesTurns=*/false,
          /*item=*/{1.2e-6, 0},
          /*chunk=*/{1.0e-6, 0},
          /*launchSeconds=*/1.5e-6,
          /*predicted=*/true};
}

static int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

Estimate gdn::cost::estimateTokens(const Problem &p, const Chip &chip,
                                   const ScheduleCosts &costs) {
  int64_t sequences = p.sequences.value_or(chip.multiprocessors);
  int64_t tokens = p.tokens.value_or(p.packed ? sequences : 1);
  int64_t longest = tokens;
  if (p.packed)
    longest =
        p.longest.value_or(divideCeil(tokens, std::max<int64_t>(sequences, 1)));
  int64_t keys = std::max<int64_t>(p.keyChannels, 1);
  int64_t channels =
      std::clamp(kTileEntries / keys, kLeastChannels, kMostChannels);

  Estimate result = {};
  result.schedule = {costs.name};
  result.predicted = costs.predicted;
  result.ctas =
      sequences * p.heads * std::max<int64_t>(p.valueChannels / channels, 1);
  result.waves = divideCeil(result.ctas, chip.multiprocessors * kResident);
  result.longestChunks = longest;
  if (result.ctas == 0)
    return result;
  double item =
      costs.item.first + static_cast<double>(longest) * costs.chunk.first;
  double end = static_cast<double>(result.waves) * item;
  double memory = countBytes(p) / chip.bytesPerSecond;
  // A work item's own time comes first, what further ones take is hidden by it
  // or by memory.
  result.seconds =
      costs.launchSeconds + std::max(end, memory + costs.item.first);
  result.bound = memory > end        ? Bound::Memory
                 : result.waves == 1 ? Bound::Longest
                                     : Bound::Items;
  return result;
}
