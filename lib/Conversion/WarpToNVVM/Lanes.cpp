//===- Lanes.cpp - Vectors over the lanes of a warp -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Shuffles move words.
static bool isWord(Type type) { return type.isF32() || type.isInteger(32); }

/// Inclusive sum over the `width` lanes among which a lane's place is `place`:
/// log2(width) steps, each of which adds the sum of twice the distance.
static Value createLaneScan(ImplicitLocOpBuilder &b, Value value, Value place,
                            int64_t width, bool reverse) {
  ShuffleKind kind = reverse ? ShuffleKind::Down : ShuffleKind::Up;
  for (int64_t distance = 1; distance < width; distance *= 2) {
    Value other = createShuffle(b, kind, value, createI32(b, distance));
    Value sum = arith::AddFOp::create(b, value, other);
    int64_t bound = reverse ? width - distance : distance;
    Value exists = arith::CmpIOp::create(
        b, reverse ? arith::CmpIPredicate::ult : arith::CmpIPredicate::uge,
        place, createI32(b, bound));
    value = arith::SelectOp::create(b, exists, sum, value);
  }
  return value;
}

namespace {
struct LowerScan : OpConversionPattern<tile::ScanOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ScanOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto tensor = cast<RankedTensorType>(op.getType());
    if (!isEncoded<LanesAttr>(tensor) || !tensor.getElementType().isF32())
      return op.emitOpError("expected a vector of f32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t width = std::min(tensor.getDimSize(0), kSm90a.warpThreads);
    Value place = createLanePlace(b, width);
    SmallVector<Value> parts = unpack(b, adaptor.getSource());
    for (Value &part : parts)
      part = createLaneScan(b, part, place, width, op.getReverse());
    // The sum of a part, which its last lane holds, goes into the next one.
    if (op.getReverse())
      std::reverse(parts.begin(), parts.end());
    Value last = createI32(b, op.getReverse() ? 0 : width - 1);
    for (size_t i = 1; i < parts.size(); ++i)
      parts[i] = arith::AddFOp::create(
          b, parts[i],
          createShuffle(b, ShuffleKind::Index, parts[i - 1], last));
    if (op.getReverse())
      std::reverse(parts.begin(), parts.end());
    rewriter.replaceOp(
        op, pack(b, cast<VectorType>(adaptor.getSource().getType()), parts));
    return success();
  }
};

struct LowerExtract : OpConversionPattern<tensor::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType tensor = op.getTensor().getType();
    if (!isEncoded<LanesAttr>(tensor) || !isWord(tensor.getElementType()))
      return op.emitOpError("expected a vector of f32 or i32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value index = arith::IndexCastOp::create(b, b.getI32Type(),
                                             adaptor.getIndices().front());
    Value part =
        arith::DivUIOp::create(b, index, createI32(b, kSm90a.warpThreads));
    SmallVector<Value> parts = unpack(b, adaptor.getTensor());
    Value selected = parts.front();
    for (size_t i = 1; i < parts.size(); ++i) {
      Value isPart = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part,
                                           createI32(b, i));
      selected = arith::SelectOp::create(b, isPart, parts[i], selected);
    }
    // The shuffle takes the index modulo the lanes.
    rewriter.replaceOp(op,
                       createShuffle(b, ShuffleKind::Index, selected, index));
    return success();
  }
};
} // namespace

void warp::populateLanePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<LowerExtract, LowerScan>(converter, patterns.getContext());
}
