//===- Steps.cpp - The arithmetic of sizes --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionBuilder.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

using namespace mlir;
using namespace mlir::gdn::host;

int32_t FunctionBuilder::addStep(GdnIndexStep step) {
  for (auto [index, known] : llvm::enumerate(table.steps))
    if (known.kind == step.kind && known.left == step.left &&
        known.right == step.right && known.value == step.value)
      return index;
  table.steps.push_back(step);
  return table.steps.size() - 1;
}

int32_t FunctionBuilder::addSymbol(const std::string &name, int32_t argument,
                                   int32_t dim, bool isOptional) {
  auto [entry, isNew] = symbols.try_emplace(name, table.symbols.size());
  if (isNew) {
    table.symbols.push_back(name);
    symbolSteps.push_back(-1);
  }
  int32_t &step = symbolSteps[entry->second];
  if (step < 0 && !isOptional)
    step = addStep({GDN_INDEX_EXTENT, argument, dim, /*value=*/0});
  return entry->second;
}

/// The step of an argument's extent; equal ones have one step, but for an array
/// that may be absent and has none then.
int32_t FunctionBuilder::getExtent(int32_t argument, int64_t dim) {
  const ArgumentTable &array = table.arguments[argument];
  bool isOptional = array.flags & GDN_ARG_FLAG_OPTIONAL;
  int64_t extent = array.shape[dim];
  if (extent >= 0 && !(isOptional && dim == 0))
    return addStep({GDN_INDEX_CONSTANT, 0, 0, extent});
  if (isOptional)
    return addStep({GDN_INDEX_EXTENT, argument, static_cast<int32_t>(dim), 0});
  return symbolSteps[-1 - extent];
}

/// The step that computes `value`, or failure after a diagnostic.
FailureOr<int32_t> FunctionBuilder::getIndex(Operation *user, Value value,
                                             const char *rule) {
  auto known = indices.find(value);
  if (known != indices.end())
    return known->second;
  return user->emitOpError(rule);
}

LogicalResult FunctionBuilder::visitConstant(arith::ConstantOp op) {
  APInt value;
  if (!matchPattern(op.getResult(), m_ConstantInt(&value)) ||
      !value.isSignedIntN(64))
    return op.emitOpError("expected integers of 64 bits around the kernels of "
                          "a GPU, got ")
           << op.getType();
  indices[op] = addStep({GDN_INDEX_CONSTANT, 0, 0, value.getSExtValue()});
  return success();
}

/// Steps are of 64 bits, and the runtime refuses a kernel's scalar of 32 bits
/// whose value does not fit.
LogicalResult FunctionBuilder::visitCast(arith::IndexCastOp op) {
  FailureOr<int32_t> index = getIndex(
      op, op.getIn(), "expected an operand made from extents or scalars");
  if (failed(index))
    return failure();
  indices[op] = *index;
  return success();
}

LogicalResult FunctionBuilder::visitBinary(Operation *op, int32_t kind) {
  int32_t sides[2];
  for (auto [side, operand] : llvm::zip(sides, op->getOperands())) {
    FailureOr<int32_t> index =
        getIndex(op, operand, "expected operands made from extents or scalars");
    if (failed(index))
      return failure();
    side = *index;
  }
  indices[op->getResult(0)] = addStep({kind, sides[0], sides[1], 0});
  return success();
}

LogicalResult FunctionBuilder::visitDim(ShapedDimOpInterface op) {
  std::optional<int64_t> dim = getConstantIntValue(op.getDimension());
  auto array = arrays.find(op.getShapedValue());
  if (!dim || array == arrays.end() || *dim < 0 ||
      *dim >= static_cast<int64_t>(array->second.extents.size()))
    return op->emitOpError("expected a constant dimension of an array of the "
                           "function");
  indices[op->getResult(0)] = array->second.extents[*dim];
  return success();
}
