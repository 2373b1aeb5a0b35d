//===- VectorizePairs.cpp - Products of pairs of bf16 by AMX, AVX512_BF16 -===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vectorizers.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::gdn::tile;

/// Elements of the instruction's operands: 16 sums of pairs (Intel SDM 2,
/// VDPBF16PS).
static constexpr int64_t kSums = 16;

/// Rows of a tile register, and bf16 elements of a row (Intel SDM 1, 18.1).
static constexpr int64_t kTileRows = 16;
static constexpr int64_t kTileElements = 32;

/// Tile registers (Intel SDM 1, 18.1).
static constexpr int64_t kTileRegisters = 8;

/// Tiles of sums along each side of a block: with two of either operand they
/// fill the eight registers.
static constexpr int64_t kTilesASide = 2;

static Value constant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

static Value add(ImplicitLocOpBuilder &b, Value base, int64_t offset) {
  return arith::AddIOp::create(b, base, constant(b, offset));
}

/// True for a dense buffer of static shape.
static bool isDense(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.hasStaticShape() && type.getLayout().isIdentity();
}

/// A buffer of rank 3 as one of rank 2: dimension `first` and the next as one.
static Value collapse(ImplicitLocOpBuilder &b, Value buffer, int64_t first) {
  SmallVector<ReassociationIndices> groups =
      first == 0 ? SmallVector<ReassociationIndices>{{0, 1}, {2}}
                 : SmallVector<ReassociationIndices>{{0}, {1, 2}};
  return memref::CollapseShapeOp::create(b, buffer, groups);
}

/// Loops over (0, 0) .. (rows, columns) in steps.
static void
forEachBlock(ImplicitLocOpBuilder &b, int64_t rows, int64_t columns,
             int64_t rowStep, int64_t columnStep,
             function_ref<void(ImplicitLocOpBuilder &, Value, Value)> body) {
  SmallVector<Value> lower(2, constant(b, 0));
  SmallVector<Value> upper{constant(b, rows), constant(b, columns)};
  SmallVector<Value> steps{constant(b, rowStep), constant(b, columnStep)};
  scf::buildLoopNest(b, b.getLoc(), lower, upper, steps,
                     [&](OpBuilder &inner, Location loc, ValueRange at) {
                       ImplicitLocOpBuilder builder(loc, inner);
                       body(builder, at[0], at[1]);
                     });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// result [m, n] += left [m, 2 pairs] right [pairs, 2 n], pairs of bf16 side by
/// side in both.
struct PairProduct {
  Value left, right, result;
  int64_t m, n, pairs;
};
} // namespace

/// One block of accumulators: rows x columns registers.
static void writeBlock(ImplicitLocOpBuilder &b, const PairProduct &product,
                       Value row, Value column, int64_t rows, int64_t columns) {
  auto sumType = VectorType::get(kSums, b.getF32Type());
  auto pairType = VectorType::get(2 * kSums, b.getBF16Type());
  auto place = [&](int64_t i, int64_t j) {
    return SmallVector<Value>{add(b, row, i), add(b, column, j * kSums)};
  };
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      sums.push_back(
          vector::LoadOp::create(b, sumType, product.result, place(i, j)));
  auto loop = scf::ForOp::create(b, constant(b, 0), constant(b, product.pairs),
                                 constant(b, 1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value pair = loop.getInductionVar();
    Value two = constant(b, 2);
    Value element = arith::MulIOp::create(b, pair, two);
    Value first = arith::MulIOp::create(b, column, two);
    SmallVector<Value> right, next;
    for (int64_t j = 0; j < columns; ++j)
      right.push_back(vector::LoadOp::create(
          b, pairType, product.right,
          ValueRange{pair, add(b, first, 2 * j * kSums)}));
    for (int64_t i = 0; i < rows; ++i) {
      // The row's pair in every lane: one 32-bit broadcast.
      Value both = vector::LoadOp::create(
          b, VectorType::get(2, b.getBF16Type()), product.left,
          ValueRange{add(b, row, i), element});
      Value word = vector::BitCastOp::create(
          b, VectorType::get(1, b.getI32Type()), both);
      Value spread = vector::BroadcastOp::create(
          b, VectorType::get(kSums, b.getI32Type()), word);
      Value left = vector::BitCastOp::create(b, pairType, spread);
      for (int64_t j = 0; j < columns; ++j)
        next.push_back(x86vector::DotBF16Op::create(
            b, sumType, loop.getRegionIterArg(i * columns + j), left,
            right[j]));
    }
    scf::YieldOp::create(b, next);
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      vector::StoreOp::create(b, loop.getResult(i * columns + j),
                              product.result, place(i, j));
}

/// The product by vector registers.
static void writeVectorProduct(ImplicitLocOpBuilder &b,
                               const PairProduct &product,
                               const CPUArch &arch) {
  int64_t rows = getPowerDivisor(product.m, arch.rows);
  int64_t columns =
      getPowerDivisor(product.n / kSums, arch.accumulators / rows);
  forEachBlock(b, product.m, product.n, rows, columns * kSums,
               [&](ImplicitLocOpBuilder &inner, Value row, Value column) {
                 writeBlock(inner, product, row, column, rows, columns);
               });
}

/// Elements of the sum that one product of tiles takes; 0 where the sizes fill
/// no tiles.
static int64_t getTileDepth(const PairProduct &product) {
  int64_t depth = getPowerDivisor(2 * product.pairs, kTileElements);
  bool fills = product.m % kTileRows == 0 && depth >= kTileElements / 2;
  return fills ? depth : 0;
}

/// One block of tiles: rows x columns registers of sums. The whole sum is
/// straight code, so that no loop carries a tile register.
static void writeTiles(ImplicitLocOpBuilder &b, const PairProduct &product,
                       Value row, Value column, int64_t rows, int64_t columns) {
  int64_t depth = getTileDepth(product);
  auto sumType = amx::TileType::get({kTileRows, kSums}, b.getF32Type());
  auto leftType = amx::TileType::get({kTileRows, depth}, b.getBF16Type());
  auto rightType = amx::TileType::get({depth / 2, 2 * kSums}, b.getBF16Type());
  auto place = [&](int64_t i, int64_t j) {
    return SmallVector<Value>{add(b, row, i * kTileRows),
                              add(b, column, j * kSums)};
  };
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      sums.push_back(
          amx::TileLoadOp::create(b, sumType, product.result, place(i, j)));
  Value first = arith::MulIOp::create(b, column, constant(b, 2));
  for (int64_t k = 0; k < 2 * product.pairs; k += depth) {
    SmallVector<Value> right;
    for (int64_t j = 0; j < columns; ++j)
      right.push_back(amx::TileLoadOp::create(
          b, rightType, product.right,
          ValueRange{constant(b, k / 2), add(b, first, 2 * j * kSums)}));
    for (int64_t i = 0; i < rows; ++i) {
      Value left = amx::TileLoadOp::create(
          b, leftType, product.left,
          ValueRange{add(b, row, i * kTileRows), constant(b, k)});
      for (int64_t j = 0; j < columns; ++j) {
        Value &sum = sums[i * columns + j];
        sum = amx::TileMulFOp::create(b, sumType, left, right[j], sum);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      amx::TileStoreOp::create(b, product.result, place(i, j),
                               sums[i * columns + j]);
}

/// Tiles of sums along the sides of a block of `product`.
static std::pair<int64_t, int64_t> getBlock(const PairProduct &product) {
  return {getPowerDivisor(product.m / kTileRows, kTilesASide),
          getPowerDivisor(product.n / kSums, kTilesASide)};
}

/// The product by tile registers.
static void writeTileProduct(ImplicitLocOpBuilder &b,
                             const PairProduct &product) {
  auto [rows, columns] = getBlock(product);
  forEachBlock(b, product.m, product.n, rows * kTileRows, columns * kSums,
               [&, rows = rows, columns = columns](ImplicitLocOpBuilder &inner,
                                                   Value row, Value column) {
                 writeTiles(inner, product, row, column, rows, columns);
               });
}

/// The product of pairs that `op` is; its sizes alone, no operands.
static std::optional<PairProduct> getPairProduct(linalg::ContractOp op) {
  // The form that gdn-tile-pack-products gives: loops m, n, k / 2 and the pair.
  if (!op.hasPureBufferSemantics() || op.getNumLoops() != 4 ||
      !llvm::all_of(op->getOperands(), isDense))
    return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (sizes[1] % kSums != 0 || sizes[3] != 2)
    return std::nullopt;
  return PairProduct{{}, {}, op.getOutputs()[0], sizes[0], sizes[1], sizes[2]};
}

int64_t
mlir::gdn::tile::getLeastTileDepth(ArrayRef<linalg::ContractOp> products) {
  // Registers of whole tiles, which sums are too, and of tiles of half rows.
  int64_t whole = 0, halves = 0;
  for (linalg::ContractOp op : products) {
    std::optional<PairProduct> product = getPairProduct(op);
    int64_t depth = product ? getTileDepth(*product) : 0;
    if (depth == 0)
      continue;
    auto [rows, columns] = getBlock(*product);
    bool isWhole = depth == kTileElements;
    whole = std::max(whole, rows * columns + (isWhole ? 1 + columns : 0));
    halves = std::max(halves, isWhole ? 0 : 1 + columns);
  }
  return whole + halves > kTileRegisters ? kTileElements : kTileElements / 2;
}

LogicalResult mlir::gdn::tile::vectorizePairProduct(RewriterBase &rewriter,
                                                    linalg::ContractOp op,
                                                    const CPUArch &arch,
                                                    int64_t leastTileDepth) {
  std::optional<PairProduct> product = getPairProduct(op);
  if (!product || arch.lanes < kSums)
    return failure();
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  product->left = collapse(b, op.getInputs()[0], 1);
  product->right = collapse(b, op.getInputs()[1], 1);
  if (leastTileDepth != 0 && getTileDepth(*product) >= leastTileDepth)
    writeTileProduct(b, *product);
  else
    writeVectorProduct(b, *product, arch);
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// [n, pairs, 2] -> [pairs, n, 2]: a transpose of 32-bit words.
static LogicalResult transposePairs(ImplicitLocOpBuilder &b,
                                    linalg::TransposeOp op,
                                    const CPUArch &arch) {
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  int64_t size = std::min(getPowerDivisor(shape[0], arch.lanes),
                          getPowerDivisor(shape[1], arch.lanes));
  if (size == 1)
    return failure();
  Value from = collapse(b, op.getInput(), 1);
  Value into = collapse(b, op.getInit(), 1);
  auto pairs = VectorType::get(2 * size, b.getBF16Type());
  auto words = VectorType::get(size, b.getF32Type());
  forEachBlock(
      b, shape[0], shape[1], size, size,
      [&](ImplicitLocOpBuilder &b, Value row, Value column) {
        Value two = constant(b, 2);
        Value fromColumn = arith::MulIOp::create(b, column, two);
        Value intoColumn = arith::MulIOp::create(b, row, two);
        SmallVector<Value> rows;
        for (int64_t i = 0; i < size; ++i)
          rows.push_back(vector::BitCastOp::create(
              b, words,
              vector::LoadOp::create(b, pairs, from,
                                     ValueRange{add(b, row, i), fromColumn})));
        transposeRows(b, b.getLoc(), rows);
        for (auto [i, value] : llvm::enumerate(rows))
          vector::StoreOp::create(b, vector::BitCastOp::create(b, pairs, value),
                                  into,
                                  ValueRange{add(b, column, i), intoColumn});
      });
  return success();
}

/// [pairs, 2, n] -> [pairs, n, 2]: two rows interleave.
static LogicalResult interleavePairs(ImplicitLocOpBuilder &b,
                                     linalg::TransposeOp op,
                                     const CPUArch &arch) {
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  int64_t size = getPowerDivisor(shape[2], arch.lanes);
  if (size == 1)
    return failure();
  Value from = collapse(b, op.getInput(), 0);
  Value into = collapse(b, op.getInit(), 1);
  auto row = VectorType::get(size, b.getBF16Type());
  forEachBlock(
      b, shape[0], shape[2], 1, size,
      [&](ImplicitLocOpBuilder &b, Value pair, Value column) {
        Value two = constant(b, 2);
        Value first = arith::MulIOp::create(b, pair, two);
        Value low =
            vector::LoadOp::create(b, row, from, ValueRange{first, column});
        Value high = vector::LoadOp::create(
            b, row, from, ValueRange{add(b, first, 1), column});
        Value both = vector::InterleaveOp::create(b, low, high);
        Value place = arith::MulIOp::create(b, column, two);
        vector::StoreOp::create(b, both, into, ValueRange{pair, place});
      });
  return success();
}

LogicalResult mlir::gdn::tile::vectorizePacking(RewriterBase &rewriter,
                                                linalg::TransposeOp op,
                                                const CPUArch &arch) {
  if (!isDense(op.getInput()) || !isDense(op.getInit()) ||
      !op.getInput().getType().getElementType().isBF16())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  ArrayRef<int64_t> permutation = op.getPermutation();
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  LogicalResult result = failure();
  if (permutation == ArrayRef<int64_t>{1, 0, 2} && shape[2] == 2)
    result = transposePairs(b, op, arch);
  else if (permutation == ArrayRef<int64_t>{0, 2, 1} && shape[1] == 2)
    result = interleavePairs(b, op, arch);
  if (succeeded(result))
    rewriter.eraseOp(op);
  return result;
}
