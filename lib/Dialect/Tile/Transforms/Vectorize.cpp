//===- Vectorize.cpp - The linalg of programs becomes vectors -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorizeProducts.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/TargetParser/Host.h"

#define DEBUG_TYPE "gdn-tile-vectorize"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_VECTORIZEPASS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

int64_t mlir::gdn::tile::getHostVectorBits() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return 512;
  return features.lookup("avx2") && features.lookup("fma") ? 256 : 128;
}

/// The largest divisor of `size` that is a power of two and at most `limit`.
static int64_t getPowerDivisor(int64_t size, int64_t limit) {
  int64_t divisor = 1;
  while (2 * divisor <= limit && size % (2 * divisor) == 0)
    divisor *= 2;
  return divisor;
}

/// True if `op` can be vectorised: static, in memory, and without tiles of i1,
/// which are bytes in memory but bits in a vector.
static bool isVectorizable(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.hasDynamicShape() ||
      op.getNumLoops() == 0)
    return false;
  return llvm::none_of(op->getOperandTypes(), [](Type type) {
    return isa<MemRefType>(type) && getElementTypeOrSelf(type).isInteger(1);
  });
}

/// Tile sizes of everything that is not a product: a transpose goes by squares
/// of one register, a sum along the innermost dimension by whole rows, the rest
/// by two registers.
static SmallVector<int64_t> getTileSizes(linalg::LinalgOp op,
                                         const CPUArch &arch) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<int64_t> sizes(ranges.size(), 1);
  if (isa<linalg::TransposeOp>(op)) {
    for (auto [size, range] : llvm::zip(sizes, ranges))
      size = getPowerDivisor(range, arch.lanes);
    return sizes;
  }
  unsigned inner = ranges.size() - 1;
  bool isSum =
      op.getIteratorTypesArray()[inner] == utils::IteratorType::reduction;
  sizes[inner] = isSum ? getPowerDivisor(ranges[inner], 16 * arch.lanes)
                       : getPowerDivisor(ranges[inner], 2 * arch.lanes);
  return sizes;
}

namespace {
struct Vectorize : gdn::tile::impl::VectorizePassBase<Vectorize> {
  using VectorizePassBase::VectorizePassBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr(TileDialect::getProgramAttrName()))
      return;
    const CPUArch &arch =
        getCPUArch(vectorBits ? int64_t(vectorBits) : getHostVectorBits());
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    // Products first: they look for the fills before them.
    for (linalg::LinalgOp &op : ops)
      if (auto product = dyn_cast<linalg::ContractOp>(op.getOperation()))
        if (succeeded(vectorizeProduct(rewriter, product, arch)))
          op = nullptr;
    ops.clear();
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops)
      if (failed(tileAndVectorize(rewriter, op, arch)))
        return signalPassFailure();
    if (failed(lowerTransfers()))
      signalPassFailure();
  }

private:
  static LogicalResult tileAndVectorize(RewriterBase &rewriter,
                                        linalg::LinalgOp op,
                                        const CPUArch &arch);

  /// Transfers and reductions of several dimensions --> one.
  LogicalResult lowerTransfers();
};
} // namespace

LogicalResult Vectorize::tileAndVectorize(RewriterBase &rewriter,
                                          linalg::LinalgOp op,
                                          const CPUArch &arch) {
  rewriter.setInsertionPoint(op);
  if (!isVectorizable(op)) {
    // What is left are loops over elements: correct, and rare.
    if (failed(linalg::linalgOpToLoops(rewriter, op)))
      return op.emitOpError("expected an op that lowers to loops");
    rewriter.eraseOp(op);
    return success();
  }
  linalg::LinalgTilingOptions options;
  options.setTileSizes(getTileSizes(op, arch));
  FailureOr<linalg::TiledLinalgOp> tiled =
      linalg::tileLinalgOp(rewriter, op, options);
  if (failed(tiled))
    return op.emitOpError("expected an op that tiles");
  rewriter.eraseOp(op);
  rewriter.setInsertionPoint(tiled->op);
  FailureOr<linalg::VectorizationResult> vectors =
      linalg::vectorize(rewriter, tiled->op);
  if (failed(vectors)) {
    if (failed(linalg::linalgOpToLoops(rewriter, tiled->op)))
      return tiled->op.emitOpError("expected an op that lowers to loops");
  }
  rewriter.eraseOp(tiled->op);
  return success();
}

LogicalResult Vectorize::lowerTransfers() {
  MLIRContext *context = &getContext();
  RewritePatternSet patterns(context);
  memref::populateFoldMemRefAliasOpPatterns(patterns);
  vector::populateVectorTransferPermutationMapLoweringPatterns(patterns);
  vector::populateVectorTransferDropUnitDimsPatterns(patterns);
  vector::populateCastAwayVectorLeadingOneDimPatterns(patterns);
  vector::populateVectorMultiReductionLoweringPatterns(
      patterns, vector::VectorMultiReductionLowering::InnerReduction);
  vector::TransferReadOp::getCanonicalizationPatterns(patterns, context);
  vector::TransferWriteOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineMinOp::getCanonicalizationPatterns(patterns, context);
  scf::ForOp::getCanonicalizationPatterns(patterns, context);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    return failure();

  RewritePatternSet lowering(context);
  vector::populateVectorBroadcastLoweringPatterns(lowering);
  vector::populateVectorTransposeLoweringPatterns(
      lowering, vector::VectorTransposeLowering::Shuffle16x16);
  vector::populateVectorShapeCastLoweringPatterns(lowering);
  vector::populateVectorTransferLoweringPatterns(lowering,
                                                 /*maxTransferRank=*/1);
  vector::populateVectorStepLoweringPatterns(lowering);
  vector::populateVectorGatherLoweringPatterns(lowering);
  return applyPatternsGreedily(getOperation(), std::move(lowering));
}
