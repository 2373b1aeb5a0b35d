//===- WriteTurns.cpp - The iterations and work items of a role -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleWriter.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/LoopAttributes.h"

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
  Value lower = lookup(getLoop().getLowerBound(), 0),
        width = lookup(getLoop().getStep(), 0);
  return arith::AddIOp::create(
      b, loc, lower,
      arith::MulIOp::create(b, loc, toIndex(b, loc, index), width));
}

/// What is late in round `index` of those from `first` on: the steps of the
/// iteration `delay` rounds ago, if there was one. It is the oldest of the
/// pending ones; where none is carried to the next work item it follows from
/// its number.
void RoleWriter::writeLate(Value index, Value first, ValueRange pending) {
  Value delay = createI32(spec.getDelay());
  auto sinceFirst = [&](Value number) -> Value {
    return carriesLate() ? number
                         : Value(arith::SubIOp::create(b, loc, number, first));
  };
  Value started = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                        sinceFirst(index), delay);
  auto late = scf::IfOp::create(b, loc, started, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(late.thenBlock());
  SmallVector<IRMapping> outside = maps;
  maps = ofNoWorkItem;
  for (auto [number, name] : llvm::enumerate(names))
    maps[0].map(name, carriesLate() ? pending[number] : current.lookup(name));
  auto keep = [&](Value value, unsigned vTile) {
    if (Value known = getMap(outside, value, vTile).lookupOrNull(value))
      mapFor(value, vTile).map(value, known);
  };
  // What came through channels before the loop, and numbers that were made.
  for (auto &[value, takers] : partition.crossing)
    if (!carriesLate() && partition.isOutside(value) && takers.contains(role))
      for (unsigned vTile = 0; vTile < countCopies(value); ++vTile)
        keep(value, vTile);
  if (!carriesLate())
    for (Value value : madeBefore)
      keep(value, 0);
  Value past = arith::SubIOp::create(b, loc, index, delay);
  copyIteration(past,
                carriesLate() ? pending[names.size()]
                              : writeBegin(sinceFirst(past)),
                /*late=*/true);
  maps = outside;
}

/// The iteration itself; returns the next carried values.
SmallVector<Value> RoleWriter::writeNow(Value index, Value begin) {
  copyIteration(index, begin, /*late=*/false);
  SmallVector<Value> next;
  for (auto [number, vTile] : getKept())
    next.push_back(lookup(getLoop().getYieldedValues()[number], vTile));
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
SmallVector<Value> RoleWriter::writeRound(Value index, Value first, Value last,
                                          ValueRange carried,
                                          ValueRange pending) {
  Value begin = writeBegin(arith::SubIOp::create(b, loc, index, first));
  // Loads ahead of their iterations stay inside of the loop's walk.
  if (spec.getPrefetchDistance() != 0 &&
      !getLoop()->hasAttr(tile::kCutPastEndAttrName))
    begin = arith::SelectOp::create(
        b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, last),
        begin, lookup(getLoop().getLowerBound(), 0));
  if (spec.getDelay() == 0)
    return writeNow(index, begin);
  SmallVector<Value> place = llvm::map_to_vector(
      names, [&](Value name) { return maps[0].lookup(name); });
  place.push_back(begin);
  SmallVector<Value> next = carriesLate()
                                ? writeNow(index, begin)
                                : writeIfLeft(index, begin, last, carried);
  writeNext(index, last);
  writeLate(index, first, pending);
  if (carriesLate())
    llvm::append_range(next, remember(pending, place));
  return next;
}

SmallVector<std::pair<unsigned, unsigned>> RoleWriter::getKept() const {
  SmallVector<std::pair<unsigned, unsigned>> kept;
  for (unsigned number : partition.needs[role][loop].carried)
    for (unsigned vTile = 0;
         vTile < countCopies(getLoop().getRegionIterArgs()[number]); ++vTile)
      kept.push_back({number, vTile});
  return kept;
}

/// Takes what ops of the loop take of what is made outside of it: once, not in
/// each iteration.
void RoleWriter::takeOutside() {
  for (auto &[op, owner] : partition.roles)
    if (owner == role && partition.findLoop(op) == loop)
      for (Value value : findSources(op))
        if (value.getDefiningOp() && partition.isOutside(value) &&
            partition.getFieldOf(value, role))
          for (unsigned vTile = 0; vTile < countCopies(value); ++vTile)
            lookup(value, vTile);
}

/// Makes the numbers that ops of the loop take and that are to be made before
/// it.
void RoleWriter::makeNumbers() {
  SmallVector<Operation *> open;
  for (auto &[op, owner] : partition.roles)
    if (owner == role && partition.findLoop(op) == loop)
      open.push_back(op);
  DenseSet<Operation *> seen;
  while (!open.empty())
    for (Value value : getTakenValues(open.pop_back_val())) {
      Operation *maker = value.getDefiningOp();
      if (!maker || !isFree(maker) || !seen.insert(maker).second)
        continue;
      if (maker->hasAttr(tile::kBeforeLoopsAttrName)) {
        lookup(value, 0);
        madeBefore.insert(value);
      }
      open.push_back(maker);
    }
}

/// Hands what the loop carried to the roles that take it.
void RoleWriter::putResults() {
  for (Value result : getLoop().getResults())
    if (partition.crossing.contains(result) &&
        partition.getMakingRole(result) == role)
      for (unsigned vTile = 0; vTile < countCopies(result); ++vTile)
        put(result, lookup(result, vTile), vTile);
}

/// The number of iterations of the loop (i32).
Value RoleWriter::writeCount() {
  Value lower = lookup(getLoop().getLowerBound(), 0),
        upper = lookup(getLoop().getUpperBound(), 0),
        width = lookup(getLoop().getStep(), 0);
  // A sequence does not end before it begins; of other bounds nobody knows.
  tile::ProgramOp program = partition.program;
  if (getLoop().getLowerBound() != program.getBegin() ||
      getLoop().getUpperBound() != program.getEnd())
    upper = arith::MaxSIOp::create(b, loc, upper, lower);
  Value count = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, upper, lower), width);
  return toI32(b, loc, count);
}

/// Counts the iterations of the loop. The clock that numbers them is ahead by
/// them already.
void RoleWriter::advance(Progress &progress, Value count) {
  for (auto [number, clock] : llvm::enumerate(partition.clocks))
    if (number != partition.getClock(loop) && llvm::is_contained(clock, loop))
      progress.clocks[number] =
          arith::AddIOp::create(b, loc, progress.clocks[number], count);
}

/// The iterations of a loop, numbered on from those before.
void RoleWriter::writeLoop(Progress &progress) {
  if (!partition.needs[role][loop].runs && partition.loops.size() == 1)
    return;
  if (partition.needs[role][loop].runs) {
    takeOutside();
    makeNumbers();
  }
  Value count = writeCount();
  Value &first = progress.clocks[partition.getClock(loop)];
  shifts.assign(partition.clocks.size(), Value());
  for (auto [number, clock] : llvm::enumerate(partition.clocks))
    if (number != partition.getClock(loop) && llvm::is_contained(clock, loop))
      shifts[number] =
          arith::SubIOp::create(b, loc, progress.clocks[number], first);
  if (partition.needs[role][loop].runs) {
    writeRounds(progress, count);
    putResults();
  } else {
    first = arith::AddIOp::create(b, loc, first, count);
  }
  advance(progress, count);
}

/// Writes the role's loop over iterations, and rounds behind the last one for
/// what is late then.
void RoleWriter::writeRounds(Progress &progress, Value count) {
  scf::ForOp from = getLoop();
  SmallVector<std::pair<unsigned, unsigned>> kept = getKept();
  Value &clock = progress.clocks[partition.getClock(loop)];
  Value first = clock, last = arith::AddIOp::create(b, loc, first, count);
  Value end = last;
  if (spec.getDelay() != 0 && !carriesLate())
    end = arith::AddIOp::create(b, loc, last, createI32(spec.getDelay()));
  bool isCut = from->hasAttr(tile::kCutPastEndAttrName);
  // Where there is no iteration none is ahead of its time either.
  if (end != last && spec.getPrefetchDistance() != 0 && !isCut)
    end = arith::SelectOp::create(
        b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, first, last),
        last, end);
  SmallVector<Value> inits;
  for (auto [number, vTile] : kept)
    inits.push_back(lookup(from.getInits()[number], vTile));
  llvm::append_range(inits, progress.pending);
  writeFollowing();
  auto rounds = scf::ForOp::create(b, loc, first, end, createI32(1), inits);
  if (isCut)
    rounds->setAttr(warp::kCutPastEndAttrName, b.getUnitAttr());
  SmallVector<IRMapping> outside = maps;
  {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPointToStart(rounds.getBody());
    ValueRange carried = rounds.getRegionIterArgs().take_front(kept.size()),
               pending = rounds.getRegionIterArgs().drop_front(kept.size());
    for (auto [place, value] : llvm::zip(kept, carried)) {
      Value arg = from.getRegionIterArgs()[place.first];
      mapFor(arg, place.second).map(arg, value);
    }
    SmallVector<Value> next =
        writeRound(rounds.getInductionVar(), first, last, carried, pending);
    if (!next.empty())
      scf::YieldOp::create(b, loc, next);
  }
  maps = outside;
  for (auto [place, value] : llvm::zip(kept, rounds.getResults())) {
    Value result = from.getResults()[place.first];
    if (!partition.getFieldOf(result, role))
      mapFor(result, place.second).map(result, value);
  }
  clock = last;
  progress.pending =
      llvm::to_vector_of<Value>(rounds.getResults().drop_front(kept.size()));
}

/// All that the role does for the work item that is mapped: loops, and what
/// stands before, between and behind them.
void RoleWriter::writeWorkItem(Progress &progress) {
  tile::ProgramOp program = partition.program;
  Block &body = program.getBody().front();
  for (loop = 0; loop <= partition.loops.size(); ++loop) {
    copyOps(body, [&](Operation *op) {
      return static_cast<size_t>(
                 llvm::count_if(partition.loops, [&](scf::ForOp other) {
                   return other->isBeforeInBlock(op);
                 })) == loop;
    });
    if (loop < partition.loops.size())
      writeLoop(progress);
  }
}

/// No iteration so far; what is pending then has no meaning.
RoleWriter::Progress RoleWriter::begin() {
  Progress progress;
  progress.clocks.assign(partition.clocks.size(), createI32(0));
  if (carriesLate())
    progress.pending.assign(spec.getDelay() * getPlaceSize(), createIndex(0));
  return progress;
}

/// The work items that this CTA takes in turn.
RoleWriter::Progress RoleWriter::writeWorkItems() {
  Value cta = toI32(b, loc, IdOp::create(b, loc, IdKind::CTA)),
        ctas = toI32(b, loc, IdOp::create(b, loc, IdKind::CTACount));
  Progress progress = begin();
  auto turns = scf::ForOp::create(b, loc, cta, workItems.getCount(), ctas,
                                  progress.flatten());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(turns.getBody());
  turn = turns.getInductionVar();
  workItemNumber = arith::DivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, turn, cta), ctas);
  current = workItems.write(b, turn);
  for (Value name : names)
    maps[0].map(name, current.lookup(name));
  Progress inside = progress.with(turns.getRegionIterArgs());
  writeWorkItem(inside);
  if (turns.getNumResults() != 0)
    scf::YieldOp::create(b, loc, inside.flatten());
  return progress.with(turns.getResults());
}

/// What is late when the last work item is over.
void RoleWriter::writeRest(const Progress &progress) {
  loop = 0;
  Value first = progress.clocks.front(),
        last = arith::AddIOp::create(b, loc, first, createI32(spec.getDelay()));
  auto rest =
      scf::ForOp::create(b, loc, first, last, createI32(1), progress.pending);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(rest.getBody());
  ValueRange pending = rest.getRegionIterArgs();
  writeLate(rest.getInductionVar(), first, pending);
  scf::YieldOp::create(b, loc,
                       remember(pending, pending.take_back(getPlaceSize())));
}

void RoleWriter::write(const IRMapping &workItem, Value vTile) {
  warpgroupVTile = vTile;
  maps[0] = workItems.getShared();
  if (spec.getWarpgroupPerVTile())
    maps[0].map(partition.getProgram().getVTile(), vTile);
  else if (unrollsVTiles())
    for (auto [number, map] : llvm::enumerate(llvm::drop_begin(maps)))
      map.map(partition.getProgram().getVTile(), createIndex(number));
  ofNoWorkItem = maps;
  if (!takesTurns()) {
    current = workItem;
    workItemNumber = createI32(0);
    for (Value name : names)
      maps[0].map(name, current.lookup(name));
    Progress progress = begin();
    return writeWorkItem(progress);
  }
  Progress progress = writeWorkItems();
  maps = ofNoWorkItem;
  if (carriesLate() && partition.needs[role].front().runs)
    writeRest(progress);
}
