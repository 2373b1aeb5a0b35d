//===- Copies.cpp - Copies through tensor maps ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Elements of a row of a swizzled panel.
static int64_t getPanelElements(ViewType view) {
  return kSm90a.panelBytes / view.getElementBytes();
}

/// True if one box fills all panels of the view: they lie behind each other.
static bool isDense(ViewType view) {
  return view.getStride() == view.getRows() * kSm90a.panelBytes;
}

TensorMapAttr warp::getTensorMap(MemRefType array, int64_t argument,
                                 ArrayRef<int64_t> axes, ViewType view) {
  bool panels = view.getPanels() > 1;
  int64_t panel = getPanelElements(view);
  SmallVector<int64_t> dims{axes[1], axes[0]}, steps{1, 1},
      extents{panels ? panel : 0, 0},
      box{panels ? panel : view.getColumns(), view.getRows()};
  if (panels) {
    // A row of several panels is one dimension in a panel and one over panels,
    // so one instruction brings the whole tile.
    dims.push_back(axes[1]);
    steps.push_back(panel);
    extents.push_back(0);
    box.push_back(isDense(view) ? view.getPanels() : 1);
  }
  for (int64_t dim = array.getRank() - 1; dim >= 0; --dim) {
    if (llvm::is_contained(axes, dim))
      continue;
    dims.push_back(dim);
    steps.push_back(1);
    extents.push_back(0);
    box.push_back(1);
  }
  Builder b(array.getContext());
  return TensorMapAttr::get(
      array.getContext(), argument, array.getElementType(),
      b.getDenseI64ArrayAttr(dims), b.getDenseI64ArrayAttr(steps),
      b.getDenseI64ArrayAttr(extents), b.getDenseI64ArrayAttr(box),
      view.getSwizzle());
}

/// The coordinates of a box, innermost first; `panel` panels further.
static SmallVector<Value> createCoordinates(ImplicitLocOpBuilder &b,
                                            TensorMapAttr map,
                                            ValueRange offsets, int64_t panel) {
  SmallVector<Value> coordinates;
  ArrayRef<int64_t> dims = map.getDims(), steps = map.getSteps(),
                    extents = map.getExtents();
  for (auto [dim, step, extent] : llvm::zip(dims, steps, extents)) {
    if (extent != 0) {
      coordinates.push_back(createI32(b, 0));
      continue;
    }
    Value offset = arith::IndexCastOp::create(b, b.getI32Type(), offsets[dim]);
    if (step != 1) {
      offset = arith::DivUIOp::create(b, offset, createI32(b, step));
      offset = arith::AddIOp::create(b, offset, createI32(b, panel));
    }
    coordinates.push_back(offset);
  }
  return coordinates;
}

/// One copy a box: `emit(address, coordinates)`.
static void forEachBox(ImplicitLocOpBuilder &b, TensorMapAttr map,
                       ViewType view, Value address, ValueRange offsets,
                       function_ref<void(Value, ArrayRef<Value>)> emit) {
  int64_t boxes = view.getPanels() > 1 && !isDense(view) ? view.getPanels() : 1;
  for (int64_t i = 0; i < boxes; ++i)
    emit(createAddress(b, address, Value(), i * view.getStride()),
         createCoordinates(b, map, offsets, i));
}

namespace {
template <typename Op> struct CopyPattern : OpConversionPattern<Op> {
  CopyPattern(const TypeConverter &converter, MLIRContext *context,
              const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  /// The map of a copy and the pointer to it.
  std::pair<TensorMapAttr, Value> lookupMap(Op op) const {
    const Array *array = kernels.lookup(op.getArray());
    TensorMapAttr map =
        getTensorMap(cast<MemRefType>(op.getArray().getType()), array->argument,
                     op.getAxes(), op.getView().getType());
    Operation *function = op->template getParentOfType<LLVM::LLVMFuncOp>();
    return {map, kernels.tensorMaps.lookup({function, map})};
  }

  const LoweredKernels &kernels;
};

struct LowerCopyIn : CopyPattern<CopyInOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(CopyInOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto [map, pointer] = lookupMap(op);
    createCompilerFence(b);
    Value mapPointer = pointer;
    forEachBox(b, map, op.getView().getType(), adaptor.getView(),
               adaptor.getOffsets(), [&](Value address, ArrayRef<Value> at) {
                 NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
                     b, address, mapPointer, at, adaptor.getBarrier(),
                     ValueRange(), Value(), Value(), NVVM::TMALoadMode::TILE,
                     /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(), Value());
               });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerCopyOut : CopyPattern<CopyOutOp> {
  using CopyPattern::CopyPattern;

  LogicalResult
  matchAndRewrite(CopyOutOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto [map, pointer] = lookupMap(op);
    createCompilerFence(b);
    Value mapPointer = pointer;
    forEachBox(b, map, op.getView().getType(), adaptor.getView(),
               adaptor.getOffsets(), [&](Value address, ArrayRef<Value> at) {
                 NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
                     b, mapPointer, address, at, Value(),
                     NVVM::TMAStoreMode::TILE, Value());
               });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerCopyCommit : OpConversionPattern<CopyCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncBulkCommitGroupOp>(op);
    return success();
  }
};

struct LowerCopyWait : OpConversionPattern<CopyWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    NVVM::CpAsyncBulkWaitGroupOp::create(
        b, b.getI32IntegerAttr(op.getPending()),
        op.getRead() ? b.getUnitAttr() : UnitAttr());
    createCompilerFence(b);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateCopyPatterns(const TypeConverter &converter,
                                const LoweredKernels &kernels,
                                RewritePatternSet &patterns) {
  patterns.add<LowerCopyIn, LowerCopyOut>(converter, patterns.getContext(),
                                          kernels);
  patterns.add<LowerCopyCommit, LowerCopyWait>(converter,
                                               patterns.getContext());
}
