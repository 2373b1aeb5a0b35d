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

/// A problem as the library of calls takes it. The problem outlives it.
///
/// A forward that saves writes `writes` and `states`, too; there may be memory
/// for more states than it has. Gradients of tokens in no sequence are zeros.
/// With `savesStates` they are made of what was saved, and `v` is not read.
class HopperCall {
public:
  explicit HopperCall(const Problem &problem);
  HopperCall(const HopperCall &) = delete;
  HopperCall &operator=(const HopperCall &) = delete;

  /// The plan of a call that was like this one but for addresses: it has been
  /// checked, and asked for the same. Null if this thread made none lately.
  const GdnCallPlan *recall() const {
    return gdnCallRecall(&allFunctions(), &call);
  }
  /// Launches the call on `stream` by a plan that is known, or plans it first.
  /// The first call of a function on a device loads it there; later ones do not
  /// synchronise, and allocate nothing but a workspace, if there are arrays
  /// between the kernels or conversions.
  void run(const GdnCallPlan *known, void *stream,
           const Allocate &allocate) const;
  /// What the call would run as JSON: the facts of `gdn.explain`.
  /// Where nobody knows addresses, it is invented; a pool of states is one
  /// array.
  std::string describe(bool isPool);
  /// Whether a step of training is predicted to take less time if its forward
  /// saves states. Of the problem only extents, options and the device are
  /// read.
  bool predictSaving(bool hasSegments) const;

private:
  void add(const char *name, const cpu::Array &array);
  /// Gives arrays whose addresses nobody knows those of allocations, none of
  /// which is read.
  void inventAddresses(bool isPool);

  /// Those of a call, their gradients, and what is saved.
  static constexpr int kMaxArrays = cpu::kNumArrays + cpu::kNumGradients + 2;

  GdnTensor tensors[kMaxArrays];
  GdnCallArray arrays[kMaxArrays];
  GdnFact facts[6];
  GdnCall call = {};
};

/// What a call would run as JSON. Of a backward also the forward that saves for
/// it; nobody has allocated their outputs.
std::string describe(const Problem &problem);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
