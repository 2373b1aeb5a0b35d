//===- TriInverseMemory.cpp - Operand and result of an inverse in memory --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// M and the parts of the inverse that replace it, in runs of 16 bytes; M in f32
// becomes f16 in place; the result goes out times the factors of its rows and
// columns.
//
//===----------------------------------------------------------------------===//

#include "TriInverse.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// M in memory
//===----------------------------------------------------------------------===//

Value TriInverseWriter::createRunAddress(int64_t row, int64_t column,
                                         Value offset) {
  return createAddress(b, mBase, offset,
                       row * m.getStride() + column * m.getElementBytes());
}

Column TriInverseWriter::loadRun(Value address) {
  auto words = VectorType::get(kRun / 2, b.getI32Type());
  Value loaded = LLVM::LoadOp::create(b, words, address, /*alignment=*/16);
  Column run;
  for (Value word : unpack(b, loaded))
    run.push_back(toPair(word));
  return run;
}

Column TriInverseWriter::loadColumn(int64_t row, int64_t column, int64_t size,
                                    Value offset) {
  Column result;
  for (int64_t i = 0; i < size; i += kRun)
    llvm::append_range(result,
                       loadRun(createRunAddress(row, column + i, offset)));
  return result;
}

void TriInverseWriter::storeColumn(const Column &column, Value address) {
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

/// Shares the lower triangle of M out among the lanes: all of a block of 16, of
/// two blocks a column of one on the diagonal and half a column below, of four
/// blocks columns of their halves.
SmallVector<TriInverseWriter::Run> TriInverseWriter::shareOut() {
  int64_t size = m.getRows(), lanes = format::kWarpThreads;
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

Value TriInverseWriter::createElementAddress(const Run &run, int64_t bytes) {
  Value row = arith::MulIOp::create(b, run.column, createI32(b, m.getStride()));
  Value first = arith::MulIOp::create(b, run.row, createI32(b, bytes));
  return createAddress(b, mBase, arith::AddIOp::create(b, row, first), 0);
}

/// M in f16 lies in the first half of where it lay in f32, column by column.
void TriInverseWriter::scaleM(Value scale) {
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
// The result
//===----------------------------------------------------------------------===//

/// The factors of `size` rows from `row` + `rowPart` on, in pairs of f32.
SmallVector<Value> TriInverseWriter::loadRowFactors(int64_t row, Value rowPart,
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
void TriInverseWriter::writeColumn(const Column &column, int64_t row,
                                   Value rowPart, Value columnPart) {
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
void TriInverseWriter::writeZeros(int64_t row, int64_t column, int64_t size) {
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(VectorType::get(kRun / 2, b.getI32Type())));
  int64_t runs = size / kRun, lanes = format::kWarpThreads;
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
