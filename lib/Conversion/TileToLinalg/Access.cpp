//===- Access.cpp - Loads and stores of tiles as loops over rows ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile;

namespace {
/// The part of an array that a load reads or a store writes, its axes in the
/// order of memory. Rows run along the last axis: vectors where the array is
/// contiguous there, single elements otherwise.
class Window {
public:
  /// Inside are the elements before `end` and before the end of the array. The
  /// rest is what is outside, or all elements where several axes are bounded.
  enum class Part { Inside, Rest };

  Window(OpBuilder &builder, Location loc, Value array, ValueRange offsets,
         ArrayRef<int64_t> axes, RankedTensorType tile, Value end,
         std::optional<uint64_t> dim);

  /// Tile axis of each axis in memory order.
  ArrayRef<int64_t> getPermutation() const { return permutation; }
  /// The tile with its axes in memory order.
  RankedTensorType getType() const { return type; }
  /// Axes that do not lie inside as a whole.
  int64_t countBounded() const {
    return llvm::count_if(counts, [](Value count) { return bool(count); });
  }

  /// Loops over the elements of a part, threading `init` through if it is
  /// given.
  Value
  forEach(OpBuilder &builder, Location loc, Value init, Part part,
          function_ref<Value(OpBuilder &, Location, ValueRange, Value)> body);

  /// Reads a row of a tile or array, or an element where rows are not vectors.
  Value read(OpBuilder &builder, Location loc, Value source, ValueRange at);
  /// Writes a row or an element; returns the new tile if `target` is one.
  Value write(OpBuilder &builder, Location loc, Value value, Value target,
              ValueRange at);
  /// A row or element of zeros.
  Value zero(OpBuilder &builder, Location loc);

  /// The place in the array of a place in the tile.
  SmallVector<Value> inArray(OpBuilder &builder, Location loc, ValueRange at);

private:
  /// How many places of an axis of `size` places at `offset` lie before `end`.
  static Value countBefore(OpBuilder &builder, Location loc, Value end,
                           Value offset, int64_t size);

  SmallVector<int64_t> axes;
  SmallVector<int64_t> permutation;
  SmallVector<Value> offsets;
  RankedTensorType type;
  /// Type of a row, null where rows are read element by element.
  VectorType row;
  /// Of each tile axis in memory order, how many of its places are inside; null
  /// where all are.
  SmallVector<Value> counts;
};
} // namespace

Value Window::countBefore(OpBuilder &builder, Location loc, Value end,
                          Value offset, int64_t size) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value all = arith::ConstantIndexOp::create(builder, loc, size);
  Value left = arith::SubIOp::create(builder, loc, end, offset);
  return arith::MinSIOp::create(
      builder, loc, arith::MaxSIOp::create(builder, loc, left, zero), all);
}

/// Whether a tile of `size` places from `offset` on lies inside a dimension of
/// the array. Where tiles of this size fill the dimension, an offset that is no
/// constant is taken to be a multiple of it.
static bool isInside(Value offset, int64_t size, int64_t extent) {
  if (ShapedType::isDynamic(extent) || extent % size != 0)
    return false;
  std::optional<int64_t> first = getConstantIntValue(offset);
  return !first || (*first >= 0 && *first + size <= extent);
}

Window::Window(OpBuilder &builder, Location loc, Value array,
               ValueRange offsets, ArrayRef<int64_t> tileAxes,
               RankedTensorType tile, Value end, std::optional<uint64_t> dim)
    : offsets(offsets) {
  permutation = llvm::to_vector(llvm::seq<int64_t>(0, tile.getRank()));
  llvm::sort(permutation, [&](int64_t left, int64_t right) {
    return tileAxes[left] < tileAxes[right];
  });
  axes = applyPermutation(tileAxes, permutation);
  type = RankedTensorType::get(applyPermutation(tile.getShape(), permutation),
                               tile.getElementType());

  auto arrayType = cast<MemRefType>(array.getType());
  for (auto [axis, size] : llvm::zip(axes, type.getShape())) {
    Value last;
    if (end && axis == static_cast<int64_t>(*dim))
      last = end;
    else if (!isInside(offsets[axis], size, arrayType.getDimSize(axis)))
      last = memref::DimOp::create(builder, loc, array, axis);
    counts.push_back(last ? countBefore(builder, loc, last, offsets[axis], size)
                          : Value());
  }

  auto [strides, offset] = arrayType.getStridesAndOffset();
  int64_t last = arrayType.getRank() - 1;
  bool rowsAreContiguous = !axes.empty() && axes.back() == last &&
                           strides.back() == 1 && !counts.back();
  if (rowsAreContiguous)
    row = VectorType::get(type.getShape().back(), type.getElementType());
}

Value Window::forEach(
    OpBuilder &builder, Location loc, Value init, Part part,
    function_ref<Value(OpBuilder &, Location, ValueRange, Value)> body) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> lower, upper;
  for (int64_t axis = 0, end = type.getRank() - (row ? 1 : 0); axis < end;
       ++axis) {
    lower.push_back(zero);
    upper.push_back(
        arith::ConstantIndexOp::create(builder, loc, type.getDimSize(axis)));
    if (!counts[axis])
      continue;
    if (part == Part::Inside)
      upper.back() = counts[axis];
    else if (countBounded() == 1)
      lower.back() = counts[axis];
  }
  SmallVector<Value> steps(lower.size(), one);
  auto nest = scf::buildLoopNest(
      builder, loc, lower, upper, steps, init ? ValueRange(init) : ValueRange(),
      [&](OpBuilder &builder, Location loc, ValueRange ivs, ValueRange state) {
        SmallVector<Value> at(ivs);
        if (row)
          at.push_back(zero);
        Value result =
            body(builder, loc, at, state.empty() ? Value() : state.front());
        return init ? scf::ValueVector{result} : scf::ValueVector{};
      });
  return init ? nest.results.front() : Value();
}

Value Window::read(OpBuilder &builder, Location loc, Value source,
                   ValueRange at) {
  if (row)
    return vector::TransferReadOp::create(builder, loc, row, source, at,
                                          std::nullopt, ArrayRef<bool>{true});
  if (isa<MemRefType>(source.getType()))
    return memref::LoadOp::create(builder, loc, source, at);
  return tensor::ExtractOp::create(builder, loc, source, at);
}

Value Window::write(OpBuilder &builder, Location loc, Value value, Value target,
                    ValueRange at) {
  if (row) {
    auto op = vector::TransferWriteOp::create(builder, loc, value, target, at,
                                              ArrayRef<bool>{true});
    return op->getNumResults() ? op.getResult() : Value();
  }
  if (!isa<MemRefType>(target.getType()))
    return tensor::InsertOp::create(builder, loc, value, target, at);
  memref::StoreOp::create(builder, loc, value, target, at);
  return Value();
}

Value Window::zero(OpBuilder &builder, Location loc) {
  Type zeroType = row ? Type(row) : type.getElementType();
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(zeroType));
}

SmallVector<Value> Window::inArray(OpBuilder &builder, Location loc,
                                   ValueRange at) {
  SmallVector<Value> place(offsets);
  for (auto [axis, index] : llvm::zip(axes, at))
    place[axis] = arith::AddIOp::create(builder, loc, place[axis], index);
  return place;
}

namespace {
/// Rows inside `end` are read, the others are set to zero: what lies there in
/// memory, NaN included, is never seen.
struct LoadToLoops : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LoadOp load,
                                PatternRewriter &rewriter) const override {
    Location loc = load.getLoc();
    RankedTensorType tileType = load.getResult().getType();
    Window window(rewriter, loc, load.getSource(), load.getOffsets(),
                  load.getAxes(), tileType, load.getEnd(), load.getDim());
    RankedTensorType type = window.getType();
    Value tile = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                         type.getElementType());
    auto clearRest = [&] {
      tile = window.forEach(
          rewriter, loc, tile, Window::Part::Rest,
          [&](OpBuilder &builder, Location loc, ValueRange at, Value tile) {
            return window.write(builder, loc, window.zero(builder, loc), tile,
                                at);
          });
    };
    if (window.countBounded() > 1)
      clearRest();
    tile = window.forEach(
        rewriter, loc, tile, Window::Part::Inside,
        [&](OpBuilder &builder, Location loc, ValueRange at, Value tile) {
          Value row = window.read(builder, loc, load.getSource(),
                                  window.inArray(builder, loc, at));
          return window.write(builder, loc, row, tile, at);
        });
    if (window.countBounded() == 1)
      clearRest();
    if (!isIdentityPermutation(window.getPermutation())) {
      Value empty = tensor::EmptyOp::create(rewriter, loc, tileType.getShape(),
                                            tileType.getElementType());
      tile = linalg::TransposeOp::create(
                 rewriter, loc, tile, empty,
                 invertPermutationVector(window.getPermutation()))
                 ->getResult(0);
    }
    rewriter.replaceOp(load, tile);
    return success();
  }
};

/// Only the rows inside `end` are written.
struct StoreToLoops : OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(StoreOp store,
                                PatternRewriter &rewriter) const override {
    Location loc = store.getLoc();
    Window window(rewriter, loc, store.getTarget(), store.getOffsets(),
                  store.getAxes(), store.getTile().getType(), store.getEnd(),
                  store.getDim());
    Value tile = store.getTile();
    if (!isIdentityPermutation(window.getPermutation())) {
      RankedTensorType type = window.getType();
      Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                            type.getElementType());
      tile = linalg::TransposeOp::create(rewriter, loc, tile, empty,
                                         window.getPermutation())
                 ->getResult(0);
    }
    window.forEach(rewriter, loc, /*init=*/Value(), Window::Part::Inside,
                   [&](OpBuilder &builder, Location loc, ValueRange at, Value) {
                     Value row = window.read(builder, loc, tile, at);
                     return window.write(builder, loc, row, store.getTarget(),
                                         window.inArray(builder, loc, at));
                   });
    rewriter.eraseOp(store);
    return success();
  }
};

/// Element by element: seldom there is anything to clear.
struct ClearToLoops : OpRewritePattern<ClearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ClearOp clear,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(clear.getLoc(), rewriter);
    auto branch =
        scf::IfOp::create(b, clear.getCondition(), /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> place(clear.getOffsets());
    Value one = arith::ConstantIndexOp::create(b, 1), first = place.back();
    Value columns = arith::ConstantIndexOp::create(b, clear.getColumns());
    Value zero = arith::ConstantOp::create(
        b, b.getZeroAttr(clear.getArray().getType().getElementType()));
    scf::buildLoopNest(
        b, clear.getLoc(), {place[clear.getDim()], first},
        {clear.getEnd(), arith::AddIOp::create(b, first, columns)}, {one, one},
        [&](OpBuilder &body, Location loc, ValueRange at) {
          place[clear.getDim()] = at[0];
          place.back() = at[1];
          memref::StoreOp::create(body, loc, zero, clear.getArray(), place);
        });
    rewriter.eraseOp(clear);
    return success();
  }
};
} // namespace

void mlir::gdn::tile::populateAccessPatterns(RewritePatternSet &patterns) {
  patterns.add<LoadToLoops, StoreToLoops, ClearToLoops>(patterns.getContext());
}
