//===- Hopper.h - Calls on a Hopper GPU -------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPER_H
#define GDN_PYTHON_NATIVE_HOPPER_H

#include "Problem.h"

namespace gdn::hopper {

using cpu::Problem;

/// The compiled functions.
const GdnCallTable &allFunctions();

/// Runs a call on `stream` with memory of `allocate`, or of the library's own
/// without one (gdnCallRun). It has been checked if this thread ran one lately
/// that was like it but for addresses. The first call of a function on a device
/// loads it there; later ones do not synchronise, and allocate nothing but a
/// workspace, if there are arrays between the kernels or conversions.
///
/// A forward that saves writes `writes` and `states`, too; there may be memory
/// for more states than it has. Gradients of tokens in no sequence are zeros.
/// With `savesStates` they are made of what was saved, and `v` is not read.
void run(const Problem &problem, void *stream, GdnAllocate allocate,
         void *user);

/// What a described call would run as JSON, where nobody has allocated
/// gradients and what is saved.
std::string describe(Problem problem);

/// Whether a step of training is predicted to take less time if its forward
/// saves states. Of the problem only extents, options and the device are read.
bool predictSaving(const Problem &problem, bool hasSegments);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
