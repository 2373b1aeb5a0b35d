//===- Longest.cpp - Lowers gdn_warp.longest ------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// Each lane has a sequence and counts those that come before it; the lane that
/// counts `rank` is the answer.
struct LowerLongest : OpConversionPattern<LongestOp> {
  LowerLongest(const TypeConverter &converter, MLIRContext *context,
               const LoweredKernels &kernels)
      : OpConversionPattern(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(LongestOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type i32 = b.getI32Type();
    const Array *bounds = kernels.lookup(op.getBounds());
    if (!bounds)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Type element = op.getBounds().getType().getElementType();
    Value rank = arith::IndexCastOp::create(b, i32, adaptor.getRank());
    Value extent = bounds->sizes.front();
    Value count = arith::SubIOp::create(
        b, arith::IndexCastOp::create(b, i32, extent), createI32(b, 1));
    Value isFew = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, count,
                                        createI32(b, kSm90a.warpThreads));
    auto few = scf::IfOp::create(b, i32, isFew, /*withElseRegion=*/true);
    auto at = [&](Block *block) {
      return ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), block);
    };
    ImplicitLocOpBuilder inner = at(few.thenBlock());
    scf::YieldOp::create(inner,
                         findLongest(inner, *bounds, element, count, rank));
    ImplicitLocOpBuilder other = at(few.elseBlock());
    scf::YieldOp::create(other, rank);
    rewriter.replaceOpWithNewOp<arith::IndexCastOp>(op, b.getIndexType(),
                                                    few.getResult(0));
    return success();
  }

private:
  /// The length of sequence `number`.
  static Value loadLength(ImplicitLocOpBuilder &b, const Array &bounds,
                          Type element, Value number) {
    auto load = [&](int64_t next) -> Value {
      Value index = arith::IndexCastOp::create(
          b, b.getIndexType(),
          arith::AddIOp::create(b, number, createI32(b, next)));
      Value bound = LLVM::LoadOp::create(
          b, element, createElementAddress(b, bounds, element, index));
      if (element.isInteger(64))
        bound = arith::TruncIOp::create(b, b.getI32Type(), bound);
      return bound;
    };
    return arith::SubIOp::create(b, load(1), load(0));
  }

  static Value findLongest(ImplicitLocOpBuilder &b, const Array &bounds,
                           Type element, Value count, Value rank) {
    Type i32 = b.getI32Type();
    Value lane = createLane(b);
    Value has =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane, count);
    auto own = scf::IfOp::create(
        b, has,
        [&](OpBuilder &inner, Location loc) {
          ImplicitLocOpBuilder in(loc, inner);
          scf::YieldOp::create(in, loadLength(in, bounds, element, lane));
        },
        [&](OpBuilder &inner, Location loc) {
          ImplicitLocOpBuilder in(loc, inner);
          scf::YieldOp::create(in, createI32(in, -1));
        });
    Value length = own.getResult(0), zero = createI32(b, 0);
    auto loop = scf::ForOp::create(
        b, zero, count, createI32(b, 1), zero,
        [&](OpBuilder &inner, Location loc, Value number, ValueRange before) {
          ImplicitLocOpBuilder in(loc, inner);
          Value other = createShuffle(in, ShuffleKind::Index, length, number);
          auto compare = [&](arith::CmpIPredicate is, Value x,
                             Value y) -> Value {
            return arith::CmpIOp::create(in, is, x, y);
          };
          Value same = arith::AndIOp::create(
              in, compare(arith::CmpIPredicate::eq, other, length),
              compare(arith::CmpIPredicate::ult, number, lane));
          Value comes = arith::OrIOp::create(
              in, compare(arith::CmpIPredicate::sgt, other, length), same);
          Value more = arith::AddIOp::create(
              in, before.front(), arith::ExtUIOp::create(in, i32, comes));
          scf::YieldOp::create(in, more);
        });
    Value isRank =
        arith::AndIOp::create(b, has,
                              arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                    loop.getResult(0), rank));
    Value number = arith::SelectOp::create(b, isRank, lane, zero);
    return createSum(b, number);
  }

  const LoweredKernels &kernels;
};
} // namespace

void warp::populateLongestPattern(const TypeConverter &converter,
                                  const LoweredKernels &kernels,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerLongest>(converter, patterns.getContext(), kernels);
}
