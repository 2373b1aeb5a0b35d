//===- LinearGate.h - The gradient of a gate that is the decay --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_LINEARGATE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_LINEARGATE_H

#include "Program.h"

namespace mlir::gdn {

/// All that decays inside one chunk, before its decay: pairs of tokens, what
/// reads the state on entry, what writes to that on exit, and the state itself.
struct DecayedTerms {
  /// The log2 gate and its sum over the chunk so far, of one type: [C] or
  /// [C, K].
  Value gate, G;
  /// f32 [C, K].
  Value q, k;
  /// Gradients of q_i . k_j and of k_i . k_j, strictly lower; f32 [C, C].
  Value dQueryKey, dKeyKey;
  /// Gradient of q as a reader of the state on entry, and minus that of k;
  /// gradient of k as a writer to the state on exit. f32 [C, K].
  Value dQueryState, dKeyState, dWrite;
  /// The state on entry times the gradient of that on exit, summed over V, [K].
  Value carried;
};

/// The gradient of the decay itself, f32 [C] or [C, K], right at decays of 0.
Value decayGradient(Program &p, const DecayedTerms &in);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_LINEARGATE_H
