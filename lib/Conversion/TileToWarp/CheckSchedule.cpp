//===- CheckSchedule.cpp - Does a schedule go with its program? -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "WorkItemWriter.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Chunks of an iteration
//===----------------------------------------------------------------------===//

/// The chunks of an iteration that ops in `op` have numbers of; none after an
/// error.
static FailureOr<int64_t> countChunks(Operation *op, int64_t expected) {
  int64_t chunks = 1;
  WalkResult walked = op->walk([&](Operation *nested) {
    int64_t chunk = getChunk(nested);
    if (chunk < 0 || chunk >= expected) {
      nested->emitOpError("expected gdn_tile.chunk in [0, ")
          << expected
          << "), the chunks that the schedule has an iteration "
             "(gdn-tile-unroll-chunks), got "
          << chunk;
      return WalkResult::interrupt();
    }
    chunks = std::max(chunks, chunk + 1);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return chunks;
}

/// Each loop takes as many chunks an iteration as the schedule says.
LogicalResult gdn::checkChunks(const Partition &partition) {
  tile::ProgramOp program = partition.program;
  int64_t expected = partition.schedule.getChunksPerIteration();
  if (failed(countChunks(program, expected)))
    return failure();
  for (scf::ForOp loop : partition.loops) {
    FailureOr<int64_t> chunks = countChunks(loop, expected);
    if (failed(chunks))
      return failure();
    if (*chunks == expected)
      continue;
    InFlightDiagnostic diagnostic =
        program.emitOpError("expected a loop of ")
        << expected
        << " chunks an iteration, as the schedule says "
           "(gdn-tile-unroll-chunks), got "
        << *chunks;
    diagnostic.attachNote(loop.getLoc()) << "the loop";
    return diagnostic;
  }
  return success();
}

/// What goes from chunk to chunk in a role whose chunks are a loop is what the
/// program's loop carries. Adds to `next` what the first chunk makes of it.
static LogicalResult checkCarried(const Partition &partition, unsigned role,
                                  unsigned number, DenseSet<Value> &next) {
  scf::ForOp loop = partition.loops[number];
  RoleSpecAttr spec = partition.getRole(role);
  tile::ProgramOp program = partition.program;
  for (unsigned carried : partition.needs[role][number].carried) {
    if (spec.getRoundRobin() || spec.getAlternateCtas())
      return program.emitOpError("expected no values from one chunk to the "
                                 "next in role ")
             << spec.getName() << ", whose warps or CTAs take the chunks in "
             << "turn";
    Value value =
        partition.findNext(role, number, loop.getRegionIterArgs()[carried]);
    if (!value)
      return program.emitOpError("expected the second chunk of an iteration to "
                                 "take what the first one makes of value ")
             << carried << " of the loop, in role " << spec.getName()
             << ", whose chunks are a loop";
    next.insert(value);
  }
  return success();
}

/// A role whose chunks are a loop does the same for each, with values of that
/// chunk and what the loop carries.
static LogicalResult checkRolled(const Partition &partition, unsigned role,
                                 unsigned number) {
  StringRef name = partition.getRole(role).getName();
  tile::ProgramOp program = partition.program;
  scf::ForOp loop = partition.loops[number];
  DenseSet<Value> next;
  if (failed(checkCarried(partition, role, number, next)))
    return failure();
  SmallVector<SmallVector<StringRef>> names(
      partition.schedule.getChunksPerIteration());
  for (auto &[op, owner] : partition.roles) {
    if (owner != role || op->getBlock() != loop.getBody())
      continue;
    int64_t chunk = getChunk(op);
    names[chunk].push_back(op->getName().getStringRef());
    for (Value value : getTakenValues(op)) {
      Operation *maker = value.getDefiningOp();
      if (!maker || isFree(maker) || maker->getBlock() != loop.getBody())
        continue;
      const Field *field = partition.roles.lookup(maker) == role
                               ? nullptr
                               : partition.getFieldOf(value, role);
      if (getChunk(maker) == chunk &&
          !(field && partition.channels[field->channel].alike == 1))
        continue;
      if (getChunk(maker) + 1 == chunk && (chunk > 1 || next.contains(value)))
        continue;
      InFlightDiagnostic diagnostic =
          op->emitOpError("expected values of its own chunk, which is one of "
                          "a loop in role ")
          << name;
      diagnostic.attachNote(maker->getLoc()) << "made here";
      return diagnostic;
    }
  }
  if (!llvm::all_equal(names))
    return program.emitOpError("expected the same ops for each chunk of an "
                               "iteration in role ")
           << name << ", whose chunks are a loop";
  return success();
}

//===----------------------------------------------------------------------===//
// Roles whose warps or CTAs take turns
//===----------------------------------------------------------------------===//

/// The CTAs of a cluster fill a slot in each of its turns, or one of them does.
static LogicalResult checkShared(const Partition &partition, unsigned channel) {
  ChannelSpecAttr spec = partition.getSpec(channel);
  tile::ProgramOp program = partition.program;
  if (!llvm::all_equal(
          llvm::map_range(partition.getFillers(channel), [&](unsigned role) {
            return partition.getRole(role).getAlternateCtas();
          })))
    return program.emitOpError("expected channel ")
           << spec.getName()
           << " to be filled by roles that CTAs share, or by others, got both";
  IntegerAttr turn = partition.getTurn(channel);
  int64_t cluster = partition.schedule.getCluster();
  if (!turn || spec.getDepth() % (turn.getInt() * cluster) == 0)
    return success();
  return program.emitOpError("expected a multiple of ")
         << turn.getInt() * cluster << " slots in channel " << spec.getName()
         << ", which the CTAs of a cluster fill in turn, got "
         << spec.getDepth();
}

/// A barrier tells two rounds of a slot apart, so a warp that waits for one has
/// seen the round before it: its last turn is at most the channel's slots ago.
static LogicalResult checkSlotsOfTurns(const Partition &partition,
                                       unsigned role) {
  RoleSpecAttr spec = partition.getRole(role);
  for (unsigned channel = 0; channel < partition.channels.size(); ++channel) {
    if (!partition.takes(role, channel) &&
        !llvm::is_contained(partition.getFillers(channel), role))
      continue;
    int64_t chunks = partition.isByChunk(channel)
                         ? 1
                         : partition.schedule.getChunksPerIteration();
    int64_t least = llvm::divideCeil(spec.countTurns(), chunks);
    if (partition.getDepth(channel) >= least)
      continue;
    tile::ProgramOp program = partition.program;
    return program.emitOpError("expected at least ")
           << least << " slots in channel "
           << partition.getSpec(channel).getName() << ", which the "
           << spec.countTurns()
           << (spec.getWarpsPerTurn() == 1 ? " warps" : " warpgroups")
           << " of role " << spec.getName() << " use in turn, got "
           << partition.getDepth(channel);
  }
  return success();
}

/// Warps or CTAs that take turns do so in one loop, and what they make or take
/// outside of it is the same for all.
static LogicalResult checkTurns(const Partition &partition, unsigned role) {
  RoleSpecAttr spec = partition.getRole(role);
  tile::ProgramOp program = partition.program;
  if (spec.getAlternateCtas() && partition.loops.size() > 1)
    return program.emitOpError("expected one loop where CTAs share role ")
           << spec.getName() << ", got " << partition.loops.size();
  if (!spec.getAlternateCtas() && spec.countTurns() == 1)
    return success();
  for (auto &[value, takers] : partition.crossing)
    if (partition.isOutside(value) &&
        (takers.contains(role) || partition.getMakingRole(value) == role)) {
      InFlightDiagnostic diagnostic =
          value.getDefiningOp()->emitOpError(
              "expected values that cross to or from role ")
          << spec.getName()
          << " to be made in a loop, since its warps or CTAs take turns";
      return diagnostic;
    }
  if (!spec.getRoundRobin())
    return success();
  return checkSlotsOfTurns(partition, role);
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// An offset as a value, null for none, and a constant.
static std::pair<Value, int64_t> splitOffset(Value offset) {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return {Value(), *constant};
  if (auto sum = offset.getDefiningOp<arith::AddIOp>())
    if (std::optional<int64_t> constant = getConstantIntValue(sum.getRhs())) {
      if (std::optional<int64_t> first = getConstantIntValue(sum.getLhs()))
        return {Value(), *first + *constant};
      return {sum.getLhs(), *constant};
    }
  return {offset, 0};
}

/// Whether `base` is the same in all iterations: an iteration of one step may
/// meet another iteration of another step.
static bool isFixed(Value base) {
  if (!base)
    return true;
  Region *region = base.getParentRegion();
  return !isa<scf::ForOp>(region->getParentOp()) &&
         !region->getParentOfType<scf::ForOp>();
}

namespace {
/// The elements of an array that a load or a store takes.
struct Access {
  OperandRange offsets;
  ArrayRef<int64_t> axes;
  RankedTensorType tile;

  Access(tile::LoadOp load)
      : offsets(load.getOffsets()), axes(load.getAxes()), tile(load.getType()) {
  }
  Access(tile::StoreOp store)
      : offsets(store.getOffsets()), axes(store.getAxes()),
        tile(store.getTile().getType()) {}

  /// How many there are along a dimension of the array.
  int64_t getSize(int64_t dim) const {
    for (auto [tileDim, axis] : llvm::enumerate(axes))
      if (axis == dim)
        return tile.getDimSize(tileDim);
    return 1;
  }
};
} // namespace

/// Whether two accesses take other elements of an array, told by offsets that
/// are a constant apart, or one at each iteration and one behind the last.
static bool areDisjoint(const Access &x, const Access &y) {
  for (int64_t dim = 0, rank = x.offsets.size(); dim < rank; ++dim) {
    auto [xBase, xFirst] = splitOffset(x.offsets[dim]);
    auto [yBase, yFirst] = splitOffset(y.offsets[dim]);
    Value xAt = x.offsets[dim], yAt = y.offsets[dim];
    if (x.getSize(dim) == 1 && y.getSize(dim) == 1 &&
        (isEachToken(xAt, yAt) || isEachToken(yAt, xAt)))
      return true;
    if (xBase == yBase && isFixed(xBase) &&
        (xFirst + x.getSize(dim) <= yFirst ||
         yFirst + y.getSize(dim) <= xFirst))
      return true;
  }
  return false;
}

/// Whether two accesses take the same elements in the same order.
static bool areSame(const Access &x, const Access &y) {
  return x.axes == y.axes && x.tile.getShape() == y.tile.getShape() &&
         llvm::all_of(llvm::zip(x.offsets, y.offsets), [](auto pair) {
           auto [left, right] = pair;
           return splitOffset(left) == splitOffset(right);
         });
}

/// Whether two accesses take the same elements of rows, whichever these are, in
/// the same order.
static bool areOfRows(const Access &x, const Access &y) {
  return x.axes == y.axes && x.tile.getShape() == y.tile.getShape() &&
         llvm::all_of(x.axes, [&](int64_t dim) {
           return splitOffset(x.offsets[dim]) == splitOffset(y.offsets[dim]);
         });
}

/// The role that runs `op`, which may stand in a branch.
static unsigned findRole(const Partition &partition, Operation *op) {
  while (!partition.roles.contains(op))
    op = op->getParentOp();
  return partition.roles.lookup(op);
}

/// Whether what `load` takes is there until it has been taken: `store` writes
/// other elements, or a step updates these, which the same threads hold, or the
/// role of both has the rows for itself and its warps do not take turns.
static bool areOrdered(const Partition &partition, tile::LoadOp load,
                       tile::StoreOp store) {
  if (areDisjoint(load, store))
    return true;
  unsigned role = findRole(partition, load);
  if (store->hasAttr(tile::kOwnRowsAttrName) &&
      !partition.getRole(role).getRoundRobin() &&
      role == findRole(partition, store) && areOfRows(load, store))
    return true;
  return getStep(load) == getStep(store) && areSame(load, store);
}

/// Roles run ahead of each other and order no accesses to memory: an array is
/// loaded or stored, or a step updates it, and elements of it are stored by one
/// step.
static LogicalResult checkArrays(const Partition &partition) {
  DenseMap<Value, SmallVector<tile::LoadOp>> loads;
  tile::ProgramOp program = partition.program;
  program.walk(
      [&](tile::LoadOp load) { loads[load.getSource()].push_back(load); });
  DenseMap<Value, SmallVector<tile::StoreOp>> stores;
  auto visit = [&](tile::StoreOp store) -> LogicalResult {
    for (tile::LoadOp load : loads.lookup(store.getTarget())) {
      if (areOrdered(partition, load, store))
        continue;
      InFlightDiagnostic diagnostic = store.emitOpError(
          "expected an array that is not loaded too: nothing orders the "
          "accesses of roles");
      diagnostic.attachNote(load.getLoc()) << "loaded here";
      return diagnostic;
    }
    SmallVector<tile::StoreOp> &others = stores[store.getTarget()];
    for (tile::StoreOp other : others) {
      if (getStep(other) == getStep(store) || areDisjoint(other, store))
        continue;
      InFlightDiagnostic diagnostic =
          store.emitOpError(
              "expected stores to the same elements in one step, got ")
          << getStep(store) << " and " << getStep(other)
          << ": nothing orders the accesses of steps";
      diagnostic.attachNote(other.getLoc()) << "the other store";
      return diagnostic;
    }
    others.push_back(store);
    return success();
  };
  WalkResult walked = program.walk([&](tile::StoreOp store) {
    return failed(visit(store)) ? WalkResult::interrupt()
                                : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult gdn::checkSchedule(const Partition &partition) {
  for (unsigned role = 0; role < partition.countRoles(); ++role) {
    if (failed(checkTurns(partition, role)))
      return failure();
    for (unsigned loop = 0; loop < partition.loops.size(); ++loop)
      if (partition.isRolled(role) &&
          failed(checkRolled(partition, role, loop)))
        return failure();
  }
  for (unsigned channel = 0; channel < partition.channels.size(); ++channel)
    if (failed(checkShared(partition, channel)))
      return failure();
  for (unsigned role = 0; role < partition.countRoles(); ++role)
    if (failed(checkDelay(partition, role)))
      return failure();
  return checkArrays(partition);
}
