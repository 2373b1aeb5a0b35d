//===- WriteLeading.cpp - What only the first chunk of an iteration does --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role whose chunks are a loop has one code for all of them. What no chunk
// but the first does stands in front of that loop, if it leads: so no chunk
// asks whether it is the first.
//
//===----------------------------------------------------------------------===//

#include "RoleWriter.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// n where no chunk but every n-th does `op`, from an iteration's first one on;
/// else 0.
int64_t RoleWriter::getLeadingEvery(Operation *op) {
  auto every = op->getAttrOfType<IntegerAttr>(tile::kEveryAttrName);
  // Such a loop counts from its last chunk.
  bool counts = every && isa<scf::IfOp>(op) && op->getNumResults() == 0 &&
                getChunk(op) == 0 &&
                !getLoop()->hasAttr(tile::kNeutralBeforeFirstAttrName);
  return counts &&
                 every.getInt() % partition.schedule.getChunksPerIteration() ==
                     0
             ? every.getInt()
             : 0;
}

/// Whether `op` is done for the first chunk alone, and needs nothing of the
/// iteration but what that begins with, and numbers.
bool RoleWriter::leads(Operation *op) {
  if (getLeadingEvery(op) == 0)
    return false;
  SetVector<Value> taken = getTakenValues(op);
  for (size_t number = 0; number < taken.size(); ++number) {
    Operation *maker = taken[number].getDefiningOp();
    if (!maker || maker->getBlock() != getLoop().getBody())
      continue;
    if (!isFree(maker))
      return false;
    taken.set_union(getTakenValues(maker));
  }
  return true;
}

/// Copies what leads the chunks of an iteration that begins at token `begin`.
void RoleWriter::copyLeading(Value begin,
                             function_ref<bool(Operation *)> wanted) {
  SmallVector<IRMapping> outside = maps;
  maps[0].map(getLoop().getInductionVar(), begin);
  for (Operation &op : getLoop().getBody()->without_terminator()) {
    if (!leads(&op) ||
        getLeadingEvery(&op) != partition.schedule.getChunksPerIteration())
      continue;
    // Each iteration does it.
    Value condition = cast<scf::IfOp>(op).getCondition();
    mapFor(condition, 0)
        .map(condition, arith::ConstantIntOp::create(b, loc, 1, 1));
  }
  copyOps(*getLoop().getBody(),
          [&](Operation *op) { return wanted(op) && leads(op); });
  maps = outside;
}
