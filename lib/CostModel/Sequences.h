//===- Sequences.h - The sequences of a call that may be cut ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_COSTMODEL_SEQUENCES_H
#define GDN_LIB_COSTMODEL_SEQUENCES_H

#include "gdn/CostModel/Segments.h"

#include "WorkItems.h"

#include <algorithm>

namespace gdn::cost {

/// The sequences as the choice without segments took them.
struct Sequences {
  int64_t count, tokens, longest, other;

  /// Segments that are not empty.
  int64_t countPieces(int64_t length) const {
    return divideCeil(longest, length) +
           (count - 1) * divideCeil(other, length);
  }
};

inline Sequences sequencesOf(const Problem &p, const Choice &whole) {
  Sequences result = {std::max<int64_t>(p.sequences.value_or(1), 1),
                      p.tokens.value_or(0), whole.longest, whole.longest};
  if (!p.packed)
    result.tokens *= result.count;
  else if (result.count > 1)
    result.other = divideCeil(result.tokens - result.longest, result.count - 1);
  return result;
}

/// Chunks that show behind a segment of a head that decays: with the mean log
/// gate of -0.05 that libraries are measured with, and with gates of channels
/// as many as gdn.stage.segment_starts looks at.
inline int64_t forgetfulChunks(const Problem &p) {
  constexpr int64_t kChunks = 8, kWalkedTokens = 96;
  return p.gatesChannels ? divideCeil(kWalkedTokens, p.chunkTokens) : kChunks;
}

/// How long that stage takes more with gates of channels, whose tokens it walks
/// over: so many seconds (predicted) for so many work items a multiprocessor.
inline double walkSeconds(const Problem &p, const Chip &chip,
                          int64_t segments) {
  constexpr double kSeconds = 8e-6;
  constexpr int64_t kItems = 3;
  return p.gatesChannels
             ? kSeconds *
                   static_cast<double>(divideCeil(
                       segments * p.heads, kItems * chip.multiprocessors))
             : 0;
}

/// CTAs that a forward has for a head by the schedule of a CTA a head: with
/// gates of channels one for each V tile.
inline int64_t ctasOfHead(const Problem &p) {
  return p.gatesChannels ? p.vTiles : 1;
}

/// Whether heads that decay slowly forget what is before a segment: with gates
/// of channels the kernel that finds out looks at too few tokens for that.
inline bool forgetsSlowly(const Problem &p) { return !p.gatesChannels; }

/// Tokens that show behind a segment where all heads decay slowly: gates of
/// -0.001 on average, down to exp(-12).
inline constexpr int64_t kSlowTokens = 12000;

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_SEQUENCES_H
