//===- Meetings.cpp - Kernels that wait for each other while they run -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
struct LowerExit : OpConversionPattern<ExitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    createAsm(b, {}, {}, "exit;", "~{memory}");
    rewriter.eraseOp(op);
    return success();
  }
};

/// Of an op on an array whose last entry counts.
template <typename Op> struct LowerMeeting : OpConversionPattern<Op> {
  LowerMeeting(const TypeConverter &converter, MLIRContext *context,
               const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Array *array = kernels.lookup(op.getArray());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value last =
        arith::SubIOp::create(b, array->sizes.front(), createIndex(b, 1));
    emit(op, b,
         createElementAddress(b, *array, b.getI32Type(), ValueRange{last}));
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emit(AwaitOp, ImplicitLocOpBuilder &b, Value address);
  static void emit(CountDownOp, ImplicitLocOpBuilder &b, Value address);

  const LoweredKernels &kernels;
};
} // namespace

static void syncCTA(ImplicitLocOpBuilder &b) {
  createCompilerFence(b);
  NVVM::BarrierOp::create(b);
  createCompilerFence(b);
}

static scf::IfOp createIfFirstThread(ImplicitLocOpBuilder &b) {
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        createThreadHere(b), createI32(b, 0));
  return scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
}

/// One thread polls, and the barrier hands on what it sees.
template <typename Op>
void LowerMeeting<Op>::emit(AwaitOp, ImplicitLocOpBuilder &b, Value address) {
  auto branch = createIfFirstThread(b);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::WhileOp::create(
        b, TypeRange(), ValueRange(),
        [&](OpBuilder &builder, Location loc, ValueRange) {
          ImplicitLocOpBuilder inner(loc, builder);
          Value left =
              createAsm(inner, inner.getI32Type(), address,
                        "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}")
                  .getResult(0);
          Value isOpen = arith::CmpIOp::create(inner, arith::CmpIPredicate::ne,
                                               left, createI32(inner, 0));
          scf::ConditionOp::create(inner, isOpen, ValueRange());
        },
        [&](OpBuilder &builder, Location loc, ValueRange) {
          ImplicitLocOpBuilder inner(loc, builder);
          createAsm(inner, {}, {}, "nanosleep.u32 200;", "~{memory}");
          scf::YieldOp::create(inner);
        });
  }
  syncCTA(b);
}

/// Behind the stores of all threads and their copies from shared memory.
template <typename Op>
void LowerMeeting<Op>::emit(CountDownOp, ImplicitLocOpBuilder &b,
                            Value address) {
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/UnitAttr());
  syncCTA(b);
  auto branch = createIfFirstThread(b);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value most = arith::SubIOp::create(
      b, NVVM::GridDimXOp::create(b, b.getI32Type()), createI32(b, 1));
  // At 0 or above `most` it becomes `most`, else one less.
  createAsm(b, {}, {address, most},
            "fence.acq_rel.gpu;\n"
            "red.release.gpu.global.dec.u32 [$0], $1;",
            "l,r,~{memory}");
}

void warp::populateMeetingPatterns(const TypeConverter &converter,
                                   const LoweredKernels &kernels,
                                   RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerExit>(converter, context);
  patterns.add<LowerMeeting<AwaitOp>, LowerMeeting<CountDownOp>>(
      converter, context, kernels);
}
