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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

/// The diagonal of the product of 16 rows with 16 rows: squares of 16 x 16
/// elements are the operands of two m16n8k16, of which each has half of it.
class DiagonalProduct {
public:
  DiagonalProduct(ImplicitLocOpBuilder &b, RowDotsOp op, Value a, Value bBase)
      : b(b), element(op.getA().getType().getElementType()),
        same(op.getA() == op.getB()), lane(createLane(b)),
        addressA(makeAddress(op.getA().getType(), a)),
        addressB(makeAddress(op.getB().getType(), bBase)) {}

  /// Elements 0 .. 7 and 8 .. 15 of the diagonal of rows `first` on. Element i
  /// of each is in lane getSource(i).
  std::pair<Value, Value> create(int64_t first, int64_t depth);
  /// 4 i + i / 2: a lane has row l / 4 and columns 2 (l mod 4) + (0, 1).
  Value getSource(Value place);

private:
  ViewAddress makeAddress(ViewType view, Value base);
  SmallVector<Value> load(ViewAddress &address, int64_t row, int64_t column);
  Value multiply(ArrayRef<Value> left, ArrayRef<Value> right, Value sums);
  /// The element of a pair of columns that lies on the diagonal.
  Value select(Value sums, int64_t pair);

  ImplicitLocOpBuilder &b;
  Type element;
  bool same;
  Value lane;
  ViewAddress addressA, addressB;
};

/// Lane l addresses row l mod 16 and half l / 16 of its 32 bytes (ldmatrix).
ViewAddress DiagonalProduct::makeAddress(ViewType view, Value base) {
  Value row = arith::AndIOp::create(b, lane, createI32(b, 15));
  Value half = arith::ShRUIOp::create(b, lane, createI32(b, 4));
  return ViewAddress(b, view, base, row,
                     arith::MulIOp::create(b, half, createI32(b, 16)));
}

SmallVector<Value> DiagonalProduct::load(ViewAddress &address, int64_t row,
                                         int64_t column) {
  auto registers = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  Value loaded = NVVM::LdMatrixOp::create(
      b, registers, address.get(row, 2 * column), 4u, NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Type pair = VectorType::get(2, element);
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i) {
    Value word = LLVM::ExtractValueOp::create(b, loaded, i);
    words.push_back(element.isBF16() ? word
                                     : LLVM::BitcastOp::create(b, pair, word));
  }
  return words;
}

Value DiagonalProduct::multiply(ArrayRef<Value> left, ArrayRef<Value> right,
                                Value sums) {
  auto type = element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  SmallVector<Value> added;
  for (int64_t i = 0; i < 4; ++i)
    added.push_back(LLVM::ExtractValueOp::create(b, sums, i));
  return NVVM::MmaOp::create(
      b, sums.getType(), left, right, added, ArrayRef<int64_t>{16, 8, 16},
      std::nullopt, std::nullopt, std::array{type, type},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
}

Value DiagonalProduct::select(Value sums, int64_t pair) {
  // Row i of the diagonal is column i: the odd one of its pair if i is odd.
  Value row = arith::ShRUIOp::create(b, lane, createI32(b, 2));
  Value isOdd = arith::TruncIOp::create(
      b, b.getI1Type(), arith::AndIOp::create(b, row, createI32(b, 1)));
  Value even = LLVM::ExtractValueOp::create(b, sums, pair),
        odd = LLVM::ExtractValueOp::create(b, sums, pair + 1);
  return arith::SelectOp::create(b, isOdd, odd, even);
}

std::pair<Value, Value> DiagonalProduct::create(int64_t first, int64_t depth) {
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value upper = LLVM::ZeroOp::create(b, type), lower = upper;
  for (int64_t column = 0; column < depth; column += kSm90a.productDepth) {
    SmallVector<Value> left = load(addressA, first, column);
    SmallVector<Value> right = same ? left : load(addressB, first, column);
    // Rows 0 .. 7 of both halves of the columns, then rows 8 .. 15.
    upper = multiply(left, {right[0], right[2]}, upper);
    lower = multiply(left, {right[1], right[3]}, lower);
  }
  return {select(upper, 0), select(lower, 2)};
}

Value DiagonalProduct::getSource(Value place) {
  Value row = arith::AndIOp::create(b, place, createI32(b, 7));
  return arith::AddIOp::create(b,
                               arith::MulIOp::create(b, row, createI32(b, 4)),
                               arith::ShRUIOp::create(b, row, createI32(b, 1)));
}

struct LowerRowDots : OpConversionPattern<RowDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowDotsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ViewType view = op.getA().getType();
    constexpr int64_t kHalf = 8;
    DiagonalProduct product(b, op, adaptor.getA(), adaptor.getB());
    Value place = createLanePlace(b, view.getRows());
    Value source = product.getSource(place);
    SmallVector<Value> elements;
    for (int64_t row = 0; row < view.getRows(); row += 2 * kHalf) {
      auto [upper, lower] = product.create(row, view.getColumns());
      // The lane takes the one of its place.
      for (auto [half, diagonal] : llvm::enumerate(std::array{upper, lower})) {
        Value moved = createShuffle(b, ShuffleKind::Index, diagonal, source);
        int64_t first = (row + half * kHalf) % kSm90a.warpThreads;
        if (first == 0) {
          elements.push_back(moved);
          continue;
        }
        Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                             place, createI32(b, first));
        elements.back() =
            arith::SelectOp::create(b, isMine, moved, elements.back());
      }
    }
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
  patterns.add<LowerExtract, LowerRowDots, LowerScan>(converter,
                                                      patterns.getContext());
}
