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

/// What a call computes.
enum class Kind : uint8_t { Forward, Saving, Backward };

/// What each token adds to the state, shaped as v, and the states [S, H, V, K]
/// before every HopperSavedTokens tokens of a sequence, in the type of v. The
/// state before token t of sequence n, which begins at token b, has the number
/// floor(b / HopperSavedTokens) + n + (t - b) / HopperSavedTokens.
struct Saved {
  cpu::Array writes, states;
};

/// The exception that a status of the runtime becomes.
Error errorOf(GdnRuntimeStatus status);

/// The compiled functions.
const GdnCallTable &allFunctions();

class HopperCall;

/// Launches a call on `stream` by a plan that is known, or plans it first. The
/// first call of a function on a device loads it there; later ones do not
/// synchronise, and allocate nothing but a workspace, if there are arrays
/// between the kernels or conversions.
Error run(const HopperCall &call, const GdnCallPlan *known, void *stream,
          Allocate allocate);

/// What a call would run as JSON: the facts of `gdn.explain`.
Error describe(HopperCall &call, std::string &facts);
Error describeForward(const Problem &problem, std::string &facts);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPER_H
