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
             const IRMapping &item)
      : partition(partition), role(role),
        plan(partition.schedule.getRoles()[role]), b(b),
        loc(partition.program.getLoc()),
        maps(1 + partition.schedule.getParts(), IRMapping()) {
    maps[0] = item;
  }

  /// `part` is the part of this warpgroup in a role that splits them.
  LogicalResult write(Value part);

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
  void copyTrip(Value index, bool late);
  void copyRolled(Value begin, function_ref<bool(Operation *)> wanted);
  void copyInTurn(Value number, function_ref<bool(Operation *)> wanted);
  LogicalResult writeLoop();
  SmallVector<Value> writeTrip(Value index, Value count, ValueRange carried);

  Partition &partition;
  unsigned role;
  RolePlanAttr plan;
  OpBuilder &b;
  Location loc;
  /// What stands for a value of the program here: values that are the same for
  /// all parts, then those of each part.
  SmallVector<IRMapping> maps;
  Value splitPart, trip, lower, step;
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
  return plan.getSplit() ? splitPart
                         : arith::ConstantIndexOp::create(b, loc, part);
}

Value RoleWriter::slotOperand(Value value) {
  unsigned channel = partition.fields.lookup(value).channel;
  if (!partition.schedule.getChannels()[channel].getByChunk())
    return trip;
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(b, loc, number);
  };
  Value number =
      chunk ? chunk : constant(Partition::getChunk(value.getDefiningOp()));
  Value first = arith::MulIOp::create(b, loc, trip,
                                      constant(partition.schedule.getTrip()));
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

/// The ops of one trip, now or `delay` trips late.
void RoleWriter::copyTrip(Value index, bool late) {
  trip = index;
  Value offset = arith::MulIOp::create(b, loc, index, step);
  Value begin = arith::AddIOp::create(b, loc, lower, offset);
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
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  SmallVector<IRMapping> outside = maps;
  auto loop =
      scf::ForOp::create(b, loc, constant(0), constant(chunks), constant(1));
  loop->setAttr(WarpDialect::getChunksAttrName(), b.getI64IntegerAttr(chunks));
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(loop.getBody());
  chunk = loop.getInductionVar();
  Value tokens = arith::MulIOp::create(
      b, loc, chunk, arith::DivUIOp::create(b, loc, step, constant(chunks)));
  maps[0].map(partition.loop.getInductionVar(),
              Value(arith::AddIOp::create(b, loc, begin, tokens)));
  auto isFirst = [&](Operation *op) {
    return wanted(op) && Partition::getChunk(op) == 0;
  };
  if (plan.getRotate()) {
    Value number = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, trip, constant(chunks)), chunk);
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
  Value turn = arith::RemUIOp::create(
      b, loc, number, arith::ConstantIndexOp::create(b, loc, plan.getWarps()));
  Value mine =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, turn, splitPart);
  auto guard = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(guard.thenBlock());
  SmallVector<IRMapping> outside = maps;
  copyOps(*partition.loop.getBody(), wanted);
  maps = outside;
}

/// One round of the loop: the trip itself while there is one, then what is
/// late. Returns the carried values.
SmallVector<Value> RoleWriter::writeTrip(Value index, Value count,
                                         ValueRange carried) {
  const SetVector<unsigned> &kept = partition.needs[role].carried;
  auto yielded = [&] {
    SmallVector<Value> next;
    for (unsigned number : kept)
      next.push_back(lookup(partition.loop.getYieldedValues()[number], 0));
    return next;
  };
  if (plan.getDelay() == 0) {
    copyTrip(index, /*late=*/false);
    return yielded();
  }
  SmallVector<IRMapping> outside = maps;
  Value more =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, count);
  auto now = scf::IfOp::create(b, loc, carried.getTypes(), more,
                               /*withElseRegion=*/!carried.empty());
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(now.thenBlock());
  copyTrip(index, /*late=*/false);
  if (!carried.empty()) {
    SmallVector<Value> next = yielded();
    scf::YieldOp::create(b, loc, next);
    b.setInsertionPointToStart(now.elseBlock());
    scf::YieldOp::create(b, loc, carried);
  }
  maps = outside;
  // What is late comes last: nobody waits for it as long as for this trip.
  b.setInsertionPointAfter(now);
  Value delay = arith::ConstantIndexOp::create(b, loc, plan.getDelay());
  Value started =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, index, delay);
  auto late = scf::IfOp::create(b, loc, started, /*withElseRegion=*/false);
  b.setInsertionPointToStart(late.thenBlock());
  copyTrip(arith::SubIOp::create(b, loc, index, delay), /*late=*/true);
  maps = outside;
  return llvm::to_vector_of<Value>(now.getResults());
}

LogicalResult RoleWriter::writeLoop() {
  scf::ForOp loop = partition.loop;
  const SetVector<unsigned> &kept = partition.needs[role].carried;
  lower = lookup(loop.getLowerBound(), 0);
  Value upper = lookup(loop.getUpperBound(), 0);
  step = lookup(loop.getStep(), 0);
  Value count = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, upper, lower), step);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  Value rounds = count;
  if (plan.getDelay() != 0)
    rounds = arith::AddIOp::create(
        b, loc, count, arith::ConstantIndexOp::create(b, loc, plan.getDelay()));
  SmallVector<Value> inits;
  for (unsigned number : kept)
    inits.push_back(lookup(loop.getInits()[number], 0));
  auto trips = scf::ForOp::create(b, loc, zero, rounds, one, inits);
  SmallVector<IRMapping> outside = maps;
  {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPointToStart(trips.getBody());
    for (auto [number, value] : llvm::zip(kept, trips.getRegionIterArgs()))
      maps[0].map(loop.getRegionIterArgs()[number], value);
    SmallVector<Value> next =
        writeTrip(trips.getInductionVar(), count, trips.getRegionIterArgs());
    if (!kept.empty())
      scf::YieldOp::create(b, loc, next);
  }
  maps = outside;
  for (auto [number, value] : llvm::zip(kept, trips.getResults()))
    maps[0].map(loop.getResults()[number], value);
  return success();
}

LogicalResult RoleWriter::write(Value part) {
  splitPart = part;
  if (plan.getSplit())
    maps[0].map(partition.program.getPart(), part);
  else if (unrollsParts())
    for (auto [number, map] : llvm::enumerate(llvm::drop_begin(maps)))
      map.map(partition.program.getPart(),
              Value(arith::ConstantIndexOp::create(b, loc, number)));
  Block &body = partition.program.getBody().front();
  scf::ForOp loop = partition.loop;
  auto isBefore = [&](Operation *op) {
    return !loop || op->isBeforeInBlock(loop);
  };
  copyOps(body, isBefore);
  if (partition.needs[role].inLoop && failed(writeLoop()))
    return failure();
  copyOps(body, [&](Operation *op) { return !isBefore(op); });
  return success();
}

LogicalResult Partition::writeRole(unsigned role, OpBuilder &b,
                                   const IRMapping &item, Value part) {
  return RoleWriter(*this, role, b, item).write(part);
}
