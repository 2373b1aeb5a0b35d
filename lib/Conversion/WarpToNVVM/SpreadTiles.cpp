//===- SpreadTiles.cpp - Rows and columns of tiles over lanes -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Of element `i` of a thread's part of a tile the number of its row or column
/// among those that the thread holds.
static int64_t getLine(SpreadAttr spread, RankedTensorType tile, int64_t dim,
                       int64_t i) {
  int64_t run = spread.getRun(), along = spread.getRunAlong(dim),
          perRow = tile.getDimSize(1) / spread.getBlock(1), number = i / run;
  int64_t block = dim == 1 ? number % perRow : number / perRow;
  return block * along + (along > 1 ? i % run : 0);
}

/// What the lanes of a row hold together, in all of them.
static Value reduceLanes(ImplicitLocOpBuilder &b, linalg::ReduceOp op,
                         Value value, int64_t lanes) {
  for (int64_t distance = 1; distance < lanes; distance *= 2)
    value = combine(
        b, op, value,
        createShuffle(b, ShuffleKind::Xor, value, createI32(b, distance)));
  return value;
}

namespace {
/// Each thread holds the rows and columns of its elements already.
struct LowerSpreadBroadcast : OpConversionPattern<linalg::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto result = cast<RankedTensorType>(op.getInit().getType());
    auto spread = dyn_cast_or_null<SpreadAttr>(result.getEncoding());
    if (!spread)
      return rewriter.notifyMatchFailure(op, "not to a spread tile");
    auto slice = dyn_cast_or_null<SliceAttr>(
        cast<RankedTensorType>(op.getInput().getType()).getEncoding());
    if (!slice || slice.getOf() != spread ||
        op.getDimensions() != ArrayRef<int64_t>(1 - slice.getAxis()))
      return op.emitOpError("expected a vector along the rows or columns of "
                            "the tile, got ")
             << op.getInput().getType();
    SmallVector<int64_t> selection;
    for (int64_t i = 0; i < getThreadElements(result); ++i)
      selection.push_back(getLine(spread, result, slice.getAxis(), i));
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(
        op, adaptor.getInput(), adaptor.getInput(), selection);
    return success();
  }
};

/// A thread reduces what it holds of a row, then the lanes of the row. A vector
/// along the columns is one row.
struct LowerSpreadReduce : OpConversionPattern<linalg::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto source = cast<RankedTensorType>(op.getInputs().front().getType());
    auto spread = dyn_cast_or_null<SpreadAttr>(source.getEncoding());
    auto slice = dyn_cast_or_null<SliceAttr>(source.getEncoding());
    if (!spread && !slice)
      return rewriter.notifyMatchFailure(op, "not of a spread tile");
    if (op.getDimensions() != ArrayRef<int64_t>(spread ? 1 : 0) ||
        (slice && slice.getAxis() != 1))
      return op.emitOpError("expected a reduction along the rows of a spread "
                            "tile or of a vector along its columns, got ")
             << source;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getInputs().front()),
                       results = unpack(b, adaptor.getInits().front());
    SmallVector<Value> sums(results.size());
    for (auto [i, element] : llvm::enumerate(elements)) {
      Value &sum = sums[spread ? getLine(spread, source, 0, i) : 0];
      sum = sum ? combine(b, op, sum, element) : element;
    }
    int64_t lanes = (spread ? spread : slice.getOf()).getLanes();
    for (auto [sum, result] : llvm::zip(sums, results))
      result = combine(b, op, result, reduceLanes(b, op, sum, lanes));
    auto type = cast<VectorType>(
        getTypeConverter()->convertType(op.getInits().front().getType()));
    rewriter.replaceOp(op, pack(b, type, results));
    return success();
  }
};

struct LowerUniformExtract : OpConversionPattern<tensor::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isEncoded<UniformAttr>(op.getTensor().getType()))
      return rewriter.notifyMatchFailure(op, "not what every thread holds");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getTensor());
    Value selected = elements.front();
    for (size_t i = 1; i < elements.size(); ++i)
      selected = arith::SelectOp::create(
          b,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                adaptor.getIndices().front(),
                                createIndex(b, i)),
          elements[i], selected);
    rewriter.replaceOp(op, selected);
    return success();
  }
};
} // namespace

void warp::populateSpreadTilePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerSpreadBroadcast, LowerSpreadReduce, LowerUniformExtract>(
      converter, patterns.getContext(), /*benefit=*/2);
}
