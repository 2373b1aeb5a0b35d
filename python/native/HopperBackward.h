//===- HopperBackward.h - The gradients of a call on a GPU ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPERBACKWARD_H
#define GDN_PYTHON_NATIVE_HOPPERBACKWARD_H

#include "Backward.h"
#include "HopperSaved.h"

#include <span>

namespace gdn::hopper {

/// A compiled backward, and what it serves.
struct BackwardKernel {
  const char *name;
  int64_t keyChannels, valueChannels;
  Element element;
  GateDomain gateDomain;
  Element gate;
  BetaDomain betaDomain;
  Element beta;
  Norm norm;
  /// That of the adjoint.
  Schedule schedule;
  /// Whether it cuts sequences into segments.
  bool inSegments;
  /// Whether it reads what a forward saved.
  bool readsSaved;
  const GdnFunctionDesc *function;
};

std::span<const BackwardKernel> allBackwardKernels();

/// Launches the kernels of the gradients on `stream`. `o` and `finalState` of
/// the problem are the gradients of these outputs. Sequences are packed; of the
/// states all or none are there; gates, beta and norms have a form of the
/// table. Gradients of tokens in no sequence are zeros. With `savesStates` they
/// are made of `saved`, and `v` is not read.
Error runBackward(const Problem &problem, const cpu::Gradients &gradients,
                  const Saved &saved, void *stream, Allocate allocate);

/// The kernels of such a call and their workspace as JSON. No address is read.
Error describeBackward(const Problem &problem, std::string &facts);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERBACKWARD_H
