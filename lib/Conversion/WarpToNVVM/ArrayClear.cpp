//===- ArrayClear.cpp - Lowers gdn_warp.array_clear -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// A loop, since it has nothing to do but in few work items.
struct LowerArrayClear : OpConversionPattern<ArrayClearOp> {
  LowerArrayClear(const TypeConverter &converter, MLIRContext *context,
                  const LoweredKernels &kernels)
      : OpConversionPattern(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(ArrayClearOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array &array = *kernels.lookup(op.getArray());
    auto toIndex = [&](Value value) -> Value {
      return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
    };
    auto toWarps = [&](Value threads) -> Value {
      return arith::DivUIOp::create(b, threads,
                                    createI32(b, format::kWarpThreads));
    };
    Value thread = createThreadHere(b), warp = toWarps(thread);
    Value warps = toWarps(NVVM::BlockDimXOp::create(b, b.getI32Type()));
    Value lane = toIndex(createLane(b, thread));
    Value first = arith::AddIOp::create(b, adaptor.getOffsets()[op.getDim()],
                                        toIndex(warp));
    auto loop = scf::ForOp::create(b, first, adaptor.getEnd(), toIndex(warps));
    keepLoop(loop);
    ImplicitLocOpBuilder body =
        ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), loop.getBody());
    clearRow(body, op, array, adaptor.getOffsets(), loop.getInductionVar(),
             lane);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void clearRow(ImplicitLocOpBuilder &b, ArrayClearOp op,
                       const Array &array, ValueRange offsets, Value row,
                       Value lane) {
    Type element = cast<MemRefType>(op.getArray().getType()).getElementType();
    auto columns = static_cast<int64_t>(op.getColumns());
    SmallVector<Value> place(offsets);
    place[op.getDim()] = row;
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
    for (int64_t column = 0; column < columns; column += format::kWarpThreads) {
      Value own =
          arith::AddIOp::create(b, lane, createIndex(b, column)).getResult();
      OpBuilder::InsertionGuard guard(b);
      if (columns - column < format::kWarpThreads)
        b.setInsertionPointToStart(
            scf::IfOp::create(
                b, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, own,
                                         createIndex(b, columns)))
                .thenBlock());
      place.back() = arith::AddIOp::create(b, offsets.back(), own);
      LLVM::StoreOp::create(b, zero,
                            createElementAddress(b, array, element, place));
    }
  }

  const LoweredKernels &kernels;
};
} // namespace

void warp::populateArrayClearPattern(const TypeConverter &converter,
                                     const LoweredKernels &kernels,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerArrayClear>(converter, patterns.getContext(), kernels);
}
