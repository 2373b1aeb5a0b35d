//===- WorkItems.h - When the last work item is done ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_COSTMODEL_WORKITEMS_H
#define GDN_LIB_COSTMODEL_WORKITEMS_H

#include "gdn/CostModel/CostModel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gdn::cost {

inline int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What a chunk of 32 tokens takes with a gate per channel, over one with a
/// gate per head, in a forward, whose tiles are made in a loop over their
/// pieces, in one that saves states, and in the passes of segments
/// (docs/experiments/kda.md).
inline constexpr double kChannelForward = 1.82, kChannelSaving = 2.0,
                        kChannelGates = 2.35;
/// A work item of such a forward besides its chunks. Its launch is in it.
inline constexpr double kChannelItemSeconds = 7e-6;

inline double chunkFactor(const Workload &p) {
  return p.gatesChannels ? kChannelGates : 1;
}

/// Heads that do not decay: one of so many, by the gates of FlashQLA's
/// benchmark and in models. With gates of channels none, by those of
/// FlashKDA's.
inline int64_t liveHeads(const Workload &p) {
  constexpr int64_t kHeadsOfOneLive = 4;
  return p.gatesChannels ? 0 : divideCeil(p.heads, kHeadsOfOneLive);
}

/// What a cut must be predicted to gain, and what it may lose with gates that
/// decay slowly.
inline constexpr double kGain = 0.03, kLoss = 0.03;
/// What it may lose with gates that decay nothing, if most heads decay; and
/// with gates of channels, of which a benchmark's decay.
inline constexpr double kUtmostLoss = 0.1, kUtmostChannelLoss = 0.3;

/// Work items that take the same time.
struct Items {
  int64_t count;
  double seconds;
};

/// When all work items are done, if each starts where a processor becomes free,
/// the long ones before the short ones.
inline double scheduleWorkItems(int64_t processors, Items longer,
                                Items shorter) {
  int64_t rounds = longer.count / processors, rest = longer.count % processors;
  double start = static_cast<double>(rounds) * longer.seconds;
  if (rest == 0)
    return start + static_cast<double>(divideCeil(shorter.count, processors)) *
                       shorter.seconds;
  // The last long ones leave processors free, which take short ones meanwhile.
  int64_t free = processors - rest;
  double beside = std::floor(longer.seconds / shorter.seconds);
  if (static_cast<double>(shorter.count) <= static_cast<double>(free) * beside)
    return start +
           std::max(longer.seconds,
                    static_cast<double>(divideCeil(shorter.count, free)) *
                        shorter.seconds);
  // The others go to all in turn, first to those that were free.
  int64_t left = shorter.count - free * static_cast<int64_t>(beside);
  int64_t full = (left - 1) / processors, last = left - full * processors;
  double end = last <= free
                   ? std::max(longer.seconds, (beside + 1) * shorter.seconds)
                   : longer.seconds + shorter.seconds;
  return start + static_cast<double>(full) * shorter.seconds + end;
}

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_WORKITEMS_H
