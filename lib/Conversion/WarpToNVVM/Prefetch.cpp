//===- Prefetch.cpp - Cache lines of tiles that are soon loaded -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Asks for the cache line of line `line` (index) of the tile; a row along the
/// last dimension has several.
static void createPrefetch(ImplicitLocOpBuilder &b, PrefetchOp op,
                           const Array &array, ValueRange offsets, Value line,
                           int64_t lines, int64_t elements) {
  Type element = cast<MemRefType>(op.getArray().getType()).getElementType();
  size_t last = array.strides.size() - 1;
  ArrayRef<int64_t> axes = op.getAxes();
  int64_t along = axes[0] == static_cast<int64_t>(last) ? axes[1] : axes[0];
  SmallVector<Value> place(offsets);
  place[along] = arith::AddIOp::create(
      b, place[along], arith::DivUIOp::create(b, line, createIndex(b, lines)));
  place[last] = arith::AddIOp::create(
      b, place[last],
      arith::MulIOp::create(
          b, arith::RemUIOp::create(b, line, createIndex(b, lines)),
          createIndex(b, elements)));
  auto level = NVVM::PrefetchCacheLevelAttr::get(b.getContext(),
                                                 NVVM::PrefetchCacheLevel::L2);
  NVVM::PrefetchOp::create(b, level, NVVM::CacheEvictionPriorityAttr(),
                           warp::createElementAddress(b, array, element, place),
                           /*predicate=*/Value(), /*tensormap=*/UnitAttr(),
                           /*uniform=*/UnitAttr(),
                           /*in_param_space=*/UnitAttr());
}

namespace {
/// A loop, since its instructions run once a work item.
struct LowerPrefetch : OpConversionPattern<PrefetchOp> {
  LowerPrefetch(const TypeConverter &converter, MLIRContext *context,
                const LoweredKernels &kernels)
      : OpConversionPattern(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(PrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array &array = *kernels.lookup(op.getArray());
    auto type = cast<MemRefType>(op.getArray().getType());
    bool isTurned = op.getAxes()[0] == type.getRank() - 1;
    int64_t columns = op.getSizes()[isTurned ? 0 : 1],
            rows = op.getSizes()[isTurned ? 1 : 0];
    int64_t elements =
        getArch(op).cacheLineBytes * 8 / type.getElementTypeBitWidth();
    int64_t lines = llvm::divideCeil(columns, elements);
    Value lane = arith::IndexCastUIOp::create(
        b, b.getIndexType(), createLane(b, createThreadHere(b)));
    auto loop = scf::ForOp::create(b, lane, createIndex(b, rows * lines),
                                   createIndex(b, format::kWarpThreads));
    keepLoop(loop);
    auto body = ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), loop.getBody());
    createPrefetch(body, op, array, adaptor.getOffsets(),
                   loop.getInductionVar(), lines, elements);
    rewriter.eraseOp(op);
    return success();
  }

  const LoweredKernels &kernels;
};
} // namespace

void warp::populatePrefetchPattern(const TypeConverter &converter,
                                   const LoweredKernels &kernels,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerPrefetch>(converter, patterns.getContext(), kernels);
}
