//===- WriteRole.cpp - What a role does for an iteration ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleWriter.h"

#include "gdn/Dialect/InsertionPoint.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

Value RoleWriter::vTileOperand(Value value, unsigned vTile) {
  if (!partition.perVTile.contains(value))
    return {};
  return spec.getWarpgroupPerVTile() ? warpgroupVTile : createIndex(vTile);
}

/// The number of a channel's slot for an iteration or, where it is for one, a
/// chunk; of a channel outside of loops for a work item.
Value RoleWriter::getSlot(unsigned channel, Value chunkOfIteration) {
  const KernelChannel &of = partition.channels[channel];
  if (of.loops.empty())
    return toIndex(b, loc, workItemNumber);
  Value slot = partition.isShared(channel) ? ownIteration : iteration;
  if (Value shift = shifts[of.clock])
    slot = toIndex(b, loc, arith::AddIOp::create(b, loc, number, shift));
  if (!partition.isByChunk(channel))
    return slot;
  Value first = arith::MulIOp::create(
      b, loc, slot, createIndex(partition.schedule.getChunksPerIteration()));
  return arith::AddIOp::create(b, loc, first, chunkOfIteration);
}

Value RoleWriter::slotOperand(Value value, unsigned channel) {
  return getSlot(channel,
                 chunk ? chunk : createIndex(getChunk(value.getDefiningOp())));
}

Value RoleWriter::chunkOperand(unsigned channel) {
  return partition.isByChunk(channel) ? Value() : chunk;
}

Value RoleWriter::lookup(Value value, unsigned vTile) {
  if (Value known = mapFor(value, vTile).lookupOrNull(value))
    return known;
  if (isFree(value.getDefiningOp()))
    return copyFree(value, vTile);
  return take(value, vTile);
}

Value RoleWriter::copyFree(Value value, unsigned vTile) {
  Operation *op = value.getDefiningOp();
  IRMapping operands;
  for (Value operand : getTakenValues(op))
    operands.map(operand, lookup(operand, vTile));
  Operation *copy = b.clone(*op, operands);
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    mapFor(from, vTile).map(from, to);
  return mapFor(value, vTile).lookup(value);
}

Value RoleWriter::take(Value value, unsigned vTile) {
  const Field &field = *partition.getFieldOf(value, role);
  Value taken =
      GetOp::create(b, loc, value.getType(), channels[field.channel],
                    field.index, slotOperand(value, field.channel),
                    vTileOperand(value, vTile), chunkOperand(field.channel));
  mapFor(value, vTile).map(value, taken);
  return taken;
}

/// The branch that makes `value`, or all tiles that it has side by side.
static scf::IfOp findBranch(Value value) {
  auto concat = value.getDefiningOp<tensor::ConcatOp>();
  scf::IfOp branch;
  for (Value piece : concat ? concat.getInputs() : ValueRange(value)) {
    auto one = piece.getDefiningOp<scf::IfOp>();
    if (!one || (branch && one != branch))
      return {};
    branch = one;
  }
  return branch;
}

/// What `value`, made by `branch` as above, is in `block` of it; right behind
/// what makes it.
static Value makeInBranch(OpBuilder &b, Value value, scf::IfOp branch,
                          Block *block) {
  IRMapping map;
  map.map(branch.getResults(), block->getTerminator()->getOperands());
  auto concat = value.getDefiningOp<tensor::ConcatOp>();
  SmallVector<Value> pieces;
  for (Value piece : concat ? concat.getInputs() : ValueRange(value))
    pieces.push_back(map.lookup(piece));
  setInsertionPointBehind(b, pieces, *block);
  return concat ? b.clone(*concat, map)->getResult(0) : map.lookup(value);
}

/// Hands `value`, which is `made` here, to the roles that take it. The result
/// of a branch is handed on in both branches, right behind what makes it: so
/// other work of the branch need not be over first, and its products may read
/// it in the slot.
void RoleWriter::put(Value value, Value made, unsigned vTile) {
  scf::IfOp branch = findBranch(made);
  if (branch && branch->getBlock() != b.getInsertionBlock())
    branch = {};
  OpBuilder::InsertionGuard insertion(b);
  for (const Field &field : partition.fields.lookup(value)) {
    if (branch)
      b.setInsertionPoint(branch);
    Value slot = slotOperand(value, field.channel),
          tile = vTileOperand(value, vTile),
          chunkNumber = chunkOperand(field.channel);
    auto write = [&](Value made) {
      PutOp::create(b, loc, made, channels[field.channel], field.index, slot,
                    tile, chunkNumber);
    };
    if (!branch) {
      write(made);
      continue;
    }
    for (Block *block : {branch.thenBlock(), branch.elseBlock()})
      write(makeInBranch(b, made, branch, block));
  }
}

void RoleWriter::copy(Operation *op, unsigned vTile) {
  IRMapping taken;
  for (Value value : getTakenValues(op))
    taken.map(value, lookup(value, vTile));
  Operation *copied = b.clone(*op, taken);
  for (auto [from, to] : llvm::zip(op->getResults(), copied->getResults())) {
    mapFor(from, vTile).map(from, to);
    put(from, to, vTile);
  }
}

/// Copies `op`, after what it takes of this role.
void RoleWriter::copyOnce(Operation *op,
                          function_ref<bool(Operation *)> wanted) {
  auto owner = partition.roles.find(op);
  if (owner == partition.roles.end() || owner->second != role || !wanted(op) ||
      !copied.insert(op).second)
    return;
  SmallVector<Value> taken(getTakenValues(op).takeVector());
  while (!taken.empty()) {
    Operation *maker = taken.pop_back_val().getDefiningOp();
    if (!maker || maker->getBlock() != op->getBlock())
      continue;
    if (isFree(maker))
      llvm::append_range(taken, getTakenValues(maker));
    else
      copyOnce(maker, wanted);
  }
  unsigned copies = unrollsVTiles() && partition.dependsOnVTile(op)
                        ? partition.schedule.getVTiles()
                        : 1;
  for (unsigned vTile = 0; vTile < copies; ++vTile)
    copy(op, vTile);
}

/// The ops of `step` in the order in which the role does them: chunk after
/// chunk, or by turns.
SmallVector<Operation *> RoleWriter::orderOps(Block &block, Attribute step) {
  SmallVector<SmallVector<Operation *>> chunks(
      partition.schedule.getChunksPerIteration());
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator()) {
    if (isFree(&op) || llvm::is_contained(partition.loops, &op) ||
        getStep(&op) != step)
      continue;
    ops.push_back(&op);
    chunks[getChunk(&op)].push_back(&op);
  }
  if (!spec.getInterleaveChunks())
    return ops;
  ops.clear();
  for (size_t number = 0; number < chunks.front().size(); ++number)
    for (ArrayRef<Operation *> chunk : chunks)
      if (number < chunk.size())
        ops.push_back(chunk[number]);
  return ops;
}

/// Copies the ops of the role, step after step in the order of the plan as far
/// as one does not need the other.
void RoleWriter::copyOps(Block &block, function_ref<bool(Operation *)> wanted) {
  copied.clear();
  for (ArrayAttr steps : {spec.getSteps(), spec.getDelayedSteps()})
    for (Attribute step : steps ? steps.getValue() : ArrayRef<Attribute>()) {
      SmallVector<Operation *> ops = orderOps(block, step), inTurn;
      for (Operation *op : ops)
        if (wanted(op) && partition.isLoadedInTurn(op))
          inTurn.push_back(op);
      // One branch, so that a slot is waited for once.
      if (!inTurn.empty())
        copyIfOwn([&] {
          for (Operation *op : inTurn)
            copyOnce(op, wanted);
        });
      for (Operation *op : ops)
        copyOnce(op, wanted);
    }
}

/// What `write` copies, in the iterations of this CTA among those of a cluster.
scf::IfOp RoleWriter::copyIfOwn(function_ref<void()> write) {
  Value cluster = createIndex(partition.schedule.getCluster());
  Value rank = IdOp::create(b, loc, IdKind::ClusterRank);
  Value owner = arith::RemUIOp::create(b, loc, iteration, cluster);
  Value mine =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, owner, rank);
  auto branch = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<IRMapping> outside = maps;
  write();
  maps = outside;
  return branch;
}

/// The ops of iteration `index`, which begins at token `begin`.
void RoleWriter::copyIteration(Value index, Value begin, bool late) {
  number = index;
  iteration = toIndex(b, loc, index);
  step = lookup(getLoop().getStep(), 0);
  // Outside of a loop over the chunks, which all have this iteration.
  if (partition.schedule.getCluster() > 1)
    ownIteration = arith::DivUIOp::create(
        b, loc, iteration, createIndex(partition.schedule.getCluster()));
  auto isNow = [&](Operation *op) {
    return spec.runsLate(getStep(op)) == late;
  };
  if (partition.isRolled(role))
    return copyRolled(begin, isNow, late);
  maps[0].map(getLoop().getInductionVar(), begin);
  if (spec.getRoundRobin())
    return copyInTurn(iteration, isNow);
  copyOps(*getLoop().getBody(), isNow);
}

/// The chunks of an iteration that begins at token `begin` as a loop: what it
/// does for the first is done for each, but for what leads. What is late
/// carries nothing, nor does who takes turns.
void RoleWriter::copyRolled(Value begin, function_ref<bool(Operation *)> wanted,
                            bool late) {
  int64_t chunks = partition.schedule.getChunksPerIteration();
  bool mayLead = !late && !spec.getRoundRobin() && !spec.getAlternateCtas();
  if (mayLead)
    copyLeading(begin, wanted);
  SmallVector<IRMapping> outside = maps;
  SmallVector<std::pair<unsigned, unsigned>> kept;
  if (mayLead)
    kept = getKept();
  ValueRange arguments = getLoop().getRegionIterArgs();
  SmallVector<Value> inits = llvm::map_to_vector(kept, [&](auto place) {
    return lookup(arguments[place.first], place.second);
  });
  auto chunkLoop = scf::ForOp::create(
      b, loc, createIndex(0), createIndex(chunks), createIndex(1), inits);
  chunkLoop->setAttr(WarpDialect::getChunksAttrName(),
                     b.getI64IntegerAttr(chunks));
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(chunkLoop.getBody());
  chunk = chunkLoop.getInductionVar();
  for (auto [place, value] : llvm::zip(kept, chunkLoop.getRegionIterArgs()))
    mapFor(arguments[place.first], place.second)
        .map(arguments[place.first], value);
  Value tokens = arith::MulIOp::create(
      b, loc, chunk, arith::DivUIOp::create(b, loc, step, createIndex(chunks)));
  maps[0].map(getLoop().getInductionVar(),
              Value(arith::AddIOp::create(b, loc, begin, tokens)));
  auto isFirst = [&](Operation *op) {
    return wanted(op) && getChunk(op) == 0 && (!mayLead || !leads(op));
  };
  if (spec.getRoundRobin()) {
    Value number = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, iteration, createIndex(chunks)),
        chunk);
    copyInTurn(number, isFirst);
  } else {
    copyOwn(isFirst);
  }
  // Where there is no next value, gdn-warp-partition refuses the program.
  SmallVector<Value> next = llvm::map_to_vector(kept, [&](auto place) {
    Value argument = arguments[place.first];
    Value value = partition.findNext(role, loop, argument);
    return lookup(value ? value : argument, place.second);
  });
  if (!next.empty())
    scf::YieldOp::create(b, loc, next);
  maps = outside;
  for (auto [place, value] : llvm::zip(kept, chunkLoop.getResults())) {
    Value yielded = getLoop().getYieldedValues()[place.first];
    mapFor(yielded, place.second).map(yielded, value);
  }
  chunk = Value();
}

/// The ops of a chunk, if the iteration is one of this CTA's where CTAs share
/// the role; it lets the slots of others' iterations pass.
void RoleWriter::copyOwn(function_ref<bool(Operation *)> wanted) {
  Block &body = *getLoop().getBody();
  if (!spec.getAlternateCtas())
    return copyOps(body, wanted);
  scf::IfOp branch = copyIfOwn([&] {
    copyOps(body, wanted);
    copySlotsToCluster();
  });
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(branch.elseBlock());
  releaseUnusedSlots();
}

/// Lets the slots of a chunk pass that another CTA takes.
void RoleWriter::releaseUnusedSlots() {
  for (auto [channel, slots] : llvm::enumerate(channels))
    if (partition.takes(role, channel) && !partition.isShared(channel) &&
        !partition.getSharer(channel))
      ReleaseUnusedOp::create(b, loc, slots, getSlot(channel, chunk));
}

/// Copies the slots that this role is the last to fill to the other CTAs, in
/// one warp: a slot of an iteration when its last chunk is there.
void RoleWriter::copySlotsToCluster() {
  for (auto [channel, slots] : llvm::enumerate(channels)) {
    if (partition.getSharer(channel) != role)
      continue;
    Value now;
    auto require = [&](Value value, int64_t number) {
      Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          value, createIndex(number));
      now = now ? arith::AndIOp::create(b, loc, now, equal) : equal;
    };
    if (!partition.isByChunk(channel))
      require(chunk, partition.schedule.getChunksPerIteration() - 1);
    if (spec.getRoundRobin() && spec.getWarpsPerTurn() > 1)
      require(arith::RemUIOp::create(b, loc, IdOp::create(b, loc, IdKind::Warp),
                                     createIndex(spec.getWarpsPerTurn())),
              0);
    else if (!spec.getRoundRobin() && spec.getWarps() > 1)
      require(IdOp::create(b, loc, IdKind::Warp), partition.getFirstWarp(role));
    OpBuilder::InsertionGuard insertion(b);
    Value slot = getSlot(channel, chunk);
    if (now)
      b.setInsertionPointToStart(
          scf::IfOp::create(b, loc, now, /*withElseRegion=*/false).thenBlock());
    CopyToClusterOp::create(b, loc, slots, slot);
  }
}

/// The ops of chunk `number` of the sequence, in the warps whose turn it is.
void RoleWriter::copyInTurn(Value number,
                            function_ref<bool(Operation *)> wanted) {
  Value turn =
      arith::RemUIOp::create(b, loc, number, createIndex(spec.countTurns()));
  Value mine = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, turn,
                                     warpgroupVTile);
  auto guard = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(guard.thenBlock());
  SmallVector<IRMapping> outside = maps;
  copyOwn(wanted);
  maps = outside;
}
