//===- FragmentScans.cpp - Sums along the rows and columns of a fragment --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <array>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The elements of a fragment of those of its two rows.
static SmallVector<Value> joinHalves(ArrayRef<Value> upper,
                                     ArrayRef<Value> lower) {
  SmallVector<Value> elements;
  for (size_t i = 0; i < upper.size(); i += 2)
    for (ArrayRef<Value> half : {upper, lower})
      llvm::append_range(elements, half.slice(i, 2));
  return elements;
}

namespace {
/// Inclusive sums along the rows or columns of a fragment.
class FragmentScan {
public:
  FragmentScan(ImplicitLocOpBuilder &b, tile::ScanOp op)
      : b(b), op(op), tile(cast<RankedTensorType>(op.getType())),
        reverse(op.getReverse()), lane(createLane(b)) {
    inQuad = arith::AndIOp::create(b, lane, createI32(b, kQuad - 1));
    quad = arith::DivUIOp::create(b, lane, createI32(b, kQuad));
  }

  SmallVector<Value> alongRows(ArrayRef<Value> elements);
  SmallVector<Value> alongColumns(ArrayRef<Value> elements);

private:
  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(b, lhs, rhs); }
  /// Sums over lanes `stride` apart, of which this is number `place` of
  /// `count`, from the first to this one or from this one to the last.
  Value sumLanes(Value value, Value place, int64_t count, int64_t stride);
  Value fromLane(Value value, Value index) {
    return createShuffle(b, ShuffleKind::Index, value, index);
  }
  void addEarlierWarps(SmallVectorImpl<Value> &upper,
                       SmallVectorImpl<Value> &lower);

  ImplicitLocOpBuilder &b;
  tile::ScanOp op;
  RankedTensorType tile;
  bool reverse;
  Value lane, inQuad, quad;
};
} // namespace

Value FragmentScan::sumLanes(Value value, Value place, int64_t count,
                             int64_t stride) {
  for (int64_t distance = 1; distance < count; distance *= 2) {
    Value other =
        createShuffle(b, reverse ? ShuffleKind::Down : ShuffleKind::Up, value,
                      createI32(b, distance * stride));
    Value exists = arith::CmpIOp::create(
        b, reverse ? arith::CmpIPredicate::ult : arith::CmpIPredicate::uge,
        place, createI32(b, reverse ? count - distance : distance));
    value = arith::SelectOp::create(b, exists, add(value, other), value);
  }
  return value;
}

/// Adds what the rows of earlier warps sum to, warp after warp.
void FragmentScan::addEarlierWarps(SmallVectorImpl<Value> &upper,
                                   SmallVectorImpl<Value> &lower) {
  auto [first, last] = getWarps(op);
  Scratch scratch(b, op, tile);
  // The sum over a warp's rows is in its last quad of the last row.
  ArrayRef<Value> ends = reverse ? upper : lower;
  Value isWriter = createIsEqual(b, quad, reverse ? 0 : kQuads - 1);
  Value warp = createGroupWarp(b);
  scratch.store(isWriter, warp, ends);
  SmallVector<Value> before(upper.size());
  for (int64_t i = 0; i + 1 < last - first; ++i) {
    int64_t number = reverse ? last - 1 - i : first + i;
    Value isEarlier = arith::CmpIOp::create(
        b, reverse ? arith::CmpIPredicate::ult : arith::CmpIPredicate::ugt,
        warp, createI32(b, number));
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
    for (auto [sum, total] : llvm::zip(before, scratch.load(number)))
      sum = sum ? arith::SelectOp::create(b, isEarlier, add(sum, total), sum)
                : arith::SelectOp::create(b, isEarlier, total, zero);
  }
  for (SmallVectorImpl<Value> *half : {&upper, &lower})
    for (auto [value, sum] : llvm::zip(*half, before))
      if (sum)
        value = add(sum, value);
}

SmallVector<Value> FragmentScan::alongRows(ArrayRef<Value> elements) {
  SmallVector<Value> halves[] = {getHalf(elements, 0), getHalf(elements, 1)};
  for (SmallVector<Value> &half : halves)
    for (Value &value : half)
      value = sumLanes(value, quad, kQuads, kQuad);
  SmallVector<Value> &from = halves[reverse ? 1 : 0],
                     &to = halves[reverse ? 0 : 1];
  int64_t last = reverse ? 0 : (kQuads - 1) * kQuad;
  Value source = arith::AddIOp::create(b, inQuad, createI32(b, last));
  for (auto [value, before] : llvm::zip(to, from))
    value = add(fromLane(before, source), value);
  addEarlierWarps(halves[0], halves[1]);
  return joinHalves(halves[0], halves[1]);
}

/// A thread holds two of eight columns, its quad the others.
SmallVector<Value> FragmentScan::alongColumns(ArrayRef<Value> elements) {
  SmallVector<Value> halves[2];
  Value first = arith::SubIOp::create(b, lane, inQuad);
  Value last =
      arith::AddIOp::create(b, first, createI32(b, reverse ? 0 : kQuad - 1));
  Value isStart = createIsEqual(b, inQuad, reverse ? kQuad - 1 : 0);
  for (int64_t number : {0, 1}) {
    SmallVector<Value> half = getHalf(elements, number);
    if (reverse)
      std::reverse(half.begin(), half.end());
    Value carry;
    for (size_t i = 0; i < half.size(); i += 2) {
      Value sum =
          sumLanes(add(half[i], half[i + 1]), inQuad, kQuad, /*stride=*/1);
      Value next = fromLane(sum, last);
      Value before =
          createShuffle(b, reverse ? ShuffleKind::Down : ShuffleKind::Up, sum,
                        createI32(b, 1));
      half[i] =
          arith::SelectOp::create(b, isStart, half[i], add(before, half[i]));
      half[i + 1] = sum;
      if (carry)
        for (Value *value : {&half[i], &half[i + 1], &next})
          *value = add(carry, *value);
      carry = next;
    }
    if (reverse)
      std::reverse(half.begin(), half.end());
    halves[number] = half;
  }
  return joinHalves(halves[0], halves[1]);
}

namespace {
struct LowerFragmentScan : OpConversionPattern<tile::ScanOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ScanOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isEncoded<FragmentAttr>(op.getType()))
      return rewriter.notifyMatchFailure(op, "not of a fragment");
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return op.emitOpError("expected a fragment of f32, got ") << op.getType();
    bool isOfRows = op.getAxis() == 0;
    if (isOfRows && failed(verifyScratch(op)))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getSource());
    FragmentScan scan(b, op);
    elements =
        isOfRows ? scan.alongRows(elements) : scan.alongColumns(elements);
    rewriter.replaceOp(
        op, pack(b, cast<VectorType>(adaptor.getSource().getType()), elements));
    return success();
  }
};

/// Gives what one lane of each quad holds of a column to all of its quad.
class ColumnReader {
public:
  explicit ColumnReader(ImplicitLocOpBuilder &b) : b(b), lane(createLane(b)) {
    inQuad = arith::AndIOp::create(b, lane, createI32(b, kQuad - 1));
    quad = arith::SubIOp::create(b, lane, inQuad);
  }

  /// Column `column` of the elements of a row, by column.
  Value read(ArrayRef<Value> row, int64_t column) {
    Value from =
        arith::AddIOp::create(b, quad, createI32(b, column % kColumns / 2));
    return shuffle(row[column / kColumns * 2 + column % 2], from);
  }
  /// Column `at` of each block of `block` columns, at most 8, among columns
  /// 8 `number` and on.
  Value readInBlock(ArrayRef<Value> row, int64_t number, int64_t block,
                    int64_t at) {
    Value element = row[2 * number + at % 2];
    if (block <= 2)
      return element;
    Value first = arith::AndIOp::create(
        b, lane, createI32(b, ~static_cast<int32_t>(block / 2 - 1)));
    return shuffle(element,
                   arith::AddIOp::create(b, first, createI32(b, at / 2)));
  }

  static constexpr int64_t kColumns = 2 * kQuad;

private:
  Value shuffle(Value value, Value from) {
    return createShuffle(b, ShuffleKind::Index, value, from);
  }

  ImplicitLocOpBuilder &b;
  Value lane, inQuad, quad;
};

struct LowerColumn : OpConversionPattern<ColumnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ColumnOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().getElementType().isF32())
      return op.emitOpError("expected a fragment of f32, got ")
             << op.getSource().getType();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getSource());
    ColumnReader reader(b);
    SmallVector<Value> rows;
    for (int64_t half : {0, 1})
      rows.push_back(reader.read(getHalf(elements, half), op.getColumn()));
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, rows));
    return success();
  }
};

struct LowerJoin : OpConversionPattern<JoinOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(JoinOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements;
    for (Value source : adaptor.getSources())
      llvm::append_range(elements, unpack(b, source));
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

/// Gives what one row of each block of rows holds to all of its block. A warp
/// has 16 rows, a quad of lanes two of them, 8 apart.
class RowReader {
public:
  RowReader(ImplicitLocOpBuilder &b, int64_t block, int64_t at)
      : b(b), half(at / kQuads), isWhole(block > kQuads) {
    Value lane = createLane(b);
    int64_t quads = std::min(block, kQuads);
    Value first = arith::AndIOp::create(
        b, lane, createI32(b, kQuad - 1 + (kQuads - quads) * kQuad));
    from = arith::AddIOp::create(b, first, createI32(b, at % kQuads * kQuad));
  }

  /// The bases of the upper rows and of the lower ones, of their elements.
  std::array<SmallVector<Value>, 2> read(ArrayRef<SmallVector<Value>> halves) {
    if (isWhole) {
      SmallVector<Value> bases = readHalf(halves[half]);
      return {bases, bases};
    }
    return {readHalf(halves[0]), readHalf(halves[1])};
  }

private:
  SmallVector<Value> readHalf(ArrayRef<Value> elements) {
    return llvm::map_to_vector(elements, [&](Value element) -> Value {
      return createShuffle(b, ShuffleKind::Index, element, from);
    });
  }

  ImplicitLocOpBuilder &b;
  int64_t half;
  bool isWhole;
  Value from;
};

/// Differences of the rows of a fragment from one of each block.
static SmallVector<Value> rebaseRows(ImplicitLocOpBuilder &b,
                                     ArrayRef<Value> elements,
                                     tile::RebaseOp op) {
  RowReader reader(b, op.getBlock(), op.getAt());
  SmallVector<Value> halves[] = {getHalf(elements, 0), getHalf(elements, 1)},
                     results[2];
  std::array<SmallVector<Value>, 2> bases = reader.read(halves);
  for (int64_t number : {0, 1})
    for (auto [element, base] : llvm::zip(halves[number], bases[number]))
      results[number].push_back(arith::SubFOp::create(b, element, base));
  return joinHalves(results[0], results[1]);
}

struct LowerFragmentRebase : OpConversionPattern<tile::RebaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::RebaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isEncoded<FragmentAttr>(op.getType()) ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return op.emitOpError("expected a fragment of f32, got ") << op.getType();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getSource());
    auto type = cast<VectorType>(adaptor.getSource().getType());
    if (op.getAxis() == 0) {
      rewriter.replaceOp(op, pack(b, type, rebaseRows(b, elements, op)));
      return success();
    }
    auto block = static_cast<int64_t>(op.getBlock()),
         at = static_cast<int64_t>(op.getAt());
    ColumnReader reader(b);
    SmallVector<Value> halves[2];
    for (int64_t number : {0, 1}) {
      SmallVector<Value> row = getHalf(elements, number);
      Value base;
      for (size_t i = 0; i < row.size(); i += 2) {
        auto first = static_cast<int64_t>(i / 2) * ColumnReader::kColumns;
        if (block < ColumnReader::kColumns)
          base = reader.readInBlock(row, i / 2, block, at);
        else if (first % block == 0)
          base = reader.read(row, first + at);
        for (size_t element : {i, i + 1})
          halves[number].push_back(arith::SubFOp::create(
              b, row[element], block == 1 ? row[element] : base));
      }
    }
    rewriter.replaceOp(op, pack(b, type, joinHalves(halves[0], halves[1])));
    return success();
  }
};
} // namespace

void warp::populateFragmentScanPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerFragmentScan>(converter, patterns.getContext(),
                                  /*benefit=*/2);
  patterns.add<LowerColumn, LowerFragmentRebase, LowerJoin>(
      converter, patterns.getContext());
}
