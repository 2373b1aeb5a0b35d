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

/// Of an op on an entry of an array: the one that it names, or the last one.
template <typename Op> struct LowerMeeting : OpConversionPattern<Op> {
  LowerMeeting(const TypeConverter &converter, MLIRContext *context,
               const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Array *array = kernels.lookup(op.getArray());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    emit(adaptor, b,
         createElementAddress(b, *array, b.getI32Type(),
                              getPlace(adaptor, b, *array)));
    rewriter.eraseOp(op);
    return success();
  }

private:
  static SmallVector<Value> getPlace(typename Op::Adaptor adaptor,
                                     ImplicitLocOpBuilder &b,
                                     const Array &array) {
    if constexpr (std::is_same_v<Op, AwaitOp> ||
                  std::is_same_v<Op, CountDownOp>)
      return {arith::SubIOp::create(b, array.sizes.front(), createIndex(b, 1))};
    else
      return llvm::to_vector(adaptor.getOffsets());
  }

  static void emit(AwaitOp::Adaptor, ImplicitLocOpBuilder &b, Value address);
  static void emit(CountDownOp::Adaptor, ImplicitLocOpBuilder &b,
                   Value address);
  static void emit(BeginReportsOp::Adaptor, ImplicitLocOpBuilder &b,
                   Value address);
  static void emit(ReportOp::Adaptor report, ImplicitLocOpBuilder &b,
                   Value address);
  static void emit(AwaitReportOp::Adaptor await, ImplicitLocOpBuilder &b,
                   Value address);

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

/// Polls a number while it compares to `bound` in this way.
static void createPoll(ImplicitLocOpBuilder &b, Value address,
                       arith::CmpIPredicate predicate, Value bound) {
  scf::WhileOp::create(
      b, TypeRange(), ValueRange(),
      [&](OpBuilder &builder, Location loc, ValueRange) {
        ImplicitLocOpBuilder inner(loc, builder);
        Value number =
            createAsm(inner, inner.getI32Type(), address,
                      "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}")
                .getResult(0);
        Value waits = arith::CmpIOp::create(inner, predicate, number, bound);
        scf::ConditionOp::create(inner, waits, ValueRange());
      },
      [&](OpBuilder &builder, Location loc, ValueRange) {
        ImplicitLocOpBuilder inner(loc, builder);
        createAsm(inner, {}, {}, "nanosleep.u32 200;", "~{memory}");
        scf::YieldOp::create(inner);
      });
}

/// One thread polls, and the barrier hands on what it sees.
template <typename Op>
void LowerMeeting<Op>::emit(AwaitOp::Adaptor, ImplicitLocOpBuilder &b,
                            Value address) {
  auto branch = createIfFirstThread(b);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    createPoll(b, address, arith::CmpIPredicate::ne, createI32(b, 0));
  }
  syncCTA(b);
}

/// Behind the stores of all threads and their copies from shared memory.
template <typename Op>
void LowerMeeting<Op>::emit(CountDownOp::Adaptor, ImplicitLocOpBuilder &b,
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

template <typename Op>
void LowerMeeting<Op>::emit(BeginReportsOp::Adaptor, ImplicitLocOpBuilder &b,
                            Value address) {
  auto branch = createIfFirstThread(b);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    createAsm(b, {}, {address, createI32(b, 0)},
              "st.relaxed.gpu.global.u32 [$0], $1;\n"
              "fence.acq_rel.gpu;",
              "l,r,~{memory}");
  }
  syncCTA(b);
}

/// The lane that has begun the warp's copies to memory waits for them.
template <typename Op>
void LowerMeeting<Op>::emit(ReportOp::Adaptor report, ImplicitLocOpBuilder &b,
                            Value address) {
  createCompilerFence(b);
  createWarpSync(b);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        createLane(b), createI32(b, 0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/UnitAttr());
  Value done =
      arith::IndexCastUIOp::create(b, b.getI32Type(), report.getDone());
  createAsm(b, {}, {address, done},
            "fence.acq_rel.gpu;\n"
            "st.release.gpu.global.u32 [$0], $1;",
            "l,r,~{memory}");
}

/// A thread polls an entry. Behind the barrier copies see what all of them see.
template <typename Op>
void LowerMeeting<Op>::emit(AwaitReportOp::Adaptor await,
                            ImplicitLocOpBuilder &b, Value address) {
  Value done = arith::IndexCastUIOp::create(b, b.getI32Type(), await.getDone());
  auto toIndex = [&](Value number) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
  };
  auto entries =
      scf::ForOp::create(b, toIndex(createThreadHere(b)), await.getCount(),
                         toIndex(NVVM::BlockDimXOp::create(b, b.getI32Type())));
  keepLoop(entries);
  {
    ImplicitLocOpBuilder body =
        ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), entries.getBody());
    Value entry = LLVM::GEPOp::create(
        body, address.getType(), body.getI32Type(), address,
        ValueRange{arith::IndexCastUIOp::create(body, body.getI64Type(),
                                                entries.getInductionVar())});
    createPoll(body, entry, arith::CmpIPredicate::slt, done);
  }
  syncCTA(b);
  createAsm(b, {}, {}, "fence.proxy.async.global;", "~{memory}");
}

void warp::populateMeetingPatterns(const TypeConverter &converter,
                                   const LoweredKernels &kernels,
                                   RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerExit>(converter, context);
  patterns.add<LowerMeeting<AwaitOp>, LowerMeeting<CountDownOp>,
               LowerMeeting<BeginReportsOp>, LowerMeeting<ReportOp>,
               LowerMeeting<AwaitReportOp>>(converter, context, kernels);
}
