//===- OwnSegments.cpp - Segments that run what is before them ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnSegments.h"

#include "HopperArguments.h"
#include "Segments.h"

#include <algorithm>

using namespace gdn::hopper;
using gdn::cpu::Array;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static constexpr SegmentStage kOwnStages[] = {
    SegmentStage::OwnCut, SegmentStage::OwnMaps, SegmentStage::OwnScan,
    SegmentStage::OwnLateScan, SegmentStage::OwnForward};

bool gdn::hopper::hasOwnSegments(const Traits &traits) {
  // States are read and written as they are, in either layout.
  return traits.state == Element::F32 && findKernels(traits).perHead &&
         std::all_of(std::begin(kOwnStages), std::end(kOwnStages),
                     [&](SegmentStage stage) {
                       return findSegmentKernel(stage, traits);
                     });
}

bool gdn::hopper::maySampleGates(const Problem &p, const Traits &traits) {
  return p.gate.isPresent() && traits.gateDomain == GateDomain::Log &&
         traits.gate == Element::F32 &&
         findSegmentKernel(SegmentStage::OwnSampledCut, traits);
}

const char *gdn::hopper::nameOfOwnForward(const Traits &traits) {
  return findSegmentKernel(SegmentStage::OwnForward, traits)->name;
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

namespace {
/// The memory of a call: its segments, and where arrays of their parts begin.
struct OwnLayout {
  GdnSegmentsLayout arrays = {};
  int64_t segments = 0;
  uint64_t before = 0, closes = 0, last = 0, unread = 0, bytes = 0;
};
} // namespace

/// As `gdnSegmentsGetLayout` lays out a call of so many batch rows as there are
/// segments, of a token for each part.
static Error layOut(const Problem &p, const Plan &plan, OwnLayout &layout) {
  // A sequence without tokens has a segment, too, which makes its final state.
  int64_t length = plan.segmentLength, N = p.sequences(),
          pieces = std::max<int64_t>((p.tokens() + length - 1) / length, 1);
  layout.segments = p.cuSeqlens.isPresent() ? pieces + N - 1 : pieces * N;
  GdnSegments parts = {};
  parts.struct_size = sizeof(parts);
  parts.sequences = layout.segments;
  parts.tokens = plan.parts;
  parts.heads = p.valueHeads();
  parts.key_channels = p.keyChannels();
  parts.value_channels = p.valueChannels();
  parts.length = 1;
  layout.arrays.struct_size = sizeof(layout.arrays);
  if (Error error = errorOf(gdnSegmentsGetLayout(&parts, &layout.arrays)))
    return error;
  auto add = [&](int64_t entries) {
    uint64_t begin = layout.bytes, unit = GDN_WORKSPACE_ALIGNMENT,
             bytes = static_cast<uint64_t>(entries) * 4;
    layout.bytes += (bytes + unit - 1) / unit * unit;
    return begin;
  };
  layout.bytes = layout.arrays.bytes;
  layout.before = add(layout.arrays.count + 1);
  layout.closes = add(layout.arrays.count + 1);
  layout.last = add(N);
  layout.unread = add(1);
  return {};
}

/// `count` of the entries of the first dimension, from `first` on.
static Array everyNth(Array array, int64_t n, int64_t first, int64_t count) {
  constexpr int64_t kEntryBytes = 4;
  array.data =
      static_cast<char *>(array.data) + first * array.strides[0] * kEntryBytes;
  array.sizes[0] = count;
  array.strides[0] *= n;
  return array;
}

namespace {
/// The launches of a call: the problem of packed segments, and the arrays
/// between the kernels.
class OwnCall {
public:
  OwnCall(const Problem &p, const Plan &plan, const OwnLayout &layout,
          void *workspace);

  static constexpr int count = 4;
  /// The kernels in order.
  const GdnFunctionDesc *functionOf(int launch) const {
    return kernelOf(launch).function;
  }
  const SegmentKernel &kernelOf(int launch) const {
    return *findSegmentKernel(stageOf(launch), traits);
  }
  void addArguments(int launch, Arguments &arguments) const;

private:
  SegmentStage stageOf(int launch) const {
    constexpr SegmentStage stages[] = {
        SegmentStage::OwnCut, SegmentStage::OwnMaps, SegmentStage::OwnScan,
        SegmentStage::OwnForward};
    SegmentStage stage = stages[launch];
    if (stage == SegmentStage::OwnCut && longerSizes.isPresent())
      return SegmentStage::OwnSampledCut;
    return stage == SegmentStage::OwnScan && isLate ? SegmentStage::OwnLateScan
                                                    : stage;
  }
  void layStates(const Problem &p, const OwnLayout &layout, void *workspace);

  Traits traits;
  bool isLate;
  /// Segments are the sequences.
  Problem packed;
  Array cuSeqlens, sizes, boundaries, firstSegments, before, closes,
      closesOfParts, lastSegments, map, decay, starts, states, entryStates;
  /// What the kernel that cuts looks at to choose between two lengths.
  Array longerSizes, sampledGate;
  /// The same of segments for the forward: every so many entries of those of
  /// their parts.
  struct {
    Array boundaries, before, closes, starts, entryStates;
  } ofSegments;
  /// The caller's states as [N, H, V, K], whatever their layout is.
  Array sequenceState, finalState;
};
} // namespace

OwnCall::OwnCall(const Problem &p, const Plan &plan, const OwnLayout &layout,
                 void *workspace)
    : traits(traitsOf(p)), isLate(plan.isLate), packed(p),
      cuSeqlens(p.cuSeqlens) {
  const GdnSegmentsLayout &arrays = layout.arrays;
  int64_t P = arrays.count, H = p.valueHeads(), K = p.keyChannels(),
          V = p.valueChannels(), parts = plan.parts, S = layout.segments;
  auto at = [&](uint64_t offset, Element element,
                std::initializer_list<int64_t> sizes) {
    return arrayAt(workspace, offset, element, sizes);
  };
  // Read for its extents alone.
  sizes = at(0, Element::I32,
             {p.batches(), p.tokens(), plan.segmentLength / parts, parts});
  sizes.strides = {};
  if (plan.longerLength) {
    longerSizes = at(0, Element::I32, {plan.longerLength / parts});
    sampledGate = p.gate;
  }
  boundaries = at(arrays.boundaries, Element::I32, {P + 1});
  firstSegments = at(arrays.first_segments, Element::I32, {p.sequences() + 1});
  before = at(layout.before, Element::I32, {P + 1});
  closes = at(layout.closes, Element::I32, {P + 1});
  map = at(arrays.map, Element::F16, {P, H, K, K});
  decay = at(arrays.decay, Element::F32, {P, H});
  starts = at(arrays.starts, Element::I32, {P, H});
  states = at(arrays.states, Element::F32, {P, H, V, K});
  entryStates = at(arrays.entry_states, Element::F32, {P, H, V, K});
  closesOfParts = everyNth(closes, 1, 0, P);
  lastSegments = at(layout.last, Element::I32, {p.sequences()});
  // A segment begins with its first part. What is before it is its last one.
  ofSegments = {everyNth(boundaries, parts, 0, S + 1),
                everyNth(before, parts, 0, S + 1),
                everyNth(closes, parts, parts - 1, S),
                everyNth(starts, parts, parts - 1, S),
                everyNth(entryStates, parts, 0, S)};
  packRows(packed);
  layStates(p, layout, workspace);
}

/// Without a state its entries are one number: where the first segment of all
/// begins, which is zero, and one that nobody reads.
void OwnCall::layStates(const Problem &p, const OwnLayout &layout,
                        void *workspace) {
  auto stateAt = [&](const Array &state, uint64_t otherwise) {
    if (state.isPresent())
      return p.stateVFirst ? state : turnState(state);
    Array one = arrayAt(
        workspace, otherwise, Element::F32,
        {p.sequences(), p.valueHeads(), p.valueChannels(), p.keyChannels()});
    one.strides = {};
    return one;
  };
  sequenceState = stateAt(p.initialState, layout.arrays.first_segments);
  finalState = stateAt(p.finalState, layout.unread);
}

void OwnCall::addArguments(int launch, Arguments &arguments) const {
  auto add = [&](std::initializer_list<const Array *> arrays) {
    for (const Array *array : arrays)
      arguments.add(*array);
  };
  switch (launch) {
  case 0:
    return add({&sizes, &longerSizes, &sampledGate, &cuSeqlens, &boundaries,
                &firstSegments, &before, &closes, &lastSegments});
  case 1:
    return add({&packed.q, &packed.k, &packed.v, &packed.beta, &packed.gate,
                &boundaries, &packed.aLog, &packed.dtBias, &before,
                &closesOfParts, &sequenceState, &starts, &decay, &states,
                &map});
  case 2:
    return add({&map, &decay, &states, &firstSegments, &before, &starts,
                &boundaries, &lastSegments, &entryStates});
  default:
    return add({&packed.q, &packed.k, &packed.v, &packed.beta, &packed.gate,
                &ofSegments.entryStates, &ofSegments.boundaries, &packed.aLog,
                &packed.dtBias, &ofSegments.starts, &ofSegments.before,
                &ofSegments.closes, &sequenceState, &firstSegments, &packed.o,
                &finalState});
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Error gdn::hopper::checkOwnSegments(const Problem &p, KernelChoice &chosen) {
  OwnLayout layout;
  if (Error error = layOut(p, chosen.plan, layout))
    return error;
  chosen.segments = layout.segments;
  chosen.workspaceBytes = layout.bytes;
  // Never read.
  void *somewhere = reinterpret_cast<void *>(GDN_WORKSPACE_ALIGNMENT);
  return checkLaunches(OwnCall(p, chosen.plan, layout, somewhere));
}

Error gdn::hopper::runOwnSegments(const Problem &p, const Plan &plan,
                                  void *stream, Allocate allocate) {
  int32_t device = p.device.index;
  OwnLayout layout;
  if (Error error = layOut(p, plan, layout))
    return error;
  std::unique_ptr<Workspace> workspace;
  if (Error error = allocate(device, stream, layout.bytes, workspace))
    return error;
  OwnCall call(p, plan, layout, workspace->data);
  for (int launch = 0; launch < OwnCall::count; ++launch)
    if (Error error = prepare(call.kernelOf(launch), device))
      return error;
  return runLaunches(call, device, stream);
}
