//===- Partition.cpp - One program becomes a kernel of roles --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each role gets a copy of the program with the ops of its steps. A value that
// one role makes and another takes goes through a channel. What costs nothing
// (constants, index and scalar arithmetic, widening) is copied where it is
// used.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "CheckLaunch.h"
#include "Report.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_PARTITIONPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Ops and values of a program
//===----------------------------------------------------------------------===//

bool gdn::isFree(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, arith::ExtFOp, tensor::ExtractSliceOp>(op))
    return true;
  // A number of an array that the program reads is the same whenever a role
  // loads it.
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    auto program = op->getParentOfType<tile::ProgramOp>();
    return program && llvm::is_contained(program.getInputs(), load.getMemRef());
  }
  // A loop over numbers makes one.
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return llvm::all_of(loop.getResultTypes(),
                        [](Type type) { return type.isIntOrIndex(); }) &&
           loop.getNumResults() > 0 &&
           llvm::all_of(loop.getBody()->without_terminator(),
                        [](Operation &nested) { return isFree(&nested); });
  return !tile::TileDialect::needsStep(op) && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op);
}

StringAttr gdn::getStep(Operation *op) {
  StringAttr step;
  op->walk([&](Operation *nested) {
    if (isFree(nested) || step)
      return;
    step =
        nested->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName());
  });
  return step;
}

int64_t gdn::getChunk(Operation *op) {
  auto label =
      op->getAttrOfType<IntegerAttr>(tile::TileDialect::getChunkAttrName());
  return label ? label.getInt() : 0;
}

SetVector<Value> gdn::getTakenValues(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

SetVector<Value> gdn::findSources(Operation *op) {
  SetVector<Value> sources;
  SetVector<Value> open = getTakenValues(op);
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!seen.insert(value).second)
      continue;
    if (maker && isFree(maker))
      open.set_union(getTakenValues(maker));
    else
      sources.insert(value);
  }
  return sources;
}

std::optional<unsigned> Partition::findLoop(Operation *op) const {
  for (auto [number, loop] : llvm::enumerate(loops))
    if (op->getParentOp() == loop)
      return number;
  return std::nullopt;
}

/// Follows `value` to what is not copied, without going round a loop twice.
static Operation *findMaker(const Partition &partition, Value value,
                            DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return nullptr;
  auto follow = [&](Value next) { return findMaker(partition, next, seen); };
  auto followCarried = [&](scf::ForOp loop, unsigned index) {
    Operation *maker = follow(loop.getYieldedValues()[index]);
    return maker ? maker : follow(loop.getInits()[index]);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument.getArgNumber() < loop.getNumInductionVars())
      return nullptr;
    return followCarried(loop,
                         argument.getArgNumber() - loop.getNumInductionVars());
  }
  Operation *op = value.getDefiningOp();
  if (llvm::is_contained(partition.loops, op))
    return followCarried(cast<scf::ForOp>(op),
                         cast<OpResult>(value).getResultNumber());
  if (!isFree(op))
    return op;
  for (Value operand : getTakenValues(op))
    if (Operation *maker = follow(operand))
      return maker;
  return nullptr;
}

Operation *Partition::findMaker(Value value) const {
  DenseSet<Value> seen;
  return ::findMaker(*this, value, seen);
}

bool Partition::dependsOnVTile(Operation *op) const {
  return llvm::any_of(getTakenValues(op),
                      [&](Value value) { return perVTile.contains(value); });
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

bool Partition::isLate(Operation *op) const {
  auto owner = roles.find(op);
  return owner != roles.end() && findLoop(op) &&
         getRole(owner->second).runsLate(getStep(op));
}

bool Partition::endsLateWithLoop(unsigned role) const {
  if (!schedule.getPersistent() || loops.size() != 1)
    return true;
  return llvm::any_of(roles, [&](auto &entry) {
    return entry.second == role && isLate(entry.first) &&
           llvm::any_of(findSources(entry.first), [&](Value value) {
             return value.getDefiningOp() && isOutside(value);
           });
  });
}

bool Partition::isRolled(unsigned role) const {
  RoleSpecAttr spec = getRole(role);
  return schedule.getChunksPerIteration() > 1 &&
         (spec.getLoopChunks() || spec.getRoundRobin());
}

/// Operands and results of `ops` and of what is nested in them, in order.
static std::pair<SmallVector<Value>, SmallVector<Value>>
collectValues(ArrayRef<Operation *> ops) {
  SmallVector<Value> operands, results;
  for (Operation *op : ops)
    op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
      llvm::append_range(operands, nested->getOperands());
      llvm::append_range(results, nested->getResults());
    });
  return {operands, results};
}

Value Partition::findNext(unsigned role, unsigned loop, Value argument) const {
  scf::ForOp iterations = loops[loop];
  std::array<SmallVector<Operation *>, 2> ops;
  for (auto &[op, owner] : roles)
    if (owner == role && op->getBlock() == iterations.getBody() &&
        getChunk(op) < static_cast<int64_t>(ops.size()))
      ops[getChunk(op)].push_back(op);
  auto [operands, results] = collectValues(ops[0]);
  auto [nextOperands, nextResults] = collectValues(ops[1]);
  if (operands.size() != nextOperands.size() ||
      results.size() != nextResults.size())
    return {};
  Value next;
  for (auto [operand, other] : llvm::zip(operands, nextOperands)) {
    if (operand != argument)
      continue;
    if (next && next != other)
      return {};
    next = other;
  }
  // What the last of two makes so is what the iteration hands on.
  auto *maker = llvm::find(results, next);
  Value last =
      iterations.getTiedLoopYieldedValue(cast<BlockArgument>(argument))->get();
  if (maker != results.end() && schedule.getChunksPerIteration() == 2 &&
      nextResults[maker - results.begin()] != last)
    return {};
  return next;
}

int64_t Partition::getFirstWarp(unsigned role) const {
  int64_t first = 0;
  for (RoleSpecAttr spec : schedule.getRoles().take_front(role))
    first += spec.getWarps();
  return first;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

const Field *Partition::getField(Value value, unsigned channel) const {
  auto known = fields.find(value);
  if (known != fields.end())
    for (const Field &field : known->second)
      if (field.channel == channel)
        return &field;
  return nullptr;
}

const Field *Partition::getFieldOf(Value value, unsigned taker) const {
  auto known = fields.find(value);
  if (known != fields.end())
    for (const Field &field : known->second)
      if (field.takers.contains(taker))
        return &field;
  return nullptr;
}

unsigned Partition::getClock(unsigned loop) const {
  for (auto [number, clock] : llvm::enumerate(clocks))
    if (llvm::is_contained(clock, loop))
      return number;
  llvm_unreachable("each loop has a clock");
}

bool Partition::isLoadedForOthers(Value value) const {
  auto load = value.getDefiningOp<tile::LoadOp>();
  return load && load.getType().getRank() > 1 &&
         load->getParentOfType<scf::ForOp>() &&
         llvm::none_of(roles, [&](auto &entry) {
           return entry.second == getMakingRole(value) &&
                  findSources(entry.first).contains(value);
         });
}

SmallVector<unsigned> Partition::getFillers(unsigned channel) const {
  SmallVector<unsigned> fillers;
  for (unsigned role = 0; role < countRoles(); ++role)
    if (llvm::any_of(crossing, [&](auto &entry) {
          return getField(entry.first, channel) &&
                 getMakingRole(entry.first) == role;
        }))
      fillers.push_back(role);
  return fillers;
}

bool Partition::takes(unsigned role, unsigned channel) const {
  return llvm::any_of(crossing, [&](auto &entry) {
    const Field *field = getField(entry.first, channel);
    return field && field->takers.contains(role);
  });
}

std::optional<unsigned> Partition::getSharer(unsigned channel) const {
  SmallVector<unsigned> fillers = getFillers(channel);
  if (fillers.empty() || !getRole(fillers.back()).getAlternateCtas() ||
      isShared(channel))
    return {};
  return fillers.back();
}

bool Partition::isShared(unsigned channel) const {
  SmallVector<unsigned> fillers = getFillers(channel);
  if (fillers.empty())
    return false;
  bool isLoaded = llvm::all_of(crossing, [&](auto &entry) {
    return !getField(entry.first, channel) || isLoadedForOthers(entry.first);
  });
  return (isLoaded || getRole(fillers.back()).getAlternateCtas()) &&
         llvm::all_of(llvm::seq<unsigned>(0, countRoles()), [&](unsigned role) {
           return getRole(role).getAlternateCtas() || !takes(role, channel);
         });
}

bool Partition::isLoadedInTurn(Operation *op) const {
  if (schedule.getCluster() == 1 || op->getNumResults() != 1 ||
      getRole(roles.lookup(op)).getAlternateCtas())
    return false;
  auto found = fields.find(op->getResult(0));
  return found != fields.end() &&
         llvm::all_of(found->second, [&](const Field &field) {
           return isShared(field.channel);
         });
}

IntegerAttr Partition::getTurn(unsigned channel) const {
  if (!getSharer(channel))
    return {};
  int64_t slots = isByChunk(channel) ? schedule.getChunksPerIteration() : 1;
  return Builder(schedule.getContext()).getI64IntegerAttr(slots);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct PartitionPrograms : gdn::impl::PartitionPassBase<PartitionPrograms> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto program :
         llvm::make_early_inc_range(module.getOps<tile::ProgramOp>()))
      if (failed(partition(program)))
        return signalPassFailure();
  }

  LogicalResult partition(tile::ProgramOp program) {
    auto schedule = program->getAttrOfType<ScheduleAttr>(ScheduleAttr::kName);
    if (!schedule)
      return program.emitOpError("expected a schedule in attribute ")
             << ScheduleAttr::kName;
    FailureOr<tile::LaunchOp> launch = findLaunch(getOperation(), program);
    if (failed(launch) || failed(checkTokens(program, *launch)))
      return failure();
    Partition partition;
    partition.program = program;
    partition.schedule = schedule;
    OpBuilder b(program);
    if (failed(assignRoles(partition)) || failed(checkChunks(partition)) ||
        failed(assignChannels(partition)) || failed(checkSchedule(partition)))
      return failure();
    numCrossing += partition.crossing.size();
    numChannels += partition.channels.size();
    reportPartition(partition);
    if (failed(writeKernel(partition, b, *launch)))
      return failure();
    program.erase();
    return success();
  }
};
} // namespace
