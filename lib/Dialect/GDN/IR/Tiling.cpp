//===- Tiling.cpp - Tiling of the forward ops over batch and heads --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The iteration domain is (B, Hq): rows of the batch and q/k heads. A tile of
// q/k heads takes the value heads that read them. With boundaries the batch is
// one row, and states, which then belong to sequences, are not cut along it.
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

/// H / Hq, empty where one of them is dynamic.
static std::optional<int64_t> getGroup(const Rule &rule) {
  RuleDims dims = getRuleDims(rule);
  if (ShapedType::isDynamic(dims.Hq) || ShapedType::isDynamic(dims.H))
    return std::nullopt;
  return dims.H / dims.Hq;
}

namespace {
/// A tile of the iteration domain, seen from operands and results.
class RuleTile {
public:
  RuleTile(OpBuilder &builder, Operation *op, ArrayRef<OpFoldResult> offsets,
           ArrayRef<OpFoldResult> sizes)
      : builder(builder), loc(op->getLoc()), rule(getRule(op)),
        offsets(offsets), sizes(sizes) {
    group = getGroup(rule).value_or(1);
  }

  /// Where the tile begins along a dimension.
  OpFoldResult getOffset(Dim dim) const {
    switch (dim) {
    case Dim::B:
      return offsets[0];
    case Dim::Hq:
      return offsets[1];
    case Dim::H:
      return timesGroup(offsets[1]);
    default:
      return builder.getIndexAttr(0);
    }
  }

  /// How far the tile reaches along a dimension.
  OpFoldResult getSize(Dim dim) const {
    switch (dim) {
    case Dim::B:
      return sizes[0];
    case Dim::Hq:
      return sizes[1];
    case Dim::H:
      return timesGroup(sizes[1]);
    default:
      return reifyDim(builder, loc, rule, dim);
    }
  }

  /// The part of an operand that the tile reads.
  Value slice(const NamedShape &shape) const {
    SmallVector<OpFoldResult> starts, extents;
    for (Dim dim : shape.dims) {
      starts.push_back(getOffset(dim));
      extents.push_back(getSize(dim));
    }
    SmallVector<OpFoldResult> strides(shape.dims.size(),
                                      builder.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(builder, loc, shape.value, starts,
                                          extents, strides);
  }

  const Rule &getRuleOfOp() const { return rule; }

private:
  /// `value` q/k heads as value heads.
  OpFoldResult timesGroup(OpFoldResult value) const {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return builder.getIndexAttr(*constant * group);
    Value heads = getValueOrCreateConstantIndexOp(builder, loc, value);
    Value factor = arith::ConstantIndexOp::create(builder, loc, group);
    return builder.createOrFold<arith::MulIOp>(loc, heads, factor);
  }

  OpBuilder &builder;
  Location loc;
  Rule rule;
  ArrayRef<OpFoldResult> offsets, sizes;
  int64_t group;
};
} // namespace

/// The domain (B, Hq).
static SmallVector<Range> getDomain(OpBuilder &builder, Operation *op) {
  Rule rule = getRule(op);
  Attribute zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return {{zero, reifyDim(builder, op->getLoc(), rule, Dim::B), one},
          {zero, reifyDim(builder, op->getLoc(), rule, Dim::Hq), one}};
}

static FailureOr<TilingResult> tileLayer(OpBuilder &builder, Operation *op,
                                         ArrayRef<OpFoldResult> offsets,
                                         ArrayRef<OpFoldResult> sizes) {
  if (op->getNumResults() == 0)
    return op->emitOpError("expected the tensor form when tiling, got the "
                           "buffer form");
  // States of all batch rows are numbered together.
  if (getRule(op).stateInterval)
    return op->emitOpError("expected a forward that saves nothing when tiling, "
                           "got a state_interval");
  // Tiles of the batch would each have a pool of their own.
  if (getRule(op).stateIndices)
    return op->emitOpError("expected states of sequences when tiling, got "
                           "state_indices");
  // Rows of kept states belong to sequences, and not to tiles.
  if (getRule(op).stepStates)
    return op->emitOpError("expected a forward that keeps no states when "
                           "tiling, got step_states");
  if (!getGroup(getRule(op)))
    return op->emitOpError("expected static Hq and H when tiling, got a "
                           "dynamic one");
  // Heads of a tile are static as well.
  if (!getConstantIntValue(sizes[1]))
    return op->emitOpError("expected a tile size that divides Hq = ")
           << getRuleDims(getRule(op)).Hq << ", got one that leaves a rest";
  RuleTile tile(builder, op, offsets, sizes);
  const Rule &rule = tile.getRuleOfOp();
  SmallVector<Value> operands(op->getOperands());
  SmallVector<Operation *> slices;
  for (auto [operand, shape] : llvm::zip(operands, getOperandShapes(rule))) {
    // Boundaries are the same for all heads.
    if (operand == rule.cuSeqlens)
      continue;
    operand = tile.slice(shape);
    slices.push_back(operand.getDefiningOp());
  }
  RuleDims tiled = getRuleDims(rule);
  for (Dim dim : {Dim::B, Dim::Hq, Dim::H})
    tiled.set(
        dim,
        getConstantIntValue(tile.getSize(dim)).value_or(ShapedType::kDynamic));
  SmallVector<Type> types;
  for (const ResultShape &result : getResultShapes(op, rule))
    types.push_back(getResultType(result, tiled));
  Operation *layer = mlir::clone(builder, op, types, operands);
  return TilingResult{{layer}, SmallVector<Value>(layer->getResults()), slices};
}

static void getResultTile(OpBuilder &builder, Operation *op, unsigned number,
                          ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes,
                          SmallVector<OpFoldResult> &resultOffsets,
                          SmallVector<OpFoldResult> &resultSizes) {
  RuleTile tile(builder, op, offsets, sizes);
  SmallVector<ResultShape> results = getResultShapes(op, tile.getRuleOfOp());
  for (Dim dim : results[number].dims) {
    resultOffsets.push_back(tile.getOffset(dim));
    resultSizes.push_back(tile.getSize(dim));
  }
}

#define GDN_FORWARD_OP(OP)                                                     \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() {                \
    return {utils::IteratorType::parallel, utils::IteratorType::parallel};     \
  }                                                                            \
  SmallVector<Range> OP::getIterationDomain(OpBuilder &builder) {              \
    return getDomain(builder, *this);                                          \
  }                                                                            \
  FailureOr<TilingResult> OP::getTiledImplementation(                          \
      OpBuilder &builder, ArrayRef<OpFoldResult> offsets,                      \
      ArrayRef<OpFoldResult> sizes) {                                          \
    return tileLayer(builder, *this, offsets, sizes);                          \
  }                                                                            \
  LogicalResult OP::getResultTilePosition(                                     \
      OpBuilder &builder, unsigned number, ArrayRef<OpFoldResult> offsets,     \
      ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,  \
      SmallVector<OpFoldResult> &resultSizes) {                                \
    getResultTile(builder, *this, number, offsets, sizes, resultOffsets,       \
                  resultSizes);                                                \
    return success();                                                          \
  }
GDN_FORWARD_OP(ChunkGatedDeltaRuleOp)
GDN_FORWARD_OP(RecurrentGatedDeltaRuleOp)
