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

namespace gdn::hopper {

/// What each token adds to the state, shaped as v, and the states [S, H, V, K]
/// before every HopperGradientTokens tokens of a sequence, in the type of v.
struct Saved {
  cpu::Array writes, states;
};

/// Launches a forward that writes `saved`, too. Sequences are packed, of the
/// states both are there; gates, beta and norms have a form of the gradients.
Error runSaving(const Problem &problem, const Saved &saved, void *stream,
                Allocate allocate);

/// A function that computes what `backward` does from what a forward saved,
/// which are its last two arguments: without the launch that makes it again.
/// Null where there is no such launch. It stays as long as the library does.
const GdnFunctionDesc *findReaderOfSaved(const GdnFunctionDesc &backward);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERSAVED_H
