//===- VectorizeProducts.cpp - Products as loops of FMAs ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's way (tile to rows x columns x 1, vectorise, hoist the
// accumulator's transfers, lower vector.contract to outer products) arrives at
// the same loop through four rewrites of a rank-2 vector, one product at a
// time; writing the loop down costs a tenth of the compile time and does not
// depend on hoisting through aliasing views.
//
//===----------------------------------------------------------------------===//

#include "Vectorizers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::gdn::tile;

namespace {
/// A matrix or vector in memory, addressed by (row, column) of the product it
/// belongs to; dimensions that it does not have are ignored.
struct Operand {
  Value memref;
  /// Place of the row's and the column's index among its indices, or -1.
  int row = -1, column = -1;

  SmallVector<Value> at(Value rowIndex, Value columnIndex) const {
    SmallVector<Value> indices(cast<MemRefType>(memref.getType()).getRank());
    if (row >= 0)
      indices[row] = rowIndex;
    if (column >= 0)
      indices[column] = columnIndex;
    return indices;
  }
};

/// result [m, n] += left [m, k] right [k, n]; m may be absent. With `isDot`
/// result [m] += left [m, k] right [k], n being absent.
struct Product {
  Operand left, right, result;
  int64_t m = 1, n = 1, k = 1;
  bool isDot = false;
  /// The fill that sets the result to zero just before, if there is one.
  linalg::FillOp zeroing;
};
} // namespace

bool mlir::gdn::tile::isContiguous(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  return !strides.empty() && strides.back() == 1;
}

/// The fill with zero that directly precedes a product on its result.
static linalg::FillOp findZeroing(linalg::ContractOp product) {
  Value result = product.getOutputs().front();
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode()) {
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (fill && fill.getOutputs().front() == result)
      return matchPattern(fill.getInputs().front(), m_AnyZeroFloat())
                 ? fill
                 : linalg::FillOp();
    bool isHarmless = isMemoryEffectFree(op) || isa<memref::AllocOp>(op);
    if (!isHarmless || llvm::is_contained(op->getOperands(), result))
      return {};
  }
  return {};
}

/// Reads the indexing maps; fails where the operands are not packed.
static FailureOr<Product> matchProduct(linalg::ContractOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumLoops() > 3)
    return failure();
  for (Value operand : op->getOperands())
    if (!getElementTypeOrSelf(operand.getType()).isF32() ||
        !cast<MemRefType>(operand.getType()).hasStaticShape())
      return failure();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap out = maps[2];
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  if (reduced.size() != 1 || out.getNumResults() < 1 || out.getNumResults() > 2)
    return failure();
  auto find = [](AffineMap map, unsigned dim) -> int {
    std::optional<unsigned> place =
        map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
    return place ? static_cast<int>(*place) : -1;
  };
  unsigned k = reduced.front();
  unsigned inner = out.getDimPosition(out.getNumResults() - 1);
  std::optional<unsigned> outer;
  if (out.getNumResults() == 2)
    outer = out.getDimPosition(0);

  Product product;
  product.k = sizes[k];
  // The right operand holds the inner dimension of the result.
  unsigned right = find(maps[0], inner) >= 0 ? 0 : 1, left = 1 - right;
  if (find(maps[left], inner) >= 0 || maps[right].getNumResults() != 2 ||
      find(maps[right], k) < 0 || find(maps[left], k) < 0)
    return failure();
  Value results = op.getOutputs().front();
  product.isDot = !outer && find(maps[right], inner) == 0;
  if (product.isDot) {
    // The matrix has the rows: it is what `left` means here.
    product.m = sizes[inner];
    product.left = {op.getInputs()[right], 0, 1};
    product.right = {op.getInputs()[left], 0, -1};
    product.result = {results, 0, -1};
  } else {
    product.m = outer ? sizes[*outer] : 1;
    product.n = sizes[inner];
    product.left = {op.getInputs()[left], outer ? find(maps[left], *outer) : -1,
                    find(maps[left], k)};
    product.right = {op.getInputs()[right], 0, 1};
    product.result = {results, outer ? 0 : -1, outer ? 1 : 0};
    if (find(maps[right], inner) != 1 || !isContiguous(results))
      return failure();
  }
  bool isPacked = product.isDot ? isContiguous(product.left.memref) &&
                                      isContiguous(product.right.memref)
                                : isContiguous(product.right.memref);
  if (!isPacked)
    return failure();
  product.zeroing = findZeroing(op);
  return product;
}

/// The largest divisor of `size` that is at most `limit`.
static int64_t getDivisor(int64_t size, int64_t limit) {
  for (int64_t divisor = std::min(size, limit); divisor > 1; --divisor)
    if (size % divisor == 0)
      return divisor;
  return 1;
}

namespace {
/// Writes the loops of one product.
class ProductBuilder {
public:
  ProductBuilder(RewriterBase &builder, Location loc, const Product &product,
                 const CPUArch &arch)
      : builder(builder), loc(loc), product(product), arch(arch) {}

  /// rows x columns accumulators, a step of k: one row of the right operand,
  /// one broadcast of each row's element of the left one.
  void buildOuter();

  /// An accumulator a row, a step of k: one register of the right operand, one
  /// of each row of the left one; summed up at the end.
  void buildDot();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value base, int64_t offset) {
    return offset ? Value(arith::AddIOp::create(builder, loc, base,
                                                constant(offset)))
                  : base;
  }
  Value load(const Operand &operand, VectorType type, Value row, Value column) {
    return vector::LoadOp::create(builder, loc, type, operand.memref,
                                  operand.at(row, column));
  }
  Value zero(Type type) {
    return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  }
  void buildOuterTile(Value row, Value column, int64_t rows, int64_t columns,
                      VectorType type);

  RewriterBase &builder;
  Location loc;
  const Product &product;
  const CPUArch &arch;
};
} // namespace

void ProductBuilder::buildOuterTile(Value row, Value column, int64_t rows,
                                    int64_t columns, VectorType type) {
  int64_t lanes = type.getNumElements();
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      sums.push_back(product.zeroing ? zero(type)
                                     : load(product.result, type, add(row, i),
                                            add(column, j * lanes)));
  auto step = [&](OpBuilder &, Location, Value k, ValueRange state) {
    SmallVector<Value> right, next;
    for (int64_t j = 0; j < columns; ++j)
      right.push_back(load(product.right, type, k, add(column, j * lanes)));
    for (int64_t i = 0; i < rows; ++i) {
      Value element = memref::LoadOp::create(builder, loc, product.left.memref,
                                             product.left.at(add(row, i), k));
      Value left = vector::BroadcastOp::create(builder, loc, type, element);
      for (int64_t j = 0; j < columns; ++j)
        next.push_back(vector::FMAOp::create(builder, loc, left, right[j],
                                             state[i * columns + j]));
    }
    scf::YieldOp::create(builder, loc, next);
  };
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(product.k),
                                 constant(1), sums, step);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      vector::StoreOp::create(
          builder, loc, loop.getResult(i * columns + j), product.result.memref,
          product.result.at(add(row, i), add(column, j * lanes)));
}

void ProductBuilder::buildOuter() {
  int64_t rows = getDivisor(product.m, arch.rows);
  int64_t lanes = getDivisor(product.n, arch.lanes);
  int64_t columns = getDivisor(product.n / lanes, arch.accumulators / rows);
  auto type = VectorType::get(lanes, builder.getF32Type());
  SmallVector<Value> lower(2, constant(0));
  SmallVector<Value> upper{constant(product.m), constant(product.n)};
  SmallVector<Value> steps{constant(rows), constant(columns * lanes)};
  scf::buildLoopNest(builder, loc, lower, upper, steps,
                     [&](OpBuilder &inner, Location, ValueRange at) {
                       OpBuilder::InsertionGuard guard(builder);
                       builder.restoreInsertionPoint(
                           inner.saveInsertionPoint());
                       buildOuterTile(at[0], at[1], rows, columns, type);
                     });
}

void ProductBuilder::buildDot() {
  int64_t rows = getDivisor(product.m, arch.accumulators);
  int64_t lanes = getDivisor(product.k, arch.lanes);
  auto type = VectorType::get(lanes, builder.getF32Type());
  auto outer = scf::ForOp::create(builder, loc, constant(0),
                                  constant(product.m), constant(rows));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(outer.getBody());
  Value row = outer.getInductionVar();
  SmallVector<Value> sums(rows, zero(type));
  auto step = [&](OpBuilder &, Location, Value k, ValueRange state) {
    SmallVector<Value> next;
    Value right = load(product.right, type, k, {});
    for (int64_t i = 0; i < rows; ++i)
      next.push_back(vector::FMAOp::create(
          builder, loc, load(product.left, type, add(row, i), k), right,
          state[i]));
    scf::YieldOp::create(builder, loc, next);
  };
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(product.k),
                                 constant(lanes), sums, step);
  for (int64_t i = 0; i < rows; ++i) {
    SmallVector<Value> place = product.result.at(add(row, i), {});
    Value before =
        product.zeroing
            ? zero(builder.getF32Type())
            : memref::LoadOp::create(builder, loc, product.result.memref, place)
                  .getResult();
    Value sum = vector::ReductionOp::create(
        builder, loc, vector::CombiningKind::ADD, loop.getResult(i), before);
    memref::StoreOp::create(builder, loc, sum, product.result.memref, place);
  }
}

LogicalResult mlir::gdn::tile::vectorizeProduct(RewriterBase &rewriter,
                                                linalg::ContractOp op,
                                                const CPUArch &arch) {
  FailureOr<Product> product = matchProduct(op);
  if (failed(product))
    return failure();
  rewriter.setInsertionPoint(op);
  ProductBuilder builder(rewriter, op.getLoc(), *product, arch);
  if (product->isDot)
    builder.buildDot();
  else
    builder.buildOuter();
  if (product->zeroing)
    rewriter.eraseOp(product->zeroing);
  rewriter.eraseOp(op);
  return success();
}
