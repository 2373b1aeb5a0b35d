//===- SequenceByRank.cpp - Lowers gdn_warp.sequence_by_rank --------------===//
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
/// A sequence and where it begins and ends, as i32.
struct Found {
  Value number, begin, end;
};

/// Each lane has a sequence and counts those that come before it; the lane that
/// counts `rank` has the answer. What it loaded is all that is needed of it: a
/// second load would wait for memory again.
struct LowerSequenceByRank : OpConversionPattern<SequenceByRankOp> {
  LowerSequenceByRank(const TypeConverter &converter, MLIRContext *context,
                      const LoweredKernels &kernels)
      : OpConversionPattern(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(SequenceByRankOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type i32 = b.getI32Type();
    const Array *bounds = kernels.lookup(op.getBounds());
    if (!bounds)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Type element = op.getBounds().getType().getElementType();
    Value rank = arith::IndexCastOp::create(b, i32, adaptor.getRank());
    if (op.getInOrder()) {
      Found found = loadSequence(b, *bounds, element, rank);
      SmallVector<Value> results;
      for (Value number : {found.number, found.begin, found.end})
        results.push_back(
            arith::IndexCastOp::create(b, b.getIndexType(), number));
      rewriter.replaceOp(op, results);
      return success();
    }
    Value extent = bounds->sizes.front();
    Value count = arith::SubIOp::create(
        b, arith::IndexCastOp::create(b, i32, extent), createI32(b, 1));
    Value isFew = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, count,
                                        createI32(b, format::kWarpThreads));
    auto few = scf::IfOp::create(b, TypeRange({i32, i32, i32}), isFew,
                                 /*withElseRegion=*/true);
    auto yield = [&](Block *block,
                     function_ref<Found(ImplicitLocOpBuilder &)> find) {
      ImplicitLocOpBuilder inner =
          ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), block);
      Found found = find(inner);
      scf::YieldOp::create(inner,
                           ValueRange{found.number, found.begin, found.end});
    };
    yield(few.thenBlock(), [&](ImplicitLocOpBuilder &in) {
      return findLongest(in, *bounds, element, count, rank);
    });
    yield(few.elseBlock(), [&](ImplicitLocOpBuilder &in) -> Found {
      return loadSequence(in, *bounds, element, rank);
    });
    SmallVector<Value> results;
    for (Value result : few.getResults())
      results.push_back(
          arith::IndexCastOp::create(b, b.getIndexType(), result));
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// Sequence `number`.
  static Found loadSequence(ImplicitLocOpBuilder &b, const Array &bounds,
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
    return {number, load(0), load(1)};
  }

  /// The lane's sequence, and its length; of a lane without one -1.
  static std::pair<Found, Value> loadOwn(ImplicitLocOpBuilder &b,
                                         const Array &bounds, Type element,
                                         Value count, Value lane) {
    Type i32 = b.getI32Type();
    Value has =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane, count);
    auto own = scf::IfOp::create(b, TypeRange({i32, i32, i32}), has,
                                 /*withElseRegion=*/true);
    auto then = ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), own.thenBlock());
    Found found = loadSequence(then, bounds, element, lane);
    Value length = arith::SubIOp::create(then, found.end, found.begin);
    scf::YieldOp::create(then, ValueRange{found.begin, found.end, length});
    auto other =
        ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), own.elseBlock());
    Value none = createI32(other, 0);
    scf::YieldOp::create(other, ValueRange{none, none, createI32(other, -1)});
    return {{lane, own.getResult(0), own.getResult(1)}, own.getResult(2)};
  }

  /// How many sequences come before the lane's own.
  static Value countBefore(ImplicitLocOpBuilder &b, Value lane, Value length,
                           Value count) {
    Value zero = createI32(b, 0);
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
              in, before.front(),
              arith::ExtUIOp::create(in, b.getI32Type(), comes));
          scf::YieldOp::create(in, more);
        });
    return loop.getResult(0);
  }

  static Found findLongest(ImplicitLocOpBuilder &b, const Array &bounds,
                           Type element, Value count, Value rank) {
    Value lane = createLane(b, createThreadHere(b));
    auto [own, length] = loadOwn(b, bounds, element, count, lane);
    Value before = countBefore(b, lane, length, count);
    // Lanes without a sequence count all of them, and no rank is as high.
    Value isRank =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, rank);
    Value number =
        createSum(b, arith::SelectOp::create(b, isRank, lane, createI32(b, 0)));
    return {number, createShuffle(b, ShuffleKind::Index, own.begin, number),
            createShuffle(b, ShuffleKind::Index, own.end, number)};
  }

  const LoweredKernels &kernels;
};
} // namespace

void warp::populateSequenceByRankPattern(const TypeConverter &converter,
                                         const LoweredKernels &kernels,
                                         RewritePatternSet &patterns) {
  patterns.add<LowerSequenceByRank>(converter, patterns.getContext(), kernels);
}
