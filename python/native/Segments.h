//===- Segments.h - Calls whose sequences are cut ---------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call in segments runs four functions on a GPU, one after the other. Arrays
// between them lie in a workspace (gdn-c/Runtime/Segments.h):
//
//   Cut    cu_seqlens, the length of a segment -> boundaries, first_segments,
//          sequence_numbers
//   Maps   k, v, beta, g -> what each segment makes of a state: starts, decay,
//          states, map (three kernels)
//   Scan   map, decay, states, initial_state -> entry_states, final_state
//   a kernel of chunks, of the segments as sequences, from entry_states
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_SEGMENTS_H
#define GDN_PYTHON_NATIVE_SEGMENTS_H

#include "HopperSaved.h"

#include <initializer_list>

namespace gdn::hopper {

enum class SegmentStage : uint8_t {
  Cut,
  Maps,
  Scan,
  // Of segments that run what is before them themselves (OwnSegments.h).
  OwnCut,
  OwnSampledCut,
  OwnMaps,
  OwnScan,
  OwnLateScan,
  OwnForward
};
/// Those that are not a segment's own.
inline constexpr int kNumSegmentStages = 3;

/// A kernel of a stage; what it does not depend on has any trait.
struct SegmentKernel {
  const char *name;
  SegmentStage stage;
  Traits traits;
  const GdnFunctionDesc *function;
};

/// What calls of one form run.
struct SegmentKernels {
  std::array<const SegmentKernel *, kNumSegmentStages> stages{};
  /// Of packed sequences with states [V, K] in float32.
  KernelGroup forward;

  bool areThere() const;
};

SegmentKernels findSegmentKernels(const Traits &traits);

/// The kernel of one stage; null if there is none.
const SegmentKernel *findSegmentKernel(SegmentStage stage,
                                       const Traits &traits);
/// Makes the kernel ready on the device, on its first call there.
Error prepare(const SegmentKernel &kernel, int32_t device);

/// The arrays of tokens as those of packed sequences; null, or the name of one
/// that they cannot be.
const char *packRows(Problem &problem);
/// An array of the workspace, contiguous.
cpu::Array arrayAt(void *workspace, uint64_t offset, Element element,
                   std::initializer_list<int64_t> sizes);

/// Says why the sequences of a call cannot be cut, whatever its kernels are.
Error checkSegments(const Problem &problem);
/// What a call hears that wants segments, if no kernels have its form.
Error explainNoSegments(const Problem &problem);

/// The memory of a call with segments of so many tokens.
Error layOutSegments(const Problem &problem, int64_t length,
                     GdnSegmentsLayout &layout);

/// The kernel of chunks of a call in segments. One that saves also takes
/// sequence_numbers.
struct SegmentsForward {
  const GdnFunctionDesc *function;
  /// Tokens of a segment.
  int64_t length;
  /// What it saves; null if it saves nothing.
  const Saved *saved = nullptr;
};

/// Says what `runSegments` would refuse before it launches.
Error checkSegmentLaunch(const Problem &problem, const SegmentsForward &forward,
                         const GdnSegmentsLayout &layout);

/// Launches the kernels on `stream`; that of chunks is ready.
Error runSegments(const Problem &problem, const SegmentsForward &forward,
                  void *stream, Allocate allocate);

/// The decision about segments as JSON; null where none was to be made.
std::string splitToJson(const KernelChoice &chosen);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_SEGMENTS_H
