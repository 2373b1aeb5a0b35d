//===- Scan.cpp - Running sums and lower triangles ------------------------===//
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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile;

namespace {
/// A loop along the axis that carries the sum: of a whole row where the axis is
/// not the last one, of one element otherwise.
struct ScanToLoops : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScanOp scan,
                                PatternRewriter &rewriter) const override;

private:
  /// The loop along the axis at one place `at` of the other axes.
  static Value scanAt(OpBuilder &builder, Location loc, ScanOp scan, Value tile,
                      ValueRange at, VectorType row);
};

struct DiagonalToGeneric : OpRewritePattern<DiagonalOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DiagonalOp diagonal,
                                PatternRewriter &rewriter) const override {
    Location loc = diagonal.getLoc();
    RankedTensorType type = diagonal.getType();
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    AffineExpr i = rewriter.getAffineDimExpr(0);
    AffineMap both = AffineMap::get(1, 0, {i, i}, rewriter.getContext());
    auto body = [](OpBuilder &builder, Location loc, ValueRange args) {
      linalg::YieldOp::create(builder, loc, args[0]);
    };
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        diagonal, TypeRange(type), diagonal.getSource(), empty,
        ArrayRef<AffineMap>{both, rewriter.getDimIdentityMap()},
        utils::IteratorType::parallel, body);
    return success();
  }
};

/// One element of each block along `axis` for all of its block: those of all
/// blocks at once, spread over these.
static Value repeatInBlocks(RewriterBase &rewriter, Location loc, Value source,
                            int64_t axis, int64_t block, OpFoldResult at) {
  auto type = cast<RankedTensorType>(source.getType());
  // The axis becomes two: the block, and the element of it.
  SmallVector<int64_t> shape(type.getShape());
  int64_t blocks = shape[axis] / block;
  shape[axis] = block;
  shape.insert(shape.begin() + axis, blocks);
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim == axis)
      groups.push_back({dim, dim + 1});
    else
      groups.push_back({dim < axis ? dim : dim + 1});
  Value inBlocks = tensor::ExpandShapeOp::create(
      rewriter, loc, type.clone(shape), source, groups);
  auto indices = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(rewriter.getContext(), values);
  };
  SmallVector<int64_t> ones(shape.size(), 1), sizes(shape);
  SmallVector<OpFoldResult> offsets =
      indices(SmallVector<int64_t>(shape.size(), 0));
  offsets[axis + 1] = at;
  sizes[axis + 1] = 1;
  SmallVector<int64_t> bases(type.getShape());
  bases[axis] = blocks;
  Value base =
      tensor::ExtractSliceOp::create(rewriter, loc, type.clone(bases), inBlocks,
                                     offsets, indices(sizes), indices(ones));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  Value spread = linalg::BroadcastOp::create(rewriter, loc, base, empty,
                                             ArrayRef<int64_t>{axis + 1})
                     ->getResult(0);
  return tensor::CollapseShapeOp::create(rewriter, loc, type, spread, groups);
}

struct RebaseToLinalg : OpRewritePattern<RebaseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RebaseOp rebase,
                                PatternRewriter &rewriter) const override {
    Value bases = repeatInBlocks(
        rewriter, rebase.getLoc(), rebase.getSource(),
        static_cast<int64_t>(rebase.getAxis()),
        static_cast<int64_t>(rebase.getBlock()),
        rewriter.getIndexAttr(static_cast<int64_t>(rebase.getAt())));
    rewriter.replaceOpWithNewOp<arith::SubFOp>(rebase, rebase.getSource(),
                                               bases);
    return success();
  }
};

struct RepeatToLinalg : OpRewritePattern<RepeatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RepeatOp repeat,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        repeat, repeatInBlocks(rewriter, repeat.getLoc(), repeat.getSource(),
                               static_cast<int64_t>(repeat.getAxis()),
                               static_cast<int64_t>(repeat.getBlock()),
                               repeat.getAt()));
    return success();
  }
};

struct CausalToGeneric : OpRewritePattern<CausalOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CausalOp causal,
                                PatternRewriter &rewriter) const override {
    Location loc = causal.getLoc();
    RankedTensorType type = causal.getResult().getType();
    AffineMap identity = rewriter.getMultiDimIdentityMap(2);
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    auto predicate = causal.getStrict() ? arith::CmpIPredicate::sgt
                                        : arith::CmpIPredicate::sge;
    auto body = [&](OpBuilder &builder, Location loc, ValueRange args) {
      Value row = linalg::IndexOp::create(builder, loc, 0);
      Value column = linalg::IndexOp::create(builder, loc, 1);
      Value keep = arith::CmpIOp::create(builder, loc, predicate, row, column);
      Value zero = arith::ConstantOp::create(
          builder, loc, builder.getZeroAttr(type.getElementType()));
      // A selection, not a product: NaN above the diagonal must not stay.
      Value kept = arith::SelectOp::create(builder, loc, keep, args[0], zero);
      linalg::YieldOp::create(builder, loc, kept);
    };
    SmallVector<utils::IteratorType> parallel(2, utils::IteratorType::parallel);
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        causal, TypeRange(type), causal.getSource(), empty,
        ArrayRef<AffineMap>{identity, identity}, parallel, body);
    return success();
  }
};
} // namespace

Value ScanToLoops::scanAt(OpBuilder &builder, Location loc, ScanOp scan,
                          Value tile, ValueRange at, VectorType row) {
  int64_t size = scan.getResult().getType().getDimSize(scan.getAxis());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value end = arith::ConstantIndexOp::create(builder, loc, size);
  Type sumType = row ? Type(row) : scan.getResult().getType().getElementType();
  Value sum =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(sumType));
  auto loop = scf::ForOp::create(
      builder, loc, zero, end, one, ValueRange{tile, sum},
      [&](OpBuilder &builder, Location loc, Value iv, ValueRange state) {
        Value place = iv;
        if (scan.getReverse()) {
          Value last = arith::SubIOp::create(builder, loc, end, one);
          place = arith::SubIOp::create(builder, loc, last, iv);
        }
        SmallVector<Value> indices(at);
        indices.insert(indices.begin() + scan.getAxis(), place);
        if (row) {
          indices.push_back(zero);
          Value term = vector::TransferReadOp::create(
              builder, loc, row, scan.getSource(), indices, std::nullopt,
              ArrayRef<bool>{true});
          Value next = arith::AddFOp::create(builder, loc, state[1], term);
          Value written =
              vector::TransferWriteOp::create(builder, loc, next, state[0],
                                              indices, ArrayRef<bool>{true})
                  .getResult();
          scf::YieldOp::create(builder, loc, ValueRange{written, next});
          return;
        }
        Value term =
            tensor::ExtractOp::create(builder, loc, scan.getSource(), indices);
        Value next = arith::AddFOp::create(builder, loc, state[1], term);
        Value written =
            tensor::InsertOp::create(builder, loc, next, state[0], indices);
        scf::YieldOp::create(builder, loc, ValueRange{written, next});
      });
  return loop.getResult(0);
}

LogicalResult ScanToLoops::matchAndRewrite(ScanOp scan,
                                           PatternRewriter &rewriter) const {
  Location loc = scan.getLoc();
  RankedTensorType type = scan.getResult().getType();
  bool alongRows = static_cast<int64_t>(scan.getAxis()) == type.getRank() - 1;
  VectorType row;
  if (!alongRows)
    row = VectorType::get(type.getShape().back(), type.getElementType());

  // Loops over the axes that neither the scan nor the row takes.
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  SmallVector<Value> upper;
  for (int64_t axis = 0, end = type.getRank() - (row ? 1 : 0); axis < end;
       ++axis)
    if (axis != static_cast<int64_t>(scan.getAxis()))
      upper.push_back(
          arith::ConstantIndexOp::create(rewriter, loc, type.getDimSize(axis)));
  SmallVector<Value> lower(upper.size(), zero), steps(upper.size(), one);
  Value tile = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                       type.getElementType());
  auto nest = scf::buildLoopNest(
      rewriter, loc, lower, upper, steps, tile,
      [&](OpBuilder &builder, Location loc, ValueRange ivs, ValueRange state) {
        return scf::ValueVector{
            scanAt(builder, loc, scan, state.front(), ivs, row)};
      });
  rewriter.replaceOp(scan, nest.results.front());
  return success();
}

void mlir::gdn::tile::populateScanPatterns(RewritePatternSet &patterns) {
  patterns.add<ScanToLoops, RebaseToLinalg, RepeatToLinalg, CausalToGeneric,
               DiagonalToGeneric>(patterns.getContext());
}
