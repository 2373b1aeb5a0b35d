//===- Backward.h - The gradients of a call on a CPU ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_BACKWARD_H
#define GDN_PYTHON_NATIVE_BACKWARD_H

#include "Problem.h"

namespace gdn::cpu {

/// The gradients of a call's inputs, written; absent where nobody wants one.
/// Each has the shape of its input.
struct Gradients {
  Array q, k, v, gate, beta, aLog, dtBias, initialState;
};

/// Writes the gradients of a call whose `o` and `finalState` are the gradients
/// of these outputs; absent ones are zero. Nothing but the call's inputs was
/// kept: what the gradients need of the forward is computed again.
Error runBackward(const Problem &problem, const Gradients &gradients);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_BACKWARD_H
