//===- Splitter.cpp - What forward and backward of a split share ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitSequences.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// Whether a segment's gates may decay whatever is before it below what 16 bits
/// show.
static bool mayForget(DeltaRuleOpInterface op, const Cut &cut) {
  return cut.tolerance && op.getGate() &&
         !getElementTypeOrSelf(op.getK().getType()).isF32();
}

bool gdn::mayRunBefore(DeltaRuleOpInterface op, const Cut &cut) {
  return cut.ownStarts && cut.sideBySide && mayForget(op, cut);
}

bool gdn::mayHaveTwoLengths(DeltaRuleOpInterface op) {
  return op.getGate() &&
         (isChannelGate(op) || op.getGateDomain() == GateDomain::Log);
}

/// How many of the heads of a sample keep their states where shorter segments
/// are the faster ones, at least and at most: where some do, but fewer than
/// half. What segments that forget run besides is cheap in few of them, and all
/// others wait for the heads that keep.
static DenseI64ArrayAttr liveHeads(MLIRContext *context) {
  constexpr int64_t kMost = support::sampledHeads / 2 - 1;
  return DenseI64ArrayAttr::get(context, {1, kMost});
}

template <typename Op> void Splitter<Op>::packOperands() {
  q = packed(op.getQ());
  k = packed(op.getK());
  v = packed(op.getV());
  beta = packed(op.getBeta());
  gate = packed(op.getGate());
}

template <typename Op>
void Splitter<Op>::cutSequences(IntegerAttr chunkSize, bool runsBefore,
                                bool numbersSequences) {
  auto optional = [](IntegerAttr attribute) -> std::optional<int64_t> {
    if (!attribute)
      return std::nullopt;
    return attribute.getInt();
  };
  dims.S = countCuts(dims, optional(cut.segments), optional(cut.length),
                     /*isPacked=*/static_cast<bool>(sequences));
  // Of a call's length the same, whatever its sequences are.
  Type boundary = sequences          ? getElementTypeOrSelf(sequences.getType())
                  : cut.lengthOfCall ? b.getI32Type()
                                     : b.getI64Type();
  auto type = [&](Dim dim) {
    return RankedTensorType::get(dims.get(dim), boundary);
  };
  SmallVector<Type> types = {type(Dim::SegmentBoundaries),
                             type(Dim::Boundaries)};
  // What kernels side by side read in front of their waits, those before the
  // first of them have written.
  runsBefore &= mayRunBefore(op, cut);
  if (runsBefore)
    for (Dim dim : {Dim::SegmentBoundaries, Dim::S, Dim::N})
      types.push_back(RankedTensorType::get(dims.get(dim), b.getI32Type()));
  if (numbersSequences)
    types.push_back(RankedTensorType::get(dims.get(Dim::S), b.getI32Type()));
  // Of other gates it does not know what they decay. With a gate a channel a
  // chunk of what a segment adds takes two of a forward, so heads that keep a
  // state have whole sequences, or are cut as all others.
  bool hasChannels = isChannelGate(op);
  bool isChosen =
      cut.longerOfCall ||
      (cut.fewerSegments && (!hasChannels || cut.fewerSegments.getInt() == 1));
  bool chooses = runsBefore && isChosen && mayHaveTwoLengths(op),
       leavesWhole = chooses && hasChannels, samples = chooses && !hasChannels;
  if (leavesWhole)
    for (Dim dim : {Dim::S, Dim::H})
      types.push_back(RankedTensorType::get(dims.get(dim), b.getI32Type()));
  auto ofParts = [&](Value length) -> Value {
    if (!length || !cut.partsOfCall)
      return length;
    return arith::DivUIOp::create(b, length, cut.partsOfCall);
  };
  auto made = SegmentBoundariesStageOp::create(
      b, types, op.getK(), chooses ? op.getGate() : Value(), sequences,
      ofParts(cut.lengthOfCall), cut.partsOfCall, ofParts(cut.longerOfCall),
      cut.segments, cut.length, chooses ? cut.fewerSegments : IntegerAttr(),
      samples ? liveHeads(b.getContext()) : DenseI64ArrayAttr(),
      samples ? cut.tolerance : FloatAttr(), chunkSize);
  boundaries = made.getResult(0);
  firstSegments = made.getResult(1);
  if (runsBefore) {
    before = made.getResult(2);
    closes = made.getResult(3);
    lastSegments = made.getResult(4);
  }
  if (leavesWhole) {
    wholeBegins = made.getResult(5);
    wholeHeads = made.getResult(6);
  }
  if (numbersSequences)
    sequenceNumbers = made.getResult(2);
}

template <typename Op> bool Splitter<Op>::mayForget() {
  return ::mayForget(op, cut);
}

template <typename Op>
SegmentStartsStageOp Splitter<Op>::createStarts(TypeRange types, bool reverse) {
  bool readsKeys = isChannelGate(op);
  // Ends are found beside the starts, which are behind them.
  return SegmentStartsStageOp::create(
      b, types, k, readsKeys ? beta : Value(), gate, boundaries, op.getALog(),
      op.getDtBias(), wholeHeads, wholeBegins, op.getGateDomainAttr(),
      op.getLowerBoundAttr(), readsKeys ? op.getQkL2normAttr() : UnitAttr(),
      readsKeys ? op.getBetaDomainAttr() : BetaDomainAttr(), cut.tolerance,
      reverse ? b.getUnitAttr() : UnitAttr(), op.getChunkSizeAttr(),
      reverse ? cut.sideBySide : UnitAttr());
}

template <typename Op> void Splitter<Op>::findStarts() {
  if (!mayForget())
    return;
  SmallVector<int64_t> shape = {dims.S, dims.H};
  SmallVector<Type> types = {RankedTensorType::get(shape, b.getI32Type())};
  if (!isChannelGate(op))
    types.push_back(RankedTensorType::get(shape, b.getF32Type()));
  if (wholeHeads)
    types.push_back(wholeHeads.getType());
  auto found = createStarts(types, /*reverse=*/false);
  starts = found.getResult(0);
  if (!isChannelGate(op))
    decay = found.getResult(1);
  if (wholeHeads)
    wholeHeads = found.getResult(1);
}

template <typename Op> void Splitter<Op>::addStates(bool areBeside) {
  SmallVector<int64_t> shape = {dims.S, dims.H, dims.V, dims.K};
  auto pass = StatePassStageOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), q, k, v, beta, gate,
      /*initial_state=*/Value(), boundaries, op.getALog(), op.getDtBias(),
      starts, before, closes, wholeHeads,
      before ? op.getInitialState() : Value(), op.getScaleAttr(),
      op.getGateDomainAttr(), op.getLowerBoundAttr(), op.getQkL2normAttr(),
      op.getBetaDomainAttr(), segmentLayout(), op.getChunkSizeAttr(),
      before ? op.getStateLayoutAttr() : nullptr,
      areBeside ? cut.sideBySide : UnitAttr());
  states = pass.getResult(0);
}

template <typename Op>
Value Splitter<Op>::ofSegments(Value array, bool last, bool behind) {
  if (!array || !cut.partsOfCall)
    return array;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value parts = tensor::DimOp::create(b, states, 0);
  Value segments = arith::DivUIOp::create(b, parts, cut.partsOfCall);
  auto type = cast<RankedTensorType>(array.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      sizes = tensor::getMixedSizes(b, b.getLoc(), array),
      strides(type.getRank(), b.getIndexAttr(1));
  if (last)
    offsets[0] =
        arith::SubIOp::create(b, cut.partsOfCall, constant(1)).getResult();
  sizes[0] = behind
                 ? arith::AddIOp::create(b, segments, constant(1)).getResult()
                 : segments;
  strides[0] = cut.partsOfCall;
  return tensor::ExtractSliceOp::create(b, array, offsets, sizes, strides);
}

template <typename Op> void Splitter<Op>::makeMapsAndStates() {
  findStarts();
  // First: where segments forget, all of them have some tokens left here, and
  // most no map.
  addStates(/*areBeside=*/true);
  addMaps();
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
  bool isGated = gate && !decay;
  if (isGated) {
    SmallVector<int64_t> shape = {dims.S, dims.H};
    if (isChannelGate(op))
      shape.push_back(dims.K);
    types.push_back(RankedTensorType::get(shape, f32));
  }
  auto maps = SegmentMapStageOp::create(
      b, types, k, beta, isGated ? gate : Value(), boundaries,
      isGated ? op.getALog() : Value(), isGated ? op.getDtBias() : Value(),
      starts, before, closes, wholeHeads,
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
  // Nobody has the decays of channels of segments that forget.
  bool knowsStarts = before || (starts && isChannelGate(op));
  auto beside = [&](Value value) { return knowsStarts ? value : Value(); };
  return SegmentScanStageOp::create(
      b, types, map, decay, added, initialState, firstSegments, before,
      beside(starts), beside(boundaries), lastSegments, wholeHeads,
      op.getStateIndices(), op.getFirstState(), op.getHasInitialState(),
      reverse ? b.getUnitAttr() : UnitAttr(), op.getStateLayoutAttr(),
      segmentLayout(), isBeside ? cut.sideBySide : UnitAttr());
}

template class mlir::gdn::Splitter<FusedStageOp>;
template class mlir::gdn::Splitter<BackwardStageOp>;
template class mlir::gdn::Splitter<AdjointStageOp>;
