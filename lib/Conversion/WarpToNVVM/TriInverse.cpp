//===- TriInverse.cpp - A unit lower triangular inverse by a warp ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TriInverse.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

TriInverseWriter::TriInverseWriter(ImplicitLocOpBuilder &b, ViewType m,
                                   Value mBase, ViewType x, Value xBase,
                                   Value rows, Value columns)
    : b(b), m(m), x(x), mBase(mBase), xBase(xBase), rows(rows),
      columns(columns), lane(createLane(b)),
      half(arith::DivUIOp::create(b, lane, createI32(b, kBlock))),
      place(arith::AndIOp::create(b, lane, createI32(b, kBlock - 1))) {}

//===----------------------------------------------------------------------===//
// Words of two rows
//===----------------------------------------------------------------------===//

Value TriInverseWriter::toWord(Value pair) {
  return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
}

Value TriInverseWriter::toPair(Value word) {
  return LLVM::BitcastOp::create(b, getPair(), word);
}

Value TriInverseWriter::createBroadcast(const Column &column, int64_t row) {
  Value pair = column[row / 2];
  SmallVector<int64_t> lanes(2, row % 2);
  return vector::ShuffleOp::create(b, pair, pair, lanes);
}

Value TriInverseWriter::createShuffled(ShuffleKind kind, Value pair,
                                       Value lane) {
  return toPair(createShuffle(b, kind, toWord(pair), lane));
}

void TriInverseWriter::accumulate(Column &accumulator, int64_t row,
                                  int64_t column, Value offset, Value factor) {
  Column run = loadColumn(row, column, 2 * accumulator.size(), offset);
  for (auto [sum, pair] : llvm::zip(accumulator, run))
    sum = math::FmaOp::create(b, pair, factor, sum);
}

//===----------------------------------------------------------------------===//
// Blocks of 16
//===----------------------------------------------------------------------===//

/// Column `column` of the identity of `size` rows.
Column TriInverseWriter::createUnit(Value column, int64_t size) {
  constexpr int64_t kOneInF16 = 0x3C00;
  Value odd = arith::AndIOp::create(b, column, createI32(b, 1));
  Value one =
      arith::ShLIOp::create(b, createI32(b, kOneInF16),
                            arith::MulIOp::create(b, odd, createI32(b, 16)));
  Value pair = arith::DivUIOp::create(b, column, createI32(b, 2));
  Column unit;
  for (int64_t i = 0; i < size / 2; ++i) {
    Value here = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, pair,
                                       createI32(b, i));
    unit.push_back(
        toPair(arith::SelectOp::create(b, here, one, createI32(b, 0))));
  }
  return unit;
}

/// Column `place` of (I + D)^-1, D the diagonal block at row `first`, or the
/// one after it in the second half-warp: x -= D[:, j] x[j], j upwards.
Column TriInverseWriter::substitute(int64_t first) {
  Value offset;
  if (m.getRows() > kBlock)
    offset = arith::MulIOp::create(
        b, half, createI32(b, kBlock * (m.getStride() + m.getElementBytes())));
  Column column = createUnit(place, kBlock);
  for (int64_t j = 0; j + 1 < kBlock; ++j) {
    Value factor = arith::NegFOp::create(b, createBroadcast(column, j));
    for (int64_t row = (j + 1) / kRun * kRun; row < kBlock; row += kRun) {
      Column run = loadRun(createRunAddress(first + j, first + row, offset));
      // D is zero above the diagonal, so pairs above it stay. Where one alone
      // does, it is taken along: a load of three words would be two.
      int64_t above = std::max<int64_t>(j + 1 - row, 0) / 2;
      for (int64_t i = above == 1 ? 0 : above; i < kRun / 2; ++i)
        column[row / 2 + i] =
            math::FmaOp::create(b, run[i], factor, column[row / 2 + i]);
    }
  }
  return column;
}

/// X21 = -X22 (M21 X11) of the two blocks at row `first`. `diagonal` are the
/// columns of X11 and, in the second half-warp, X22, which lies in memory as
/// well. In `below`, a lane has rows 8 `half` .. of column `place`.
void TriInverseWriter::mergeSixteen(int64_t first, const Column &diagonal,
                                    Column &below) {
  Value rows =
      arith::MulIOp::create(b, half, createI32(b, kRun * m.getElementBytes()));
  Column left;
  for (Value pair : diagonal)
    left.push_back(createShuffled(ShuffleKind::Index, pair, place));
  Column product(kRun / 2, createZero());
  for (int64_t k = 0; k < kBlock; ++k)
    accumulate(product, first + k, first + kBlock, rows,
               arith::NegFOp::create(b, createBroadcast(left, k)));
  // Each half-warp made 8 of the 16 rows; both need them all.
  Column all(kBlock / 2);
  Value isUpper =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, half, createI32(b, 0));
  for (int64_t i = 0; i < kRun / 2; ++i) {
    Value other =
        createShuffled(ShuffleKind::Xor, product[i], createI32(b, kBlock));
    all[i] = arith::SelectOp::create(b, isUpper, product[i], other);
    all[kRun / 2 + i] = arith::SelectOp::create(b, isUpper, other, product[i]);
  }
  below.assign(kRun / 2, createZero());
  for (int64_t k = 0; k < kBlock; ++k)
    accumulate(below, first + kBlock + k, first + kBlock, rows,
               createBroadcast(all, k));
}

//===----------------------------------------------------------------------===//
// Blocks of 32
//===----------------------------------------------------------------------===//

/// X21 = -X22 (M21 X11) of the halves of 64 rows. A lane has column `lane` of
/// X11 in `left` and gets that of X21.
void TriInverseWriter::mergeHalves(const Column &left, Column &below) {
  constexpr int64_t kSize = 2 * kBlock;
  Column product(kSize / 2, createZero());
  for (int64_t k = 0; k < kSize; ++k)
    accumulate(product, k, kSize, Value(),
               arith::NegFOp::create(b, createBroadcast(left, k)));
  below.assign(kSize / 2, createZero());
  for (int64_t k = 0; k < kSize; ++k)
    accumulate(below, kSize + k, kSize, Value(), createBroadcast(product, k));
}

/// `column` without the identity's: its one is exact.
static Column removeUnit(ImplicitLocOpBuilder &b, const Column &column,
                         const Column &unit) {
  Column result;
  for (auto [pair, one] : llvm::zip(column, unit))
    result.push_back(arith::SubFOp::create(b, pair, one));
  return result;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

void TriInverseWriter::runOneBlock() {
  // Both half-warps do the same and write the same.
  Column diagonal = substitute(0);
  writeColumn(removeUnit(b, diagonal, createUnit(place, kBlock)), 0,
              createI32(b, 0), place);
}

void TriInverseWriter::runTwoBlocks() {
  Column below, diagonal = substitute(0);
  createWarpSync(b);
  Value row = arith::MulIOp::create(b, lane, createI32(b, m.getStride()));
  Value first = arith::MulIOp::create(
      b, half, createI32(b, kBlock * m.getElementBytes()));
  storeColumn(diagonal,
              createAddress(b, createAddress(b, mBase, row, 0), first, 0));
  createWarpSync(b);
  mergeSixteen(0, diagonal, below);
  auto rows = [&](int64_t count) -> Value {
    return arith::MulIOp::create(b, half, createI32(b, count));
  };
  writeColumn(removeUnit(b, diagonal, createUnit(place, kBlock)), 0,
              rows(kBlock), lane);
  writeColumn(below, kBlock, rows(kRun), place);
  writeZeros(0, kBlock, kBlock);
}

void TriInverseWriter::runFourBlocks() {
  constexpr int64_t kSize = 2 * kBlock;
  Value stride = createI32(b, m.getStride());
  Value ownRow = arith::MulIOp::create(b, lane, stride);
  Value placeRow = arith::MulIOp::create(b, place, stride);
  auto columns = [&](int64_t count) -> Value {
    return arith::MulIOp::create(b, half,
                                 createI32(b, count * m.getElementBytes()));
  };
  for (int64_t first : {int64_t(0), kSize}) {
    Column below, diagonal = substitute(first);
    createWarpSync(b);
    storeColumn(diagonal,
                createAddress(b, createRunAddress(first, first, ownRow),
                              columns(kBlock), 0));
    createWarpSync(b);
    mergeSixteen(first, diagonal, below);
    createWarpSync(b);
    storeColumn(below, createAddress(
                           b, createRunAddress(first, first + kBlock, placeRow),
                           columns(kRun), 0));
  }
  createWarpSync(b);
  Column below, upper = loadColumn(0, 0, kSize, ownRow),
                lower = loadColumn(kSize, kSize, kSize, ownRow);
  mergeHalves(upper, below);
  Value zero = createI32(b, 0);
  Value right = arith::AddIOp::create(b, lane, createI32(b, kSize));
  Column unit = createUnit(lane, kSize);
  writeColumn(removeUnit(b, upper, unit), 0, zero, lane);
  writeColumn(below, kSize, zero, lane);
  writeColumn(removeUnit(b, lower, unit), kSize, zero, right);
  writeZeros(0, kSize, kSize);
}

void TriInverseWriter::run() {
  if (m.getRows() == kBlock)
    return runOneBlock();
  if (m.getRows() == 2 * kBlock)
    return runTwoBlocks();
  return runFourBlocks();
}

namespace {
struct LowerTriInverse : OpConversionPattern<TriInverseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TriInverseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    // What is scaled lies as it was, in half of each row.
    ViewType m = op.getM().getType();
    ViewType narrow =
        ViewType::get(m.getContext(), m.getShape(), b.getF16Type(),
                      m.getSwizzle(), m.getStride(), m.getColumn());
    TriInverseWriter writer(b, narrow, adaptor.getM(), op.getX().getType(),
                            adaptor.getX(), adaptor.getRows(),
                            adaptor.getColumns());
    if (adaptor.getScale())
      writer.scaleM(adaptor.getScale());
    writer.run();
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateTriInversePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerTriInverse>(converter, patterns.getContext());
}
