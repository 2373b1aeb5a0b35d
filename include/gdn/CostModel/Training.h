//===- Training.h - What gradients cost, and what is saved -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backward in three kernels has two recurrences, which are serial over the
// chunks of a sequence, and a kernel of gradients. In segments (gdn-cp-split)
// nine more run before them. A forward may save states for its backward, which
// then does not compute them again. States have the numbers of whole sequences,
// so each of the two is cut into segments as it is fastest. This file predicts
// these passes, and chooses.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_COSTMODEL_TRAINING_H
#define GDN_COSTMODEL_TRAINING_H

#include "gdn/CostModel/Segments.h"

namespace gdn::cost {

/// Tokens between the states that gradients keep.
inline constexpr int64_t kGradientTokens = 64;

/// What is predicted of a forward that saves, or of a backward.
struct PassEstimate {
  /// Tokens of a segment; 0 for whole sequences.
  int64_t length = 0;
  /// That of a forward, or of a backward's adjoint.
  Schedule schedule = Schedule::CtaPerHead;
  /// With gates of which a quarter of the heads does not decay.
  double seconds = 0;
  /// What it takes more where no gate decays anything.
  double noDecaySeconds = 0;

  double worstSeconds() const { return seconds + noDecaySeconds; }
};

/// How a call's forward saves, and what speaks for it.
struct SavingChoice {
  PassEstimate forward, backward;
  /// Forward and backward of a call that saves its inputs alone.
  double inputsSeconds = 0;

  double seconds() const { return forward.seconds + backward.seconds; }
  /// By 3 % at least: states need more memory, and are slower where nothing
  /// decays.
  bool pays() const { return seconds() <= 0.97 * inputsSeconds; }
};

/// What bounds the segments of a call that saves.
struct SavingLimits {
  /// Lengths are multiples of it: the tokens between states, and between
  /// gradients of states.
  int64_t chunk = 64;
  /// Segments that there is memory for, besides one for each sequence.
  int64_t segments = 0;
  /// Tokens between saved states.
  int64_t stateTokens = 64;
  /// Whether a pass that saves, or reads what is saved, may be cut, and the
  /// backward of a call that saves nothing.
  bool hasSegments = true;
  /// Whether forwards have a CTA a head, whatever is faster.
  bool isPerHead = false;
};

// The predictions for a length, 0 for whole sequences, K = V = 128.

/// Of a backward of sequences of which one has `longest` tokens. With the
/// tokens between states that its forward saved, of the segments of one that
/// reads these.
PassEstimate estimateBackward(const Workload &workload, const Chip &chip,
                              int64_t longest, int64_t length,
                              int64_t stateTokens = 0);

/// Seconds of a backward of whole sequences that reads such states: its
/// gradients follow the adjoint, which has this schedule.
double estimateFollowingBackward(const Workload &workload, const Chip &chip,
                                 int64_t longest, int64_t stateTokens,
                                 Schedule schedule);

/// Of a forward that saves a state every so many tokens, by a schedule or by
/// the faster one, and of its backward. Of a forward that clearly takes more
/// than `most` only so much is said.
PassEstimate estimateSavingForward(const Workload &workload, const Chip &chip,
                                   const Choice &whole, int64_t length,
                                   std::optional<Schedule> schedule,
                                   int64_t stateTokens,
                                   double most = kAnySeconds);
PassEstimate estimateSavedBackward(const Workload &workload, const Chip &chip,
                                   const Choice &whole, int64_t length,
                                   int64_t stateTokens);

/// Decides on the segments of a backward that reads no states by the rule of
/// `chooseSplit`.
PassEstimate chooseBackward(const Workload &workload, const Chip &chip,
                            int64_t longest, const SplitRequest &request);

/// Chooses schedule and lengths; `whole` is the choice of a forward that saves
/// nothing. A caller's wish is one for both passes: segments are longer where
/// there would be too many.
SavingChoice chooseSaving(const Workload &workload, const Chip &chip,
                          const Choice &whole, const SavingLimits &limits,
                          const SplitRequest &request);

} // namespace gdn::cost

#endif // GDN_COSTMODEL_TRAINING_H
