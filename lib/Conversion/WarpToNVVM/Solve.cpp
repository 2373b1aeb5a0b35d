//===- Solve.cpp - A unit lower triangular inverse by one warp ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane holds columns of the inverse as pairs of rows in f16, so that a step
// of the substitution is one fma.f16x2 a pair, with a run of M that is the same
// for all lanes: a broadcast of 16 bytes. Tensor cores would be slower: beside
// warpgroups that keep them busy, each dependent step would wait its turn.
//
// The half-warps take the diagonal 16-blocks two at a time. Their inverses
// replace M's blocks in memory, from where the merges read them.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// Pairs of rows of one column, from a row that the user of it knows.
using Column = SmallVector<Value>;

class Solver {
public:
  /// `rows` and `columns` are the addresses of the result's factors, or null.
  Solver(ImplicitLocOpBuilder &b, ViewType m, Value mBase, ViewType x,
         Value xBase, Value rows, Value columns);
  /// Puts M in f16 where it lies in f32: times `scale`, the address of factors
  /// of its columns.
  void scaleM(Value scale);
  void run();

private:
  /// Rows and columns of a block of the substitution, and elements of a run of
  /// 16 bytes.
  static constexpr int64_t kBlock = 16, kRun = 8;
  /// Bytes of a factor or of an element of M in f32, and how many a load takes.
  static constexpr int64_t kBytes = 4, kLoad = 4;

  /// Elements of a column of M from a row on.
  struct Run {
    Value column, row;
    int64_t size;
  };
  SmallVector<Run> shareOut();
  Value createElementAddress(const Run &run, int64_t bytes);

  // Words of two f16.
  VectorType getPair() const { return VectorType::get(2, b.getF16Type()); }
  Value createZero() {
    return arith::ConstantOp::create(b, b.getZeroAttr(getPair()));
  }
  Value toWord(Value pair);
  Value toPair(Value word);
  /// Both halves of the result are element `row` of `column`.
  Value createBroadcast(const Column &column, int64_t row);
  Value createShuffled(ShuffleKind kind, Value pair, Value lane);

  // M in memory: row `row` of M^T, that is column `row` of M or of what
  // replaced it, from element `column` on; both may have a part in a register.
  Value createRunAddress(int64_t row, int64_t column, Value offset);
  Column loadRun(Value address);
  Column loadColumn(int64_t row, int64_t column, int64_t size, Value offset);
  void storeColumn(const Column &column, Value address);

  /// accumulator += M[rows, k] factor for the rows from `column` on.
  void accumulate(Column &accumulator, int64_t row, int64_t column,
                  Value offset, Value factor);

  Column createUnit(Value column, int64_t size);
  Column substitute(int64_t first);
  void mergeSixteen(int64_t first, const Column &diagonal, Column &below);
  void mergeHalves(const Column &left, Column &below);

  // The result.
  SmallVector<Value> loadRowFactors(int64_t row, Value rowPart, int64_t size);
  void writeColumn(const Column &column, int64_t row, Value rowPart,
                   Value columnPart);
  void writeZeros(int64_t row, int64_t column, int64_t size);

  void runOneBlock();
  void runTwoBlocks();
  void runFourBlocks();

  ImplicitLocOpBuilder &b;
  ViewType m, x;
  Value mBase, xBase, rows, columns;
  /// Number of the lane, of its half of the warp and in it, as i32.
  Value lane, half, place;
};
} // namespace

Solver::Solver(ImplicitLocOpBuilder &b, ViewType m, Value mBase, ViewType x,
               Value xBase, Value rows, Value columns)
    : b(b), m(m), x(x), mBase(mBase), xBase(xBase), rows(rows),
      columns(columns), lane(createLane(b)),
      half(arith::DivUIOp::create(b, lane, createI32(b, kBlock))),
      place(arith::AndIOp::create(b, lane, createI32(b, kBlock - 1))) {}

//===----------------------------------------------------------------------===//
// Words of two rows
//===----------------------------------------------------------------------===//

Value Solver::toWord(Value pair) {
  return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
}

Value Solver::toPair(Value word) {
  return LLVM::BitcastOp::create(b, getPair(), word);
}

Value Solver::createBroadcast(const Column &column, int64_t row) {
  Value pair = column[row / 2];
  SmallVector<int64_t> lanes(2, row % 2);
  return vector::ShuffleOp::create(b, pair, pair, lanes);
}

Value Solver::createShuffled(ShuffleKind kind, Value pair, Value lane) {
  return toPair(createShuffle(b, kind, toWord(pair), lane));
}

//===----------------------------------------------------------------------===//
// M in memory
//===----------------------------------------------------------------------===//

Value Solver::createRunAddress(int64_t row, int64_t column, Value offset) {
  return createAddress(b, mBase, offset,
                       row * m.getStride() + column * m.getElementBytes());
}

Column Solver::loadRun(Value address) {
  auto words = VectorType::get(kRun / 2, b.getI32Type());
  Value loaded = LLVM::LoadOp::create(b, words, address, /*alignment=*/16);
  Column run;
  for (Value word : unpack(b, loaded))
    run.push_back(toPair(word));
  return run;
}

Column Solver::loadColumn(int64_t row, int64_t column, int64_t size,
                          Value offset) {
  Column result;
  for (int64_t i = 0; i < size; i += kRun)
    llvm::append_range(result,
                       loadRun(createRunAddress(row, column + i, offset)));
  return result;
}

void Solver::storeColumn(const Column &column, Value address) {
  auto type = VectorType::get(kRun / 2, b.getI32Type());
  for (size_t i = 0; i < column.size(); i += kRun / 2) {
    SmallVector<Value> words;
    for (Value pair : ArrayRef(column).slice(i, kRun / 2))
      words.push_back(toWord(pair));
    LLVM::StoreOp::create(b, pack(b, type, words),
                          createAddress(b, address, Value(), 4 * i),
                          /*alignment=*/16);
  }
}

void Solver::accumulate(Column &accumulator, int64_t row, int64_t column,
                        Value offset, Value factor) {
  Column run = loadColumn(row, column, 2 * accumulator.size(), offset);
  for (auto [sum, pair] : llvm::zip(accumulator, run))
    sum = math::FmaOp::create(b, pair, factor, sum);
}

/// Shares the lower triangle of M out among the lanes: all of a block of 16, of
/// two blocks a column of one on the diagonal and half a column below, of four
/// blocks columns of their halves.
SmallVector<Solver::Run> Solver::shareOut() {
  int64_t size = m.getRows(), lanes = kSm90a.warpThreads;
  if (size < lanes)
    return {{place, createI32(b, 0), size}};
  if (size > lanes)
    return {{lane, createI32(b, 0), size},
            {arith::AddIOp::create(b, lane, createI32(b, lanes)),
             createI32(b, lanes), size - lanes}};
  auto ofHalf = [&](int64_t count) -> Value {
    return arith::MulIOp::create(b, half, createI32(b, count));
  };
  Value below = arith::AddIOp::create(b, ofHalf(kRun), createI32(b, kBlock));
  return {{lane, ofHalf(kBlock), kBlock}, {place, below, kRun}};
}

Value Solver::createElementAddress(const Run &run, int64_t bytes) {
  Value row = arith::MulIOp::create(b, run.column, createI32(b, m.getStride()));
  Value first = arith::MulIOp::create(b, run.row, createI32(b, bytes));
  return createAddress(b, mBase, arith::AddIOp::create(b, row, first), 0);
}

/// M in f16 lies in the first half of where it lay in f32, column by column.
void Solver::scaleM(Value scale) {
  auto type = VectorType::get(kLoad, b.getF32Type());
  SmallVector<Run> runs = shareOut();
  SmallVector<SmallVector<Value>> loaded;
  for (const Run &run : runs) {
    Value offset = arith::MulIOp::create(b, run.column, createI32(b, kBytes));
    loaded.push_back({LLVM::LoadOp::create(
        b, b.getF32Type(), createAddress(b, scale, offset, 0), kBytes)});
    Value address = createElementAddress(run, kBytes);
    for (int64_t i = 0; i < run.size; i += kLoad)
      llvm::append_range(
          loaded.back(),
          unpack(b, LLVM::LoadOp::create(
                        b, type, createAddress(b, address, {}, i * kBytes),
                        /*alignment=*/kLoad * kBytes)));
  }
  // Other lanes have parts of the same columns.
  createWarpSync(b);
  for (size_t number = 0; number < runs.size(); ++number) {
    ArrayRef<Value> values = loaded[number];
    Column column;
    for (size_t i = 1; i < values.size(); i += 2) {
      auto scaled = [&](Value value) -> Value {
        return arith::MulFOp::create(b, value, values[0]);
      };
      Value pair = pack(b, VectorType::get(2, b.getF32Type()),
                        {scaled(values[i]), scaled(values[i + 1])});
      column.push_back(arith::TruncFOp::create(b, getPair(), pair));
    }
    storeColumn(column,
                createElementAddress(runs[number], m.getElementBytes()));
  }
  createWarpSync(b);
}

//===----------------------------------------------------------------------===//
// Blocks of 16
//===----------------------------------------------------------------------===//

/// Column `column` of the identity of `size` rows.
Column Solver::createUnit(Value column, int64_t size) {
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
Column Solver::substitute(int64_t first) {
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
void Solver::mergeSixteen(int64_t first, const Column &diagonal,
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
void Solver::mergeHalves(const Column &left, Column &below) {
  constexpr int64_t kSize = 2 * kBlock;
  Column product(kSize / 2, createZero());
  for (int64_t k = 0; k < kSize; ++k)
    accumulate(product, k, kSize, Value(),
               arith::NegFOp::create(b, createBroadcast(left, k)));
  below.assign(kSize / 2, createZero());
  for (int64_t k = 0; k < kSize; ++k)
    accumulate(below, kSize + k, kSize, Value(), createBroadcast(product, k));
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

/// The factors of `size` rows from `row` + `rowPart` on, in pairs of f32.
SmallVector<Value> Solver::loadRowFactors(int64_t row, Value rowPart,
                                          int64_t size) {
  Value offset = arith::MulIOp::create(b, rowPart, createI32(b, kBytes));
  auto type = VectorType::get(kLoad, b.getF32Type());
  auto pair = VectorType::get(2, b.getF32Type());
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < size; i += kLoad) {
    Value loaded = LLVM::LoadOp::create(
        b, type, createAddress(b, rows, offset, (row + i) * kBytes),
        /*alignment=*/kLoad * kBytes);
    SmallVector<Value> factors = unpack(b, loaded);
    for (int64_t j = 0; j < kLoad; j += 2)
      pairs.push_back(pack(b, pair, ArrayRef(factors).slice(j, 2)));
  }
  return pairs;
}

/// Writes `column` to rows `row` + `rowPart` .. of column `columnPart`: in
/// memory, which holds the transposed matrix, in runs of 16 bytes.
void Solver::writeColumn(const Column &column, int64_t row, Value rowPart,
                         Value columnPart) {
  Type element = x.getElementType();
  auto pairOfF32 = VectorType::get(2, b.getF32Type());
  SmallVector<Value> rowFactors;
  Value columnFactor;
  if (rows) {
    rowFactors = loadRowFactors(row, rowPart, 2 * column.size());
    Value offset = arith::MulIOp::create(b, columnPart, createI32(b, 4));
    Value factor = LLVM::LoadOp::create(
        b, b.getF32Type(), createAddress(b, columns, offset, 0), 4);
    columnFactor = pack(b, pairOfF32, {factor, factor});
  }
  SmallVector<Value> words;
  for (auto [i, pair] : llvm::enumerate(column)) {
    Value rounded = pair;
    if (rows || !element.isF16()) {
      Value wide = arith::ExtFOp::create(b, pairOfF32, pair);
      if (rows)
        wide = arith::MulFOp::create(
            b, arith::MulFOp::create(b, wide, columnFactor), rowFactors[i]);
      rounded = arith::TruncFOp::create(b, VectorType::get(2, element), wide);
    }
    words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), rounded));
  }
  constexpr int64_t kWords = kRun / 2;
  auto run = VectorType::get(kWords, b.getI32Type());
  for (int64_t i = 0, size = words.size(); i < size; i += kWords) {
    Value at = arith::AddIOp::create(b, rowPart, createI32(b, row + 2 * i));
    Value offset = createElementOffset(b, x, columnPart, at);
    LLVM::StoreOp::create(b, pack(b, run, ArrayRef(words).slice(i, kWords)),
                          createAddress(b, xBase, offset, 0),
                          /*alignment=*/16);
  }
}

/// Writes zero to a square block; a lane writes runs of 16 bytes.
void Solver::writeZeros(int64_t row, int64_t column, int64_t size) {
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(VectorType::get(kRun / 2, b.getI32Type())));
  int64_t runs = size / kRun, lanes = kSm90a.warpThreads;
  for (int64_t i = 0; i < size * runs; i += lanes) {
    Value number = arith::AddIOp::create(b, lane, createI32(b, i));
    auto part = [&](Value value, int64_t first) -> Value {
      return arith::AddIOp::create(b, value, createI32(b, first));
    };
    Value atColumn =
        part(arith::DivUIOp::create(b, number, createI32(b, runs)), column);
    Value run = arith::RemUIOp::create(b, number, createI32(b, runs));
    Value atRow = part(arith::MulIOp::create(b, run, createI32(b, kRun)), row);
    Value offset = createElementOffset(b, x, atColumn, atRow);
    LLVM::StoreOp::create(b, zero, createAddress(b, xBase, offset, 0),
                          /*alignment=*/16);
  }
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

void Solver::runOneBlock() {
  // Both half-warps do the same and write the same.
  Column diagonal = substitute(0);
  writeColumn(removeUnit(b, diagonal, createUnit(place, kBlock)), 0,
              createI32(b, 0), place);
}

void Solver::runTwoBlocks() {
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

void Solver::runFourBlocks() {
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

void Solver::run() {
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
    Solver solver(b, narrow, adaptor.getM(), op.getX().getType(),
                  adaptor.getX(), adaptor.getRows(), adaptor.getColumns());
    if (adaptor.getScale())
      solver.scaleM(adaptor.getScale());
    solver.run();
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateSolvePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<LowerTriInverse>(converter, patterns.getContext());
}
