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

/// Sequences, or segments: one is the longest, and others are equal.
struct Sequences {
  int64_t count, tokens, longest, other;

  /// Segments that are not empty.
  int64_t countPieces(int64_t length) const {
    return divideCeil(longest, length) +
           (count - 1) * divideCeil(other, length);
  }
};

/// Of sequences of which one has `longest` tokens; lengths of packed ones may
/// differ.
inline Sequences sequencesOf(const Workload &p, int64_t longest) {
  Sequences result = {std::max<int64_t>(p.sequences.value_or(1), 1),
                      p.tokens.value_or(0), longest, longest};
  if (!p.packed)
    result.tokens *= result.count;
  else if (result.count > 1)
    result.other = divideCeil(
        std::max<int64_t>(result.tokens - result.longest, 0), result.count - 1);
  return result;
}

inline Sequences sequencesOf(const Workload &p, const Choice &whole) {
  return sequencesOf(p, whole.longest);
}

/// CTAs that a forward has for a head by the schedule of a CTA a head: with
/// gates of channels one for each V tile.
inline int64_t ctasOfHead(const Workload &p) {
  return p.gatesChannels ? p.vTiles : 1;
}

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_SEQUENCES_H
