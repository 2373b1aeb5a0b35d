//===- Dialect.cpp - The gdn_tile dialect ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn::tile;

#include "gdn/Dialect/Tile/IR/Dialect.cpp.inc"

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/Tile/IR/Ops.cpp.inc"
      >();
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != getChunkAttrName())
    return success();
  auto chunk = dyn_cast<IntegerAttr>(attribute.getValue());
  if (chunk && chunk.getType().isSignlessInteger(64) && chunk.getInt() >= 0)
    return success();
  return op->emitOpError("expected ")
         << getChunkAttrName() << " of at least 0, an i64, got "
         << attribute.getValue();
}

ArrayRef<StringLiteral> TileDialect::getSteps() {
  static constexpr StringLiteral steps[] = {
      "load",        "load_output",  "load_state",  "load_gradient",
      "load_keys",   "load_between", "load_kept",   "load_write",
      "gates",       "norms",        "query_norms", "decay",
      "halves",      "factors",      "scores",      "solve",
      "low_keys",    "high_keys",    "low_pairs",   "high_pairs",
      "low_queries", "high_queries", "low_state",   "high_state",
      "raw_gates",   "sums",         "finish",      "state",
      "keep",        "store",        "store_state", "cast",
      "activate"};
  return steps;
}

bool TileDialect::needsStep(Operation *op) {
  bool isControlFlow = op->getNumRegions() && !isa<linalg::LinalgOp>(op);
  if (isControlFlow || op->hasTrait<OpTrait::IsTerminator>() ||
      op->hasTrait<OpTrait::ConstantLike>())
    return false;
  // It runs in the role of the stores that it follows.
  if (isa<ReportOp>(op))
    return true;
  auto isTile = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTile) ||
         llvm::any_of(op->getResultTypes(), isTile);
}
