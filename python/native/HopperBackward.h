//===- HopperBackward.h - Training on a Hopper GPU --------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPERBACKWARD_H
#define GDN_PYTHON_NATIVE_HOPPERBACKWARD_H

#include "Backward.h"
#include "Hopper.h"

namespace gdn::hopper {

/// Launches a forward that writes `saved`, too. Sequences are packed; gates,
/// beta and norms have a form of the gradients. There may be memory for more
/// states than it has.
Error runSaving(const Problem &problem, const Saved &saved, void *stream,
                Allocate allocate);

/// Launches the kernels of the gradients on `stream`. `o` and `finalState` of
/// the problem are the gradients of these outputs. Sequences are packed; of the
/// states all or none are there; gates, beta and norms have a form that there
/// are functions of. Gradients of tokens in no sequence are zeros. With
/// `savesStates` they are made of `saved`, and `v` is not read.
Error runBackward(const Problem &problem, const cpu::Gradients &gradients,
                  const Saved &saved, void *stream, Allocate allocate);

/// The kernels of such a call and their workspace as JSON. No address is read.
Error describeBackward(const Problem &problem, std::string &facts);

/// Whether a step of training is predicted to take less time if its forward
/// saves states. Of the problem only extents, options and the device are read.
Error predictSaving(const Problem &problem, bool hasSegments, bool &pays);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERBACKWARD_H
