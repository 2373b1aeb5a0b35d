//===- VerifySegments.cpp - What stages of segments must satisfy ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"
#include "gdn/Dialect/GDN/IR/Support.h"

using namespace mlir;
using namespace mlir::gdn;

/// A tolerance of what is left of a state.
static LogicalResult verifyTolerance(Operation *op, FloatAttr tolerance) {
  double value = tolerance.getValueAsDouble();
  if (value > 0 && value < 1)
    return success();
  return op->emitOpError("expected a tolerance between 0 and 1, got ")
         << tolerance;
}

/// Of a scan beside the forward of the segments.
static LogicalResult verifyScanBeside(SegmentScanStageOp op, const Rule &rule) {
  // segment_before_c7
  if (rule.initialState || op->getNumResults() > 1)
    return op.emitOpError("expected neither initial_state nor a final state "
                          "beside before, got ")
           << (rule.initialState ? "initial_state" : "a final state");
  // segment_before_c9
  auto decay = dyn_cast_or_null<ShapedType>(
      rule.mapDecay ? rule.mapDecay.getType() : Type());
  if (!decay)
    return op.emitOpError("expected decay beside before, got none");
  if (op.getReverse())
    return op.emitOpError("expected no reverse beside before, got it");
  return success();
}

/// Of a forward of segments that run what is before them themselves.
static LogicalResult verifyForwardOfSegments(FusedStageOp op,
                                             const Rule &rule) {
  // segment_before_c3
  if (!rule.before || !rule.initialState)
    return op.emitOpError("expected starts beside before and initial_state, "
                          "got no ")
           << (rule.before ? "initial_state" : "before");
  // segment_before_c8
  if (rule.stateInterval)
    return op.emitOpError("expected no state_interval beside before, got ")
           << rule.stateInterval.getInt();
  // segment_before_c4
  bool hasFinalState = op->getNumResults() > 1;
  if (hasFinalState != static_cast<bool>(rule.cutSegments))
    return op.emitOpError("expected first_segments beside before exactly with "
                          "a final state, got ")
           << (hasFinalState ? "a final state alone" : "first_segments alone");
  return success();
}

/// Of a scan that knows which segments forget what is before them.
static LogicalResult verifyStarts(SegmentScanStageOp op, const Rule &rule) {
  // segment_scan_c5
  for (auto [name, value, other] :
       {std::tuple("boundaries", rule.boundaries, rule.starts),
        {"starts", rule.starts, rule.boundaries}})
    if (other && !value)
      return op.emitOpError("expected starts and boundaries together, got no ")
             << name;
  auto decay = dyn_cast_or_null<ShapedType>(
      rule.mapDecay ? rule.mapDecay.getType() : Type());
  if (!rule.starts || (decay && decay.getRank() == 3))
    return success();
  InFlightDiagnostic error = op.emitOpError(
      "expected decay [S, H, K] beside starts without before, got ");
  return decay ? error << decay : error << "none";
}

/// Of stages that know where the sequences of heads that are left whole end.
static LogicalResult verifyWholes(Operation *op, const Rule &rule) {
  // segment_whole_c2
  if (static_cast<bool>(rule.wholeHeads) == static_cast<bool>(rule.wholeBegins))
    return success();
  return op->emitOpError(
             "expected whole_heads and whole_begins together, got no ")
         << (rule.wholeHeads ? "whole_begins" : "whole_heads");
}

/// Of stages whose segments run what is before them themselves.
static LogicalResult verifyBefore(Operation *op, const Rule &rule) {
  if (isa<SegmentStartsStageOp>(op))
    return verifyWholes(op, rule);
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
                             {"whole_heads", rule.wholeHeads},
                             {"sequence_state", rule.sequenceState},
                             {"first_segments", rule.cutSegments},
                             {"last_segments", rule.lastSegments}})
    if (value && !hasBefore)
      return op->emitOpError("expected ")
             << name << " only beside before, got no before";
  if (isa<FusedStageOp>(op) && failed(verifyWholes(op, rule)))
    return failure();
  if (auto scan = dyn_cast<SegmentScanStageOp>(op))
    return hasBefore ? verifyScanBeside(scan, rule) : verifyStarts(scan, rule);
  if (auto fused = dyn_cast<FusedStageOp>(op);
      fused && (rule.starts || hasBefore))
    return verifyForwardOfSegments(fused, rule);
  return success();
}

/// The sample by which a stage chooses between two lengths.
static LogicalResult verifySample(SegmentBoundariesStageOp op,
                                  const Rule &rule) {
  ArrayRef<int64_t> live = rule.liveHeads.asArrayRef();
  // segment_boundaries_c9
  if (live.size() != 2 || live[0] < 0 || live[0] > live[1] ||
      live[1] > support::sampledHeads)
    return op.emitOpError("expected live_heads = [least, most] of 0 to ")
           << support::sampledHeads << " heads, got " << rule.liveHeads;
  // segment_boundaries_c6
  return verifyTolerance(op, op.getToleranceAttr());
}

/// How sequences are left whole for heads that keep a state.
static LogicalResult verifyWholeSequences(SegmentBoundariesStageOp op,
                                          const Rule &rule) {
  // segment_boundaries_c7
  if (rule.cutParts && !rule.cutLength)
    return op.emitOpError("expected parts beside length");
  bool mayBeWhole = rule.cutParts ? rule.longerCut && !rule.fewerSegments
                                  : rule.segments && rule.fewerSegments &&
                                        rule.fewerSegments.getInt() == 1;
  // segment_boundaries_c10
  if (!mayBeWhole || rule.liveHeads || op.getToleranceAttr())
    return op.emitOpError("expected longer_length beside parts, or "
                          "fewer_segments = 1 beside segments, with a gate a "
                          "channel, and neither live_heads nor tolerance");
  return success();
}

/// How the gates choose between two numbers of segments.
static LogicalResult verifyLiveSegments(SegmentBoundariesStageOp op,
                                        const Rule &rule) {
  FloatAttr tolerance = op.getToleranceAttr();
  if (rule.gate && cast<ShapedType>(rule.gate.getType()).getRank() == 4)
    return verifyWholeSequences(op, rule);
  if (rule.cutParts) {
    // segment_boundaries_c7
    if (!rule.cutLength || op->getNumResults() != 5)
      return op.emitOpError("expected parts beside length, and five results");
    // segment_boundaries_c8
    bool samples = static_cast<bool>(rule.longerCut);
    if (samples != static_cast<bool>(rule.gate) ||
        samples != static_cast<bool>(tolerance) ||
        samples != static_cast<bool>(rule.liveHeads) || rule.fewerSegments)
      return op.emitOpError("expected gate, live_heads, longer_length and "
                            "tolerance together beside parts");
    return samples ? verifySample(op, rule) : success();
  }
  // segment_boundaries_c8
  if (rule.longerCut)
    return op.emitOpError("expected longer_length only beside parts");
  std::pair<StringRef, bool> parts[] = {
      {"gate", static_cast<bool>(rule.gate)},
      {"live_heads", static_cast<bool>(rule.liveHeads)},
      {"fewer_segments", static_cast<bool>(rule.fewerSegments)},
      {"tolerance", static_cast<bool>(tolerance)},
      {"segments", static_cast<bool>(rule.segments)}};
  bool hasAny = llvm::any_of(ArrayRef(parts).drop_back(),
                             [](auto &part) { return part.second; });
  if (!hasAny)
    return success();
  // segment_boundaries_c4
  for (auto [name, isThere] : parts)
    if (!isThere)
      return op.emitOpError("expected gate, live_heads, fewer_segments and "
                            "tolerance together and beside segments, got no ")
             << name;
  // segment_boundaries_c5
  int64_t live = rule.fewerSegments.getInt(), most = rule.segments.getInt();
  if (live < 1 || live > most)
    return op.emitOpError("expected fewer_segments of 1 to segments = ")
           << most << ", got " << live;
  return verifySample(op, rule);
}

/// Into what sequences are cut.
static LogicalResult verifyCut(SegmentBoundariesStageOp op, const Rule &rule) {
  // segment_boundaries_c1
  int count = !!rule.segments + !!rule.segmentLength + !!rule.cutLength;
  if (count != 1)
    return op.emitOpError(
               "expected one of segments, segment_length and length, got ")
           << (count == 0 ? "none" : "more");
  // segment_boundaries_c2
  if (rule.segments &&
      (rule.segments.getInt() < 1 || rule.segments.getInt() > INT32_MAX))
    return op.emitOpError("expected segments of 1 to 2^31 - 1, got ")
           << rule.segments.getInt();
  return verifyLiveSegments(op, rule);
}

/// Tokens of a segment, and between states.
static LogicalResult verifyLengths(Operation *op, const Rule &rule) {
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

/// Of an adjoint and of gradients that follow it.
static LogicalResult verifyProgress(Operation *op, const Rule &rule) {
  if (IntegerAttr tiles = rule.reportingTiles) {
    int64_t V = getRuleDims(rule).V;
    // adjoint_c1
    if (tiles.getInt() < 1 ||
        (!ShapedType::isDynamic(V) && V % tiles.getInt() != 0))
      return op->emitOpError("expected reporting_tiles to be positive and to "
                             "divide V, got ")
             << tiles.getInt();
  }
  // gradients_c7
  if (rule.progress && rule.stateInterval &&
      rule.stateInterval.getInt() > 2 * rule.segmentLength.getInt())
    return op->emitOpError("expected a state_interval of at most two segments "
                           "beside progress, got ")
           << rule.stateInterval.getInt();
  return success();
}

static bool areHeadsOpen(const RuleDims &dims) {
  return ShapedType::isDynamic(dims.H) || ShapedType::isDynamic(dims.Hq);
}

/// Of gradients of query/key heads of one value head.
static LogicalResult verifySingleHeads(Operation *op, const Rule &rule) {
  RuleDims dims = getRuleDims(rule);
  // gradients_c10
  if (!rule.singleHeads || areHeadsOpen(dims) || dims.H == dims.Hq)
    return success();
  return op->emitOpError("expected a value head a query/key head with "
                         "single_heads, got H = ")
         << dims.H << " and Hq = " << dims.Hq;
}

/// Of gradients of rows in front of their norm.
static LogicalResult verifyNorms(Operation *op, const Rule &rule) {
  if (!rule.qNorm && !rule.kNorm)
    return success();
  // gradients_c8
  if (!rule.qNorm || !rule.kNorm)
    return op->emitOpError("expected q_rstd and k_rstd or neither, got one");
  auto isInRange = [&] {
    return rule.gate && cast<ShapedType>(rule.gate.getType()).getRank() == 4 &&
           rule.lowerBound &&
           support::areBlocksInRange(rule.lowerBound.getValueAsDouble(),
                                     getElementTypeOrSelf(rule.k));
  };
  // gradients_c9
  if (!isInRange())
    return op->emitOpError("expected a gate a channel with a lower_bound that "
                           "keeps blocks in range beside k_rstd, got ")
           << (rule.gate ? "another gate" : "none");
  RuleDims dims = getRuleDims(rule);
  if (!rule.singleHeads && areHeadsOpen(dims))
    return op->emitOpError("expected single_heads beside k_rstd and open "
                           "numbers of heads, got none");
  if (!areHeadsOpen(dims) && dims.H != dims.Hq)
    return op->emitOpError("expected a value head a query/key head beside "
                           "k_rstd, got H = ")
           << dims.H << " and Hq = " << dims.Hq;
  if (rule.stateInterval &&
      rule.stateInterval.getInt() > 2 * rule.segmentLength.getInt())
    return op->emitOpError("expected a state_interval of at most two segments "
                           "beside k_rstd, got ")
           << rule.stateInterval.getInt();
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
    // segment_starts_c2
    if (failed(verifyTolerance(op, starts.getToleranceAttr())))
      return failure();
    bool hasChannels = cast<ShapedType>(rule.gate.getType()).getRank() == 4;
    // segment_starts_c5
    if (hasChannels != static_cast<bool>(rule.beta))
      return op->emitOpError(
                 "expected beta exactly with a gate a channel, got ")
             << (rule.beta ? "one with a gate a head" : "none");
    // segment_whole_c3
    if (!hasChannels && rule.wholeHeads)
      return op->emitOpError("expected a gate a channel beside whole_heads, "
                             "got a gate a head");
    // segment_starts_c6
    if (hasChannels && starts.getReverse())
      return op->emitOpError("expected no reverse with a gate a channel, got "
                             "it");
  }
  if (auto cut = dyn_cast<SegmentBoundariesStageOp>(op);
      cut && failed(verifyCut(cut, rule)))
    return failure();
  return success(succeeded(verifyLengths(op, rule)) &&
                 succeeded(verifyProgress(op, rule)) &&
                 succeeded(verifySingleHeads(op, rule)) &&
                 succeeded(verifyNorms(op, rule)));
}
