//===- BackwardSegments.h - Whether a backward is cut -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backward in three kernels has two recurrences, which are serial over the
// chunks of a sequence, and a kernel of gradients. In segments (gdn-cp-split)
// nine more run before them. This file predicts both and chooses the length.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_COSTMODEL_BACKWARDSEGMENTS_H
#define GDN_COSTMODEL_BACKWARDSEGMENTS_H

#include "gdn/CostModel/Segments.h"

namespace gdn::cost {

/// Tokens between the states that gradients keep.
inline constexpr int64_t kGradientTokens = 64;

/// What is predicted of a backward in segments.
struct BackwardEstimate {
  /// Tokens of a segment.
  int64_t length = 0;
  /// With gates of which a quarter of the heads does not decay, and where none
  /// does.
  double seconds = 0, worstSeconds = 0;
};

/// Whether the sequences of a backward are cut, and what speaks for it.
struct BackwardChoice {
  /// Tokens of a segment; 0 for whole sequences.
  int64_t length = 0;
  /// The cut that was chosen, or the best of those that lost; nothing where
  /// there is none.
  std::optional<BackwardEstimate> best;
  double wholeSeconds = 0;
};

/// Seconds of a backward of whole sequences, of which one has `longest` tokens.
double estimateWholeBackward(const Problem &problem, const Chip &chip,
                             int64_t longest);

/// The same of one that reads what its forward saved, with the tokens between
/// states: its gradients follow the adjoint, which has this schedule.
double estimateFollowingBackward(const Problem &problem, const Chip &chip,
                                 int64_t longest, int64_t stateTokens,
                                 Schedule schedule);

/// The same in segments of `length` tokens, K = V = 128.
BackwardEstimate estimateBackwardSplit(const Problem &problem, const Chip &chip,
                                       int64_t longest, int64_t length,
                                       int64_t stateTokens = 0);

/// Decides on segments by the rule of `chooseSplit`. Lengths are multiples of
/// `chunk` tokens.
BackwardChoice chooseBackwardSplit(const Problem &problem, const Chip &chip,
                                   int64_t longest, int64_t chunk,
                                   const SplitRequest &request);

} // namespace gdn::cost

#endif // GDN_COSTMODEL_BACKWARDSEGMENTS_H
