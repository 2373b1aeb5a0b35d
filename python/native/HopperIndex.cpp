//===- HopperIndex.cpp - The kernels of what a call asks for --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include <array>
#include <unordered_map>

using namespace gdn::hopper;
using gdn::cpu::Array;

// Channels have 12 bits, the others 4.
uint64_t gdn::hopper::keyOf(const Traits &t) {
  uint64_t key = static_cast<uint64_t>(t.keyChannels) << 12 |
                 static_cast<uint64_t>(t.valueChannels);
  for (uint8_t part :
       {static_cast<uint8_t>(t.element), static_cast<uint8_t>(t.layout),
        static_cast<uint8_t>(t.ends), static_cast<uint8_t>(t.stateLayout),
        static_cast<uint8_t>(t.state), static_cast<uint8_t>(t.gateDomain),
        static_cast<uint8_t>(t.gate), static_cast<uint8_t>(t.betaDomain),
        static_cast<uint8_t>(t.beta), static_cast<uint8_t>(t.norm)})
    key = key << 4 | part;
  return key;
}

using Index = std::unordered_map<uint64_t, KernelGroup>;
static constexpr size_t numCuts = static_cast<size_t>(Cut::OwnSampledLate) + 1;

static std::array<Index, numCuts> makeIndex() {
  std::array<Index, numCuts> index;
  for (const Kernel &kernel : allKernels()) {
    KernelGroup &group =
        index[static_cast<size_t>(kernel.cut)][keyOf(kernel.traits)];
    (kernel.schedule == Schedule::Token        ? group.token
     : kernel.schedule == Schedule::CtaPerHead ? group.perHead
                                               : group.perVTile) = &kernel;
  }
  return index;
}

KernelGroup gdn::hopper::findKernels(const Traits &traits, Cut cut) {
  static const std::array<Index, numCuts> index = makeIndex();
  Traits wanted = traits;
  // A function that cuts takes any states of a type, and lays them out itself.
  if (cut != Cut::None) {
    wanted.ends = Ends::Both;
    wanted.stateLayout =
        cut == Cut::Waiting ? StateLayout::KV : StateLayout::VK;
  }
  const Index &ofCut = index[static_cast<size_t>(cut)];
  auto found = ofCut.find(keyOf(wanted));
  return found == ofCut.end() ? KernelGroup() : found->second;
}

//===----------------------------------------------------------------------===//
// Calls alike
//===----------------------------------------------------------------------===//

namespace {
/// A call that has been checked, with what it runs.
struct KnownCall {
  Problem problem;
  Plan plan;
};

/// The last few of a thread: the layers of a model make calls alike, and its
/// next step differs in the number of tokens or sequences.
struct KnownCalls {
  static constexpr int size = 8;

  KnownCall list[size];
  int oldest = 0;
};
} // namespace

static thread_local KnownCalls knownCalls;

/// Addresses may decide by how far they are aligned, and by nothing else.
static uintptr_t alignmentOf(const Array &array) {
  return reinterpret_cast<uintptr_t>(array.data) % 16;
}

static bool areAlike(const Array &a, const Array &b) {
  const gdn::cpu::ArrayType &left = a, &right = b;
  return left == right && alignmentOf(a) == alignmentOf(b);
}

static bool areAlike(const Problem &a, const Problem &b) {
  const gdn::cpu::Options &left = a, &right = b;
  return left == right && a.device == b.device
#define GDN_ARRAY(field, name) &&areAlike(a.field, b.field)
#include "Manifest.inc"
      ;
}

const Plan *gdn::hopper::recallPlan(const Problem &problem) {
  for (const KnownCall &call : knownCalls.list)
    if (call.plan.kernel && areAlike(call.problem, problem))
      return &call.plan;
  return nullptr;
}

void gdn::hopper::rememberPlan(const Problem &problem, const Plan &plan) {
  knownCalls.list[knownCalls.oldest] = {problem, plan};
  knownCalls.oldest = (knownCalls.oldest + 1) % KnownCalls::size;
}
