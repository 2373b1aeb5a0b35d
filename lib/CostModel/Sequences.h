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

/// Tokens that show behind a segment where all heads decay slowly: gates of
/// -0.001 on average, down to exp(-12).
inline constexpr int64_t kSlowTokens = 12000;

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_SEQUENCES_H
