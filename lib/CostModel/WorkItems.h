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

#include <cstdint>
#include <string_view>

namespace gdn::cost {

/// What a chunk of 32 tokens takes with a gate per channel, over one with a
/// gate per head (docs/experiments/kda.md): of a forward, for which the CTAs of
/// two V tiles share what they make of keys, and of other stages, where a CTA
/// makes it for itself. The latter was measured of a forward.
inline constexpr double kChannelGates = 2.35, kChannelGatesAlone = 4.2;

inline double chunkFactor(const Problem &p, std::string_view stage) {
  if (!p.gatesChannels)
    return 1;
  return stage == "fused" ? kChannelGates : kChannelGatesAlone;
}

/// One head of so many does not decay, by the gates of FlashQLA's benchmark and
/// in models.
inline constexpr int64_t kHeadsOfOneLive = 4;
/// What a cut must be predicted to gain, and what it may lose with gates that
/// decay slowly.
inline constexpr double kGain = 0.03, kLoss = 0.03;
/// What it may lose with gates that decay nothing, where most heads decay.
inline constexpr double kUtmostLoss = 0.1;

inline int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Work items that take the same time.
struct Items {
  int64_t count;
  double seconds;
};

/// When all work items are done, if each starts where a processor becomes free,
/// the long ones before the short ones.
double scheduleWorkItems(int64_t processors, Items longer, Items shorter);

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_WORKITEMS_H
