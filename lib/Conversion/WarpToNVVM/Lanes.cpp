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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// The inner product of the rows that a lane holds, of two views.
class RowProduct {
public:
  RowProduct(ImplicitLocOpBuilder &b, RowDotsOp op, Value a, Value bBase)
      : b(b), view(op.getA().getType()), same(op.getA() == op.getB()) {
    Value row = createLanePlace(b, view.getRows()), none = createI32(b, 0);
    addresses.emplace_back(b, view, a, row, none);
    if (!same)
      addresses.emplace_back(b, op.getB().getType(), bBase, row, none);
  }

  /// That of row `first` plus the lane's place.
  Value create(int64_t first);

private:
  /// The elements of a load of 16 bytes, in f32.
  SmallVector<Value> load(ViewAddress &address, int64_t row, int64_t byte);

  ImplicitLocOpBuilder &b;
  ViewType view;
  bool same;
  SmallVector<ViewAddress, 2> addresses;
  static constexpr int64_t kRun = 16, kWord = 4;
};

SmallVector<Value> RowProduct::load(ViewAddress &address, int64_t row,
                                    int64_t byte) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value words = LLVM::LoadOp::create(b, VectorType::get(kRun / kWord, i32),
                                     address.get(row, byte), kRun);
  SmallVector<Value> elements;
  for (Value word : unpack(b, words)) {
    if (view.getElementType().isBF16()) {
      llvm::append_range(elements, widenPair(b, word));
      continue;
    }
    Value pair = LLVM::BitcastOp::create(
        b, VectorType::get(2, view.getElementType()), word);
    for (Value half : unpack(b, pair))
      elements.push_back(arith::ExtFOp::create(b, f32, half));
  }
  return elements;
}

Value RowProduct::create(int64_t first) {
  // As many sums as a load has elements: no sum waits for the one before it.
  SmallVector<Value> sums;
  int64_t bytes = view.getColumns() * view.getElementBytes();
  for (int64_t byte = 0; byte < bytes; byte += kRun) {
    SmallVector<Value> left = load(addresses.front(), first, byte);
    SmallVector<Value> right =
        same ? left : load(addresses.back(), first, byte);
    for (auto [i, a, c] : llvm::enumerate(left, right)) {
      if (byte == 0)
        sums.push_back(arith::MulFOp::create(b, a, c));
      else
        sums[i] = math::FmaOp::create(b, a, c, sums[i]);
    }
  }
  for (size_t half = sums.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      sums[i] = arith::AddFOp::create(b, sums[i], sums[i + half]);
  return sums.front();
}

struct LowerRowDots : OpConversionPattern<RowDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowDotsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RowProduct product(b, op, adaptor.getA(), adaptor.getB());
    SmallVector<Value> elements;
    for (int64_t row = 0; row < op.getA().getType().getRows();
         row += kSm90a.warpThreads)
      elements.push_back(product.create(row));
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

/// Row 16 w + l / 4 + 8 h of the fragment has its element of the diagonal in
/// block 2 w + h of 8 columns, modulo their number, and there in column l / 4:
/// one of the two of lane l / 8 of its four.
struct LowerDiagonal : OpConversionPattern<DiagonalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DiagonalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getFragment());
    Value lane = createLane(b), warp = createGroupWarp(b);
    Value row = arith::ShRUIOp::create(b, lane, createI32(b, 2));
    Value isOdd = arith::TruncIOp::create(
        b, b.getI1Type(), arith::AndIOp::create(b, row, createI32(b, 1)));
    Value source = arith::OrIOp::create(
        b, arith::AndIOp::create(b, lane, createI32(b, -4)),
        arith::ShRUIOp::create(b, lane, createI32(b, 3)));
    // Squares of fewer rows than a fragment has begin again.
    int64_t warps = elements.size() / kWarpElements;
    Value place = arith::AndIOp::create(b, warp, createI32(b, warps - 1));
    SmallVector<Value> rows;
    for (int64_t half = 0; half < 2; ++half) {
      Value held;
      for (int64_t number = 0; number < warps; ++number) {
        int64_t first = number * kWarpElements + half * 6;
        Value mine = arith::SelectOp::create(b, isOdd, elements[first + 1],
                                             elements[first]);
        if (number == 0) {
          held = mine;
          continue;
        }
        Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place,
                                             createI32(b, number));
        held = arith::SelectOp::create(b, isMine, mine, held);
      }
      rows.push_back(createShuffle(b, ShuffleKind::Index, held, source));
    }
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, rows));
    return success();
  }

  /// Elements that a thread holds of the 16 columns of a warp's rows: of 8 of
  /// them two in row l / 4 and two in row l / 4 + 8, then of the others.
  static constexpr int64_t kWarpElements = 8;
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
  patterns.add<LowerDiagonal, LowerExtract, LowerRowDots, LowerScan>(
      converter, patterns.getContext());
}
