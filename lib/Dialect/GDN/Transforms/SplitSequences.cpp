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

template <typename Op> void Splitter<Op>::packOperands() {
  q = packed(op.getQ());
  k = packed(op.getK());
  v = packed(op.getV());
  beta = packed(op.getBeta());
  gate = packed(op.getGate());
}

template <typename Op>
void Splitter<Op>::cutSequences(IntegerAttr chunkSize, bool runsBefore) {
  auto optional = [](IntegerAttr attribute) -> std::optional<int64_t> {
    if (!attribute)
      return std::nullopt;
    return attribute.getInt();
  };
  dims.S = countCuts(dims, optional(cut.segments), optional(cut.length),
                     /*isPacked=*/static_cast<bool>(sequences));
  Type boundary = sequences ? getElementTypeOrSelf(sequences.getType())
                            : Type(b.getI64Type());
  auto type = [&](Dim dim) {
    return RankedTensorType::get(dims.get(dim), boundary);
  };
  SmallVector<Type> types = {type(Dim::SegmentBoundaries),
                             type(Dim::Boundaries)};
  // What kernels side by side read in front of their waits, those before the
  // first of them have written.
  runsBefore &= cut.ownStarts && cut.sideBySide && mayForget();
  if (runsBefore)
    for (Dim dim : {Dim::SegmentBoundaries, Dim::S, Dim::N})
      types.push_back(RankedTensorType::get(dims.get(dim), b.getI32Type()));
  // Of other gates it does not know what they decay.
  bool samples = runsBefore && cut.fewerSegments && !op.getALog() &&
                 op.getGateDomain() == GateDomain::Log;
  auto made = SegmentBoundariesStageOp::create(
      b, types, op.getK(), samples ? op.getGate() : Value(), sequences,
      /*length=*/Value(), cut.segments, cut.length,
      samples ? cut.fewerSegments : IntegerAttr(),
      samples ? cut.tolerance : FloatAttr(), chunkSize);
  boundaries = made.getResult(0);
  firstSegments = made.getResult(1);
  if (runsBefore) {
    before = made.getResult(2);
    closes = made.getResult(3);
    lastSegments = made.getResult(4);
  }
}

/// Whether a segment's gates may decay whatever is before it below what 16 bits
/// show. A gate a channel decays some of it alone.
template <typename Op> bool Splitter<Op>::mayForget() {
  return cut.tolerance && op.getGate() && !isChannelGate(op) &&
         !getElementTypeOrSelf(op.getK().getType()).isF32();
}

template <typename Op>
SegmentStartsStageOp Splitter<Op>::createStarts(TypeRange types, bool reverse) {
  return SegmentStartsStageOp::create(
      b, types, k, gate, boundaries, op.getALog(), op.getDtBias(),
      op.getGateDomainAttr(), op.getLowerBoundAttr(), cut.tolerance,
      reverse ? b.getUnitAttr() : UnitAttr(), op.getChunkSizeAttr());
}

template <typename Op> void Splitter<Op>::findStarts() {
  SmallVector<int64_t> shape = {dims.S, dims.H};
  SmallVector<Type> types = {RankedTensorType::get(shape, b.getI32Type()),
                             RankedTensorType::get(shape, b.getF32Type())};
  auto found = createStarts(types, /*reverse=*/false);
  starts = found.getResult(0);
  decay = found.getResult(1);
}

template <typename Op> void Splitter<Op>::addStates() {
  SmallVector<int64_t> shape = {dims.S, dims.H, dims.V, dims.K};
  auto pass = StatePassStageOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), q, k, v, beta, gate,
      /*initial_state=*/Value(), boundaries, op.getALog(), op.getDtBias(),
      starts, before, closes, before ? op.getInitialState() : Value(),
      op.getScaleAttr(), op.getGateDomainAttr(), op.getLowerBoundAttr(),
      op.getQkL2normAttr(), op.getBetaDomainAttr(), segmentLayout(),
      op.getChunkSizeAttr(), before ? op.getStateLayoutAttr() : nullptr,
      cut.sideBySide);
  states = pass.getResult(0);
}

template <typename Op> void Splitter<Op>::makeMaps(bool areBeside) {
  if (mayForget())
    findStarts();
  addMaps(areBeside);
}

template <typename Op> void Splitter<Op>::makeMapsAndStates(bool areBeside) {
  if (mayForget())
    findStarts();
  // First: where segments forget, all of them have some tokens left here, and
  // most no map.
  addStates();
  addMaps(areBeside);
}

template <typename Op> void Splitter<Op>::addMaps(bool areBeside) {
  Type f32 = b.getF32Type();
  Type element = getElementTypeOrSelf(k.getType());
  // Entries of D are in [-2, 2]: f16 holds them best in 16 bits.
  if (!element.isF32())
    element = b.getF16Type();
  SmallVector<Type> types = {
      RankedTensorType::get({dims.S, dims.H, dims.K, dims.K}, element)};
  // The decay of a gate a head is known where the starts are; D is that of the
  // ungated rule.
  bool isGated = gate && !starts;
  if (isGated) {
    SmallVector<int64_t> shape = {dims.S, dims.H};
    if (isChannelGate(op))
      shape.push_back(dims.K);
    types.push_back(RankedTensorType::get(shape, f32));
  }
  auto maps = SegmentMapStageOp::create(
      b, types, k, beta, isGated ? gate : Value(), boundaries,
      isGated ? op.getALog() : Value(), isGated ? op.getDtBias() : Value(),
      starts, before, closes,
      isGated ? op.getGateDomainAttr() : GateDomainAttr(),
      isGated ? op.getLowerBoundAttr() : FloatAttr(), op.getQkL2normAttr(),
      op.getBetaDomainAttr(), op.getChunkSizeAttr(),
      areBeside ? cut.sideBySide : UnitAttr());
  map = maps.getResult(0);
  if (isGated)
    decay = maps.getResult(1);
}

template <typename Op>
SegmentScanStageOp Splitter<Op>::scanMaps(Value added, Value initialState,
                                          Type last, bool reverse,
                                          bool isBeside) {
  SmallVector<Type> types = {added.getType()};
  if (last)
    types.push_back(last);
  auto beside = [&](Value value) { return before ? value : Value(); };
  return SegmentScanStageOp::create(
      b, types, map, decay, added, initialState, firstSegments, before,
      beside(starts), beside(boundaries), lastSegments,
      reverse ? b.getUnitAttr() : UnitAttr(), op.getStateLayoutAttr(),
      segmentLayout(), isBeside ? cut.sideBySide : UnitAttr());
}

LogicalResult gdn::checkSavedCut(Operation *op, const Cut &cut) {
  if (cut.segments)
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

/// A forward: each segment from the state before it.
static void split(FusedStageOp op, const Cut &cut) {
  Splitter<FusedStageOp> splitter(op, cut);
  splitter.packOperands();
  // A forward that saves would do so of tokens before the segment, too.
  splitter.cutSequences(cutsOf(op), /*runsBefore=*/!op.getStateIntervalAttr());
  splitter.makeMapsAndStates();
  ImplicitLocOpBuilder &b = splitter.b;
  bool hasState = op.getNumResults() % 2 == 0;
  Type last = hasState ? op.getResult(1).getType() : Type();
  // Segments that run what is before them make the final states, too.
  bool runsBefore = static_cast<bool>(splitter.before);
  bool scansState = hasState && !runsBefore;
  auto scan = splitter.scanMaps(splitter.states,
                                runsBefore ? Value() : op.getInitialState(),
                                scansState ? last : Type(), /*reverse=*/false);
  // The states that it saves have numbers of their own.
  SmallVector<Type> types(op.getResultTypes());
  if (scansState)
    types.erase(types.begin() + 1);
  IntegerAttr interval = op.getStateIntervalAttr();
  // States have no tokens.
  size_t numTokenArrays = types.size() - (interval ? 1 : 0);
  for (size_t number = 0; number < numTokenArrays; ++number)
    if (number != 1 || !hasState || scansState)
      types[number] = splitter.packedType(types[number]);
  auto forward = FusedStageOp::create(
      b, types, splitter.q, splitter.k, splitter.v, splitter.beta,
      splitter.gate, scan.getResult(0), splitter.boundaries, op.getALog(),
      op.getDtBias(), runsBefore ? splitter.starts : Value(), splitter.before,
      splitter.closes, runsBefore ? op.getInitialState() : Value(),
      runsBefore && hasState ? splitter.firstSegments : Value(),
      /*sequence_numbers=*/Value(), op.getScaleAttr(), op.getGateDomainAttr(),
      op.getLowerBoundAttr(), op.getQkL2normAttr(), op.getBetaDomainAttr(),
      splitter.segmentLayout(), op.getChunkSizeAttr(), interval,
      interval ? cut.segments : IntegerAttr(),
      runsBefore ? op.getStateLayoutAttr() : nullptr);
  SmallVector<Value> results;
  unsigned next = 0;
  for (auto [number, type] : llvm::enumerate(op.getResultTypes()))
    if (number == 1 && hasState)
      results.push_back(scansState ? scan.getResult(1)
                                   : forward.getResult(next++));
    else if (interval && number + 1 == op.getNumResults())
      results.push_back(forward.getResult(next++));
    else
      results.push_back(splitter.unpacked(forward.getResult(next++), type));
  op->replaceAllUsesWith(results);
  op->erase();
}

template class mlir::gdn::Splitter<BackwardStageOp>;
template class mlir::gdn::Splitter<AdjointStageOp>;

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

void SplitSequences::runOnOperation() {
  FailureOr<Cut> cut = readOptions();
  if (failed(cut))
    return signalPassFailure();
  if (!cut->segments && !cut->length)
    return;
  SmallVector<Operation *> stages;
  WalkResult walked = getOperation()->walk([&](Operation *op) {
    if (isa<FusedStageOp, BackwardStageOp, GradientsStageOp>(op))
      stages.push_back(op);
    if (!isa<RunStageOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected gdn.stage.fused to split; use plan=fused");
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return signalPassFailure();
  for (Operation *op : stages) {
    int64_t chunk = op->getAttrOfType<IntegerAttr>("chunk_size").getInt();
    if (cut->length && cut->length.getInt() % chunk != 0) {
      op->emitOpError("expected segment-length to be a multiple of its chunks "
                      "of ")
          << chunk << " tokens, got " << cut->length.getInt();
      return signalPassFailure();
    }
    auto forward = dyn_cast<FusedStageOp>(op);
    if (forward &&
        (forward.getSequenceNumbers() || forward.getSequenceSegments())) {
      op->emitOpError("expected whole sequences to split, got segments");
      return signalPassFailure();
    }
    if (forward && forward.getStateInterval() &&
        failed(checkSavedCut(op, *cut)))
      return signalPassFailure();
    if (hasNoTokens(op))
      continue;
    Cut own = withinChunks(*cut, op);
    if (forward)
      split(forward, own);
    else if (auto backward = dyn_cast<BackwardStageOp>(op))
      splitBackward(backward, own);
    else if (failed(splitBackward(cast<GradientsStageOp>(op), own)))
      return signalPassFailure();
  }
}
