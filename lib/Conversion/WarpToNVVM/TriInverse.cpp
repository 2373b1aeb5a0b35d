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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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
      place(arith::AndIOp::create(b, lane, createI32(b, kBlock - 1))),
      matrices(arith::AddIOp::create(
          b, arith::MulIOp::create(b, place, createI32(b, m.getStride())),
          arith::MulIOp::create(b, half,
                                createI32(b, kRun * m.getElementBytes())))) {}

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

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

static NVVM::LdStMatrixShapeAttr getMatrixShape(MLIRContext *context) {
  return NVVM::LdStMatrixShapeAttr::get(context, 8, 8);
}

TriInverseWriter::Tile TriInverseWriter::loadTile(int64_t row, int64_t column,
                                                  NVVM::MMALayout layout) {
  Tile tile(4);
  auto words = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(tile.size(), b.getI32Type()));
  Value loaded = NVVM::LdMatrixOp::create(
      b, words, createRunAddress(row, column, matrices), tile.size(), layout,
      getMatrixShape(b.getContext()), NVVM::LdStMatrixEltType::B16);
  for (auto [i, pair] : llvm::enumerate(tile))
    pair = toPair(LLVM::ExtractValueOp::create(b, loaded, i));
  return tile;
}

void TriInverseWriter::storeTile(const Tile &tile, int64_t row,
                                 int64_t column) {
  SmallVector<Value> words;
  for (Value pair : tile)
    words.push_back(toWord(pair));
  NVVM::StMatrixOp::create(b, createRunAddress(row, column, matrices), words,
                           NVVM::MMALayout::row, getMatrixShape(b.getContext()),
                           NVVM::LdStMatrixEltType::B16);
}

/// sum += left right of 16 x 16 and 16 x 8 elements.
static void multiplyAdd(ImplicitLocOpBuilder &b, ArrayRef<Value> left,
                        ArrayRef<Value> right, MutableArrayRef<Value> sum) {
  using NVVM::MMALayout, NVVM::MMATypes;
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sum.size(), b.getF32Type()));
  Value made = NVVM::MmaOp::create(
      b, type, left, right, sum, ArrayRef<int64_t>{16, 8, 16},
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array{MMATypes::f16, MMATypes::f16},
      std::array{MMALayout::row, MMALayout::col});
  for (auto [i, value] : llvm::enumerate(sum))
    value = LLVM::ExtractValueOp::create(b, made, i);
}

/// Sixteen rows, whose columns are `left`, times rows of M^T from `row` on,
/// as many columns from `column` on; times -1 with `negate`.
SmallVector<TriInverseWriter::Tile>
TriInverseWriter::multiply(ArrayRef<Tile> left, int64_t row, int64_t column,
                           bool negate) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
  auto wide = VectorType::get(2, b.getF32Type());
  SmallVector<Tile> product;
  for (int64_t n = 0, size = left.size(); n < size; ++n) {
    // The fragment of 16 columns is those of 8 and of the 8 behind them.
    SmallVector<Value> sums(8, zero);
    for (int64_t k = 0; k < size; ++k) {
      Tile right =
          loadTile(row + k * kBlock, column + n * kBlock, NVVM::MMALayout::col);
      for (int64_t i = 0; i < 2; ++i)
        multiplyAdd(b, left[k], ArrayRef(right).slice(2 * i, 2),
                    MutableArrayRef(sums).slice(4 * i, 4));
    }
    Tile &tile = product.emplace_back();
    for (int64_t i = 0, count = sums.size(); i < count; i += 2) {
      Value pair = pack(b, wide, ArrayRef(sums).slice(i, 2));
      if (negate)
        pair = arith::NegFOp::create(b, pair);
      tile.push_back(arith::TruncFOp::create(b, getPair(), pair));
    }
  }
  return product;
}

/// X21 = -X22 (M21 X11) of the two blocks of `size` rows at row `first`, which
/// replaces M21. In memory, where all four lie transposed, that is
/// X21^T = -(X11^T M21^T) X22^T.
void TriInverseWriter::merge(int64_t first, int64_t size) {
  int64_t second = first + size;
  SmallVector<SmallVector<Tile>> below;
  for (int64_t row = first; row < second; row += kBlock) {
    SmallVector<Tile> left;
    for (int64_t column = first; column < second; column += kBlock)
      left.push_back(loadTile(row, column, NVVM::MMALayout::row));
    left = multiply(left, first, second, /*negate=*/true);
    below.push_back(multiply(left, second, second, /*negate=*/false));
  }
  createWarpSync(b);
  for (auto [i, tiles] : llvm::enumerate(below))
    for (auto [j, tile] : llvm::enumerate(tiles))
      storeTile(tile, first + i * kBlock, second + j * kBlock);
  createWarpSync(b);
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
  Column diagonal = substitute(0);
  createWarpSync(b);
  Value row = arith::MulIOp::create(b, lane, createI32(b, m.getStride()));
  Value first = arith::MulIOp::create(
      b, half, createI32(b, kBlock * m.getElementBytes()));
  storeColumn(diagonal,
              createAddress(b, createAddress(b, mBase, row, 0), first, 0));
  createWarpSync(b);
  merge(0, kBlock);
  auto rows = [&](int64_t count) -> Value {
    return arith::MulIOp::create(b, half, createI32(b, count));
  };
  writeColumn(removeUnit(b, diagonal, createUnit(place, kBlock)), 0,
              rows(kBlock), lane);
  writeColumn(loadRun(createRunAddress(0, kBlock, matrices)), kBlock,
              rows(kRun), place);
  writeZeros(0, kBlock, kBlock);
}

void TriInverseWriter::runFourBlocks() {
  constexpr int64_t kSize = 2 * kBlock;
  Value stride = createI32(b, m.getStride());
  Value ownRow = arith::MulIOp::create(b, lane, stride);
  auto columns = [&](int64_t count) -> Value {
    return arith::MulIOp::create(b, half,
                                 createI32(b, count * m.getElementBytes()));
  };
  for (int64_t first : {int64_t(0), kSize}) {
    Column diagonal = substitute(first);
    createWarpSync(b);
    storeColumn(diagonal,
                createAddress(b, createRunAddress(first, first, ownRow),
                              columns(kBlock), 0));
    createWarpSync(b);
    merge(first, kBlock);
  }
  merge(0, kSize);
  Column upper = loadColumn(0, 0, kSize, ownRow),
         below = loadColumn(0, kSize, kSize, ownRow),
         lower = loadColumn(kSize, kSize, kSize, ownRow);
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
