//===- Lanes.cpp - Vectors over the lanes of a warp -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

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
    if (isEncoded<FragmentAttr>(tensor))
      return rewriter.notifyMatchFailure(op, "not of a vector");
    if (!isEncoded<LanesAttr>(tensor) || !tensor.getElementType().isF32())
      return op.emitOpError("expected a vector of f32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t width = std::min(tensor.getDimSize(0), format::kWarpThreads);
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

/// Inner products of rows of two views. Four lanes share a row, and a warp
/// eight rows at a time: the rows that a lane reads lie a multiple of the
/// swizzle's phases apart, so two addresses do for all its loads, and these
/// meet all banks once.
class RowProduct {
public:
  RowProduct(ImplicitLocOpBuilder &b, RowDotsOp op, Value a, Value c);

  /// Those of the next 32 rows, or of 16, from row `first`, each in its lane.
  Value createLanes(int64_t first);
  /// Those of the rows that a thread has of a fragment.
  SmallVector<Value> createRows();

private:
  using Words = SmallVector<Value>;
  /// What a lane has of row `first` plus that of its four.
  Words load(ViewAddress &side, int64_t first);
  SmallVector<Value> widen(ArrayRef<Value> words);
  Value addProducts(ArrayRef<Value> a, ArrayRef<Value> c);
  Value addSquares(ArrayRef<Value> words);
  Value gather(SmallVector<Value> sums);
  SmallVector<Value> sumRows(int64_t first, int64_t rows);
  Value sum(SmallVector<Value> values);

  ImplicitLocOpBuilder &b;
  ViewType view;
  /// Lane of the four of a row.
  Value quarter;
  /// Of both views, or of the one that both sides are.
  SmallVector<ViewAddress, 2> sides;
  bool isOne;
  static constexpr int64_t kRun = 16, kWord = 4, kQuad = 4, kRows = 8;
  /// Runs of a row that follow each other in a lane.
  int64_t runs;
};

RowProduct::RowProduct(ImplicitLocOpBuilder &b, RowDotsOp op, Value a, Value c)
    : b(b), view(op.getA().getType()), isOne(op.getA() == op.getB()) {
  int64_t bytes = view.getColumns() * view.getElementBytes();
  runs = std::min(bytes, format::kPanelBytes) / (kRun * kQuad);
  Value lane = createLane(b);
  quarter = arith::AndIOp::create(b, lane, createI32(b, kQuad - 1));
  Value row = arith::DivUIOp::create(b, lane, createI32(b, kQuad));
  // A fragment gives each warp 16 rows.
  if (isEncoded<RowsAttr>(op.getType()))
    row = arith::AddIOp::create(
        b, row,
        arith::MulIOp::create(b, createGroupWarp(b), createI32(b, 2 * kRows)));
  Value byte = arith::MulIOp::create(b, quarter, createI32(b, runs * kRun));
  sides.emplace_back(b, view, a, row, byte);
  if (!isOne)
    sides.emplace_back(b, op.getB().getType(), c, row, byte);
}

RowProduct::Words RowProduct::load(ViewAddress &side, int64_t first) {
  auto type = VectorType::get(kRun / kWord, b.getI32Type());
  int64_t bytes = view.getColumns() * view.getElementBytes();
  Words words;
  for (int64_t part = 0; part < bytes; part += kQuad * runs * kRun)
    for (int64_t run = 0; run < runs; ++run)
      llvm::append_range(
          words,
          unpack(b, LLVM::LoadOp::create(
                        b, type, side.get(first, part + run * kRun), kRun)));
  return words;
}

SmallVector<Value> RowProduct::widen(ArrayRef<Value> words) {
  Type type = view.getElementType();
  SmallVector<Value> elements;
  for (Value word : words) {
    if (type.isBF16()) {
      llvm::append_range(elements, widenPair(b, word));
      continue;
    }
    Value pair = LLVM::BitcastOp::create(b, VectorType::get(2, type), word);
    for (Value half : unpack(b, pair))
      elements.push_back(arith::ExtFOp::create(b, b.getF32Type(), half));
  }
  return elements;
}

/// The sum of any number of values, as a tree.
Value RowProduct::sum(SmallVector<Value> values) {
  for (; values.size() > 1; values.truncate(llvm::divideCeil(values.size(), 2)))
    for (size_t i = 0, rest = llvm::divideCeil(values.size(), 2);
         i + rest < values.size(); ++i)
      values[i] = arith::AddFOp::create(b, values[i], values[i + rest]);
  return values.front();
}

Value RowProduct::addProducts(ArrayRef<Value> a, ArrayRef<Value> c) {
  constexpr size_t kSums = 2 * kRun / kWord;
  SmallVector<Value> sums;
  for (auto [i, x, y] : llvm::enumerate(widen(a), widen(c))) {
    if (i < kSums)
      sums.push_back(arith::MulFOp::create(b, x, y));
    else
      sums[i % kSums] = math::FmaOp::create(b, x, y, sums[i % kSums]);
  }
  return sum(sums);
}

/// A lane sums its squares in pairs of bf16, which takes half the instructions:
/// none of them cancels another, and of all these sums in a row the rounding
/// averages out. By twos, then sums of equal ones, which are exact: so also a
/// row of equal entries, where nothing averages out, has a norm that is right
/// to 2^-9 (1.7e-3; with four in turn 2.6e-3, with eight 4.5e-3).
Value RowProduct::addSquares(ArrayRef<Value> words) {
  auto pairs = VectorType::get(2, view.getElementType());
  SmallVector<Value> sums;
  for (auto [i, word] : llvm::enumerate(words)) {
    Value pair = LLVM::BitcastOp::create(b, pairs, word);
    if (i % 2 == 0)
      sums.push_back(arith::MulFOp::create(b, pair, pair));
    else
      sums.back() = math::FmaOp::create(b, pair, pair, sums.back());
  }
  Value word = LLVM::BitcastOp::create(b, b.getI32Type(), sum(sums));
  auto halves = widenPair(b, word);
  return arith::AddFOp::create(b, halves[0], halves[1]);
}

/// Of what a lane has of each eighth row, the total of the row of its own
/// number: two exchanges among the four lanes of a row, each of which halves
/// what a lane still sums, and one among all.
Value RowProduct::gather(SmallVector<Value> sums) {
  int64_t count = static_cast<int64_t>(sums.size());
  for (int64_t bit = 1; bit < kQuad; bit *= 2) {
    Value distance = createI32(b, bit);
    if (sums.size() == 1) {
      sums[0] = arith::AddFOp::create(
          b, sums[0], createShuffle(b, ShuffleKind::Xor, sums[0], distance));
      continue;
    }
    Value keepsOdd = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, quarter, distance), createI32(b, 0));
    SmallVector<Value> kept;
    for (size_t i = 0; i < sums.size(); i += 2) {
      Value mine = arith::SelectOp::create(b, keepsOdd, sums[i + 1], sums[i]);
      Value others = arith::SelectOp::create(b, keepsOdd, sums[i], sums[i + 1]);
      kept.push_back(arith::AddFOp::create(
          b, mine, createShuffle(b, ShuffleKind::Xor, others, distance)));
    }
    sums = kept;
  }
  // Lane 4 r + i has row r + 8 i.
  Value place = createLanePlace(b, kRows * count);
  Value row = arith::AndIOp::create(b, place, createI32(b, kRows - 1));
  Value source = arith::AddIOp::create(
      b, arith::MulIOp::create(b, row, createI32(b, kQuad)),
      arith::DivUIOp::create(b, place, createI32(b, kRows)));
  return createShuffle(b, ShuffleKind::Index, sums[0], source);
}

/// What a lane has of each eighth row.
SmallVector<Value> RowProduct::sumRows(int64_t first, int64_t rows) {
  SmallVector<Value> sums;
  for (int64_t row = first; row < first + rows; row += kRows) {
    Words a = load(sides.front(), row);
    sums.push_back(isOne && view.getElementType().isBF16()
                       ? addSquares(a)
                       : addProducts(a, isOne ? a : load(sides.back(), row)));
  }
  return sums;
}

Value RowProduct::createLanes(int64_t first) {
  return gather(sumRows(first, std::min(view.getRows(), format::kWarpThreads)));
}

SmallVector<Value> RowProduct::createRows() {
  SmallVector<Value> sums = sumRows(0, 2 * kRows);
  for (Value &sum : sums)
    for (int64_t bit = 1; bit < kQuad; bit *= 2)
      sum = arith::AddFOp::create(
          b, sum, createShuffle(b, ShuffleKind::Xor, sum, createI32(b, bit)));
  return sums;
}

struct LowerRowDots : OpConversionPattern<RowDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowDotsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RowProduct product(b, op, adaptor.getA(), adaptor.getB());
    SmallVector<Value> elements;
    if (isEncoded<RowsAttr>(op.getType()))
      elements = product.createRows();
    else
      for (int64_t row = 0; row < op.getA().getType().getRows();
           row += format::kWarpThreads)
        elements.push_back(product.createLanes(row));
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

struct LowerExtract : OpConversionPattern<tensor::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType tensor = op.getTensor().getType();
    if (isEncoded<FragmentAttr>(tensor))
      return rewriter.notifyMatchFailure(op, "not of a vector");
    if (!isEncoded<LanesAttr>(tensor) || !isWord(tensor.getElementType()))
      return op.emitOpError("expected a vector of f32 or i32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value index = arith::IndexCastOp::create(b, b.getI32Type(),
                                             adaptor.getIndices().front());
    Value part =
        arith::DivUIOp::create(b, index, createI32(b, format::kWarpThreads));
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
  patterns.add<LowerExtract, LowerRowDots, LowerScan>(converter,
                                                      patterns.getContext());
}
