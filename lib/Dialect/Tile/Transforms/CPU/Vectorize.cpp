//===- Vectorize.cpp - The linalg of programs becomes vectors -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vectorizers.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/TargetParser/Host.h"

#define DEBUG_TYPE "gdn-tile-vectorize"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_VECTORIZEPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

int64_t mlir::gdn::tile::getHostVectorBits() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return 512;
  return features.lookup("avx2") && features.lookup("fma") ? 256 : 128;
}

int64_t mlir::gdn::tile::getPowerDivisor(int64_t size, int64_t limit) {
  int64_t divisor = 1;
  while (2 * divisor <= limit && size % (2 * divisor) == 0)
    divisor *= 2;
  return divisor;
}

namespace {
struct Vectorize : gdn::tile::impl::VectorizePassBase<Vectorize> {
  using VectorizePassBase::VectorizePassBase;

  void runOnOperation() override {
    if (vectorBits != 0 && !isVectorBits(vectorBits)) {
      getOperation().emitOpError(
          "expected vector-bits to be 0, 128, 256 or 512, got ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    if (!getOperation()->hasAttr(TileDialect::getProgramAttrName()))
      return;
    // All code below reads and writes buffers.
    WalkResult onBuffers = getOperation().walk([](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        return WalkResult::advance();
      op.emitOpError("expected an op on memrefs, got one on tensors");
      return WalkResult::interrupt();
    });
    if (onBuffers.wasInterrupted())
      return signalPassFailure();
    const CPUArch &arch =
        getCPUArch(vectorBits ? int64_t(vectorBits) : getHostVectorBits());
    IRRewriter rewriter(&getContext());
    // Products first: they take over the fills before them.
    SmallVector<linalg::ContractOp> products;
    getOperation().walk([&](linalg::ContractOp op) { products.push_back(op); });
    int64_t leastTileDepth = amx ? getLeastTileDepth(products) : 0;
    for (linalg::ContractOp product : products)
      if (failed(vectorizePairProduct(rewriter, product, arch, leastTileDepth)))
        (void)vectorizeProduct(rewriter, product, arch);
    SmallVector<linalg::LinalgOp> others;
    getOperation().walk([&](linalg::LinalgOp op) { others.push_back(op); });
    for (linalg::LinalgOp op : others)
      if (failed(lower(rewriter, op, arch)))
        return signalPassFailure();
  }

private:
  static LogicalResult lower(RewriterBase &rewriter, linalg::LinalgOp op,
                             const CPUArch &arch);
};
} // namespace

LogicalResult Vectorize::lower(RewriterBase &rewriter, linalg::LinalgOp op,
                               const CPUArch &arch) {
  rewriter.setInsertionPoint(op);
  auto transpose = dyn_cast<linalg::TransposeOp>(op.getOperation());
  if (transpose && (succeeded(vectorizeTranspose(rewriter, transpose, arch)) ||
                    succeeded(vectorizePacking(rewriter, transpose, arch))))
    return success();
  if (succeeded(vectorizeGeneric(rewriter, op, arch)))
    return success();
  // What is left are loops over elements: correct, and rare.
  if (failed(linalg::linalgOpToLoops(rewriter, op)))
    return op.emitOpError("expected an op that loops over elements can make");
  rewriter.eraseOp(op);
  return success();
}
