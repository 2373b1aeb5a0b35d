//===- WriteRole.cpp - One role of a partitioned program ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// Writes the body of one role.
class RoleWriter {
public:
  RoleWriter(Partition &partition, unsigned role, OpBuilder &b,
             ItemWriter &items)
      : partition(partition), role(role),
        plan(partition.schedule.getRoles()[role]), b(b),
        loc(partition.program.getLoc()), items(items), names(items.getNames()),
        maps(1 + partition.schedule.getParts(), IRMapping()) {}

  /// `item` is what the kernel works on, unless the role takes items in turn;
  /// `part` is the part of this warpgroup in a role that splits them.
  void write(const IRMapping &item, Value part);

private:
  /// Whether this role handles the parts one after the other.
  bool unrollsParts() const { return !plan.getSplit() && maps.size() > 2; }
  IRMapping &mapFor(Value value, unsigned part) {
    return maps[unrollsParts() && partition.partial.contains(value) ? 1 + part
                                                                    : 0];
  }
  /// The operands of a put or get: which slot, which part, which chunk.
  Value slotOperand(Value value);
  Value partOperand(Value value, unsigned part);
  Value chunkOperand(Value value);
  Value lookup(Value value, unsigned part);
  Value copyFree(Value value, unsigned part);
  Value take(Value value, unsigned part);
  void copy(Operation *op, unsigned part);
  void copyOnce(Operation *op, function_ref<bool(Operation *)> wanted);
  void takeEarly(Block &block, function_ref<bool(Operation *)> wanted);
  void exchange(unsigned channel, Block &block,
                function_ref<bool(Operation *)> wanted);
  void copyOps(Block &block, function_ref<bool(Operation *)> wanted);
  void copyTrip(Value index, Value begin, bool late);
  void copyRolled(Value begin, function_ref<bool(Operation *)> wanted);
  void copyInTurn(Value number, function_ref<bool(Operation *)> wanted);
  /// What goes from trip to trip and from item to item: the number of trips
  /// so far and, where steps are delayed into the next item, the items and
  /// beginnings of the last trips, the oldest first.
  using Progress = SmallVector<Value>;
  Progress begin();
  Progress writeItems();
  void writeItem(Progress &progress);
  void writeLoop(Progress &progress);
  SmallVector<Value> writeNow(Value index, Value begin);
  SmallVector<Value> writeIfLeft(Value index, Value begin, Value last,
                                 ValueRange carried);
  SmallVector<Value> writeRound(Value index, Value begin, Value last,
                                ValueRange carried, ValueRange pending);
  /// Values of a trip that is to be remembered.
  unsigned getPlaceSize() const { return names.size() + 1; }
  SmallVector<Value> remember(ValueRange pending, ValueRange place);
  Value writeBegin(Value index);
  void writeLate(Value index, ValueRange pending);
  void writeRest(const Progress &progress);
  /// Whether the CTA takes items in turn, or has one.
  bool takesTurns() const { return items.getCount() != nullptr; }
  Value createIndex(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// Numbers of items and trips are i32, so that they take one register.
  Value createI32(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }
  Value toI32(Value index) {
    return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
  }
  Value toIndex(Value number) {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
  }

  Partition &partition;
  unsigned role;
  RolePlanAttr plan;
  OpBuilder &b;
  Location loc;
  ItemWriter &items;
  /// The program's arguments that differ from item to item.
  ArrayRef<Value> names;
  /// The item of a CTA that takes no turns.
  const IRMapping *only = nullptr;
  /// What stands for a value of the program here: values that are the same for
  /// all parts, then those of each part. `ofNoItem` has what all items share.
  SmallVector<IRMapping> maps, ofNoItem;
  Value splitPart, trip, step;
  /// The chunk of the trip, where the chunks are a loop.
  Value chunk;
  /// What stands already, and channels that were filled to be taken here.
  DenseSet<Operation *> copied;
  DenseSet<unsigned> exchanged;
};
} // namespace

Value RoleWriter::partOperand(Value value, unsigned part) {
  if (!partition.partial.contains(value))
    return {};
  return plan.getSplit() ? splitPart : createIndex(part);
}

Value RoleWriter::slotOperand(Value value) {
  unsigned channel = partition.fields.lookup(value).channel;
  if (!partition.schedule.getChannels()[channel].getByChunk())
    return trip;
  Value number =
      chunk ? chunk : createIndex(Partition::getChunk(value.getDefiningOp()));
  Value first = arith::MulIOp::create(
      b, loc, trip, createIndex(partition.schedule.getTrip()));
  return arith::AddIOp::create(b, loc, first, number);
}

Value RoleWriter::chunkOperand(Value value) {
  unsigned channel = partition.fields.lookup(value).channel;
  return partition.schedule.getChannels()[channel].getByChunk() ? Value()
                                                                : chunk;
}

Value RoleWriter::lookup(Value value, unsigned part) {
  if (Value known = mapFor(value, part).lookupOrNull(value))
    return known;
  if (Partition::isFree(value.getDefiningOp()))
    return copyFree(value, part);
  return take(value, part);
}

Value RoleWriter::copyFree(Value value, unsigned part) {
  Operation *op = value.getDefiningOp();
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, lookup(operand, part));
  Operation *copy = b.clone(*op, operands);
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    mapFor(from, part).map(from, to);
  return mapFor(value, part).lookup(value);
}

Value RoleWriter::take(Value value, unsigned part) {
  Partition::Field field = partition.fields.lookup(value);
  Value taken = GetOp::create(
      b, loc, value.getType(), partition.channels[field.channel], field.index,
      slotOperand(value), partOperand(value, part), chunkOperand(value));
  mapFor(value, part).map(value, taken);
  return taken;
}

void RoleWriter::copy(Operation *op, unsigned part) {
  IRMapping taken;
  for (Value value : Partition::getTakenValues(op))
    taken.map(value, lookup(value, part));
  Operation *copied = b.clone(*op, taken);
  for (auto [from, to] : llvm::zip(op->getResults(), copied->getResults())) {
    mapFor(from, part).map(from, to);
    auto field = partition.fields.find(from);
    if (field != partition.fields.end())
      PutOp::create(b, loc, to, partition.channels[field->second.channel],
                    field->second.index, slotOperand(from),
                    partOperand(from, part), chunkOperand(from));
  }
}

/// Copies `op`, after what it takes of this role.
void RoleWriter::copyOnce(Operation *op,
                          function_ref<bool(Operation *)> wanted) {
  auto owner = partition.roles.find(op);
  if (owner == partition.roles.end() || owner->second != role || !wanted(op) ||
      !copied.insert(op).second)
    return;
  SmallVector<Value> taken(Partition::getTakenValues(op).takeVector());
  while (!taken.empty()) {
    Value value = taken.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!maker || maker->getBlock() != op->getBlock())
      continue;
    if (Partition::isFree(maker))
      llvm::append_range(taken, Partition::getTakenValues(maker));
    else if (partition.isExchanged(value, role, Partition::getStep(op)))
      exchange(partition.fields.lookup(value).channel, *op->getBlock(), wanted);
    else
      copyOnce(maker, wanted);
  }
  unsigned copies = unrollsParts() && partition.isPartial(op)
                        ? partition.schedule.getParts()
                        : 1;
  for (unsigned part = 0; part < copies; ++part)
    copy(op, part);
}

/// Takes what other roles make for `block`: what is exchanged stands on
/// products that are on their way, and the waits of others are over before
/// theirs.
void RoleWriter::takeEarly(Block &block,
                           function_ref<bool(Operation *)> wanted) {
  for (Operation &op : block.without_terminator()) {
    auto owner = partition.roles.find(&op);
    if (owner == partition.roles.end() || owner->second != role || !wanted(&op))
      continue;
    SmallVector<Value> taken(Partition::getTakenValues(&op).takeVector());
    while (!taken.empty()) {
      Value value = taken.pop_back_val();
      Operation *maker = value.getDefiningOp();
      if (!maker || maker->getBlock() != &block)
        continue;
      if (Partition::isFree(maker))
        llvm::append_range(taken, Partition::getTakenValues(maker));
      else if (partition.roles.lookup(maker) != role &&
               !partition.partial.contains(value))
        lookup(value, 0);
    }
  }
}

/// Copies all that goes through `channel`, from which this role takes what it
/// puts there itself: a slot is full when all is there. From here on nothing of
/// it is at hand.
void RoleWriter::exchange(unsigned channel, Block &block,
                          function_ref<bool(Operation *)> wanted) {
  if (!exchanged.insert(channel).second)
    return;
  takeEarly(block, wanted);
  ArrayAttr steps = partition.schedule.getChannels()[channel].getFrom();
  for (Operation &op : block.without_terminator())
    if (!Partition::isFree(&op) &&
        llvm::is_contained(steps, Partition::getStep(&op)))
      copyOnce(&op, wanted);
  for (auto &[value, field] : partition.fields)
    if (field.channel == channel)
      for (IRMapping &map : maps)
        map.erase(value);
}

/// Copies the ops of the role, step after step in the order of the plan as far
/// as one does not need the other.
void RoleWriter::copyOps(Block &block, function_ref<bool(Operation *)> wanted) {
  copied.clear();
  exchanged.clear();
  for (ArrayAttr steps : {plan.getSteps(), plan.getDelayed()})
    for (Attribute step : steps ? steps.getValue() : ArrayRef<Attribute>())
      for (Operation &op : block.without_terminator())
        if (!Partition::isFree(&op) && &op != partition.loop &&
            Partition::getStep(&op) == step)
          copyOnce(&op, wanted);
}

/// The ops of trip `index`, which begins at token `begin`.
void RoleWriter::copyTrip(Value index, Value begin, bool late) {
  trip = toIndex(index);
  step = lookup(partition.loop.getStep(), 0);
  auto isNow = [&](Operation *op) {
    return plan.runsLate(Partition::getStep(op)) == late;
  };
  if (partition.isRolled(role))
    return copyRolled(begin, isNow);
  maps[0].map(partition.loop.getInductionVar(), begin);
  if (plan.getRotate())
    return copyInTurn(index, isNow);
  copyOps(*partition.loop.getBody(), isNow);
}

/// The chunks of a trip that begins at token `begin` as a loop: what it does
/// for the first is done for each.
void RoleWriter::copyRolled(Value begin,
                            function_ref<bool(Operation *)> wanted) {
  int64_t chunks = partition.schedule.getTrip();
  SmallVector<IRMapping> outside = maps;
  auto loop = scf::ForOp::create(b, loc, createIndex(0), createIndex(chunks),
                                 createIndex(1));
  loop->setAttr(WarpDialect::getChunksAttrName(), b.getI64IntegerAttr(chunks));
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(loop.getBody());
  chunk = loop.getInductionVar();
  Value tokens = arith::MulIOp::create(
      b, loc, chunk, arith::DivUIOp::create(b, loc, step, createIndex(chunks)));
  maps[0].map(partition.loop.getInductionVar(),
              Value(arith::AddIOp::create(b, loc, begin, tokens)));
  auto isFirst = [&](Operation *op) {
    return wanted(op) && Partition::getChunk(op) == 0;
  };
  if (plan.getRotate()) {
    Value number = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, trip, createIndex(chunks)),
        chunk);
    copyInTurn(number, isFirst);
  } else {
    copyOps(*partition.loop.getBody(), isFirst);
  }
  maps = outside;
  chunk = Value();
}

/// The ops of chunk `number` of the sequence, in the warp whose turn it is.
void RoleWriter::copyInTurn(Value number,
                            function_ref<bool(Operation *)> wanted) {
  Value turn =
      arith::RemUIOp::create(b, loc, number, createIndex(plan.getWarps()));
  Value mine =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, turn, splitPart);
  auto guard = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(guard.thenBlock());
  SmallVector<IRMapping> outside = maps;
  copyOps(*partition.loop.getBody(), wanted);
  maps = outside;
}

/// The trips that are pending behind one more, at `place`.
SmallVector<Value> RoleWriter::remember(ValueRange pending, ValueRange place) {
  SmallVector<Value> next(pending.drop_front(getPlaceSize()));
  llvm::append_range(next, place);
  return next;
}

/// Where trip `index` of the only item begins.
Value RoleWriter::writeBegin(Value index) {
  scf::ForOp loop = partition.loop;
  Value lower = lookup(loop.getLowerBound(), 0),
        width = lookup(loop.getStep(), 0);
  return arith::AddIOp::create(
      b, loc, lower, arith::MulIOp::create(b, loc, toIndex(index), width));
}

/// What is late in round `index`: the steps of the trip `delay` rounds ago, if
/// there was one. It is the oldest of the pending ones; of the only item it
/// follows from its number.
void RoleWriter::writeLate(Value index, ValueRange pending) {
  Value delay = createI32(plan.getDelay());
  Value started =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, index, delay);
  auto late = scf::IfOp::create(b, loc, started, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(late.thenBlock());
  SmallVector<IRMapping> outside = maps;
  maps = ofNoItem;
  for (auto [number, name] : llvm::enumerate(names))
    maps[0].map(name, takesTurns() ? pending[number] : only->lookup(name));
  Value past = arith::SubIOp::create(b, loc, index, delay);
  copyTrip(past, takesTurns() ? pending[names.size()] : writeBegin(past),
           /*late=*/true);
  maps = outside;
}

/// The trip itself; returns the next carried values.
SmallVector<Value> RoleWriter::writeNow(Value index, Value begin) {
  copyTrip(index, begin, /*late=*/false);
  SmallVector<Value> next;
  for (unsigned number : partition.needs[role].carried)
    next.push_back(lookup(partition.loop.getYieldedValues()[number], 0));
  return next;
}

/// The trip while there is one: the rounds behind the last trip of the only
/// item are for what is late.
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

/// One round: the trip and what is late by then, last, since nobody waits for
/// that as long as for this trip. Returns what is carried and pending next.
SmallVector<Value> RoleWriter::writeRound(Value index, Value begin, Value last,
                                          ValueRange carried,
                                          ValueRange pending) {
  if (plan.getDelay() == 0)
    return writeNow(index, begin);
  SmallVector<Value> place = llvm::map_to_vector(
      names, [&](Value name) { return maps[0].lookup(name); });
  place.push_back(begin);
  SmallVector<Value> next = takesTurns()
                                ? writeNow(index, begin)
                                : writeIfLeft(index, begin, last, carried);
  writeLate(index, pending);
  if (takesTurns())
    llvm::append_range(next, remember(pending, place));
  return next;
}

/// The trips of an item, numbered on from those before.
void RoleWriter::writeLoop(Progress &progress) {
  scf::ForOp loop = partition.loop;
  const SetVector<unsigned> &kept = partition.needs[role].carried;
  Value lower = lookup(loop.getLowerBound(), 0),
        upper = lookup(loop.getUpperBound(), 0),
        width = lookup(loop.getStep(), 0);
  Value count = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, upper, lower), width);
  Value first = progress.front(),
        last = arith::AddIOp::create(b, loc, first, toI32(count));
  Value end = last;
  if (plan.getDelay() != 0 && !takesTurns())
    end = arith::AddIOp::create(b, loc, last, createI32(plan.getDelay()));
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
    Value offset = arith::MulIOp::create(
        b, loc, toIndex(arith::SubIOp::create(b, loc, index, first)), width);
    SmallVector<Value> next =
        writeRound(index, arith::AddIOp::create(b, loc, lower, offset), last,
                   carried, pending);
    if (!next.empty())
      scf::YieldOp::create(b, loc, next);
  }
  maps = outside;
  for (auto [number, value] : llvm::zip(kept, rounds.getResults()))
    maps[0].map(loop.getResults()[number], value);
  progress = {last};
  llvm::append_range(progress, rounds.getResults().drop_front(kept.size()));
}

/// All that the role does for the item that is mapped.
void RoleWriter::writeItem(Progress &progress) {
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

/// No trip so far; what is pending then has no meaning.
RoleWriter::Progress RoleWriter::begin() {
  Progress progress = {createI32(0)};
  if (takesTurns())
    progress.append(plan.getDelay() * getPlaceSize(), createIndex(0));
  return progress;
}

/// The items that this CTA takes in turn.
RoleWriter::Progress RoleWriter::writeItems() {
  Value cta = toI32(IdOp::create(b, loc, IdKind::CTA)),
        ctas = toI32(IdOp::create(b, loc, IdKind::CTACount));
  auto turns = scf::ForOp::create(b, loc, cta, items.getCount(), ctas, begin());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(turns.getBody());
  IRMapping item = items.write(b, turns.getInductionVar());
  for (Value name : names)
    maps[0].map(name, item.lookup(name));
  Progress progress(turns.getRegionIterArgs());
  writeItem(progress);
  scf::YieldOp::create(b, loc, progress);
  return Progress(turns.getResults());
}

/// What is late when the last item is over.
void RoleWriter::writeRest(const Progress &progress) {
  Value last = arith::AddIOp::create(b, loc, progress.front(),
                                     createI32(plan.getDelay()));
  auto rest = scf::ForOp::create(b, loc, progress.front(), last, createI32(1),
                                 ValueRange(progress).drop_front());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(rest.getBody());
  ValueRange pending = rest.getRegionIterArgs();
  writeLate(rest.getInductionVar(), pending);
  scf::YieldOp::create(b, loc,
                       remember(pending, pending.take_back(getPlaceSize())));
}

void RoleWriter::write(const IRMapping &item, Value part) {
  splitPart = part;
  maps[0] = items.getShared();
  if (plan.getSplit())
    maps[0].map(partition.program.getPart(), part);
  else if (unrollsParts())
    for (auto [number, map] : llvm::enumerate(llvm::drop_begin(maps)))
      map.map(partition.program.getPart(), createIndex(number));
  ofNoItem = maps;
  only = &item;
  if (!takesTurns()) {
    for (Value name : names)
      maps[0].map(name, item.lookup(name));
    Progress progress = begin();
    return writeItem(progress);
  }
  Progress progress = writeItems();
  maps = ofNoItem;
  if (plan.getDelay() != 0)
    writeRest(progress);
}

void Partition::writeRole(unsigned role, OpBuilder &b, ItemWriter &items,
                          const IRMapping &item, Value part) {
  RoleWriter(*this, role, b, items).write(item, part);
}
