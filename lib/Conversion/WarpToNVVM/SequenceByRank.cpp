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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// A sequence and where it begins and ends, as i32. One that the boundaries
/// leave nothing of may end before it begins.
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
    Value tokens = arith::IndexCastOp::create(b, i32, adaptor.getTokens());
    Value extent = bounds->sizes.front();
    Value count = arith::SubIOp::create(
        b, arith::IndexCastOp::create(b, i32, extent), createI32(b, 1));
    auto replace = [&](ValueRange found) {
      SmallVector<Value> results;
      for (Value result : found)
        results.push_back(
            arith::IndexCastOp::create(b, b.getIndexType(), result));
      rewriter.replaceOp(op, results);
      return success();
    };
    if (op.getInOrder()) {
      Found found = findNumber(b, *bounds, element, count, rank, tokens);
      return replace({found.number, found.begin, found.end});
    }
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
      return findLongest(in, *bounds, element, count, rank, tokens);
    });
    yield(few.elseBlock(), [&](ImplicitLocOpBuilder &in) {
      return findNumber(in, *bounds, element, count, rank, tokens);
    });
    return replace(few.getResults());
  }

private:
  /// Boundary `number`.
  static Value loadBound(ImplicitLocOpBuilder &b, const Array &bounds,
                         Type element, Value number) {
    Value index = arith::IndexCastUIOp::create(b, b.getIndexType(), number);
    Value bound = LLVM::LoadOp::create(
        b, element, createElementAddress(b, bounds, element, index));
    if (element.isInteger(64))
      bound = arith::TruncIOp::create(b, b.getI32Type(), bound);
    return bound;
  }

  static Value clamp(ImplicitLocOpBuilder &b, Value bound, Value tokens) {
    Value atLeast = arith::MaxSIOp::create(b, bound, createI32(b, 0));
    return arith::MinSIOp::create(b, atLeast, tokens);
  }

  /// Sequence `number` by the rule of the op: each lane has a level.
  static Found findNumber(ImplicitLocOpBuilder &b, const Array &bounds,
                          Type element, Value count, Value number,
                          Value tokens) {
    Value level = createLane(b, createThreadHere(b));
    Value block = arith::ShRUIOp::create(b, number, level);
    Value low = arith::ShLIOp::create(b, block, level);
    Value next = arith::AddIOp::create(b, block, createI32(b, 1));
    Value high =
        arith::MinUIOp::create(b, arith::ShLIOp::create(b, next, level), count);
    Value begin = createReduction(b, loadBound(b, bounds, element, low),
                                  NVVM::ReduxKind::MAX);
    Value end = createReduction(b, loadBound(b, bounds, element, high),
                                NVVM::ReduxKind::MIN);
    return {number, clamp(b, begin, tokens), clamp(b, end, tokens)};
  }

  /// The boundaries on both sides of the lane's sequence as they are in memory;
  /// zeros in a lane without one.
  static Found loadOwn(ImplicitLocOpBuilder &b, const Array &bounds,
                       Type element, Value lane, Value has) {
    Type i32 = b.getI32Type();
    auto own = scf::IfOp::create(b, TypeRange({i32, i32}), has,
                                 /*withElseRegion=*/true);
    auto then = ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), own.thenBlock());
    Value next = arith::AddIOp::create(then, lane, createI32(then, 1));
    scf::YieldOp::create(then,
                         ValueRange{loadBound(then, bounds, element, lane),
                                    loadBound(then, bounds, element, next)});
    auto other =
        ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), own.elseBlock());
    Value none = createI32(other, 0);
    scf::YieldOp::create(other, ValueRange{none, none});
    return {lane, own.getResult(0), own.getResult(1)};
  }

  /// The lane's sequence by the rule of the op: boundaries of levels above 0
  /// are those of other lanes.
  static Found findOwn(ImplicitLocOpBuilder &b, const Array &bounds,
                       Type element, Value lane, Value has, Value count,
                       Value tokens) {
    Found loaded = loadOwn(b, bounds, element, lane, has);
    Value last = arith::SubIOp::create(b, count, createI32(b, 1));
    Value begin = loaded.begin, end = loaded.end;
    for (int64_t width = 2; width <= format::kWarpThreads; width *= 2) {
      Value low = arith::AndIOp::create(b, lane, createI32(b, -width));
      Value inBlock = arith::OrIOp::create(b, lane, createI32(b, width - 1));
      Value high = arith::MinUIOp::create(b, inBlock, last);
      begin = arith::MaxSIOp::create(
          b, begin, createShuffle(b, ShuffleKind::Index, loaded.begin, low));
      end = arith::MinSIOp::create(
          b, end, createShuffle(b, ShuffleKind::Index, loaded.end, high));
    }
    return {lane, clamp(b, begin, tokens), clamp(b, end, tokens)};
  }

  /// The length of the lane's sequence; -1 in a lane without one.
  static Value measure(ImplicitLocOpBuilder &b, const Found &own, Value has) {
    Value length = arith::MaxSIOp::create(
        b, arith::SubIOp::create(b, own.end, own.begin), createI32(b, 0));
    return arith::SelectOp::create(b, has, length, createI32(b, -1));
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
                           Type element, Value count, Value rank,
                           Value tokens) {
    Value lane = createLane(b, createThreadHere(b));
    Value has =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane, count);
    Found own = findOwn(b, bounds, element, lane, has, count, tokens);
    Value before = countBefore(b, lane, measure(b, own, has), count);
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
