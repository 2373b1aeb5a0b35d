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
#include "Workspace.h"

#include "gdn-c/Runtime.h"
#include "gdn/CostModel/CostModel.h"
#include "gdn/CostModel/Segments.h"

#include <span>

namespace gdn::hopper {

using cpu::BetaDomain;
using cpu::Element;
using cpu::Error;
using cpu::GateDomain;
using cpu::Problem;

enum class Layout : uint8_t {
#define GDN_HOPPER_LAYOUT(key, says) key,
#include "Manifest.inc"
};
/// States that a kernel takes and gives.
enum class Ends : uint8_t {
#define GDN_HOPPER_ENDS(key, says) key,
#include "Manifest.inc"
};
enum class StateLayout : uint8_t {
#define GDN_HOPPER_STATE_LAYOUT(key, says) key,
#include "Manifest.inc"
};
enum class Norm : uint8_t {
#define GDN_HOPPER_NORM(key, says) key,
#include "Manifest.inc"
};
using cost::Schedule;

/// The exception that a status of the runtime becomes.
Error errorOf(GdnRuntimeStatus status);

/// The cost model's chip of a device.
Error readChip(int32_t device, cost::Chip &chip);

/// What a kernel is compiled for, and what a call asks for.
struct Traits {
  int64_t keyChannels, valueChannels;
  Element element;
  Layout layout;
  Ends ends;
  StateLayout stateLayout;
  Element state;
  GateDomain gateDomain;
  Element gate;
  BetaDomain betaDomain;
  Element beta;
  Norm norm;

  bool operator==(const Traits &) const = default;
};

/// How a function cuts sequences into segments (kernels/split_kernels.py).
enum class Cut : uint8_t {
  /// It does not.
  None,
  /// Segments wait for the state before them.
  Waiting,
  /// Segments behind one that forgets run its last tokens. Their forward is
  /// launched beside the maps, or when these are done; they are of one length,
  /// or of two from which a sample of the gates chooses.
  Own,
  OwnLate,
  OwnSampled,
  OwnSampledLate
};

/// A compiled function (gdn/kernels.json has the list).
struct Kernel {
  const char *name;
  Traits traits;
  Schedule schedule;
  Cut cut;
  const GdnFunctionDesc *function;
};

std::span<const Kernel> allKernels();

/// How a call cuts its sequences: the arguments of a function that does.
struct CallCut {
  /// Tokens of a segment; 0 where sequences are not cut.
  int64_t length = 0;
  /// Of segments that run what is before them themselves, the parts of one
  /// whose maps are made; 0 of segments that wait for the one before.
  int64_t parts = 0;
  /// Tokens of a segment where the device finds that shorter ones do not pay.
  int64_t longerLength = 0;
};

/// What a call runs.
struct Plan {
  const Kernel *kernel = nullptr;
  CallCut cut;
};

/// A plan with what speaks for it.
struct KernelChoice {
  Plan plan;
  int64_t items = 0, multiprocessors = 0;
  cost::Choice choice;
  cost::SplitChoice split;
  /// Set by `checkLaunch`.
  uint64_t workspaceBytes = 0;
};

/// The kernels that compute the same, by schedule; null where there is none.
struct KernelGroup {
  const Kernel *perHead = nullptr, *perVTile = nullptr, *token = nullptr;
};

/// What a call asks for.
Traits traitsOf(const Problem &problem);
/// All traits as one number.
uint64_t keyOf(const Traits &traits);

/// The kernels of these traits, of whole sequences or cut. A call looks a few
/// times, so it is not a search.
KernelGroup findKernels(const Traits &traits, Cut cut = Cut::None);

/// Chooses the kernel of a call that `check` and `checkDevice` took, on the
/// host alone. What no kernel serves is refused with the rule that it breaks.
Error chooseKernel(const Problem &problem, KernelChoice &chosen);

/// Says what `run` would refuse before it launches, and sizes the workspace.
Error checkLaunch(const Problem &problem, KernelChoice &chosen);

/// The plan of a call that was like this one but for addresses: it has been
/// checked, and asked for the same. Null if this thread made none lately.
const Plan *recallPlan(const Problem &problem);
void rememberPlan(const Problem &problem, const Plan &plan);

/// Makes the kernel ready on the device, on its first call there.
Error prepareKernel(const Kernel &kernel, int32_t device);

/// Launches the kernels on `stream`. The first call of a kernel on a device
/// loads it there; later ones do not synchronise, and allocate nothing but a
/// workspace, if there are arrays between the kernels.
Error run(const Problem &problem, const Plan &plan, void *stream,
          Allocate allocate);

class Relayouts;

/// The plan as JSON: the facts of `gdn.explain`.
std::string toJson(const Problem &problem, const KernelChoice &chosen,
                   const Relayouts &copies);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
