//===- Copies.cpp - Copies through tensor maps ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/TensorMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Elements of a row of a swizzled panel.
static int64_t getPanelElements(ViewType view) {
  return format::kPanelBytes / view.getElementBytes();
}

/// True if one box fills all panels of the view: they lie behind each other.
static bool isDense(ViewType view) {
  return view.getStride() == view.getRows() * format::kPanelBytes;
}

/// Dimensions of a tensor map, innermost first.
struct MapDims {
  void add(int64_t dim, int64_t step, int64_t extent, int64_t size) {
    dims.push_back(dim);
    steps.push_back(step);
    extents.push_back(extent);
    box.push_back(size);
  }

  SmallVector<int64_t> dims, steps, extents, box;
};

/// Dimensions of which a box has one element: those that are no axes, outermost
/// last. A map that is cut has no room for all of them.
static void addOuterDims(MapDims &map, MemRefType array, ArrayRef<int64_t> axes,
                         bool isCut) {
  CutDims cut = getCutDims(array, axes);
  for (int64_t dim = array.getRank() - 1; dim >= 0; --dim)
    if (!llvm::is_contained(axes, dim) &&
        (!isCut || llvm::is_contained(cut.mapped, dim)))
      map.add(dim, 1, 0, 1);
}

TensorMapAttr warp::getTensorMap(MemRefType array, int64_t argument,
                                 ArrayRef<int64_t> axes, ViewType view,
                                 bool isCut) {
  int64_t panels = view.getPanels(), rows = view.getRows();
  int64_t panel = panels > 1 ? getPanelElements(view) : view.getColumns();
  MapDims map;
  if (isCut) {
    map.add(axes[1], 1, 0, panel);
    map.add(axes[0], 1, TensorMapAttr::kCutRows, rows);
    addOuterDims(map, array, axes, isCut);
    map.add(axes[0], 1, TensorMapAttr::kUncut, 1);
    map.add(axes[0], TensorMapAttr::kStepBack, TensorMapAttr::kUncut, 1);
  } else {
    map.add(axes[1], 1, panels > 1 ? panel : 0, panel);
    map.add(axes[0], 1, 0, rows);
    // A row of several panels is one dimension in a panel and one over panels,
    // so one instruction brings the whole tile.
    if (panels > 1)
      map.add(axes[1], panel, 0, isDense(view) ? panels : 1);
    addOuterDims(map, array, axes, isCut);
  }
  Builder b(array.getContext());
  return TensorMapAttr::get(
      array.getContext(), argument, array.getElementType(),
      b.getDenseI64ArrayAttr(map.dims), b.getDenseI64ArrayAttr(map.steps),
      b.getDenseI64ArrayAttr(map.extents), b.getDenseI64ArrayAttr(map.box),
      view.getSwizzle());
}

//===----------------------------------------------------------------------===//
// Coordinates, innermost first
//===----------------------------------------------------------------------===//

/// Those of a box of a map that is not cut; `panel` panels further.
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

/// The rows of a dense array that a step along `dim` is, which is further out.
static Value createRowsOfStep(ImplicitLocOpBuilder &b, const Array &array,
                              int64_t dim, int64_t rowDim) {
  Value rows = array.sizes[rowDim];
  for (int64_t inner = dim + 1; inner < rowDim; ++inner)
    rows = arith::MulIOp::create(b, rows, array.sizes[inner]);
  return rows;
}

/// Those of a box of which the rows end at `end`.
static SmallVector<Value>
createCutCoordinates(ImplicitLocOpBuilder &b, TensorMapAttr map,
                     const Array &array, ArrayRef<int64_t> rowSteps,
                     ValueRange offsets, Value end, int64_t panel) {
  Value rows = createI32(b, TensorMapAttr::kCutRows);
  SmallVector<Value> coordinates;
  for (int64_t dim : map.getDims().asArrayRef().drop_back(2))
    coordinates.push_back(
        arith::IndexCastOp::create(b, b.getI32Type(), offsets[dim]));
  Value last = arith::IndexCastOp::create(b, b.getI32Type(), end);
  coordinates[0] = arith::AddIOp::create(b, coordinates[0],
                                         createI32(b, panel * map.getBox()[0]));
  coordinates[1] = arith::AddIOp::create(
      b, arith::SubIOp::create(b, coordinates[1], last), rows);
  int64_t rowDim = map.getDims()[1];
  for (int64_t dim : rowSteps) {
    Value steps = arith::MulIOp::create(
        b, offsets[dim], createRowsOfStep(b, array, dim, rowDim));
    last = arith::AddIOp::create(
        b, last, arith::IndexCastOp::create(b, b.getI32Type(), steps));
  }
  coordinates.append({last, rows});
  return coordinates;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
template <typename Op> struct CopyPattern : OpConversionPattern<Op> {
  CopyPattern(const TypeConverter &converter, MLIRContext *context,
              const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (!op.getEnd()) {
      createCopies(b, op, adaptor, /*isCut=*/false);
      rewriter.eraseOp(op);
      return success();
    }
    // The plain map takes fewer instructions and crosses no panels, so tiles
    // that end before the end use it.
    Value rows = createIndex(b, op.getView().getType().getRows());
    Value next =
        arith::AddIOp::create(b, adaptor.getOffsets()[*op.getDim()], rows);
    Value crosses = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, next,
                                          adaptor.getEnd());
    auto branch = scf::IfOp::create(b, TypeRange(), crosses,
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    createCopies(b, op, adaptor, /*isCut=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    createCopies(b, op, adaptor, /*isCut=*/false);
    rewriter.eraseOp(op);
    return success();
  }

  /// One instruction a box.
  void createCopies(ImplicitLocOpBuilder &b, Op op,
                    typename Op::Adaptor adaptor, bool isCut) const {
    createCompilerFence(b);
    const Array *array = kernels.lookup(op.getArray());
    ViewType view = op.getView().getType();
    auto type = cast<MemRefType>(op.getArray().getType());
    TensorMapAttr map =
        getTensorMap(type, array->argument, op.getAxes(), view, isCut);
    Operation *function = op->template getParentOfType<LLVM::LLVMFuncOp>();
    Value pointer = kernels.tensorMaps.lookup({function, map});
    bool isOne = !isCut && isDense(view);
    for (int64_t i = 0, boxes = isOne ? 1 : view.getPanels(); i < boxes; ++i) {
      SmallVector<Value> coordinates =
          isCut
              ? createCutCoordinates(b, map, *array,
                                     getCutDims(type, op.getAxes()).rows,
                                     adaptor.getOffsets(), adaptor.getEnd(), i)
              : createCoordinates(b, map, adaptor.getOffsets(), i);
      Value address =
          createAddress(b, adaptor.getView(), Value(), i * view.getStride());
      createCopy(b, adaptor, pointer, address, coordinates);
    }
  }

  static void createCopy(ImplicitLocOpBuilder &b,
                         BulkTensorLoadOp::Adaptor adaptor, Value map,
                         Value address, ValueRange coordinates) {
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, address, map, coordinates, adaptor.getBarrier(), ValueRange(),
        Value(), Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true,
        NVVM::CTAGroupKindAttr(), Value());
  }

  static void createCopy(ImplicitLocOpBuilder &b, BulkTensorStoreOp::Adaptor,
                         Value map, Value address, ValueRange coordinates) {
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        b, map, address, coordinates, Value(), NVVM::TMAStoreMode::TILE,
        Value());
  }

  const LoweredKernels &kernels;
};

struct LowerBulkCopyToCta : OpConversionPattern<BulkCopyToCtaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BulkCopyToCtaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value target = createRemote(b, adaptor.getView(), adaptor.getRank());
    Value barrier = createRemote(b, adaptor.getBarrier(), adaptor.getRank());
    // The op takes a pointer to this CTA's memory, the instruction the address
    // of a barrier anywhere in the cluster.
    Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), barrier);
    auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
    barrier = LLVM::IntToPtrOp::create(b, type, address);
    createCompilerFence(b);
    NVVM::CpAsyncBulkSharedCTAToSharedClusterOp::create(
        b, target, adaptor.getView(), barrier,
        createI32(b, op.getView().getType().getSpan()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerBulkCommit : OpConversionPattern<BulkCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BulkCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncBulkCommitGroupOp>(op);
    return success();
  }
};

struct LowerBulkWait : OpConversionPattern<BulkWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BulkWaitOp op, OpAdaptor,
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
  patterns.add<CopyPattern<BulkTensorLoadOp>, CopyPattern<BulkTensorStoreOp>>(
      converter, patterns.getContext(), kernels);
  patterns.add<LowerBulkCopyToCta, LowerBulkCommit, LowerBulkWait>(
      converter, patterns.getContext());
}
