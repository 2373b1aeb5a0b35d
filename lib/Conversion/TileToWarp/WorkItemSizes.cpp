//===- WorkItemSizes.cpp - What a kernel knows of sizes -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItemWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The dimension of `tensor` that was made with this extent, if any.
static std::optional<int64_t> findDimOf(Value tensor, Value extent) {
  while (auto op = tensor.getDefiningOp<DestinationStyleOpInterface>())
    tensor = op.getTiedOpOperand(cast<OpResult>(tensor))->get();
  auto made = tensor.getDefiningOp<tensor::EmptyOp>();
  if (!made)
    return {};
  for (auto [dim, size] : llvm::enumerate(made.getMixedSizes()))
    if (size == OpFoldResult(extent))
      return dim;
  return {};
}

Value WorkItemWriter::writeDim(OpBuilder &b, tensor::DimOp dim) {
  if (!dim.getConstantIndex())
    return {};
  if (Value array = findInput(dim.getSource()))
    return memref::DimOp::create(b, loc, array, *dim.getConstantIndex());
  // An array that was made as large as one that the kernel does not take.
  SmallVector<Value> arrays(launch.getInputs());
  llvm::append_range(arrays, launch.getOutputs());
  for (auto [number, array] : llvm::enumerate(arrays))
    if (std::optional<int64_t> same = findDimOf(array, dim))
      return memref::DimOp::create(
          b, loc, kernel.getBody().front().getArgument(number), *same);
  return {};
}

Value WorkItemWriter::writeScalar(OpBuilder &b, Value argument, Type type) {
  if (!type.isIndex())
    return argument;
  return arith::IndexCastOp::create(b, loc, type, argument);
}

Value WorkItemWriter::writeExtent(OpBuilder &b, Value extent) {
  if (std::optional<int64_t> known = getConstantIntValue(extent))
    return arith::ConstantIndexOp::create(b, loc, *known);
  Operation *op = extent.getDefiningOp();
  if (!isa<ShapedType>(extent.getType()))
    if (Value scalar = findInput(extent))
      return writeScalar(b, scalar, extent.getType());
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op))
    return writeDim(b, dim);
  if (!op || op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
      !isa<arith::ArithDialect>(op->getDialect()))
    return {};
  IRMapping operands;
  for (Value operand : op->getOperands()) {
    Value written = writeExtent(b, operand);
    if (!written)
      return {};
    operands.map(operand, written);
  }
  return b.clone(*op, operands)->getResult(0);
}

Value WorkItemWriter::findInput(Value input) {
  Block &body = kernel.getBody().front();
  if (input == launch.getCuSeqlens())
    return bounds;
  auto found = llvm::find(launch.getInputs(), input);
  if (found == launch.getInputs().end())
    return {};
  return body.getArgument(std::distance(launch.getInputs().begin(), found));
}
