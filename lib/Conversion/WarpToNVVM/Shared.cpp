//===- Shared.cpp - Views and accesses of threads to them -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The address of a byte offset (index) of dynamic shared memory.
Value warp::createSharedAddress(ImplicitLocOpBuilder &b, Value offset) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  Value start = LLVM::AddressOfOp::create(b, type, kSharedSymbol);
  return createAddress(
      b, start, arith::IndexCastOp::create(b, b.getI32Type(), offset), 0);
}

Value warp::createElementOffset(ImplicitLocOpBuilder &b, ViewType view,
                                Value row, Value column) {
  Value byte =
      arith::MulIOp::create(b, column, createI32(b, view.getElementBytes()));
  if (view.getRank() == 1)
    return byte;
  if (!view.isSwizzled())
    return arith::AddIOp::create(
        b, byte, arith::MulIOp::create(b, row, createI32(b, view.getStride())));
  byte = arith::AddIOp::create(b, byte, createI32(b, view.getColumn()));
  Value inPanel =
      arith::AndIOp::create(b, byte, createI32(b, format::kPanelBytes - 1));
  Value phase = arith::MulIOp::create(
      b, arith::AndIOp::create(b, row, createI32(b, 7)), createI32(b, 16));
  Value offset = arith::AddIOp::create(
      b, arith::MulIOp::create(b, row, createI32(b, format::kPanelBytes)),
      arith::XOrIOp::create(b, inPanel, phase));
  if (view.getPanels() == 1)
    return offset;
  Value panel =
      arith::DivUIOp::create(b, byte, createI32(b, format::kPanelBytes));
  return arith::AddIOp::create(
      b, offset,
      arith::MulIOp::create(b, panel, createI32(b, view.getStride())));
}

/// The address of the element at `indices` (index).
static Value createElementAddress(ImplicitLocOpBuilder &b, ViewType view,
                                  Value base, ValueRange indices) {
  auto toI32 = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(), index);
  };
  Value row = view.getRank() == 1 ? Value() : toI32(indices.front());
  Value offset = createElementOffset(b, view, row, toI32(indices.back()));
  return createAddress(b, base, offset, 0);
}

/// The alignment of an access: it is one aligned run.
static unsigned getAlignment(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
  return type.getIntOrFloatBitWidth() / 8;
}

namespace {
struct LowerView : OpConversionPattern<ViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ViewOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value offset = adaptor.getOffset();
    if (op->hasAttr(WarpDialect::getLateAddressesAttrName())) {
      // LLVM moves no copy out of a loop that it knows nothing of.
      Value number = arith::IndexCastOp::create(b, b.getI32Type(), offset);
      number = createAsm(b, b.getI32Type(), number, "mov.u32 $0, $1;", "=r,r")
                   .getResult(0);
      offset = arith::IndexCastUIOp::create(b, b.getIndexType(), number);
    }
    rewriter.replaceOp(op, createSharedAddress(b, offset));
    return success();
  }
};

struct LowerBarrier : OpConversionPattern<BarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BarrierOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, createSharedAddress(b, adaptor.getOffset()));
    return success();
  }
};

struct LowerSlice : OpConversionPattern<SliceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value steps;
    if (std::optional<ArrayRef<int64_t>> step = op.getStep()) {
      Value number =
          arith::IndexCastOp::create(b, b.getI32Type(), adaptor.getNumber());
      steps = arith::MulIOp::create(
          b, number,
          createI32(b, op.getDistance((*step)[0], (*step)[1]) -
                           op.getDistance(0, 0)));
    }
    rewriter.replaceOp(
        op, createAddress(b, adaptor.getSource(), steps,
                          op.getDistance(op.getRow(), op.getColumn())));
    return success();
  }
};

struct LowerLoad : OpConversionPattern<warp::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(warp::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value address = createElementAddress(
        b, op.getView().getType(), adaptor.getView(), adaptor.getIndices());
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address,
                                              getAlignment(op.getType()));
    return success();
  }
};

struct LowerStore : OpConversionPattern<warp::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(warp::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value address = createElementAddress(
        b, op.getView().getType(), adaptor.getView(), adaptor.getIndices());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(
        op, adaptor.getValue(), address, getAlignment(op.getValue().getType()));
    return success();
  }
};
} // namespace

void warp::populateSharedPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerView, LowerBarrier, LowerSlice, LowerLoad, LowerStore>(
      converter, patterns.getContext());
}
