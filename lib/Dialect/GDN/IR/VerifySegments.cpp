//===- VerifySegments.cpp - What stages of segments must satisfy ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

using namespace mlir;
using namespace mlir::gdn;

/// Of stages whose segments run what is before them themselves.
static LogicalResult verifyBefore(Operation *op, const Rule &rule) {
  // segment_before_c2
  bool hasBefore = static_cast<bool>(rule.before);
  for (auto [name, value] :
       {std::pair("starts", rule.starts),
        {"closes", rule.map ? rule.before : rule.closes},
        {"boundaries", rule.map ? rule.boundaries : rule.before},
        {"cu_seqlens", rule.map ? rule.before : rule.cuSeqlens}})
    if (hasBefore && !value)
      return op->emitOpError("expected ") << name << " beside before, got none";
  for (auto [name, value] : {std::pair("closes", rule.closes),
                             {"sequence_state", rule.sequenceState},
                             {"first_segments", rule.cutSegments},
                             {"boundaries", rule.boundaries}})
    if (value && !hasBefore)
      return op->emitOpError("expected ")
             << name << " only beside before, got no before";
  // segment_before_c7
  if (rule.map && hasBefore && (rule.initialState || op->getNumResults() > 1))
    return op->emitOpError("expected neither initial_state nor a final state "
                           "beside before, got ")
           << (rule.initialState ? "initial_state" : "a final state");
  if (!isa<FusedStageOp>(op) || (!rule.starts && !rule.before))
    return success();
  // segment_before_c3
  if (!rule.before || !rule.initialState)
    return op->emitOpError("expected starts beside before and initial_state, "
                           "got no ")
           << (rule.before ? "initial_state" : "before");
  // segment_before_c8
  if (rule.stateInterval)
    return op->emitOpError("expected no state_interval beside before, got ")
           << rule.stateInterval.getInt();
  // segment_before_c4
  if ((op->getNumResults() > 1) != static_cast<bool>(rule.cutSegments))
    return op->emitOpError("expected first_segments beside before exactly with "
                           "a final state, got ")
           << (rule.cutSegments ? "no state" : "none");
  return success();
}

/// Of a cut that depends on the gates.
static LogicalResult verifyLiveSegments(Operation *op, const Rule &rule) {
  auto cut = dyn_cast<SegmentBoundariesStageOp>(op);
  if (!cut)
    return success();
  bool isOne = static_cast<bool>(rule.liveSegments);
  // segment_boundaries_c4
  if (static_cast<bool>(rule.gate) != isOne ||
      static_cast<bool>(cut.getToleranceAttr()) != isOne ||
      (isOne && !rule.segments))
    return op->emitOpError("expected gate, live_segments and tolerance "
                           "together and beside segments, got some of them");
  // segment_boundaries_c5
  if (isOne && (rule.liveSegments.getInt() < 1 ||
                rule.liveSegments.getInt() > rule.segments.getInt()))
    return op->emitOpError("expected live_segments of 1 to segments = ")
           << rule.segments.getInt() << ", got " << rule.liveSegments.getInt();
  return success();
}

LogicalResult gdn::verifySegments(Operation *op, const Rule &rule) {
  if (failed(verifyBefore(op, rule)))
    return failure();
  if (rule.firstSegments) {
    auto type = cast<ShapedType>(rule.firstSegments.getType());
    // segment_scan_c4
    if (!type.isDynamicDim(0) && type.getDimSize(0) < 2)
      return op->emitOpError(
                 "expected first_segments to have N+1 >= 2 entries, got ")
             << type.getDimSize(0);
  }
  if (auto starts = dyn_cast<SegmentStartsStageOp>(op)) {
    // segment_starts_c1
    if (!starts.getGate())
      return op->emitOpError("expected a gate, got none");
    double tolerance = starts.getTolerance().convertToDouble();
    // segment_starts_c2
    if (!(tolerance > 0 && tolerance < 1))
      return op->emitOpError("expected a tolerance between 0 and 1, got ")
             << starts.getToleranceAttr();
  }
  // segment_boundaries_c1
  bool hasBothOrNone =
      static_cast<bool>(rule.segments) == static_cast<bool>(rule.segmentLength);
  if (isa<SegmentBoundariesStageOp>(op) && hasBothOrNone)
    return op->emitOpError("expected one of segments and segment_length, got ")
           << (rule.segments ? "both" : "none");
  // segment_boundaries_c2
  if (rule.segments &&
      (rule.segments.getInt() < 1 || rule.segments.getInt() > INT32_MAX))
    return op->emitOpError("expected segments of 1 to 2^31 - 1, got ")
           << rule.segments.getInt();
  if (failed(verifyLiveSegments(op, rule)))
    return failure();
  if (!rule.segmentLength)
    return success();
  int64_t length = rule.segmentLength.getInt();
  // segment_boundaries_c3
  if (length < 1 || length % rule.chunkSize.getInt() != 0)
    return op->emitOpError("expected segment_length to be a positive multiple "
                           "of chunk_size = ")
           << rule.chunkSize.getInt() << ", got " << length;
  // gradients_c5
  if (isa<GradientsStageOp, ExpandStageOp>(op) && rule.stateInterval &&
      (rule.stateInterval.getInt() < 1 ||
       rule.stateInterval.getInt() % length != 0))
    return op->emitOpError("expected state_interval to be a positive multiple "
                           "of segment_length = ")
           << length << ", got " << rule.stateInterval.getInt();
  return success();
}
