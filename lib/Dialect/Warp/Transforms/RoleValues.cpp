//===- RoleValues.cpp - What a role computes with numbers -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleValues.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::gdn::warp;

Attribute RoleValues::getKnown(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  // What stands before the roles is the same for all.
  if (op && isa<KernelOp>(op->getParentOp())) {
    evaluate(op);
    return values.lookup(value);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && isa<KernelOp>(argument.getOwner()->getParentOp()) &&
      value.getType().isIntOrIndex())
    return IntegerAttr::get(value.getType(), kExtent);
  return {};
}

std::optional<int64_t> RoleValues::getNumber(Value value) {
  auto known = dyn_cast_if_present<IntegerAttr>(getKnown(value));
  if (!known)
    return std::nullopt;
  return value.getType().isInteger(1) ? known.getValue().getZExtValue()
                                      : known.getValue().getSExtValue();
}

void RoleValues::evaluate(Operation *op) {
  if (auto id = dyn_cast<IdOp>(op)) {
    switch (id.getKind()) {
    case IdKind::Warp:
      return set(id, warp);
    case IdKind::CTACount:
      return set(id, 1);
    default:
      return set(id, 0);
    }
  }
  if (isa<ElectOp>(op))
    return set(op->getResult(0), 1);
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return set(dim, kExtent);
  if (auto load = dyn_cast<memref::LoadOp>(op);
      load && load.getType().isIntOrIndex())
    return set(load, 0);
  if (auto sequence = dyn_cast<SequenceByRankOp>(op)) {
    set(sequence.getSequence(), 0);
    set(sequence.getBegin(), 0);
    return set(sequence.getEnd(), kExtent);
  }
  for (Value result : op->getResults())
    values.erase(result);
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
      op->getNumResults() != 1 || !op->getResult(0).getType().isIntOrIndex())
    return;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(getKnown(operand));
    if (!operands.back())
      return;
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return;
  values[op->getResult(0)] = isa<Attribute>(results.front())
                                 ? cast<Attribute>(results.front())
                                 : getKnown(cast<Value>(results.front()));
}

void RoleValues::assign(ValueRange to, ValueRange from) {
  SmallVector<Attribute> known =
      llvm::map_to_vector(from, [&](Value value) { return getKnown(value); });
  for (auto [value, number] : llvm::zip(to, known)) {
    values.erase(value);
    if (number)
      values[value] = number;
  }
}
