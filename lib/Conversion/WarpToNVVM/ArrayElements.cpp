//===- ArrayElements.cpp - Elements and extents of arrays -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
struct LowerMemRefLoad : ArrayPattern<memref::LoadOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array *array = kernels.lookup(op.getMemRef());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Value address =
        createElementAddress(b, *array, op.getType(), adaptor.getIndices());
    // Of a number that was loaded before, a multiprocessor has a copy.
    bool isWatched = op->hasAttr(tile::kWatchedAttrName);
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address,
                                              /*alignment=*/0, isWatched);
    return success();
  }
};

struct LowerMemRefStore : ArrayPattern<memref::StoreOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array *array = kernels.lookup(op.getMemRef());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Value address = createElementAddress(
        b, *array, op.getMemRefType().getElementType(), adaptor.getIndices());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, adaptor.getValue(), address);
    return success();
  }
};

struct LowerDim : ArrayPattern<memref::DimOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::DimOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Array *array = kernels.lookup(op.getSource());
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!array || !dim || *dim < 0 ||
        *dim >= static_cast<int64_t>(array->sizes.size()))
      return op.emitOpError("expected a constant dimension of an array");
    rewriter.replaceOp(op, array->sizes[*dim]);
    return success();
  }
};
} // namespace

void warp::populateArrayElementPatterns(const TypeConverter &converter,
                                        const LoweredKernels &kernels,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerMemRefLoad, LowerMemRefStore, LowerDim>(
      converter, patterns.getContext(), kernels);
}
