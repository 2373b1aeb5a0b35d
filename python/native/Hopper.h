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

#include "gdn-c/Calls.h"
#include "gdn/CostModel/CostModel.h"

#include <string>

namespace gdn::hopper {

using cpu::BetaDomain;
using cpu::Element;
using cpu::Error;
using cpu::GateDomain;
using cpu::Problem;

enum class Norm : uint8_t {
#define GDN_HOPPER_NORM(key, says) key,
#include "Manifest.inc"
};
using cost::Schedule;

/// The exception that a status of the runtime becomes.
Error errorOf(GdnRuntimeStatus status);

/// The cost model's chip of a device.
Error readChip(int32_t device, cost::Chip &chip);

/// The compiled functions of forwards.
const GdnCallTable &allFunctions();

/// Plans a call that `check` and `checkDevice` took, and launches it on
/// `stream`. A call that was like an earlier one but for addresses runs what
/// that did. The first call of a function on a device loads it there; later
/// ones do not synchronise, and allocate nothing but a workspace, if there are
/// arrays between the kernels or copies of inputs.
Error run(const Problem &problem, const GdnCallPlan *known, void *stream,
          Allocate allocate);

/// The plan of a call that was like this one but for addresses: it has been
/// checked, and asked for the same. Null if this thread made none lately.
const GdnCallPlan *recallPlan(const Problem &problem);

/// What a call would run as JSON: the facts of `gdn.explain`.
Error describe(const Problem &problem, std::string &facts);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
