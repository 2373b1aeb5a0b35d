//===- Solve.cpp - Bm of a chunk: substitution, then merges ---------------===//
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

/// Size of the blocks that are solved by substitution (spec 3.6).
static constexpr int64_t kBlockSize = 16;

namespace {
/// Writes the expansion of one `gdn_tile.solve`.
class SolveBuilder {
public:
  SolveBuilder(OpBuilder &builder, SolveOp solve)
      : builder(builder), loc(solve.getLoc()), scores(solve.getScores()),
        beta(solve.getBeta()), mergeType(solve.getMergeType()),
        f32(builder.getF32Type()) {}

  /// The diagonal blocks of `bm`: row i of a block is
  /// Kk_i - sum over j < i of Kk_ij beta_j B_j.
  Value substitute(Value bm, int64_t block);

  /// B21 = (I - B22 b2) Kk21 (I - b1 B11) of the two blocks at `start`.
  Value merge(Value bm, int64_t start, int64_t block);

private:
  /// Row `i` of the diagonal block at `start`.
  Value substituteRow(Value bm, Value start, Value i, VectorType row);

  /// The block of `matrix` at (`row`, `column`).
  Value getBlock(Value matrix, int64_t row, int64_t column, int64_t block);

  /// I - Diag(b) B, or I - B Diag(b) with `onColumns`, in the merge type.
  Value identityMinus(Value b, Value block, bool onColumns);

  /// A tile in the merge type.
  Value round(Value tile);

  /// `left` times `right` with f32 accumulation.
  Value multiply(Value left, Value right);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  Value scores, beta;
  Type mergeType, f32;
};
} // namespace

Value SolveBuilder::substituteRow(Value bm, Value start, Value i,
                                  VectorType row) {
  Value here = arith::AddIOp::create(builder, loc, start, i);
  Value right = vector::TransferReadOp::create(
      builder, loc, row, scores, ValueRange{here, start}, std::nullopt,
      ArrayRef<bool>{true});
  auto sum = scf::ForOp::create(
      builder, loc, constant(0), i, constant(1), right,
      [&](OpBuilder &builder, Location loc, Value j, ValueRange state) {
        Value there = arith::AddIOp::create(builder, loc, start, j);
        Value score = tensor::ExtractOp::create(builder, loc, scores,
                                                ValueRange{here, there});
        Value weight = tensor::ExtractOp::create(builder, loc, beta, there);
        Value factor = arith::NegFOp::create(
            builder, loc, arith::MulFOp::create(builder, loc, score, weight));
        Value solved = vector::TransferReadOp::create(
            builder, loc, row, bm, ValueRange{there, start}, std::nullopt,
            ArrayRef<bool>{true});
        Value factors = vector::BroadcastOp::create(builder, loc, row, factor);
        Value next =
            vector::FMAOp::create(builder, loc, factors, solved, state.front());
        scf::YieldOp::create(builder, loc, next);
      });
  return vector::TransferWriteOp::create(builder, loc, sum.getResult(0), bm,
                                         ValueRange{here, start},
                                         ArrayRef<bool>{true})
      .getResult();
}

Value SolveBuilder::substitute(Value bm, int64_t block) {
  auto row = VectorType::get(block, f32);
  int64_t size = cast<RankedTensorType>(bm.getType()).getDimSize(0);
  SmallVector<Value> lower(2, constant(0));
  SmallVector<Value> upper{constant(size), constant(block)};
  SmallVector<Value> steps{constant(block), constant(1)};
  auto nest = scf::buildLoopNest(
      builder, loc, lower, upper, steps, bm,
      [&](OpBuilder &inner, Location, ValueRange ivs, ValueRange state) {
        OpBuilder::InsertionGuard guard(builder);
        builder.restoreInsertionPoint(inner.saveInsertionPoint());
        return scf::ValueVector{
            substituteRow(state.front(), ivs[0], ivs[1], row)};
      });
  return nest.results.front();
}

Value SolveBuilder::getBlock(Value matrix, int64_t row, int64_t column,
                             int64_t block) {
  SmallVector<OpFoldResult> offsets{builder.getIndexAttr(row),
                                    builder.getIndexAttr(column)};
  SmallVector<OpFoldResult> sizes(2, builder.getIndexAttr(block));
  SmallVector<OpFoldResult> strides(2, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, matrix, offsets, sizes,
                                        strides);
}

Value SolveBuilder::round(Value tile) {
  if (mergeType.isF32())
    return tile;
  auto type = cast<RankedTensorType>(tile.getType()).clone(mergeType);
  return arith::TruncFOp::create(builder, loc, type, tile);
}

Value SolveBuilder::identityMinus(Value b, Value block, bool onColumns) {
  auto type = cast<RankedTensorType>(block.getType());
  MLIRContext *context = builder.getContext();
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  AffineMap weights = AffineMap::get(
      2, 0, builder.getAffineDimExpr(onColumns ? 1 : 0), context);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), f32);
  auto body = [&](OpBuilder &builder, Location loc, ValueRange args) {
    Value row = linalg::IndexOp::create(builder, loc, 0);
    Value column = linalg::IndexOp::create(builder, loc, 1);
    Value diagonal = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, row, column);
    Value one =
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f));
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
    Value unit = arith::SelectOp::create(builder, loc, diagonal, one, zero);
    Value product = arith::MulFOp::create(builder, loc, args[0], args[1]);
    Value difference = arith::SubFOp::create(builder, loc, unit, product);
    linalg::YieldOp::create(builder, loc, difference);
  };
  SmallVector<utils::IteratorType> parallel(2, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(type), ValueRange{block, b}, empty,
      ArrayRef<AffineMap>{identity, weights, identity}, parallel, body);
  return round(generic.getResult(0));
}

Value SolveBuilder::multiply(Value left, Value right) {
  auto type = cast<RankedTensorType>(left.getType()).clone(f32);
  Value zero = createZeroTile(builder, loc, type);
  AffineExpr m, n, k;
  bindDims(builder.getContext(), m, n, k);
  auto map = [&](AffineExpr row, AffineExpr column) {
    return AffineMap::get(3, 0, {row, column}, builder.getContext());
  };
  auto maps = builder.getAffineMapArrayAttr({map(m, k), map(k, n), map(m, n)});
  return linalg::ContractOp::create(builder, loc, TypeRange(type),
                                    ValueRange{left, right}, zero, maps)
      .getResult(0);
}

Value SolveBuilder::merge(Value bm, int64_t start, int64_t block) {
  int64_t low = start, high = start + block;
  auto getBeta = [&](int64_t at) -> Value {
    SmallVector<OpFoldResult> offsets{builder.getIndexAttr(at)};
    SmallVector<OpFoldResult> sizes{builder.getIndexAttr(block)};
    SmallVector<OpFoldResult> strides{builder.getIndexAttr(1)};
    return tensor::ExtractSliceOp::create(builder, loc, beta, offsets, sizes,
                                          strides);
  };
  Value left = identityMinus(getBeta(high), getBlock(bm, high, high, block),
                             /*onColumns=*/true);
  Value right = identityMinus(getBeta(low), getBlock(bm, low, low, block),
                              /*onColumns=*/false);
  Value middle = round(getBlock(scores, high, low, block));
  Value merged = multiply(round(multiply(left, middle)), right);
  SmallVector<OpFoldResult> offsets{builder.getIndexAttr(high),
                                    builder.getIndexAttr(low)};
  SmallVector<OpFoldResult> sizes(2, builder.getIndexAttr(block));
  SmallVector<OpFoldResult> strides(2, builder.getIndexAttr(1));
  return tensor::InsertSliceOp::create(builder, loc, merged, bm, offsets, sizes,
                                       strides);
}

namespace {
struct SolveToSubstitution : OpRewritePattern<SolveOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SolveOp solve,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = solve.getScores().getType();
    int64_t size = type.getDimSize(0), block = std::min(size, kBlockSize);
    if (size % block != 0 || !llvm::isPowerOf2_64(size / block)) {
      solve.emitOpError("expected ")
          << kBlockSize << " times a power of two rows or at most "
          << kBlockSize << ", got " << size;
      return failure();
    }
    SolveBuilder builder(rewriter, solve);
    Value bm = createZeroTile(rewriter, solve.getLoc(), type);
    bm = builder.substitute(bm, block);
    for (; block < size; block *= 2)
      for (int64_t start = 0; start < size; start += 2 * block)
        bm = builder.merge(bm, start, block);
    rewriter.replaceOp(solve, bm);
    return success();
  }
};
} // namespace

namespace {
/// (I + M)^-1 - I = -Bm where (I + M) Bm = M: a solve without beta.
struct TriInverseToSolve : OpRewritePattern<TriInverseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TriInverseOp inverse,
                                PatternRewriter &rewriter) const override {
    Location loc = inverse.getLoc();
    RankedTensorType type = inverse.getResult().getType();
    Value m = inverse.getSource();
    if (m.getType() != type)
      m = arith::ExtFOp::create(rewriter, loc, type, m);
    auto vector =
        RankedTensorType::get(type.getDimSize(0), rewriter.getF32Type());
    Value ones = arith::ConstantOp::create(
        rewriter, loc,
        DenseElementsAttr::get(vector, rewriter.getF32FloatAttr(1.0f)));
    Value bm = SolveOp::create(rewriter, loc, m, ones, inverse.getMergeType());
    rewriter.replaceOpWithNewOp<arith::NegFOp>(inverse, bm);
    return success();
  }
};
} // namespace

void mlir::gdn::tile::populateTriInversePatterns(RewritePatternSet &patterns) {
  patterns.add<SolveToSubstitution, TriInverseToSolve>(patterns.getContext());
}
