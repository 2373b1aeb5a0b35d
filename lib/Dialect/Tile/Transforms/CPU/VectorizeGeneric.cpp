//===- VectorizeGeneric.cpp - Elementwise work and reductions by rows -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// linalg::vectorize makes transfers of the rank of the tile, with broadcasts
// and permutations in their maps; the patterns that bring these down to rank 1
// take most of the compile time and, with unit dimensions, undo each other.
// Here the loops are written with rank-1 loads from the start, and values that
// are the same for a whole row stay scalars.
//
//===----------------------------------------------------------------------===//

#include "Vectorizers.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile;

/// Registers that a row is cut to: enough work to hide latencies, few enough
/// for the temporaries of a long body.
static constexpr int64_t kRegistersPerRow = 2;
/// The same for a sum along the row, which is one short chain.
static constexpr int64_t kRegistersPerSum = 8;

namespace {
class GenericVectorizer {
public:
  GenericVectorizer(RewriterBase &builder, linalg::LinalgOp op,
                    const CPUArch &arch)
      : builder(builder), op(op), loc(op.getLoc()), arch(arch),
        maps(op.getIndexingMapsArray()) {}

  /// True if the op can be written as loops of rows; finds the dimension.
  bool match();
  void build();

private:
  bool isRowDimension(unsigned dim);
  bool hasVectorBody();
  void buildRow(ValueRange ivs);
  SmallVector<Value> getIndices(AffineMap map, ValueRange ivs);
  Value readOperand(OpOperand &operand, ValueRange ivs);
  /// The op of the body for a whole row, or once where all it takes is uniform.
  void cloneOp(Operation &bodyOp, ValueRange ivs);
  Value lookup(Value value) { return values.lookupOrDefault(value); }
  Value toVector(Value value);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  bool isReduction(unsigned dim) {
    return op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
  }

  RewriterBase &builder;
  linalg::LinalgOp op;
  Location loc;
  const CPUArch &arch;
  SmallVector<AffineMap> maps;
  /// The dimension of a row, and how many of its elements go at once.
  unsigned rowDim = 0;
  int64_t width = 1;
  /// With a sum along the row: what combines it.
  Operation *combiner = nullptr;
  /// Values of the body as they are in the loop.
  IRMapping values;
};
} // namespace

bool GenericVectorizer::isRowDimension(unsigned dim) {
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    std::optional<unsigned> place =
        map.getResultPosition(getAffineDimExpr(dim, builder.getContext()));
    if (!type || !place)
      continue;
    if (*place != map.getNumResults() - 1 || !isContiguous(operand.get()))
      return false;
  }
  if (!isReduction(dim)) {
    // Every output has the dimension, or a store would be repeated.
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!op.getMatchingIndexingMap(&init).isFunctionOfDim(dim))
        return false;
    return true;
  }
  SmallVector<Operation *> combiners;
  if (op.getNumDpsInits() != 1 ||
      !matchReduction(op.getRegionOutputArgs(), 0, combiners) ||
      combiners.size() != 1 || !linalg::getCombinerOpKind(combiners.front()))
    return false;
  combiner = combiners.front();
  return true;
}

bool GenericVectorizer::hasVectorBody() {
  for (Operation &bodyOp : op.getBlock()->without_terminator()) {
    bool isKnown = isa<linalg::IndexOp, arith::ConstantOp>(bodyOp) ||
                   OpTrait::hasElementwiseMappableTraits(&bodyOp);
    if (!isKnown)
      return false;
  }
  return true;
}

bool GenericVectorizer::match() {
  if (!op.hasPureBufferSemantics() || op.hasDynamicShape() ||
      op.getNumLoops() == 0 || !hasVectorBody())
    return false;
  for (AffineMap map : maps)
    if (!map.isProjectedPermutation())
      return false;
  for (Type type : op->getOperandTypes())
    // Tiles of i1 are bytes in memory, but bits in a vector.
    if (isa<MemRefType>(type) && getElementTypeOrSelf(type).isInteger(1))
      return false;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned dim = op.getNumLoops(); dim-- > 0;) {
    combiner = nullptr;
    if (!isRowDimension(dim))
      continue;
    rowDim = dim;
    int64_t registers = combiner ? kRegistersPerSum : kRegistersPerRow;
    width = getPowerDivisor(ranges[dim], registers * arch.lanes);
    return true;
  }
  return false;
}

SmallVector<Value> GenericVectorizer::getIndices(AffineMap map,
                                                 ValueRange ivs) {
  SmallVector<Value> indices;
  for (AffineExpr result : map.getResults())
    indices.push_back(ivs[cast<AffineDimExpr>(result).getPosition()]);
  return indices;
}

Value GenericVectorizer::readOperand(OpOperand &operand, ValueRange ivs) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return operand.get();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> indices = getIndices(map, ivs);
  if (!map.isFunctionOfDim(rowDim))
    return memref::LoadOp::create(builder, loc, operand.get(), indices);
  return vector::LoadOp::create(builder, loc,
                                VectorType::get(width, type.getElementType()),
                                operand.get(), indices);
}

Value GenericVectorizer::toVector(Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      builder, loc, VectorType::get(width, value.getType()), value);
}

void GenericVectorizer::cloneOp(Operation &bodyOp, ValueRange ivs) {
  if (auto index = dyn_cast<linalg::IndexOp>(bodyOp)) {
    Value value = ivs[index.getDim()];
    if (index.getDim() == rowDim) {
      auto type = VectorType::get(width, builder.getIndexType());
      Value step = vector::StepOp::create(builder, loc, type);
      value = arith::AddIOp::create(builder, loc, toVector(value), step);
    }
    values.map(index.getResult(), value);
    return;
  }
  SmallVector<Value> operands = llvm::map_to_vector(
      bodyOp.getOperands(), [&](Value value) { return lookup(value); });
  bool isUniform = llvm::none_of(
      operands, [](Value value) { return isa<VectorType>(value.getType()); });
  OperationState state(bodyOp.getLoc(), bodyOp.getName());
  state.addAttributes(bodyOp.getAttrs());
  for (Value operand : operands)
    state.operands.push_back(isUniform ? operand : toVector(operand));
  for (Type type : bodyOp.getResultTypes())
    state.types.push_back(isUniform ? type : VectorType::get(width, type));
  values.map(bodyOp.getResults(), builder.create(state)->getResults());
}

void GenericVectorizer::buildRow(ValueRange ivs) {
  values.clear();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (!argument.use_empty())
      values.map(argument, readOperand(operand, ivs));
  }
  for (Operation &bodyOp : op.getBlock()->without_terminator())
    if (&bodyOp != combiner)
      cloneOp(bodyOp, ivs);
  Operation *yield = op.getBlock()->getTerminator();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    SmallVector<Value> indices = getIndices(map, ivs);
    if (combiner) {
      BlockArgument before = op.getMatchingBlockArgument(&init);
      Value term = combiner->getOperand(combiner->getOperand(0) == before);
      Value sum = vector::ReductionOp::create(
          builder, loc, *linalg::getCombinerOpKind(combiner),
          toVector(lookup(term)), lookup(before));
      memref::StoreOp::create(builder, loc, sum, init.get(), indices);
      continue;
    }
    unsigned number = init.getOperandNumber() - op.getNumDpsInputs();
    Value result = toVector(lookup(yield->getOperand(number)));
    vector::StoreOp::create(builder, loc, result, init.get(), indices);
  }
}

void GenericVectorizer::build() {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  // The row's dimension goes innermost.
  SmallVector<unsigned> order;
  for (unsigned dim = 0; dim < ranges.size(); ++dim)
    if (dim != rowDim)
      order.push_back(dim);
  order.push_back(rowDim);
  SmallVector<Value> lower, upper, steps;
  for (unsigned dim : order) {
    lower.push_back(constant(0));
    upper.push_back(constant(ranges[dim]));
    steps.push_back(constant(dim == rowDim ? width : 1));
  }
  scf::buildLoopNest(builder, loc, lower, upper, steps,
                     [&](OpBuilder &inner, Location, ValueRange at) {
                       OpBuilder::InsertionGuard guard(builder);
                       builder.restoreInsertionPoint(
                           inner.saveInsertionPoint());
                       SmallVector<Value> ivs(at.size());
                       for (auto [dim, iv] : llvm::zip(order, at))
                         ivs[dim] = iv;
                       buildRow(ivs);
                     });
  builder.eraseOp(op);
}

LogicalResult mlir::gdn::tile::vectorizeGeneric(RewriterBase &rewriter,
                                                linalg::LinalgOp op,
                                                const CPUArch &arch) {
  GenericVectorizer vectorizer(rewriter, op, arch);
  if (!vectorizer.match())
    return failure();
  vectorizer.build();
  return success();
}
