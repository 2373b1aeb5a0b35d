//===- VectorizeTranspose.cpp - Transposes by squares of one register -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vectorizers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile;

// log2(n) times, row i and row i + n/2 interleave to rows 2i and 2i + 1. Each
// time rotates the bits of (row, lane) by one, so that in the end they have
// changed places.
void mlir::gdn::tile::transposeRows(OpBuilder &builder, Location loc,
                                    SmallVectorImpl<Value> &rows) {
  int64_t size = rows.size();
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < size / 2; ++lane) {
    low.append({lane, size + lane});
    high.append({size / 2 + lane, size + size / 2 + lane});
  }
  for (int64_t round = 1; round < size; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < size / 2; ++i)
      for (ArrayRef<int64_t> half : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(builder, loc, rows[i],
                                                 rows[i + size / 2], half));
    rows.assign(next.begin(), next.end());
  }
}

LogicalResult mlir::gdn::tile::vectorizeTranspose(RewriterBase &rewriter,
                                                  linalg::TransposeOp op,
                                                  const CPUArch &arch) {
  auto type = dyn_cast<MemRefType>(op.getInput().getType());
  if (!type || !type.hasStaticShape() || type.getRank() != 2 ||
      op.getPermutation()[0] != 1 || !isContiguous(op.getInput()) ||
      !isContiguous(op.getInit()))
    return failure();
  int64_t size = std::min(getPowerDivisor(type.getDimSize(0), arch.lanes),
                          getPowerDivisor(type.getDimSize(1), arch.lanes));
  if (size == 1)
    return failure();

  Location loc = op.getLoc();
  auto row = VectorType::get(size, type.getElementType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto add = [&](Value base, int64_t offset) -> Value {
    return arith::AddIOp::create(rewriter, loc, base, constant(offset));
  };
  SmallVector<Value> lower(2, constant(0)), steps(2, constant(size));
  SmallVector<Value> upper{constant(type.getDimSize(0)),
                           constant(type.getDimSize(1))};
  auto block = [&](OpBuilder &inner, Location, ValueRange at) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.restoreInsertionPoint(inner.saveInsertionPoint());
    SmallVector<Value> rows;
    for (int64_t i = 0; i < size; ++i)
      rows.push_back(vector::LoadOp::create(rewriter, loc, row, op.getInput(),
                                            ValueRange{add(at[0], i), at[1]}));
    transposeRows(rewriter, loc, rows);
    for (auto [i, value] : llvm::enumerate(rows))
      vector::StoreOp::create(rewriter, loc, value, op.getInit(),
                              ValueRange{add(at[1], i), at[0]});
  };
  scf::buildLoopNest(rewriter, loc, lower, upper, steps, block);
  rewriter.eraseOp(op);
  return success();
}
