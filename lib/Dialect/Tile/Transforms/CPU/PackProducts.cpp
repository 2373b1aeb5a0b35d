//===- PackProducts.cpp - Operands of products as the FMA loop wants them -===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "gdn-tile-pack-products"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_PACKPRODUCTSPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// True for the 16-bit formats, whose products are exact in f32.
static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

static Value widen(OpBuilder &builder, Location loc, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()),
                               tile);
}

static Value transpose(OpBuilder &builder, Location loc, Value tile,
                       ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape = applyPermutation(type.getShape(), permutation);
  Value empty =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tile, empty, permutation)
      ->getResult(0);
}

namespace {
/// Rewrites one product: both operands in f32 and the one that holds the
/// innermost dimension of the result with that dimension innermost.
struct PackProduct : OpRewritePattern<linalg::ContractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::ContractOp product,
                                PatternRewriter &rewriter) const override {
    if (!product.hasPureTensorSemantics() || product.getNumLoops() > 3)
      return rewriter.notifyMatchFailure(product, "not on tensors, or pairs");
    SmallVector<Value> inputs(product.getInputs());
    SmallVector<AffineMap> maps = product.getIndexingMapsArray();
    for (auto [input, map] : llvm::zip(inputs, maps)) {
      // Beside the operand's definition, so that all products share the result.
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointAfterValue(input);
      if (isNarrow(input.getType()))
        input = widen(rewriter, product.getLoc(), input);
      if (isTransposed(map, maps.back())) {
        input = transpose(rewriter, product.getLoc(), input, {1, 0});
        map = AffineMap::get(map.getNumDims(), 0,
                             {map.getResult(1), map.getResult(0)},
                             rewriter.getContext());
      }
    }
    if (llvm::equal(inputs, product.getInputs()))
      return rewriter.notifyMatchFailure(product, "packed already");
    auto packed = linalg::ContractOp::create(
        rewriter, product.getLoc(), product->getResultTypes(), inputs,
        product.getOutputs(), rewriter.getAffineMapArrayAttr(maps));
    packed->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    rewriter.replaceOp(product, packed);
    return success();
  }

private:
  /// True for the operand that holds the result's innermost dimension, but not
  /// as its own innermost one. A vector from a matrix and a vector is a dot
  /// product a row, which wants no transpose.
  static bool isTransposed(AffineMap map, AffineMap result) {
    return result.getNumResults() == 2 && map.getNumResults() == 2 &&
           map.getResult(0) == result.getResult(1);
  }
};

/// Transposes happen in f32, for which there are shuffles: 16-bit values pass
/// through it exactly.
struct WidenTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isNarrow(op.getInput().getType()) ||
        op.getPermutation().size() != 2)
      return rewriter.notifyMatchFailure(op, "not a tile of 16-bit elements");
    Location loc = op.getLoc();
    // What was rounded just for this transpose is transposed before.
    Value input = op.getInput();
    auto rounding = input.getDefiningOp<arith::TruncFOp>();
    bool moves = rounding && input.hasOneUse() &&
                 getElementTypeOrSelf(rounding.getIn().getType()).isF32();
    Value wide = moves ? rounding.getIn() : widen(rewriter, loc, input);
    Value transposed = transpose(rewriter, loc, wide, op.getPermutation());
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    // Whoever widens the result again takes the wide tile itself, unless the
    // rounding was moved behind it.
    for (Operation *user :
         llvm::make_early_inc_range(op->getResult(0).getUsers()))
      if (auto widening = dyn_cast<arith::ExtFOp>(user);
          widening && !moves && widening.getType() == transposed.getType())
        rewriter.replaceOp(widening, transposed);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, transposed);
    return success();
  }
};

/// Splits dimension `dim` of a tile in pairs: a new dimension of 2 behind it.
static Value splitPairs(OpBuilder &builder, Location loc, Value tile,
                        int64_t dim) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= 2;
  shape.insert(shape.begin() + dim + 1, 2);
  SmallVector<ReassociationIndices> groups =
      dim == 0 ? SmallVector<ReassociationIndices>{{0, 1}, {2}}
               : SmallVector<ReassociationIndices>{{0}, {1, 2}};
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), tile,
      groups);
}

/// Rewrites a product of bf16 matrices for the instruction that multiplies
/// pairs: left [m, k/2, 2], right [k/2, n, 2].
struct PackPairs : OpRewritePattern<linalg::ContractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::ContractOp product,
                                PatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps = product.getIndexingMapsArray();
    if (!product.hasPureTensorSemantics() || product.getNumLoops() != 3 ||
        maps[2].getNumResults() != 2)
      return rewriter.notifyMatchFailure(product, "not matrices on tensors");
    unsigned m = maps[2].getDimPosition(0), n = maps[2].getDimPosition(1);
    unsigned k = 3 - m - n;
    Value left = product.getInputs()[0], right = product.getInputs()[1];
    auto isBF16 = [](Value tile) {
      return getElementTypeOrSelf(tile.getType()).isBF16();
    };
    if (!isBF16(left) || !isBF16(right) || maps[0].getDimPosition(0) != m ||
        maps[0].getDimPosition(1) != k)
      return rewriter.notifyMatchFailure(product, "not pairs of bf16");
    if (product.getStaticLoopRanges()[k] % 2 != 0)
      return rewriter.notifyMatchFailure(product, "an odd sum");
    Location loc = product.getLoc();
    auto atDefinition = [&](Value tile, auto build) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointAfterValue(tile);
      return build(tile);
    };
    left = atDefinition(
        left, [&](Value tile) { return splitPairs(rewriter, loc, tile, 1); });
    bool sumInnermost = maps[1].getDimPosition(1) == k;
    right = atDefinition(right, [&](Value tile) {
      Value pairs = splitPairs(rewriter, loc, tile, sumInnermost ? 1 : 0);
      return sumInnermost ? transpose(rewriter, loc, pairs, {1, 0, 2})
                          : transpose(rewriter, loc, pairs, {0, 2, 1});
    });
    MLIRContext *context = rewriter.getContext();
    auto map = [&](ArrayRef<unsigned> dims) {
      return AffineMap::getMultiDimMapWithTargets(4, dims, context);
    };
    // Loops m, n, k/2 and the pair.
    auto packed = linalg::ContractOp::create(
        rewriter, loc, product->getResultTypes(), ValueRange{left, right},
        product.getOutputs(),
        rewriter.getAffineMapArrayAttr(
            {map({0, 2, 3}), map({2, 1, 3}), map({0, 1})}));
    packed->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    rewriter.replaceOp(product, packed);
    return success();
  }
};

struct PackProducts : gdn::tile::impl::PackProductsPassBase<PackProducts> {
  using PackProductsPassBase::PackProductsPassBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr(TileDialect::getProgramAttrName()))
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<PackProduct, WidenTranspose>(&getContext());
    if (bf16Dot)
      patterns.add<PackPairs>(&getContext(), /*benefit=*/2);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation()->emitError("expected the rewriting to come to an end");
      signalPassFailure();
    }
  }
};
} // namespace
