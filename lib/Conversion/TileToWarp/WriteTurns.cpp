//===- WriteTurns.cpp - The iterations and work items of a role -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The iterations that are pending behind one more, at `place`.
SmallVector<Value> RoleWriter::remember(ValueRange pending, ValueRange place) {
  SmallVector<Value> next(pending.drop_front(getPlaceSize()));
  llvm::append_range(next, place);
  return next;
}

/// Where iteration `index` of the work item that is mapped begins.
Value RoleWriter::writeBegin(Value index) {
  scf::ForOp loop = partition.loop;
  Value lower = lookup(loop.getLowerBound(), 0),
        width = lookup(loop.getStep(), 0);
  return arith::AddIOp::create(
      b, loc, lower,
      arith::MulIOp::create(b, loc, toIndex(b, loc, index), width));
}

/// What is late in round `index`: the steps of the iteration `delay` rounds
/// ago, if there was one. It is the oldest of the pending ones; of the only
/// work item it follows from its number.
void RoleWriter::writeLate(Value index, ValueRange pending) {
  Value delay = createI32(spec.getDelay());
  Value started =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, index, delay);
  auto late = scf::IfOp::create(b, loc, started, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(late.thenBlock());
  SmallVector<IRMapping> outside = maps;
  maps = ofNoWorkItem;
  for (auto [number, name] : llvm::enumerate(names))
    maps[0].map(name, takesTurns() ? pending[number] : only->lookup(name));
  Value past = arith::SubIOp::create(b, loc, index, delay);
  copyIteration(past, takesTurns() ? pending[names.size()] : writeBegin(past),
                /*late=*/true);
  maps = outside;
}

/// The iteration itself; returns the next carried values.
SmallVector<Value> RoleWriter::writeNow(Value index, Value begin) {
  copyIteration(index, begin, /*late=*/false);
  SmallVector<Value> next;
  for (unsigned number : partition.needs[role].carried)
    next.push_back(lookup(partition.loop.getYieldedValues()[number], 0));
  return next;
}

/// The iteration while there is one: the rounds behind the last iteration of
/// the only work item are for what is late.
SmallVector<Value> RoleWriter::writeIfLeft(Value index, Value begin, Value last,
                                           ValueRange carried) {
  Value more =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, last);
  auto left = scf::IfOp::create(b, loc, carried.getTypes(), more,
                                /*withElseRegion=*/!carried.empty());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(left.thenBlock());
  SmallVector<IRMapping> outside = maps;
  SmallVector<Value> next = writeNow(index, begin);
  maps = outside;
  if (!carried.empty()) {
    scf::YieldOp::create(b, loc, next);
    b.setInsertionPointToStart(left.elseBlock());
    scf::YieldOp::create(b, loc, carried);
  }
  return llvm::to_vector_of<Value>(left.getResults());
}

/// One round: the iteration, what comes behind the work item's last one, and
/// what is late by then, last, since nobody waits for that as long as for this
/// iteration. Returns what is carried and pending next.
SmallVector<Value> RoleWriter::writeRound(Value index, Value begin, Value last,
                                          ValueRange carried,
                                          ValueRange pending) {
  if (spec.getDelay() == 0)
    return writeNow(index, begin);
  SmallVector<Value> place = llvm::map_to_vector(
      names, [&](Value name) { return maps[0].lookup(name); });
  place.push_back(begin);
  SmallVector<Value> next = takesTurns()
                                ? writeNow(index, begin)
                                : writeIfLeft(index, begin, last, carried);
  writeNext(index, last);
  writeLate(index, pending);
  if (takesTurns())
    llvm::append_range(next, remember(pending, place));
  return next;
}

/// The iterations of a work item, numbered on from those before.
void RoleWriter::writeLoop(Progress &progress) {
  scf::ForOp loop = partition.loop;
  const SetVector<unsigned> &kept = partition.needs[role].carried;
  Value lower = lookup(loop.getLowerBound(), 0),
        upper = lookup(loop.getUpperBound(), 0),
        width = lookup(loop.getStep(), 0);
  Value count = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, upper, lower), width);
  Value first = progress.front(),
        last = arith::AddIOp::create(b, loc, first, toI32(b, loc, count));
  Value end = last;
  if (spec.getDelay() != 0 && !takesTurns())
    end = arith::AddIOp::create(b, loc, last, createI32(spec.getDelay()));
  SmallVector<Value> inits;
  for (unsigned number : kept)
    inits.push_back(lookup(loop.getInits()[number], 0));
  llvm::append_range(inits, llvm::drop_begin(progress));
  auto rounds = scf::ForOp::create(b, loc, first, end, createI32(1), inits);
  SmallVector<IRMapping> outside = maps;
  {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPointToStart(rounds.getBody());
    ValueRange carried = rounds.getRegionIterArgs().take_front(kept.size()),
               pending = rounds.getRegionIterArgs().drop_front(kept.size());
    for (auto [number, value] : llvm::zip(kept, carried))
      maps[0].map(loop.getRegionIterArgs()[number], value);
    Value index = rounds.getInductionVar();
    Value begin = writeBegin(arith::SubIOp::create(b, loc, index, first));
    SmallVector<Value> next = writeRound(index, begin, last, carried, pending);
    if (!next.empty())
      scf::YieldOp::create(b, loc, next);
  }
  maps = outside;
  for (auto [number, value] : llvm::zip(kept, rounds.getResults()))
    maps[0].map(loop.getResults()[number], value);
  progress = {last};
  llvm::append_range(progress, rounds.getResults().drop_front(kept.size()));
}

/// All that the role does for the work item that is mapped.
void RoleWriter::writeWorkItem(Progress &progress) {
  Block &body = partition.program.getBody().front();
  scf::ForOp loop = partition.loop;
  auto isBefore = [&](Operation *op) {
    return !loop || op->isBeforeInBlock(loop);
  };
  copyOps(body, isBefore);
  if (partition.needs[role].inLoop)
    writeLoop(progress);
  copyOps(body, [&](Operation *op) { return !isBefore(op); });
}

/// No iteration so far; what is pending then has no meaning.
RoleWriter::Progress RoleWriter::begin() {
  Progress progress = {createI32(0)};
  if (takesTurns())
    progress.append(spec.getDelay() * getPlaceSize(), createIndex(0));
  return progress;
}

/// The work items that this CTA takes in turn.
RoleWriter::Progress RoleWriter::writeWorkItems() {
  Value cta = toI32(b, loc, IdOp::create(b, loc, IdKind::CTA)),
        ctas = toI32(b, loc, IdOp::create(b, loc, IdKind::CTACount));
  auto turns =
      scf::ForOp::create(b, loc, cta, workItems.getCount(), ctas, begin());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(turns.getBody());
  turn = turns.getInductionVar();
  IRMapping workItem = workItems.write(b, turn);
  for (Value name : names)
    maps[0].map(name, workItem.lookup(name));
  Progress progress(turns.getRegionIterArgs());
  writeWorkItem(progress);
  scf::YieldOp::create(b, loc, progress);
  return Progress(turns.getResults());
}

/// What is late when the last work item is over.
void RoleWriter::writeRest(const Progress &progress) {
  Value last = arith::AddIOp::create(b, loc, progress.front(),
                                     createI32(spec.getDelay()));
  auto rest = scf::ForOp::create(b, loc, progress.front(), last, createI32(1),
                                 ValueRange(progress).drop_front());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(rest.getBody());
  ValueRange pending = rest.getRegionIterArgs();
  writeLate(rest.getInductionVar(), pending);
  scf::YieldOp::create(b, loc,
                       remember(pending, pending.take_back(getPlaceSize())));
}

void RoleWriter::write(const IRMapping &workItem, Value vTile) {
  warpgroupVTile = vTile;
  maps[0] = workItems.getShared();
  if (spec.getWarpgroupPerVTile())
    maps[0].map(partition.program.getVTile(), vTile);
  else if (unrollsVTiles())
    for (auto [number, map] : llvm::enumerate(llvm::drop_begin(maps)))
      map.map(partition.program.getVTile(), createIndex(number));
  ofNoWorkItem = maps;
  only = &workItem;
  if (!takesTurns()) {
    for (Value name : names)
      maps[0].map(name, workItem.lookup(name));
    Progress progress = begin();
    return writeWorkItem(progress);
  }
  Progress progress = writeWorkItems();
  maps = ofNoWorkItem;
  if (spec.getDelay() != 0 && partition.needs[role].inLoop)
    writeRest(progress);
}

void Partition::writeRole(unsigned role, OpBuilder &b,
                          WorkItemWriter &workItems, const IRMapping &workItem,
                          Value vTile) {
  RoleWriter(*this, role, b, workItems).write(workItem, vTile);
}
