//===- FuseElementwise.cpp - Elementwise work of programs in few loops ----===//
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
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "gdn-tile-fuse-elementwise"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// Never twice the same work: a producer is fused into its only user, and one
/// with divisions or functions only where it is not broadcast on the way.
static bool isWorthFusing(OpOperand *operand) {
  if (!operand->get().hasOneUse())
    return false;
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  Operation *producer = operand->get().getDefiningOp();
  bool isBroadcast =
      consumer && consumer.getMatchingIndexingMap(operand).getNumResults() <
                      consumer.getNumLoops();
  if (!isBroadcast || !producer)
    return true;
  return !producer
              ->walk([](Operation *op) {
                bool isExpensive = isa<math::MathDialect>(op->getDialect()) ||
                                   isa<arith::DivFOp>(op);
                return isExpensive ? WalkResult::interrupt()
                                   : WalkResult::advance();
              })
              .wasInterrupted();
}

namespace {
/// A splat is a fill, which folds into elementwise work.
struct SplatToFill : OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::SplatOp splat,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = splat.getType();
    if (!type.hasStaticShape())
      return rewriter.notifyMatchFailure(splat, "dynamic shape");
    Value empty = tensor::EmptyOp::create(
        rewriter, splat.getLoc(), type.getShape(), type.getElementType());
    rewriter.replaceOpWithNewOp<linalg::FillOp>(splat, splat.getInput(), empty);
    return success();
  }
};

/// Named ops that are elementwise but for an indexing map become generic; so
/// do reductions, whose inputs are then computed on the fly.
struct Generalize : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!isa<linalg::BroadcastOp, linalg::ReduceOp, linalg::MapOp,
             linalg::ElementwiseOp>(op))
      return rewriter.notifyMatchFailure(op, "stays a named op");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

struct FuseElementwise
    : gdn::tile::impl::FuseElementwisePassBase<FuseElementwise> {
  void runOnOperation() override {
    if (failed(toGeneric()) || failed(fuse())) {
      getOperation()->emitError("expected the rewriting to come to an end");
      return signalPassFailure();
    }
    giveOwnInits();
  }

private:
  LogicalResult toGeneric() {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplatToFill, Generalize>(&getContext());
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    return applyPatternsGreedily(getOperation(), std::move(patterns));
  }

  LogicalResult fuse() {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, isWorthFusing);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    return applyPatternsGreedily(getOperation(), std::move(patterns));
  }

  void giveOwnInits();
};
} // namespace

/// A constant or a filled tile that is written over gets a copy of its own next
/// to each writer: sharing one would make bufferization copy it, and the
/// product that follows its fill need not read it (gdn-tile-vectorize).
void FuseElementwise::giveOwnInits() {
  IRRewriter rewriter(&getContext());
  getOperation()->walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || !type.hasStaticShape())
        continue;
      rewriter.setInsertionPoint(op);
      Value scalar;
      if (DenseElementsAttr splat;
          matchPattern(operand.get(), m_Constant(&splat)) && splat.isSplat())
        scalar = arith::ConstantOp::create(
            rewriter, op->getLoc(),
            cast<TypedAttr>(splat.getSplatValue<Attribute>()));
      else if (auto fill = operand.get().getDefiningOp<linalg::FillOp>())
        scalar = fill.getInputs().front();
      if (!scalar)
        continue;
      Value empty = tensor::EmptyOp::create(
          rewriter, op->getLoc(), type.getShape(), type.getElementType());
      operand.set(linalg::FillOp::create(rewriter, op->getLoc(), scalar, empty)
                      .getResult(0));
    }
  });
  // The tiles that were shared.
  (void)runRegionDCE(rewriter, getOperation()->getRegions());
}
