//===- OwnSegments.h - Segments that run what is before them ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call in segments whose forward runs the last tokens of a segment that
// forgets what is before it, instead of waiting for the state behind it
// (docs/Dialects/Stages.md). It runs four functions on a GPU:
//
//   OwnCut      cu_seqlens, the length of a segment, its parts -> boundaries,
//               first_segments, before, closes, last_segments; or
//               OwnSampledCut, which has a second length and looks at g
//   OwnMaps     k, v, beta, g, initial_state -> what each part makes of a
//               state: starts, decay, states, map (three kernels)
//   OwnScan     map, decay, states -> entry_states; or OwnLateScan, behind
//               which the next one is launched later
//   OwnForward  q, k, v, beta, g, initial_state, entry_states, starts -> o,
//               final_state; it runs beside the scan, whose end it sees in
//               `before`
//
// B and the maps are made of parts of a segment: a shorter part is a shorter
// way to the state before the last segment.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_OWNSEGMENTS_H
#define GDN_PYTHON_NATIVE_OWNSEGMENTS_H

#include "Hopper.h"

namespace gdn::hopper {

/// Whether there are kernels of a form.
bool hasOwnSegments(const Traits &traits);

/// Whether a kernel may choose between two lengths by the gates.
bool maySampleGates(const Problem &problem, const Traits &traits);

/// The name of the kernel of chunks.
const char *nameOfOwnForward(const Traits &traits);

/// Says what `runOwnSegments` would refuse before it launches, and sizes the
/// workspace.
Error checkOwnSegments(const Problem &problem, KernelChoice &chosen);

/// Launches the kernels on `stream`.
Error runOwnSegments(const Problem &problem, const Plan &plan, void *stream,
                     Allocate allocate);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_OWNSEGMENTS_H
