//===- Saving.h - Whether a forward saves states, and how ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A forward may save states for its backward, which then does not compute them
// again. Both are cut into segments of one length, or neither is. This file
// predicts the two together, and chooses.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_COSTMODEL_SAVING_H
#define GDN_COSTMODEL_SAVING_H

#include "gdn/CostModel/Segments.h"

namespace gdn::cost {

/// What is predicted of a forward that saves and the backward that reads it.
struct SavingEstimate {
  /// Tokens of a segment; 0 for whole sequences.
  int64_t length = 0;
  /// That of the forward.
  Schedule schedule = Schedule::CtaPerHead;
  /// With gates of which a quarter of the heads does not decay.
  double forwardSeconds = 0, backwardSeconds = 0;
  /// What both take more where no gate decays anything.
  double noDecaySeconds = 0;

  double seconds() const { return forwardSeconds + backwardSeconds; }
};

/// How a call's forward saves, and what speaks for it.
struct SavingChoice {
  SavingEstimate chosen;
  /// Forward and backward of a call that saves its inputs alone.
  double inputsSeconds = 0;

  /// By 3 % at least: states need more memory, and are slower where nothing
  /// decays.
  bool pays() const { return chosen.seconds() <= 0.97 * inputsSeconds; }
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
};

/// The prediction for a length, 0 for whole sequences, a schedule, and the
/// tokens between states.
SavingEstimate estimateSaving(const Problem &problem, const Chip &chip,
                              const Choice &whole, int64_t length,
                              Schedule schedule, int64_t stateTokens);

/// Chooses schedule and length; `whole` is the choice of a forward that saves
/// nothing. A caller's wish is a wish: segments are longer where there would be
/// too many.
SavingChoice chooseSaving(const Problem &problem, const Chip &chip,
                          const Choice &whole, const SavingLimits &limits,
                          const SplitRequest &request);

} // namespace gdn::cost

#endif // GDN_COSTMODEL_SAVING_H
