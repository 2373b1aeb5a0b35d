//===- HopperSaved.h - What a forward saves for its gradients ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPERSAVED_H
#define GDN_PYTHON_NATIVE_HOPPERSAVED_H

#include "Hopper.h"

#include "gdn/CostModel/Saving.h"

#include <algorithm>

namespace gdn::hopper {

/// What each token adds to the state, shaped as v, and the states [S, H, V, K]
/// before every HopperSavedTokens tokens of a sequence, in the type of v. The
/// state before token t of sequence n, which begins at token b, has the number
/// floor(b / HopperSavedTokens) + n + (t - b) / HopperSavedTokens.
struct Saved {
  cpu::Array writes, states;
};

/// Segments are of whole intervals between states, and between their gradients.
inline constexpr int64_t kSegmentMultiple = std::max<int64_t>(
    manifest::HopperSavedTokens, manifest::HopperGradientTokens);

/// What decides how a call saves: the same for its forward and its backward,
/// whatever states they have.
struct SavedCall {
  int32_t device = -1;
  int64_t sequences = 0, tokens = 0, keyHeads = 0, heads = 0;
  /// Whether there are kernels of its segments.
  bool hasSegments = false;
  cost::SplitRequest split;

  bool operator==(const SavedCall &) const = default;
};

/// Chooses by the cost model.
Error chooseSaving(const SavedCall &call, cost::SavingChoice &choice);

/// The plan of a call that saves: the same for its forward and its backward, of
/// which the second gets what tokens write for v.
Error planSaved(const Problem &problem, cost::SavingChoice &plan);

/// The states that an array has for kernels of whole sequences (length 0), or
/// of segments of `length` tokens. Kernels of segments ask for a state more in
/// each segment than they number.
int64_t countSavedStates(const Problem &problem, int64_t length);

/// Makes the array of states as long as that, if there is memory for it.
Error fitSaved(const Problem &problem, int64_t length, Saved &saved);

/// Launches a forward that writes `saved`, too. Sequences are packed; gates,
/// beta and norms have a form of the gradients.
Error runSaving(const Problem &problem, const Saved &saved, void *stream,
                Allocate allocate);

/// The forward of a described call that saves, as JSON. No address is read.
Error describeSaving(const Problem &problem, const cost::SavingChoice &plan,
                     const Saved &saved, std::string &facts);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERSAVED_H
