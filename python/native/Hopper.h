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

#include <functional>
#include <memory>

namespace gdn::hopper {

using cpu::Problem;

/// Device memory for the launches of one call, aligned to
/// GDN_WORKSPACE_ALIGNMENT. Launches made while it is held may use it, even if
/// they run later: what comes next in their stream comes behind them.
using Workspace = std::shared_ptr<void>;

/// Gives a workspace for launches on a stream of a device.
using Allocate =
    std::function<Workspace(int32_t device, void *stream, uint64_t bytes)>;

/// The library's own memory, for callers without an allocator: one piece for
/// each device and stream, which grows and stays. One call at a time has a
/// piece. A piece that has become too small stays too, for CUDA graphs that
/// were captured with it.
Workspace allocateOwn(int32_t device, void *stream, uint64_t bytes);

/// The compiled functions.
const GdnCallTable &allFunctions();

/// Runs a call on `stream`, which has been checked if this thread ran one
/// lately that was like it but for addresses.
///
/// A forward that saves writes `writes` and `states`, too; there may be memory
/// for more states than it has. Gradients of tokens in no sequence are zeros.
/// With `savesStates` they are made of what was saved, and `v` is not read.
void run(const Problem &problem, void *stream, const Allocate &allocate);

/// Launches a call by a plan that is known, or plans it first. The first call
/// of a function on a device loads it there; later ones do not synchronise, and
/// allocate nothing but a workspace, if there are arrays between the kernels or
/// conversions.
void launch(const Problem &problem, const GdnCallPlan *known, void *stream,
            const Allocate &allocate);

/// What a described call would run as JSON, where nobody knows addresses of its
/// arrays, and nobody has allocated gradients and what is saved.
std::string describe(Problem problem);

/// Whether a step of training is predicted to take less time if its forward
/// saves states. Of the problem only extents, options and the device are read.
bool predictSaving(const Problem &problem, bool hasSegments);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
