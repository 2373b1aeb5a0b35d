//===- VerifyPool.cpp - Where a forward finds states and keeps them -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

using namespace mlir;
using namespace mlir::gdn;

LogicalResult gdn::verifyPool(Operation *op, const Rule &rule) {
  if (!rule.stateIndices) {
    StringRef given = rule.firstState        ? "first_state"
                      : rule.numStates       ? "num_states"
                      : rule.hasInitialState ? "has_initial_state"
                                             : "";
    // pool_c2
    if (!given.empty())
      return op->emitOpError("expected ")
             << given << " only beside state_indices, got no state_indices";
    return success();
  }
  // pool_c3
  if (rule.hasPool() && !rule.initialState)
    return op->emitOpError("expected initial_state, a pool of states, beside "
                           "state_indices, got none");
  // pool_c4
  if (rule.stateInterval)
    return op->emitOpError("expected no state_interval beside state_indices, "
                           "got ")
           << rule.stateInterval.getInt();
  auto scan = dyn_cast<SegmentScanStageOp>(op);
  // pool_c6
  if (rule.before || (scan && scan.getReverse()))
    return op->emitOpError("expected no ")
           << (rule.before ? "before" : "reverse")
           << " beside state_indices, got it";
  // pool_c7
  if (static_cast<bool>(rule.numStates) !=
      static_cast<bool>(rule.sequenceNumbers))
    return op->emitOpError("expected num_states and sequence_numbers together "
                           "beside state_indices, got one of them");
  // pool_c9
  if (rule.hasInitialState && rule.numStates)
    return op->emitOpError("expected no has_initial_state beside num_states, "
                           "got it: segments begin with states of their own");
  return success();
}

/// The states after each so many tokens.
static LogicalResult verifyIntervals(Operation *op, const Rule &rule) {
  bool hasRows = rule.stepStarts || rule.stepIndices;
  // steps_c12
  if (!rule.stepIntervals || !hasRows)
    return op->emitOpError("expected step_intervals with step_starts or "
                           "step_indices, got no ")
           << (hasRows ? "step_intervals" : "step_starts");
  unsigned results = std::max(op->getNumResults(), getNumOuts(op));
  bool isInPool = rule.stepIndices && rule.stateIndices && results > 1;
  // steps_c15
  if (!rule.stepStates && !isInPool)
    return op->emitOpError("expected step_states, or step_indices of a pool "
                           "that is a result, got neither");
  // steps_c13
  if (rule.stateInterval)
    return op->emitOpError("expected no state_interval beside step_intervals, "
                           "got ")
           << rule.stateInterval.getInt();
  // steps_c14
  if (rule.starts || rule.before || rule.sequenceNumbers)
    return op->emitOpError("expected sequences as a whole with step_intervals, "
                           "got segments");
  return success();
}

LogicalResult gdn::verifySteps(Operation *op, const Rule &rule) {
  bool hasIntervals = isa<ChunkGatedDeltaRuleOp, FusedStageOp>(op) &&
                      (rule.stepStates || rule.stepIndices || rule.stepStarts ||
                       rule.stepIntervals);
  if (hasIntervals)
    return verifyIntervals(op, rule);
  if (!rule.stepIndices) {
    StringRef given = rule.stepStates    ? "step_states"
                      : rule.numAccepted ? "num_accepted"
                      : rule.parents     ? "parents"
                                         : "";
    // steps_c5
    if (!given.empty())
      return op->emitOpError("expected ")
             << given << " only beside step_indices, got no step_indices";
    return success();
  }
  // steps_c6
  if (!rule.stateIndices)
    return op->emitOpError("expected state_indices beside step_indices, got "
                           "none");
  // steps_c7
  unsigned results = std::max(op->getNumResults(), getNumOuts(op));
  if (!rule.stepStates && results < 2)
    return op->emitOpError("expected the pool as a result, which keeps the "
                           "states of step_indices, or step_states, got "
                           "neither");
  // steps_c8
  if (rule.stepStates && getElementTypeOrSelf(rule.stepStates.getType()) !=
                             getStateElementType(rule))
    return op->emitOpError("expected step_states to have the element type of "
                           "initial_state, ")
           << getStateElementType(rule) << ", got "
           << getElementTypeOrSelf(rule.stepStates.getType());
  return success();
}
