//===- SpreadVectors.cpp - How the vectors of a spread role lie -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"
#include "SpreadLayouts.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

Attribute SpreadLayouts::alongAxis(int64_t axis) {
  return SliceAttr::get(b.getContext(), spread, axis);
}

Attribute SpreadLayouts::uniform() { return UniformAttr::get(b.getContext()); }

/// One element, or a scalar as a tensor of rank 0.
static bool isSingle(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements() == 1;
}

static bool isVector(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() <= 1;
}

/// Whether a vector is a sum of the rows of a tile, or made of one.
static bool isSumOfRows(Value vector) {
  Operation *op = vector.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<linalg::ReduceOp>(op))
    return isTile(reduce.getInputs().front().getType(), 2) &&
           reduce.getDimensions() == ArrayRef<int64_t>(0);
  return op && op->hasTrait<OpTrait::Elementwise>() &&
         llvm::any_of(op->getOperands(), isSumOfRows);
}

Attribute SpreadLayouts::getNatural(Value vector) {
  if (isSingle(vector))
    return uniform();
  // Sums lie where the lanes have them; what else is stored lies along the rows
  // of a tile.
  return alongAxis(isSumOfRows(vector) ? 1 : 0);
}

/// What control flow makes of an operand: a loop of one that it begins with,
/// and of one that it yields, as a branch.
static SmallVector<Value, 2> findCarried(OpOperand &operand) {
  Operation *user = operand.getOwner();
  unsigned number = operand.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    BlockArgument arg = loop.getTiedLoopRegionIterArg(&operand);
    return {arg, loop.getTiedLoopResult(arg)};
  }
  if (!isa<scf::YieldOp>(user))
    return {};
  if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
    return {loop.getRegionIterArg(number), loop.getResult(number)};
  return {user->getParentOp()->getResult(number)};
}

void SpreadLayouts::collectWanted(Value vector, Encodings &wanted,
                                  DenseSet<Value> &seen) {
  if (!seen.insert(vector).second)
    return;
  if (isSingle(vector)) {
    wanted.insert(uniform());
    return;
  }
  for (OpOperand &use : vector.getUses()) {
    Operation *user = use.getOwner();
    SmallVector<Value, 2> carried = findCarried(use);
    for (Value value : carried)
      collectWanted(value, wanted, seen);
    if (!carried.empty())
      continue;
    if (auto broadcast = dyn_cast<linalg::BroadcastOp>(user)) {
      bool isAlongColumns = broadcast.getDimensions() == ArrayRef<int64_t>(0);
      wanted.insert(alongAxis(isAlongColumns ? 1 : 0));
    } else if (auto reduce = dyn_cast<linalg::ReduceOp>(user)) {
      bool isInput = llvm::is_contained(reduce.getInputs(), vector);
      wanted.insert(isInput ? alongAxis(1) : getNatural(reduce->getResult(0)));
    } else if (user->hasTrait<OpTrait::Elementwise>()) {
      collectWanted(user->getResult(0), wanted, seen);
    } else {
      wanted.insert(getNatural(vector));
    }
  }
}

SpreadLayouts::Encodings SpreadLayouts::getWanted(Value vector) {
  Encodings wanted;
  DenseSet<Value> seen;
  collectWanted(vector, wanted, seen);
  return wanted;
}

Attribute SpreadLayouts::getCarried(Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return {};
  if (isTile(value.getType(), 2))
    return spread;
  Encodings wanted = getWanted(value);
  auto arg = dyn_cast<BlockArgument>(value);
  if (arg)
    wanted.insert_range(
        getWanted(cast<scf::ForOp>(arg.getOwner()->getParentOp())
                      .getTiedLoopResult(arg)));
  return wanted.size() == 1 ? wanted.front() : getNatural(value);
}

RankedTensorType SpreadLayouts::typeOf(Value old, Attribute encoding) {
  auto type = cast<RankedTensorType>(old.getType());
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               encoding);
}

/// What the encoding asks of a size is an error at the op that makes `old`, or
/// at one that takes a constant, whose place is lost where several are one.
LogicalResult SpreadLayouts::checkSize(Value old, Attribute encoding) {
  auto type = cast<RankedTensorType>(old.getType());
  Operation *op = old.getDefiningOp() ? old.getDefiningOp() : role;
  if (op->hasTrait<OpTrait::ConstantLike>() && !old.use_empty())
    op = *old.user_begin();
  return cast<VerifiableTensorEncoding>(encoding).verifyEncoding(
      type.getShape(), type.getElementType(), [&] {
        InFlightDiagnostic error = op->emitOpError("expected ");
        error << "a tile that lanes share: ";
        return error;
      });
}

Value SpreadLayouts::makeConstant(arith::ConstantOp constant,
                                  RankedTensorType type) {
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  if (!dense.isSplat())
    return IotaOp::create(b, constant.getLoc(), type, 0);
  return arith::ConstantOp::create(
      b, constant.getLoc(),
      DenseElementsAttr::get(type, dense.getSplatValue<Attribute>()));
}

FailureOr<Value> SpreadLayouts::lookup(Value old, Attribute encoding) {
  if (!isa<RankedTensorType>(old.getType()))
    return map.lookupOrDefault(old);
  if (!encoding)
    encoding = isTile(old.getType(), 2) ? Attribute(spread) : getNatural(old);
  if (failed(checkSize(old, encoding)))
    return failure();
  if (Value known = vectors.lookup({old, encoding}))
    return known;
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat() ||
        (isNumbers(constant) && isa<SliceAttr>(encoding)))
      return makeConstant(constant, typeOf(old, encoding));
  if (isTile(old.getType(), 2))
    if (Value known = map.lookupOrNull(old))
      return known;
  return (op ? op : role)
             ->emitOpError("expected a value that this thread "
                           "holds as ")
         << typeOf(old, encoding)
         << ", got one that others hold: a role of tiles over lanes takes "
            "nothing from channels";
}

/// Makes the only result of `op`, a vector or a tile, in an encoding from its
/// operands in the same one.
LogicalResult SpreadLayouts::cloneAs(Operation *op, Attribute encoding) {
  IRMapping operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> converted = lookup(operand, encoding);
    if (failed(converted))
      return failure();
    operands.map(operand, *converted);
  }
  Value old = op->getResult(0);
  if (failed(checkSize(old, encoding)))
    return failure();
  Operation *copy = b.clone(*op, operands);
  copy->removeAttr(tile::TileDialect::getStepAttrName());
  copy->removeAttr(tile::TileDialect::getChunkAttrName());
  copy->getResult(0).setType(typeOf(old, encoding));
  vectors[{old, encoding}] = copy->getResult(0);
  return success();
}

LogicalResult SpreadLayouts::convertOther(Operation *op) {
  bool makesTensor = op->getNumResults() == 1 &&
                     isa<RankedTensorType>(op->getResult(0).getType());
  if (op->getNumRegions() != 0 || (op->getNumResults() > 1 && makesTensor))
    return op->emitOpError("expected an op that lanes can run, got one with "
                           "regions");
  if (!makesTensor) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        return op->emitOpError("expected an op on tiles over lanes");
    Operation *copy = b.clone(*op, map);
    copy->removeAttr(tile::TileDialect::getStepAttrName());
    copy->removeAttr(tile::TileDialect::getChunkAttrName());
    return success();
  }
  Value old = op->getResult(0);
  if (!isVector(old))
    return cloneAs(op, spread);
  for (Attribute encoding : getWanted(old))
    if (failed(cloneAs(op, encoding)))
      return failure();
  return success();
}
