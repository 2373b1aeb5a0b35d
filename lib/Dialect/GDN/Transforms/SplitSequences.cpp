//===- SplitSequences.cpp - Compute segments of sequences side by side ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"
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

//===----------------------------------------------------------------------===//
// Batch rows as packed sequences
//===----------------------------------------------------------------------===//

/// The first two of `rank` dimensions together, the others by themselves.
static SmallVector<ReassociationIndices> joinTokens(int64_t rank) {
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  for (int64_t dim = 2; dim < rank; ++dim)
    groups.push_back({dim});
  return groups;
}

/// The type [1, B T, ...] of an array [B, T, ...].
static RankedTensorType packedType(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  bool isDynamic =
      ShapedType::isDynamic(shape[0]) || ShapedType::isDynamic(shape[1]);
  shape[1] = isDynamic ? ShapedType::kDynamic : shape[0] * shape[1];
  shape[0] = 1;
  return type.clone(shape);
}

/// [B, T, ...] as [1, B T, ...]; null for null.
static Value pack(ImplicitLocOpBuilder &b, Value array) {
  if (!array)
    return array;
  auto type = cast<RankedTensorType>(array.getType());
  SmallVector<ReassociationIndices> groups = joinTokens(type.getRank());
  Value joined = tensor::CollapseShapeOp::create(b, array, groups);
  return tensor::ExpandShapeOp::create(b, packedType(type), joined, groups);
}

/// Rows of T tokens of [1, B T, ...], one after the other, as an array of
/// `type`. The lowering of tensor.expand_shape to memrefs takes one open size a
/// group, and here both are open.
static Value copyRows(ImplicitLocOpBuilder &b, Value packed,
                      ArrayRef<OpFoldResult> sizes, RankedTensorType type) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value tokens = cast<Value>(sizes[1]);
  Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
  auto loop = scf::ForOp::create(b, constant(0), cast<Value>(sizes[0]),
                                 constant(1), empty);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  SmallVector<OpFoldResult> from(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> to = from, shape(sizes);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  shape[0] = b.getIndexAttr(1);
  from[1] = arith::MulIOp::create(b, row, tokens).getResult();
  to[0] = row;
  Value slice = tensor::ExtractSliceOp::create(b, packed, from, shape, strides);
  Value next = tensor::InsertSliceOp::create(b, slice, loop.getRegionIterArg(0),
                                             to, shape, strides);
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

/// [1, B T, ...] as an array of `type`, whose first sizes are those of `like`.
static Value unpack(ImplicitLocOpBuilder &b, Value packed,
                    RankedTensorType type, Value like) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      sizes.push_back(b.getIndexAttr(size));
    else
      sizes.push_back(
          b.createOrFold<tensor::DimOp>(dim < 2 ? like : packed, dim));
  }
  if (type.isDynamicDim(0) && type.isDynamicDim(1))
    return copyRows(b, packed, sizes, type);
  SmallVector<ReassociationIndices> groups = joinTokens(type.getRank());
  Value joined = tensor::CollapseShapeOp::create(b, packed, groups);
  return tensor::ExpandShapeOp::create(b, type, joined, groups, sizes);
}

//===----------------------------------------------------------------------===//
// One forward
//===----------------------------------------------------------------------===//

namespace {
/// How to cut: one of the two is there.
struct Cut {
  IntegerAttr segments, length;
};

/// The stages that a forward becomes.
class Splitter {
public:
  Splitter(FusedStageOp op, const Cut &cut)
      : op(op), cut(cut), b(op.getLoc(), op), dims(getRuleDims(op)),
        sequences(op.getCuSeqlens()) {}

  void split();

private:
  /// [S or N, H, K, V] in f32, in the op's order of channels.
  RankedTensorType stateType(int64_t first, Type element);
  void packOperands();
  void cutSequences();
  void makeMaps();
  void scanMaps();

  FusedStageOp op;
  Cut cut;
  ImplicitLocOpBuilder b;
  RuleDims dims;
  Value sequences;
  Value q, k, v, beta, gate;
  /// The boundaries of all segments, and of each sequence's among them.
  Value boundaries, firstSegments;
  /// What segments make of a state, and the states before them.
  Value map, decay, states, entryStates, finalState;
  bool isPacked = true;
};
} // namespace

RankedTensorType Splitter::stateType(int64_t first, Type element) {
  SmallVector<int64_t> shape = {first, dims.H, dims.K, dims.V};
  if (op.getStateLayout() == StateLayout::VK)
    std::swap(shape[2], shape[3]);
  return RankedTensorType::get(shape, element);
}

void Splitter::packOperands() {
  isPacked = sequences || dims.B == 1;
  auto packed = [&](Value array) { return isPacked ? array : pack(b, array); };
  q = packed(op.getQ());
  k = packed(op.getK());
  v = packed(op.getV());
  beta = packed(op.getBeta());
  gate = packed(op.getGate());
}

void Splitter::cutSequences() {
  auto optional = [](IntegerAttr attribute) -> std::optional<int64_t> {
    if (!attribute)
      return std::nullopt;
    return attribute.getInt();
  };
  dims.S = countSegments(dims, optional(cut.segments), optional(cut.length));
  Type boundary = sequences ? getElementTypeOrSelf(sequences.getType())
                            : Type(b.getI64Type());
  auto type = [&](Dim dim) {
    return RankedTensorType::get(dims.get(dim), boundary);
  };
  auto made = SegmentBoundariesStageOp::create(
      b, TypeRange{type(Dim::SegmentBoundaries), type(Dim::Boundaries)},
      op.getK(), sequences, cut.segments, cut.length, op.getChunkSizeAttr());
  boundaries = made.getResult(0);
  firstSegments = made.getResult(1);
}

void Splitter::makeMaps() {
  Type f32 = b.getF32Type();
  Type element = getElementTypeOrSelf(k.getType());
  // Entries of D are in [-2, 2]: f16 holds them best in 16 bits.
  if (!element.isF32())
    element = b.getF16Type();
  SmallVector<Type> types = {
      RankedTensorType::get({dims.S, dims.H, dims.K, dims.K}, element)};
  if (gate) {
    SmallVector<int64_t> shape = {dims.S, dims.H};
    if (isChannelGate(op))
      shape.push_back(dims.K);
    types.push_back(RankedTensorType::get(shape, f32));
  }
  auto maps = SegmentMapStageOp::create(
      b, types, k, beta, gate, boundaries, op.getALog(), op.getDtBias(),
      op.getGateDomainAttr(), op.getLowerBoundAttr(), op.getQkL2normAttr(),
      op.getBetaDomainAttr(), op.getChunkSizeAttr());
  map = maps.getResult(0);
  decay = gate ? maps.getResult(1) : Value();
  states =
      StatePassStageOp::create(b, stateType(dims.S, f32), q, k, v, beta, gate,
                               /*initial_state=*/Value(), boundaries,
                               op.getALog(), op.getDtBias(), op.getScaleAttr(),
                               op.getGateDomainAttr(), op.getLowerBoundAttr(),
                               op.getQkL2normAttr(), op.getBetaDomainAttr(),
                               op.getStateLayoutAttr(), op.getChunkSizeAttr())
          .getResult(0);
}

void Splitter::scanMaps() {
  SmallVector<Type> types = {states.getType()};
  if (op.getNumResults() > 1)
    types.push_back(op.getResult(1).getType());
  auto scan = SegmentScanStageOp::create(
      b, types, map, decay, states, op.getInitialState(), firstSegments,
      /*reverse=*/UnitAttr(), op.getStateLayoutAttr());
  entryStates = scan.getResult(0);
  finalState = types.size() > 1 ? scan.getResult(1) : Value();
}

void Splitter::split() {
  packOperands();
  cutSequences();
  makeMaps();
  scanMaps();
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  Value o =
      FusedStageOp::create(b, isPacked ? type : packedType(type), q, k, v, beta,
                           gate, entryStates, boundaries, op.getALog(),
                           op.getDtBias(), op.getScaleAttr(),
                           op.getGateDomainAttr(), op.getLowerBoundAttr(),
                           op.getQkL2normAttr(), op.getBetaDomainAttr(),
                           op.getStateLayoutAttr(), op.getChunkSizeAttr())
          .getResult(0);
  if (!isPacked)
    o = unpack(b, o, type, op.getV());
  SmallVector<Value> results = {o};
  if (finalState)
    results.push_back(finalState);
  op->replaceAllUsesWith(results);
  op->erase();
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
  Builder b(&getContext());
  Cut cut;
  if (segments > 0)
    cut.segments = b.getI64IntegerAttr(segments);
  if (segmentLength > 0)
    cut.length = b.getI64IntegerAttr(segmentLength);
  return cut;
}

void SplitSequences::runOnOperation() {
  FailureOr<Cut> cut = readOptions();
  if (failed(cut))
    return signalPassFailure();
  if (!cut->segments && !cut->length)
    return;
  SmallVector<FusedStageOp> forwards;
  WalkResult walked = getOperation()->walk([&](Operation *op) {
    if (auto forward = dyn_cast<FusedStageOp>(op))
      forwards.push_back(forward);
    if (!isa<RunStageOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected gdn.stage.fused to split; use plan=fused");
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return signalPassFailure();
  for (FusedStageOp op : forwards) {
    int64_t chunk = op.getChunkSize();
    if (cut->length && cut->length.getInt() % chunk != 0) {
      op->emitOpError("expected segment-length to be a multiple of its chunks "
                      "of ")
          << chunk << " tokens, got " << cut->length.getInt();
      return signalPassFailure();
    }
    Splitter(op, *cut).split();
  }
}
