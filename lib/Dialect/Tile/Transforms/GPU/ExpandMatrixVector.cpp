//===- ExpandMatrixVector.cpp - Products of a tile and a vector -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#define DEBUG_TYPE "gdn-tile-expand-matrix-vector"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_EXPANDMATRIXVECTORPASS
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// A product may round once with the sum that takes it, as in a contraction.
static constexpr arith::FastMathFlags kContract =
    arith::FastMathFlags::contract;

static RankedTensorType getTile(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The number of the operand that is the vector, if the other one is a matrix.
static std::optional<unsigned> findVector(linalg::ContractOp product) {
  for (unsigned number : {0, 1})
    if (getTile(product.getDpsInputs()[number]).getRank() == 1 &&
        getTile(product.getDpsInputs()[1 - number]).getRank() == 2 &&
        getTile(product.getResult(0)).getRank() == 1 &&
        llvm::all_of(product->getOperandTypes(), [](Type type) {
          return isa<FloatType>(getElementTypeOrSelf(type));
        }))
      return number;
  return std::nullopt;
}

static void expand(linalg::ContractOp product, unsigned number) {
  OpBuilder b(product);
  Location loc = product.getLoc();
  auto label = [&](Operation *op) {
    op->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    return op->getResult(0);
  };
  Type element = getTile(product.getResult(0)).getElementType();
  auto widen = [&](Value value) -> Value {
    RankedTensorType type = getTile(value);
    if (type.getElementTypeBitWidth() >= element.getIntOrFloatBitWidth())
      return value;
    return label(arith::ExtFOp::create(b, loc, type.clone(element), value));
  };
  Value vector = widen(product.getDpsInputs()[number]),
        matrix = widen(product.getDpsInputs()[1 - number]);
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  // The vector lies along the dimension that is summed over.
  int64_t axis =
      maps[1 - number].getResult(0) == maps[number].getResult(0) ? 0 : 1;
  Value empty = tensor::EmptyOp::create(b, loc, getTile(matrix).getShape(),
                                        getTile(matrix).getElementType());
  Value spread =
      label(linalg::BroadcastOp::create(b, loc, vector, empty, 1 - axis));
  Value terms = label(arith::MulFOp::create(b, loc, matrix, spread, kContract));
  auto sum = linalg::ReduceOp::create(
      b, loc, terms, product.getDpsInits()[0], axis,
      [](OpBuilder &inner, Location loc, ValueRange values) {
        Value added =
            arith::AddFOp::create(inner, loc, values[0], values[1], kContract);
        linalg::YieldOp::create(inner, loc, added);
      });
  product.getResult(0).replaceAllUsesWith(label(sum));
  product.erase();
}

namespace {
struct ExpandMatrixVector
    : gdn::tile::impl::ExpandMatrixVectorPassBase<ExpandMatrixVector> {
  void runOnOperation() override {
    SmallVector<linalg::ContractOp> products;
    getOperation()->walk(
        [&](linalg::ContractOp product) { products.push_back(product); });
    for (linalg::ContractOp product : products)
      if (std::optional<unsigned> number = findVector(product))
        expand(product, *number);
  }
};
} // namespace
