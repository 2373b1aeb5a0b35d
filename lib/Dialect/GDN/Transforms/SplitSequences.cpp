//===- SplitSequences.cpp - Compute segments of sequences side by side ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitSequences.h"

#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#define DEBUG_TYPE "gdn-cp-split"

namespace mlir::gdn {
#define GEN_PASS_DEF_SPLITSEQUENCESPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

LogicalResult gdn::checkSavedCut(Operation *op, const Cut &cut) {
  if (cut.segments || cut.lengthOfCall)
    return success();
  return op->emitOpError("expected segments to split what has saved states, "
                         "got segment-length ")
         << cut.length.getInt();
}

IntegerAttr gdn::cutsOf(Operation *op) {
  for (StringRef name : {"state_interval", "chunk_size"})
    if (auto tokens = op->getAttrOfType<IntegerAttr>(name))
      return tokens;
  return {};
}

/// The rows of a pool.
static Value countRows(OpBuilder &b, Value pool) {
  return getValueOrCreateConstantIndexOp(
      b, pool.getLoc(), tensor::getMixedSize(b, pool.getLoc(), pool, 0));
}

/// The results of a forward: those of that of its segments, and the final state
/// of whichever of the two makes it.
static SmallVector<Value> joinResults(Splitter<FusedStageOp> &splitter,
                                      FusedStageOp forward,
                                      SegmentScanStageOp scan) {
  FusedStageOp op = splitter.op;
  bool hasState = op.getNumResults() % 2 == 0, saves = !!op.getStateInterval();
  bool scansState = scan.getNumResults() > 1;
  SmallVector<Value> results;
  unsigned next = 0;
  for (auto [number, type] : llvm::enumerate(op.getResultTypes()))
    if (number == 1 && hasState)
      results.push_back(scansState ? scan.getResult(1)
                                   : forward.getResult(next++));
    else if (saves && number + 1 == op.getNumResults())
      results.push_back(forward.getResult(next++));
    else
      results.push_back(splitter.unpacked(forward.getResult(next++), type));
  return results;
}

/// A forward: each segment from the state before it.
static void split(FusedStageOp op, const Cut &cut) {
  Splitter<FusedStageOp> splitter(op, cut);
  splitter.packOperands();
  // A forward that saves would do so of tokens before the segment, too. With a
  // pool, a last segment that does not wait might store the final state before
  // the first one has loaded the initial state.
  IntegerAttr interval = op.getStateIntervalAttr();
  bool hasPool = static_cast<bool>(op.getStateIndices());
  // The states that it saves have the numbers of whole sequences, and so have
  // those of a pool.
  splitter.cutSequences(cutsOf(op), /*runsBefore=*/!interval && !hasPool,
                        /*numbersSequences=*/(interval && cut.lengthOfCall) ||
                            hasPool);
  splitter.makeMapsAndStates();
  ImplicitLocOpBuilder &b = splitter.b;
  bool hasState = op.getNumResults() % 2 == 0;
  Type last = hasState ? op.getResult(1).getType() : Type();
  // Segments that run what is before them make the final states, too.
  bool runsBefore = static_cast<bool>(splitter.before);
  bool scansState = hasState && !runsBefore;
  auto scan = splitter.scanMaps(splitter.states,
                                runsBefore ? Value() : op.getInitialState(),
                                scansState ? last : Type(), /*reverse=*/false,
                                /*isBeside=*/cut.lateForward);
  // The states that it saves have numbers of their own.
  SmallVector<Type> types(op.getResultTypes());
  if (scansState)
    types.erase(types.begin() + 1);
  // States have no tokens.
  size_t numTokenArrays = types.size() - (interval ? 1 : 0);
  for (size_t number = 0; number < numTokenArrays; ++number)
    if (number != 1 || !hasState || scansState)
      types[number] = splitter.packedType(types[number]);
  auto forward = FusedStageOp::create(
      b, types, splitter.q, splitter.k, splitter.v, splitter.beta,
      splitter.gate, splitter.ofSegments(scan.getResult(0)),
      splitter.ofSegments(splitter.boundaries, /*last=*/false, /*behind=*/true),
      op.getALog(), op.getDtBias(), op.getStateIndices(), op.getFirstState(),
      /*has_initial_state=*/Value(), /*step_states=*/Value(),
      /*step_indices=*/Value(), /*step_starts=*/Value(),
      /*step_intervals=*/Value(),
      runsBefore ? splitter.ofSegments(splitter.starts, /*last=*/true)
                 : Value(),
      splitter.ofSegments(splitter.before, /*last=*/false, /*behind=*/true),
      splitter.ofSegments(splitter.closes, /*last=*/true), splitter.wholeHeads,
      splitter.ofSegments(splitter.wholeBegins),
      runsBefore ? op.getInitialState() : Value(),
      runsBefore && hasState ? splitter.firstSegments : Value(),
      splitter.sequenceNumbers,
      hasPool ? countRows(b, op.getInitialState()) : Value(), op.getScaleAttr(),
      op.getGateDomainAttr(), op.getLowerBoundAttr(), op.getQkL2normAttr(),
      op.getBetaDomainAttr(), splitter.segmentLayout(), op.getChunkSizeAttr(),
      interval, interval ? cut.segments : IntegerAttr(),
      runsBefore ? op.getStateLayoutAttr() : nullptr);
  SmallVector<Value> results = joinResults(splitter, forward, scan);
  op->replaceAllUsesWith(results);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Cuts of a call
//===----------------------------------------------------------------------===//

/// The argument of a function by which its calls say `word` of their segments;
/// null if there is none.
static Value findCutOfCall(Operation *op, StringRef word) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function)
    return {};
  for (BlockArgument argument : function.getArguments()) {
    auto cut = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), GDNDialect::getCutAttrName());
    if (cut && cut.getValue() == word)
      return argument;
  }
  return {};
}

static Value findLengthOfCall(Operation *op) {
  return findCutOfCall(op, GDNDialect::kSegmentLength);
}

/// `cut`, with what the calls of its function say instead of how to cut `op`.
static Cut readCutOfCall(Operation *op, Cut cut) {
  cut.segments = cut.length = cut.fewerSegments = {};
  cut.lengthOfCall = findLengthOfCall(op);
  cut.partsOfCall = findCutOfCall(op, GDNDialect::kSegmentParts);
  cut.longerOfCall = findCutOfCall(op, GDNDialect::kLongerSegmentLength);
  cut.ownStarts = static_cast<bool>(cut.partsOfCall);
  auto function = op->getParentOfType<FunctionOpInterface>();
  cut.lateForward = function->hasAttr(GDNDialect::getLateForwardAttrName());
  return cut;
}

/// Checks that a forward may be cut into parts of segments.
static LogicalResult checkParts(FusedStageOp op, const Cut &cut) {
  if (cut.longerOfCall && !mayHaveTwoLengths(op))
    return op->emitOpError("expected log gates a head, or gates a channel, "
                           "with ")
           << GDNDialect::kLongerSegmentLength << ", got others";
  if (!mayRunBefore(op, cut) || op.getStateInterval() || op.getStateIndices())
    return op->emitOpError("expected side-by-side, a decay-tolerance and a "
                           "gate to 16-bit keys, nothing saved and no "
                           "state_indices, with ")
           << GDNDialect::kSegmentParts;
  return success();
}

/// Checks how the calls of its function cut `op`.
static LogicalResult checkCutOfCall(Operation *op, const Cut &cut) {
  if (cut.lateForward && !cut.partsOfCall)
    return op->emitOpError("expected ")
           << GDNDialect::kSegmentParts << " beside "
           << GDNDialect::getLateForwardAttrName() << ", got none";
  if (!cut.partsOfCall)
    return success();
  if (auto forward = dyn_cast<FusedStageOp>(op))
    return checkParts(forward, cut);
  // With parts a segment runs what is before it itself. No plan of gradients
  // does so.
  return op->emitOpError("expected ")
         << GDNDialect::getCutAttrName() << " = \""
         << GDNDialect::kSegmentLength << "\" alone with a backward, got \""
         << GDNDialect::kSegmentParts << "\" beside it";
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct SplitSequences : gdn::impl::SplitSequencesPassBase<SplitSequences> {
  using SplitSequencesPassBase::SplitSequencesPassBase;
  void runOnOperation() override;
  /// Checks the options; null attributes where nothing is to be cut.
  FailureOr<Cut> readOptions();
};
} // namespace

FailureOr<Cut> SplitSequences::readOptions() {
  if (segments < 0)
    return getOperation().emitError("expected segments of at least 0, got ")
           << segments.getValue();
  if (segmentLength < 0)
    return getOperation().emitError(
               "expected segment-length of at least 0, got ")
           << segmentLength.getValue();
  if (segments > 0 && segmentLength > 0)
    return getOperation().emitError(
               "expected one of segments and segment-length, got ")
           << segments.getValue() << " and " << segmentLength.getValue();
  if (fewerSegments < 0 || fewerSegments > segments)
    return getOperation().emitError(
               "expected fewer-segments of 0 to segments = ")
           << segments.getValue() << ", got " << fewerSegments.getValue();
  if (!(tolerance >= 0 && tolerance < 1))
    return getOperation().emitError(
               "expected decay-tolerance of at least 0 and below 1, got ")
           << tolerance.getValue();
  Builder b(&getContext());
  Cut cut;
  if (tolerance > 0)
    cut.tolerance = b.getF64FloatAttr(tolerance);
  if (sideBySide)
    cut.sideBySide = b.getUnitAttr();
  cut.ownStarts = ownStarts;
  if (segments > 0)
    cut.segments = b.getI64IntegerAttr(segments);
  if (fewerSegments > 0)
    cut.fewerSegments = b.getI64IntegerAttr(fewerSegments);
  if (segmentLength > 0)
    cut.length = b.getI64IntegerAttr(segmentLength);
  return cut;
}

/// Whether there is nothing to cut, as the sizes say.
static bool hasNoTokens(Operation *op) {
  RuleDims dims = getRuleDims(cast<DeltaRuleOpInterface>(op));
  return dims.B == 0 || dims.T == 0;
}

/// No more segments of a sequence than it may have chunks: further ones would
/// have no token, but states.
static Cut withinChunks(Cut cut, Operation *op) {
  int64_t tokens = getRuleDims(cast<DeltaRuleOpInterface>(op)).T;
  if (!cut.segments || ShapedType::isDynamic(tokens))
    return cut;
  Builder b(op->getContext());
  int64_t most = llvm::divideCeil(tokens, cutsOf(op).getInt());
  for (IntegerAttr *count : {&cut.segments, &cut.fewerSegments})
    if (*count && count->getInt() > most)
      *count = b.getI64IntegerAttr(most);
  return cut;
}

/// How `op` is cut: as the calls of its function say, or else the options.
static FailureOr<Cut> cutOf(Operation *op, Cut cut) {
  if (findLengthOfCall(op)) {
    cut = readCutOfCall(op, cut);
    if (failed(checkCutOfCall(op, cut)))
      return failure();
    return cut;
  }
  int64_t chunk = op->getAttrOfType<IntegerAttr>("chunk_size").getInt();
  if (cut.length && cut.length.getInt() % chunk != 0)
    return op->emitOpError("expected segment-length to be a multiple of its "
                           "chunks of ")
           << chunk << " tokens, got " << cut.length.getInt();
  return withinChunks(cut, op);
}

/// Checks that a forward may be cut so.
static LogicalResult checkForward(FusedStageOp op, const Cut &cut) {
  if (op.getSequenceNumbers() || op.getSequenceSegments())
    return op->emitOpError("expected whole sequences to split, got segments");
  if (op.getStepIntervals())
    return op->emitOpError("expected a forward that keeps no states to split, "
                           "got step_intervals");
  return op.getStateInterval() ? checkSavedCut(op, cut) : success();
}

/// Cuts the sequences of one stage, or of those of which it is the last.
static LogicalResult splitStage(Operation *op, const Cut &options) {
  FailureOr<Cut> cut = cutOf(op, options);
  if (failed(cut))
    return failure();
  auto forward = dyn_cast<FusedStageOp>(op);
  if (forward && failed(checkForward(forward, *cut)))
    return failure();
  if (hasNoTokens(op))
    return success();
  if (auto gradients = dyn_cast<GradientsStageOp>(op))
    return splitBackward(gradients, *cut);
  if (forward)
    split(forward, *cut);
  else
    splitBackward(cast<BackwardStageOp>(op), *cut);
  return success();
}

void SplitSequences::runOnOperation() {
  FailureOr<Cut> cut = readOptions();
  if (failed(cut))
    return signalPassFailure();
  bool cutsAll = cut->segments || cut->length;
  SmallVector<Operation *> stages;
  WalkResult walked = getOperation()->walk([&](Operation *op) {
    if (!cutsAll && !findLengthOfCall(op))
      return WalkResult::advance();
    if (isa<FusedStageOp, BackwardStageOp, GradientsStageOp>(op))
      stages.push_back(op);
    if (!isa<RunStageOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected gdn.stage.fused to split; use plan=fused");
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return signalPassFailure();
  for (Operation *op : stages)
    if (failed(splitStage(op, *cut)))
      return signalPassFailure();
}
