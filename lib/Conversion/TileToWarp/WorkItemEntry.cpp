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
  // A turn is a step along the grid's last size.
  if (launch->hasAttr(tile::TileDialect::getInTurnsAttrName()) && more.empty())
    return launch.emitOpError("expected a grid of four sizes where work items "
                              "run in turns, got three");
  if (!schedule.getPersistent())
    return success();
  // These count once for each CTA.
  WalkResult found = program.walk([](Operation *op) {
    if (!isa<tile::AwaitOp, tile::AwaitReportOp, tile::ReportOp,
             tile::ClusterSumOp, tile::ClearOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected a CTA for each work item, got a persistent "
                    "schedule");
    return WalkResult::interrupt();
  });
  return failure(found.wasInterrupted());
}

/// `value` as ops that any role may run make it of the work item.
static Value copyFree(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !isFree(op))
    return {};
  for (Value operand : getTakenValues(op))
    if (!copyFree(b, operand, map))
      return {};
  b.clone(*op, map);
  return map.lookup(value);
}

/// A condition or another number of `op`, which says so if more than the work
/// item makes it.
static Value copyNumber(OpBuilder &b, Operation *op, Value number,
                        IRMapping &map) {
  Value copied = copyFree(b, number, map);
  if (!copied)
    op->emitOpError("expected ")
        << (number.getType().isInteger(1) ? "a condition that follows"
                                          : "numbers that follow")
        << " from the work item, got one that a step makes";
  return copied;
}

static SmallVector<Value> lookupAll(ValueRange values, const IRMapping &map) {
  return llvm::map_to_vector(values,
                             [&](Value value) { return map.lookup(value); });
}

void WorkItemWriter::clearOutputs(OpBuilder &b, ValueRange arrays,
                                  const IRMapping &workItem) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  for (Value array : arrays) {
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
}

LogicalResult WorkItemWriter::clearSkipped(OpBuilder &b, tile::ClearOp clear,
                                           IRMapping workItem) {
  for (Value operand : clear->getOperands())
    if (operand != clear.getArray() && !copyNumber(b, clear, operand, workItem))
      return failure();
  // Seldom: its code is not to lie in front of the roles'.
  auto branch =
      scf::IfOp::create(b, loc, workItem.lookup(clear.getCondition()));
  branch->setAttr(WarpDialect::getLikelyAttrName(), b.getBoolAttr(false));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  ArrayClearOp::create(b, loc, workItem.lookup(clear.getArray()),
                       lookupAll(clear.getOffsets(), workItem),
                       workItem.lookup(clear.getEnd()), clear.getDim(),
                       clear.getColumns());
  return success();
}

LogicalResult WorkItemWriter::leaveUnread(OpBuilder &b, bool isBeside) {
  IRMapping map = shared;
  for (auto leave : program.getBody().getOps<tile::LeaveOp>()) {
    if (!leave.getUnread())
      continue;
    Value condition = copyNumber(b, leave, leave.getCondition(), map);
    if (!condition)
      return failure();
    auto branch =
        scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    // Who waits for all CTAs has waited for what they do not wait for.
    if (isBeside)
      GridDependencyWaitOp::create(b, loc, /*then_launch=*/false,
                                   /*launch_later=*/false, /*last_cta=*/true);
    ExitOp::create(b, loc);
  }
  return success();
}

LogicalResult WorkItemWriter::enter(OpBuilder &b, const IRMapping &workItem,
                                    bool isBeside, bool early) {
  IRMapping map = workItem;
  auto createBranch = [&](Operation *op, Value condition) -> scf::IfOp {
    if (Value copied = copyNumber(b, op, condition, map))
      return scf::IfOp::create(b, loc, copied, /*withElseRegion=*/false);
    return {};
  };
  for (Operation &op : program.getBody().front()) {
    if (auto leave = dyn_cast<tile::LeaveOp>(op);
        leave && !leave.getUnread() && leave.getEarly() == early) {
      auto branch = createBranch(leave, leave.getCondition());
      if (!branch)
        return failure();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      clearOutputs(b, leave.getCleared(), workItem);
      // Who waits for all CTAs has waited for what they do not wait for.
      if (isBeside || early)
        GridDependencyWaitOp::create(b, loc, /*then_launch=*/false,
                                     /*launch_later=*/false,
                                     /*last_cta=*/true);
      this->leave(b);
      ExitOp::create(b, loc);
    }
    if (auto clear = dyn_cast<tile::ClearOp>(op); clear && !early)
      for (int64_t vTile = 0; vTile < (isFolded ? allVTiles : 1); ++vTile) {
        IRMapping ofTile = workItem;
        if (isFolded)
          ofTile.map(program.getVTile(),
                     arith::ConstantIndexOp::create(b, loc, vTile));
        if (failed(clearSkipped(b, clear, std::move(ofTile))))
          return failure();
      }
    if (auto await = dyn_cast<tile::AwaitOp>(op); await && !early) {
      auto branch = createBranch(await, await.getCondition());
      if (!branch)
        return failure();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      AwaitOp::create(b, loc, workItem.lookup(await.getArray()));
    }
    if (auto await = dyn_cast<tile::AwaitReportOp>(op); await && !early) {
      for (Value operand : await->getOperands())
        if (!copyNumber(b, await, operand, map))
          return failure();
      AwaitReportOp::create(b, loc, map.lookup(await.getArray()),
                            lookupAll(await.getOffsets(), map),
                            map.lookup(await.getCount()),
                            map.lookup(await.getDone()));
    }
  }
  return success();
}

tile::ReportOp WorkItemWriter::findReport() {
  tile::ReportOp found;
  program.walk([&](tile::ReportOp report) { found = report; });
  return found;
}

LogicalResult WorkItemWriter::beginReports(OpBuilder &b,
                                           const IRMapping &workItem) {
  tile::ReportOp report = findReport();
  WalkResult others = program.walk([&](tile::ReportOp other) {
    if (other.getArray() == report.getArray() &&
        other.getOffsets() == report.getOffsets())
      return WalkResult::advance();
    other.emitOpError("expected reports of one entry in a program, got others");
    return WalkResult::interrupt();
  });
  if (others.wasInterrupted())
    return failure();
  for (int64_t vTile = 0; vTile < (isFolded ? allVTiles : 1); ++vTile) {
    IRMapping map = workItem;
    if (isFolded)
      map.map(program.getVTile(),
              arith::ConstantIndexOp::create(b, loc, vTile));
    for (Value offset : report.getOffsets())
      if (!copyNumber(b, report, offset, map))
        return failure();
    BeginReportsOp::create(b, loc, map.lookup(report.getArray()),
                           lookupAll(report.getOffsets(), map));
  }
  return success();
}

bool WorkItemWriter::mayLeaveEarly() {
  return llvm::any_of(program.getBody().getOps<tile::LeaveOp>(),
                      [](tile::LeaveOp leave) { return leave.getEarly(); });
}

bool WorkItemWriter::mayHoldBack() {
  return !program.getBody().getOps<tile::HoldBackOp>().empty();
}

LogicalResult WorkItemWriter::launchBeside(OpBuilder &b,
                                           const IRMapping &workItem) {
  IRMapping map = workItem;
  for (auto hold : program.getBody().getOps<tile::HoldBackOp>()) {
    Value condition = copyNumber(b, hold, hold.getCondition(), map);
    if (!condition)
      return failure();
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    LaunchDependentsOp::create(b, loc);
  }
  return success();
}

void WorkItemWriter::leave(OpBuilder &b) {
  for (auto count : program.getBody().getOps<tile::CountDownOp>())
    CountDownOp::create(b, loc, shared.lookup(count.getArray()));
}
