//===- Segments.cpp - Calls whose sequences are cut -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <unordered_map>

using namespace gdn::hopper;
using gdn::cpu::Array;

#define GDN_HOPPER_KERNEL(...)
#define GDN_HOPPER_RELAYOUT(...)
#define GDN_HOPPER_SEGMENTS(name, ...)                                         \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_HOPPER_SEGMENTS

// The last entry keeps the table from being empty.
static const SegmentKernel table[] = {
#define GDN_HOPPER_SEGMENTS(name, stage, keyChannels, valueChannels, element,  \
                            layout, ends, stateLayout, state, gateDomain,      \
                            gate, betaDomain, beta, norm)                      \
  {#name,                                                                      \
   SegmentStage::stage,                                                        \
   {keyChannels, valueChannels, Element::element, Layout::layout, Ends::ends,  \
    StateLayout::stateLayout, Element::state, GateDomain::gateDomain,          \
    Element::gate, BetaDomain::betaDomain, Element::beta, Norm::norm},         \
   &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_HOPPER_SEGMENTS
    {}};

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// The traits that a kernel of the stage depends on; the others are any
/// (kernels/segment_kernels.py).
static Traits stageTraits(SegmentStage stage, const Traits &t) {
  Traits traits = {t.keyChannels,     t.valueChannels, Element::BF16,
                   Layout::Packed,    Ends::None,      StateLayout::KV,
                   Element::F32,      GateDomain::Log, Element::F32,
                   BetaDomain::Value, Element::F32,    Norm::Plain};
  if (stage == SegmentStage::Cut || stage == SegmentStage::OwnCut ||
      stage == SegmentStage::OwnSampledCut) {
    traits.keyChannels = traits.valueChannels = table[0].traits.keyChannels;
    traits.layout = t.layout;
  }
  if (stage == SegmentStage::Maps || stage == SegmentStage::OwnMaps ||
      stage == SegmentStage::OwnForward) {
    traits.element = t.element;
    traits.gateDomain = t.gateDomain;
    traits.gate = t.gate;
    traits.betaDomain = t.betaDomain;
    traits.beta = t.beta;
    traits.norm = t.norm;
  }
  if (stage == SegmentStage::Scan) {
    traits.ends = t.ends;
    traits.stateLayout = t.stateLayout;
    traits.state = t.state;
  }
  return traits;
}

using Index = std::unordered_map<uint64_t, const SegmentKernel *>;
static constexpr int kNumAllStages =
    static_cast<int>(SegmentStage::OwnForward) + 1;

static std::array<Index, kNumAllStages> makeIndex() {
  std::array<Index, kNumAllStages> index;
  for (const SegmentKernel &kernel : table)
    if (kernel.function)
      index[static_cast<int>(kernel.stage)][keyOf(kernel.traits)] = &kernel;
  return index;
}

const SegmentKernel *gdn::hopper::findSegmentKernel(SegmentStage stage,
                                                    const Traits &traits) {
  static const std::array<Index, kNumAllStages> index = makeIndex();
  const Index &ofStage = index[static_cast<int>(stage)];
  auto kernel = ofStage.find(keyOf(stageTraits(stage, traits)));
  return kernel == ofStage.end() ? nullptr : kernel->second;
}

SegmentKernels gdn::hopper::findSegmentKernels(const Traits &traits) {
  SegmentKernels found;
  for (int stage = 0; stage < kNumSegmentStages; ++stage)
    found.stages[stage] =
        findSegmentKernel(static_cast<SegmentStage>(stage), traits);
  Traits forward = traits;
  forward.layout = Layout::Packed;
  forward.ends = Ends::Both;
  forward.stateLayout = StateLayout::VK;
  forward.state = Element::F32;
  found.forward = findKernels(forward);
  return found;
}

bool SegmentKernels::areThere() const {
  return forward.perHead && forward.perVTile &&
         std::all_of(stages.begin(), stages.end(),
                     [](const SegmentKernel *kernel) { return kernel; });
}

Error gdn::hopper::prepare(const SegmentKernel &kernel, int32_t device) {
  static ReadyDevices ready[std::size(table)];
  return ready[&kernel - table].prepare(kernel.function, device);
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// Makes one row of tokens of an array's batch rows; false if they do not lie
/// one behind the other.
static bool joinRows(Array &array) {
  if (!array.isPresent() || array.sizes[0] == 1)
    return true;
  // What strides rows of one token or none have is of no account.
  if (array.sizes[1] <= 1)
    array.strides[1] = array.strides[0];
  else if (array.strides[0] != array.sizes[1] * array.strides[1])
    return false;
  array.sizes[1] *= array.sizes[0];
  array.sizes[0] = 1;
  return true;
}

const char *gdn::hopper::packRows(Problem &p) {
  if (p.cuSeqlens.isPresent())
    return nullptr;
  for (auto [name, array] : {std::pair("q", &p.q),
                             {"k", &p.k},
                             {"v", &p.v},
                             {"g", &p.gate},
                             {"beta", &p.beta},
                             {"out", &p.o}})
    if (!joinRows(*array))
      return name;
  return nullptr;
}

/// The argument by which a caller may ask for segments.
static std::string keywordOf(const Problem &p) {
  return p.hasFixedKernels() ? "segment_length" : "context_parallel";
}

Error gdn::hopper::checkSegments(const Problem &p) {
  Problem packed = p;
  if (const char *name = packRows(packed))
    return {"NotImplementedError",
            keywordOf(p) + ": expected batch rows of " + name +
                " that lie one behind the other on a GPU in this version, got "
                "rows with gaps"};
  return {};
}

Error gdn::hopper::explainNoSegments(const Problem &p) {
  return {"NotImplementedError",
          keywordOf(p) +
              ": expected a form of q, v, g, beta and states with kernels of "
              "segments on a GPU in this version, got one without; pass " +
              (p.hasFixedKernels() ? "None" : "False")};
}

Error gdn::hopper::layOutSegments(const Problem &p, int64_t length,
                                  GdnSegmentsLayout &layout) {
  GdnSegments segments = {};
  segments.struct_size = sizeof(segments);
  segments.packed = p.cuSeqlens.isPresent();
  segments.sequences = p.sequences();
  segments.tokens = p.tokens();
  segments.heads = p.valueHeads();
  segments.key_channels = p.keyChannels();
  segments.value_channels = p.valueChannels();
  segments.length = length;
  layout.struct_size = sizeof(layout);
  return errorOf(gdnSegmentsGetLayout(&segments, &layout));
}

namespace {
/// The launches of a call: the problem of packed segments, and the arrays
/// between the kernels.
class SegmentCall {
public:
  SegmentCall(const Problem &p, const SegmentsForward &forward,
              const GdnSegmentsLayout &layout, void *workspace);

  static constexpr int count = kNumSegmentStages + 1;
  /// The kernels in order; the last one is that of chunks.
  const GdnFunctionDesc *functionOf(int launch) const;
  void addArguments(int launch, Arguments &arguments) const;
  Error prepareAll(int32_t device) const;

private:
  const Problem &given;
  const SegmentsForward &forward;
  SegmentKernels kernels;
  /// Of the forward: segments are its sequences.
  Problem packed;
  Array sizes, boundaries, firstSegments, sequenceNumbers, map, decay, starts,
      states, entryStates;
};
} // namespace

Array gdn::hopper::arrayAt(void *workspace, uint64_t offset, Element element,
                           std::initializer_list<int64_t> sizes) {
  Array array;
  array.element = element;
  array.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), array.sizes.begin());
  int64_t stride = 1;
  for (int i = array.rank - 1; i >= 0; --i) {
    array.strides[i] = stride;
    stride *= array.sizes[i];
  }
  array.data = static_cast<char *>(workspace) + offset;
  return array;
}

SegmentCall::SegmentCall(const Problem &p, const SegmentsForward &forward,
                         const GdnSegmentsLayout &layout, void *workspace)
    : given(p), forward(forward), kernels(findSegmentKernels(traitsOf(p))),
      packed(p) {
  int64_t S = layout.count, H = p.valueHeads(), K = p.keyChannels(),
          V = p.valueChannels();
  auto at = [&](uint64_t offset, Element element,
                std::initializer_list<int64_t> sizes) {
    return arrayAt(workspace, offset, element, sizes);
  };
  // Read for its extents alone.
  sizes = at(0, Element::I32, {p.batches(), p.tokens(), forward.length});
  sizes.strides = {};
  boundaries = at(layout.boundaries, Element::I32, {S + 1});
  firstSegments = at(layout.first_segments, Element::I32, {p.sequences() + 1});
  sequenceNumbers = at(layout.sequence_numbers, Element::I32, {S});
  map = at(layout.map, Element::F16, {S, H, K, K});
  decay = at(layout.decay, Element::F32, {S, H});
  starts = at(layout.starts, Element::I32, {S, H});
  states = at(layout.states, Element::F32, {S, H, V, K});
  entryStates = at(layout.entry_states, Element::F32, {S, H, V, K});
  packRows(packed);
  packed.cuSeqlens = boundaries;
  // The states behind segments replace those before them: nobody reads them.
  packed.initialState = packed.finalState = entryStates;
  packed.stateVFirst = true;
}

const GdnFunctionDesc *SegmentCall::functionOf(int launch) const {
  return launch < kNumSegmentStages ? kernels.stages[launch]->function
                                    : forward.function;
}

void SegmentCall::addArguments(int launch, Arguments &arguments) const {
  auto add = [&](std::initializer_list<const Array *> arrays) {
    for (const Array *array : arrays)
      arguments.add(*array);
  };
  if (launch == kNumSegmentStages && forward.saved)
    return add({&packed.q, &packed.k, &packed.v, &packed.beta, &packed.gate,
                &packed.initialState, &packed.cuSeqlens, &sequenceNumbers,
                &packed.o, &packed.finalState, &forward.saved->writes,
                &forward.saved->states});
  if (launch == kNumSegmentStages)
    return arguments.addAll(packed, *forward.function);
  switch (static_cast<SegmentStage>(launch)) {
  case SegmentStage::Cut:
    return add({&sizes, &given.cuSeqlens, &boundaries, &firstSegments,
                &sequenceNumbers});
  case SegmentStage::Maps:
    return add({&packed.q, &packed.k, &packed.v, &packed.beta, &packed.gate,
                &boundaries, &packed.aLog, &packed.dtBias, &starts, &decay,
                &states, &map});
  case SegmentStage::Scan:
    return add({&map, &decay, &states, &given.initialState, &firstSegments,
                &entryStates, &given.finalState});
  case SegmentStage::OwnCut:
  case SegmentStage::OwnSampledCut:
  case SegmentStage::OwnMaps:
  case SegmentStage::OwnScan:
  case SegmentStage::OwnLateScan:
  case SegmentStage::OwnForward:
    break; // OwnSegments.cpp runs these.
  }
}

Error SegmentCall::prepareAll(int32_t device) const {
  for (const SegmentKernel *kernel : kernels.stages)
    if (Error error = prepare(*kernel, device))
      return error;
  return {};
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Error gdn::hopper::checkSegmentLaunch(const Problem &p,
                                      const SegmentsForward &forward,
                                      const GdnSegmentsLayout &layout) {
  // Never read.
  void *somewhere = reinterpret_cast<void *>(GDN_WORKSPACE_ALIGNMENT);
  return checkLaunches(SegmentCall(p, forward, layout, somewhere));
}

Error gdn::hopper::runSegments(const Problem &p, const SegmentsForward &forward,
                               void *stream, Allocate allocate) {
  int32_t device = p.device.index;
  GdnSegmentsLayout layout;
  if (Error error = layOutSegments(p, forward.length, layout))
    return error;
  std::unique_ptr<Workspace> workspace;
  if (Error error = allocate(device, stream, layout.bytes, workspace))
    return error;
  SegmentCall call(p, forward, layout, workspace->data);
  if (Error error = call.prepareAll(device))
    return error;
  return runLaunches(call, device, stream);
}

std::string gdn::hopper::splitToJson(const KernelChoice &chosen) {
  const cost::SplitChoice &split = chosen.split;
  if (!split.best)
    return "null";
  const cost::SplitEstimate &best = *split.best;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  char text[640];
  std::snprintf(
      text, sizeof(text),
      "{\"splits\": %s, \"forced\": %s, \"length\": %lld, "
      "\"longer_length\": %lld, \"parts\": %lld, \"late\": %s, \"longest\": "
      "%lld, \"segments\": %lld, \"schedule\": \"%s\", \"map_seconds\": "
      "%.9g, \"scan_seconds\": %.9g, \"forward_seconds\": %.9g, "
      "\"slow_gate_seconds\": %.9g, \"whole_seconds\": %.9g}",
      split.splits ? "true" : "false", split.isForced ? "true" : "false",
      number(best.length), number(best.longerLength), number(best.parts),
      best.isLate ? "true" : "false", number(best.ofLongest),
      number(best.segments), std::string(best.schedule.name).c_str(),
      best.mapSeconds, best.scanSeconds, best.forwardSeconds,
      best.slowGateSeconds, split.wholeSeconds);
  return text;
}
