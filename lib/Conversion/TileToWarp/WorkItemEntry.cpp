//===- WorkItemEntry.cpp - CTAs that leave early or wait for others -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItemWriter.h"

#include "Partition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

LogicalResult WorkItemWriter::checkTurns(ScheduleAttr schedule) {
  if (!bounds && launch->hasAttr(tile::TileDialect::getInTurnsAttrName()))
    return launch.emitOpError(
        "expected cu_seqlens where work items run in turns, got none");
  auto waits = program.getBody().getOps<tile::AwaitOp>();
  if (schedule.getPersistent() && !waits.empty())
    return (*waits.begin())
        .emitOpError("expected a CTA for each work item, got a "
                     "persistent schedule");
  return success();
}

/// `value` as ops that any role may run make it of the work item.
static Value copyFree(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !isFree(op))
    return {};
  for (Value operand : op->getOperands())
    if (!copyFree(b, operand, map))
      return {};
  return b.clone(*op, map)->getResult(0);
}

LogicalResult WorkItemWriter::enter(OpBuilder &b, const IRMapping &workItem,
                                    bool isBeside) {
  IRMapping map = workItem;
  auto createBranch = [&](Operation *op, Value condition) -> scf::IfOp {
    if (Value copied = copyFree(b, condition, map))
      return scf::IfOp::create(b, loc, copied, /*withElseRegion=*/false);
    op->emitOpError("expected a condition that follows from the work item, got "
                    "one that a step makes");
    return {};
  };
  for (Operation &op : program.getBody().front()) {
    if (auto leave = dyn_cast<tile::LeaveOp>(op)) {
      auto branch = createBranch(leave, leave.getCondition());
      if (!branch)
        return failure();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      for (Value array : leave.getCleared()) {
        auto type = cast<MemRefType>(array.getType());
        SmallVector<Value> offsets(type.getRank(), zero);
        offsets[0] = workItem.lookup(program.getSequence());
        offsets[1] = workItem.lookup(program.getHead());
        int64_t rows = type.getRank() - 2;
        Value written = workItem.lookup(array);
        ArrayClearOp::create(b, loc, written, offsets,
                             memref::DimOp::create(b, loc, written, rows), rows,
                             type.getShape().back());
      }
      if (isBeside)
        GridDependencyWaitOp::create(b, loc, /*then_launch=*/false,
                                     /*last_cta=*/true);
      ExitOp::create(b, loc);
    }
    if (auto await = dyn_cast<tile::AwaitOp>(op)) {
      auto branch = createBranch(await, await.getCondition());
      if (!branch)
        return failure();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      AwaitOp::create(b, loc, workItem.lookup(await.getArray()));
    }
  }
  return success();
}

void WorkItemWriter::leave(OpBuilder &b) {
  for (auto count : program.getBody().getOps<tile::CountDownOp>())
    CountDownOp::create(b, loc, shared.lookup(count.getArray()));
}
