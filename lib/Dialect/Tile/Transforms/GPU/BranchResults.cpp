//===- BranchResults.cpp - Arrays that both sides of a branch make --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BranchResults.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

/// Whether a launch makes its result of `outs` in new memory.
static tensor::EmptyOp findEmpty(OpResult made) {
  auto launch = cast<LaunchOp>(made.getOwner());
  return launch.getOutputs()[made.getResultNumber()]
      .getDefiningOp<tensor::EmptyOp>();
}

/// Lets `second` be made where `first` is.
static void share(OpResult first, OpResult second) {
  auto launch = cast<LaunchOp>(second.getOwner());
  OpOperand &outs = launch.getOutputsMutable()[second.getResultNumber()];
  OpBuilder b(launch);
  Value array = first;
  if (array.getType() != outs.get().getType())
    array =
        tensor::CastOp::create(b, launch.getLoc(), outs.get().getType(), array);
  outs.set(array);
}

/// The launch that makes a value, which may have other dimensions than what is
/// launched; null if none does.
static OpResult findLaunch(Value value) {
  while (isa_and_nonnull<tensor::CastOp, tensor::ExpandShapeOp,
                         tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp<LaunchOp>() ? cast<OpResult>(value) : OpResult();
}

/// What a launch makes its result of `outs` of.
static Value findOuts(OpResult made) {
  return cast<LaunchOp>(made.getOwner()).getOutputs()[made.getResultNumber()];
}

/// The launch in whose array a result is made: another one where both sides of
/// a branch make one array.
static OpResult findFirst(OpResult made) {
  while (OpResult before = findLaunch(findOuts(made)))
    made = before;
  return made;
}

LogicalResult tile::joinResults(scf::IfOp choice, Value first, Value second,
                                ArrayRef<LaunchOp> secondLaunches) {
  OpResult one = findLaunch(first), other = findLaunch(second);
  if (one && other && !findEmpty(one) && findOuts(one) == findOuts(other)) {
    Value updated = findOuts(one);
    for (LaunchOp launch : secondLaunches)
      launch->replaceUsesOfWith(updated, one);
    return success();
  }
  if (other)
    other = findFirst(other);
  if (!one || !other || !findEmpty(other) ||
      !tensor::CastOp::areCastCompatible(one.getType(), other.getType()))
    return choice.emitOpError("expected results that launches of both sides "
                              "make in one array, or in a tensor.empty of "
                              "equal dimensions, got ")
           << first << " and " << second;
  share(one, other);
  return success();
}

void tile::shareTemporaries(ArrayRef<LaunchOp> first, ArrayRef<LaunchOp> second,
                            ValueRange results) {
  SmallVector<OpResult> free;
  for (LaunchOp launch : first)
    for (OpResult made : launch->getResults())
      if (findEmpty(made) && llvm::none_of(results, [&](Value result) {
            return findFirst(findLaunch(result)) == made;
          }))
        free.push_back(made);
  for (LaunchOp launch : second)
    for (OpResult made : launch->getResults()) {
      tensor::EmptyOp empty = findEmpty(made);
      auto known = llvm::find_if(free, [&](OpResult other) {
        tensor::EmptyOp its = findEmpty(other);
        return empty && its.getType() == empty.getType() &&
               its.getDynamicSizes() == empty.getDynamicSizes();
      });
      if (known == free.end())
        continue;
      share(*known, made);
      free.erase(known);
    }
}
