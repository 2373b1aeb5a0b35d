//===- WorkItemWriter.cpp - Which sequence and head a CTA works on --------===//
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

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

static Value createIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value gdn::toI32(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
}

Value gdn::toIndex(OpBuilder &b, Location loc, Value number) {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
}

Value WorkItemWriter::writeExtent(OpBuilder &b, Value extent) {
  if (std::optional<int64_t> known = getConstantIntValue(extent))
    return createIndex(b, loc, *known);
  Operation *op = extent.getDefiningOp();
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op)) {
    Value array = findArray(dim.getSource());
    if (!array || !dim.getConstantIndex())
      return {};
    return memref::DimOp::create(b, loc, array, *dim.getConstantIndex());
  }
  if (!op || op->getNumRegions() != 0 || !isPure(op) ||
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

Value WorkItemWriter::findArray(Value input) {
  Block &body = kernel.getBody().front();
  if (input == launch.getCuSeqlens())
    return bounds;
  auto found = llvm::find(launch.getInputs(), input);
  if (found == launch.getInputs().end())
    return {};
  return body.getArgument(std::distance(launch.getInputs().begin(), found));
}

WorkItemWriter::WorkItemWriter(tile::ProgramOp program, tile::LaunchOp launch,
                               KernelOp kernel)
    : program(program), launch(launch), kernel(kernel), loc(program.getLoc()) {
  Block &body = kernel.getBody().front();
  unsigned next = program.getArrays().size();
  tokens = body.getArgument(next);
  if (body.getNumArguments() > next + 1)
    bounds = body.getArgument(next + 1);
}

LogicalResult WorkItemWriter::prepare(OpBuilder &b, ScheduleAttr schedule) {
  std::optional<int64_t> all = getConstantIntValue(launch.getGrid()[2]);
  if (!all)
    return launch.emitOpError("expected a constant number of V tiles in the "
                              "grid");
  if (schedule.getVTiles() != 1 && schedule.getVTiles() != *all)
    return launch.emitOpError("expected ")
           << schedule.getVTiles()
           << " V tiles in the grid, as the schedule folds, got " << *all;
  if (*all % schedule.getCluster() != 0)
    return launch.emitOpError("expected a multiple of ")
           << schedule.getCluster()
           << " V tiles in the grid, as the schedule makes clusters of them, "
              "got "
           << *all;
  isInOrder = schedule.getInOrder();
  isFolded = schedule.getVTiles() != 1;
  vTiles = isFolded ? 1 : *all;
  if (!(heads = writeExtent(b, launch.getGrid()[1])))
    return launch.emitOpError("expected a number of heads in the grid that is "
                              "a constant or made from extents of inputs");
  for (Value size :
       launch.getGrid().drop_front(tile::ProgramOp::kMinGridRank)) {
    more.push_back(writeExtent(b, size));
    if (!more.back())
      return launch.emitOpError("expected sizes of the grid that are constants "
                                "or made from extents of inputs");
  }
  mapShared(b);
  if (!schedule.getPersistent())
    return success();
  Value sequences = writeExtent(b, launch.getGrid()[0]);
  if (!sequences)
    return launch.emitOpError("expected a number of sequences in the grid that "
                              "is a constant or made from extents of inputs");
  Value workItems = arith::MulIOp::create(b, loc, sequences, heads);
  for (Value size : more)
    workItems = arith::MulIOp::create(b, loc, workItems, size);
  if (vTiles > 1)
    workItems =
        arith::MulIOp::create(b, loc, workItems, createIndex(b, loc, vTiles));
  count = toI32(b, loc, workItems);
  return success();
}

void WorkItemWriter::mapShared(OpBuilder &b) {
  for (auto [from, to] :
       llvm::zip(program.getArrays(), kernel.getBody().getArguments()))
    shared.map(from, to);
  names = {program.getSequence(), program.getHead()};
  if (!isFolded)
    names.push_back(program.getVTile());
  llvm::append_range(names,
                     program.getCoordinates().drop_front(program.kMinGridRank));
  Value zero = createIndex(b, loc, 0);
  if (bounds) {
    shared.map(program.getBatch(), zero);
    names.append({program.getBegin(), program.getEnd()});
    return;
  }
  names.push_back(program.getBatch());
  shared.map(program.getBegin(), zero);
  shared.map(program.getEnd(), Value(arith::IndexCastOp::create(
                                   b, loc, b.getIndexType(), tokens)));
}

IRMapping WorkItemWriter::write(OpBuilder &b, Value number) {
  IRMapping workItem = shared;
  auto divide = [&](Value divisor) -> Value {
    divisor = toI32(b, loc, divisor);
    Value rest = arith::RemUIOp::create(b, loc, number, divisor);
    number = arith::DivUIOp::create(b, loc, number, divisor);
    return toIndex(b, loc, rest);
  };
  // Parts are next to each other, then further coordinates, then heads, so that
  // neighbours share keys.
  if (!isFolded)
    workItem.map(program.getVTile(), divide(createIndex(b, loc, vTiles)));
  for (auto [coordinate, size] : llvm::zip(
           program.getCoordinates().drop_front(program.kMinGridRank), more))
    workItem.map(coordinate, divide(size));
  Value head = divide(heads), sequence = toIndex(b, loc, number);
  workItem.map(program.getHead(), head);
  if (!bounds) {
    workItem.map(program.getSequence(), sequence);
    workItem.map(program.getBatch(), sequence);
    return workItem;
  }
  // A long sequence that began last would keep the others waiting.
  auto longest = SequenceByRankOp::create(b, loc, bounds, sequence, isInOrder);
  workItem.map(program.getSequence(), longest.getSequence());
  workItem.map(program.getBegin(), longest.getBegin());
  workItem.map(program.getEnd(), longest.getEnd());
  return workItem;
}
