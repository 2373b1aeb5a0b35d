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

/// Of an op on entries of an array.
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
    emit(adaptor, b, *array);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emit(AwaitOp::Adaptor, ImplicitLocOpBuilder &b,
                   const Array &array);
  static void emit(CountDownOp::Adaptor, ImplicitLocOpBuilder &b,
                   const Array &array);
  static void emit(BeginReportsOp::Adaptor reports, ImplicitLocOpBuilder &b,
                   const Array &array);
  static void emit(ReportOp::Adaptor report, ImplicitLocOpBuilder &b,
                   const Array &array);
  static void emit(AwaitReportOp::Adaptor await, ImplicitLocOpBuilder &b,
                   const Array &array);

  const LoweredKernels &kernels;
};
} // namespace

static void syncCTA(ImplicitLocOpBuilder &b) {
  createCompilerFence(b);
  NVVM::BarrierOp::create(b);
  createCompilerFence(b);
}

/// A branch for thread or lane 0.
static scf::IfOp createIfZero(ImplicitLocOpBuilder &b, Value number) {
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                                        createI32(b, 0));
  return scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
}

static Value createAddress(ImplicitLocOpBuilder &b, const Array &array,
                           ValueRange place) {
  return createElementAddress(b, array, b.getI32Type(), place);
}

/// Of the last entry of an array of one dimension.
static Value createLastAddress(ImplicitLocOpBuilder &b, const Array &array) {
  Value last = arith::SubIOp::create(b, array.sizes.front(), createIndex(b, 1));
  return createAddress(b, array, last);
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
                            const Array &array) {
  Value address = createLastAddress(b, array);
  auto branch = createIfZero(b, createThreadHere(b));
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
                            const Array &array) {
  Value address = createLastAddress(b, array);
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/UnitAttr());
  syncCTA(b);
  auto branch = createIfZero(b, createThreadHere(b));
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
void LowerMeeting<Op>::emit(BeginReportsOp::Adaptor reports,
                            ImplicitLocOpBuilder &b, const Array &array) {
  Value address = createAddress(b, array, reports.getOffsets());
  auto branch = createIfZero(b, createThreadHere(b));
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

/// The lane that has begun the warp's copies to memory waits until they are
/// complete. The release orders them before the number.
template <typename Op>
void LowerMeeting<Op>::emit(ReportOp::Adaptor report, ImplicitLocOpBuilder &b,
                            const Array &array) {
  Value address = createAddress(b, array, report.getOffsets());
  createCompilerFence(b);
  createWarpSync(b);
  auto branch = createIfZero(b, createLane(b));
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

/// Each thread polls an entry. The CTA's barrier and the fence of the async
/// proxy behind it let copies see what these entries stand for.
template <typename Op>
void LowerMeeting<Op>::emit(AwaitReportOp::Adaptor await,
                            ImplicitLocOpBuilder &b, const Array &array) {
  auto toI32 = [](ImplicitLocOpBuilder &b, Value index) -> Value {
    return arith::IndexCastUIOp::create(b, b.getI32Type(), index);
  };
  auto toIndex = [](ImplicitLocOpBuilder &b, Value number) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
  };
  // In 32 bits: a GPU has no division of 64.
  Value done = toI32(b, await.getDone()),
        columns = toI32(b, array.sizes.back());
  Value entries = arith::MulIOp::create(b, toI32(b, await.getCount()), columns);
  auto loop = scf::ForOp::create(b, createThreadHere(b), entries,
                                 NVVM::BlockDimXOp::create(b, b.getI32Type()));
  keepLoop(loop);
  {
    ImplicitLocOpBuilder body =
        ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), loop.getBody());
    Value entry = loop.getInductionVar();
    Value row = arith::DivUIOp::create(body, entry, columns),
          column = arith::RemUIOp::create(body, entry, columns);
    SmallVector<Value> place(await.getOffsets());
    place.back() =
        arith::AddIOp::create(body, place.back(), toIndex(body, row));
    place.push_back(toIndex(body, column));
    createPoll(body, createAddress(body, array, place),
               arith::CmpIPredicate::slt, done);
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
