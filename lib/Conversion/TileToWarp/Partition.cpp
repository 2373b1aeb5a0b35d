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

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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
// Analysis: which role runs an op, which values cross
//===----------------------------------------------------------------------===//

bool Partition::isFree(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, arith::ExtFOp, tensor::ExtractSliceOp>(op))
    return true;
  return !tile::TileDialect::needsStep(op) && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op);
}

StringAttr Partition::getStep(Operation *op) {
  StringAttr step;
  op->walk([&](Operation *nested) {
    if (isFree(nested) || step)
      return;
    step =
        nested->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName());
  });
  return step;
}

int64_t Partition::getChunk(Operation *op) {
  auto label =
      op->getAttrOfType<IntegerAttr>(tile::TileDialect::getChunkAttrName());
  return label ? label.getInt() : 0;
}

SetVector<Value> Partition::getTakenValues(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

FailureOr<unsigned> Partition::assignRole(Operation *op) {
  StringAttr step = getStep(op);
  if (!step)
    return op->emitOpError("expected a step: what needs a role has one");
  WalkResult one = op->walk([&](Operation *nested) {
    auto label =
        nested->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName());
    if (isFree(nested) || !label || label == step)
      return WalkResult::advance();
    op->emitOpError("expected ops of one step inside, got ")
        << step << " and " << label;
    return WalkResult::interrupt();
  });
  if (one.wasInterrupted())
    return failure();
  for (unsigned index = 0; index < schedule.getRoles().size(); ++index)
    if (schedule.getRoles()[index].runs(step))
      return index;
  return op->emitOpError("expected a role for step ")
         << step << " in the schedule";
}

LogicalResult Partition::assignRoles(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (isFree(&op))
      continue;
    if (auto found = dyn_cast<scf::ForOp>(op)) {
      if (loop || op.getBlock() != &program.getBody().front())
        return op.emitOpError("expected one loop, over the work item's chunks");
      loop = found;
      if (failed(assignRoles(*loop.getBody())))
        return failure();
      continue;
    }
    FailureOr<unsigned> role = assignRole(&op);
    if (failed(role))
      return failure();
    roles[&op] = *role;
  }
  return success();
}

/// Everything that depends on the V tile.
void Partition::findPerVTile() {
  if (schedule.getVTiles() == 1)
    return;
  perVTile.insert(program.getVTile());
  bool changed = true;
  auto add = [&](Value value) { changed |= perVTile.insert(value).second; };
  while (changed) {
    changed = false;
    program.walk([&](Operation *op) {
      if (op == loop) {
        for (auto [init, arg, yielded, result] :
             llvm::zip(loop.getInits(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults()))
          if (perVTile.contains(init) || perVTile.contains(yielded))
            add(arg), add(result);
        return;
      }
      if (op == program || llvm::none_of(getTakenValues(op), [&](Value value) {
            return perVTile.contains(value);
          }))
        return;
      for (Value result : op->getResults())
        add(result);
    });
  }
}

bool Partition::dependsOnVTile(Operation *op) const {
  return llvm::any_of(getTakenValues(op),
                      [&](Value value) { return perVTile.contains(value); });
}

static bool isNamed(ArrayAttr names, StringRef name) {
  return llvm::is_contained(names.getAsValueRange<StringAttr>(), name);
}

/// Follows what `role` needs back to what other roles make.
void Partition::collectNeeds(Value value, unsigned role,
                             DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  auto carried = [&](unsigned index) {
    needs[role].carried.insert(index);
    collectNeeds(loop.getInits()[index], role, seen);
    collectNeeds(loop.getYieldedValues()[index], role, seen);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (loop && argument.getOwner() == loop.getBody() &&
        argument.getArgNumber() >= loop.getNumInductionVars())
      carried(argument.getArgNumber() - loop.getNumInductionVars());
    return;
  }
  Operation *op = value.getDefiningOp();
  if (op == loop)
    return carried(cast<OpResult>(value).getResultNumber());
  if (isFree(op)) {
    for (Value operand : getTakenValues(op))
      collectNeeds(operand, role, seen);
    return;
  }
  if (roles.lookup(op) != role)
    crossing[value].insert(role);
}

LogicalResult Partition::findCrossing() {
  needs.resize(schedule.getRoles().size());
  for (unsigned role = 0; role < needs.size(); ++role) {
    DenseSet<Value> seen;
    for (auto &[op, owner] : roles) {
      if (owner != role)
        continue;
      needs[role].inLoop |= loop && op->getBlock() == loop.getBody();
      for (Value value : getTakenValues(op))
        collectNeeds(value, role, seen);
    }
    needs[role].inLoop |= !needs[role].carried.empty();
  }
  for (auto &[value, takers] : crossing)
    if (!loop || value.getDefiningOp()->getBlock() != loop.getBody())
      return value.getDefiningOp()->emitOpError(
          "expected values between roles to be made in the loop over chunks");
  return success();
}

bool Partition::carries(ChannelSpecAttr channel, Value value,
                        unsigned taker) const {
  return isNamed(channel.getFrom(), getStep(value.getDefiningOp())) &&
         isNamed(channel.getTo(), schedule.getRoles()[taker].getName());
}

/// Fields for `value`, whose numbers are open yet: one in the channel of the
/// schedule that carries it to all takers, or else in as many as it takes, in
/// their order.
FailureOr<SmallVector<Partition::Field, 1>>
Partition::findCarriers(Value value, const SetVector<unsigned> &takers) {
  SmallVector<Field, 1> all;
  SetVector<unsigned> left = takers;
  for (auto [index, channel] : llvm::enumerate(schedule.getChannels())) {
    Field carrier = {static_cast<unsigned>(index), 0, {}};
    for (unsigned role : takers)
      if (carries(channel, value, role))
        carrier.takers.insert(role);
    if (carrier.takers.size() == takers.size())
      return SmallVector<Field, 1>{carrier};
    carrier.takers.remove_if(
        [&](unsigned role) { return !left.contains(role); });
    left.set_subtract(carrier.takers);
    if (!carrier.takers.empty())
      all.push_back(carrier);
  }
  if (left.empty())
    return all;
  InFlightDiagnostic diagnostic = value.getDefiningOp()->emitOpError(
      "expected a channel of the schedule from step ");
  diagnostic << getStep(value.getDefiningOp()) << " to role";
  for (unsigned role : left)
    diagnostic << " " << schedule.getRoles()[role].getName();
  return diagnostic;
}

/// Of each channel and chunk the values that cross, in the order of the
/// program.
LogicalResult Partition::sortCrossing(ChannelValues &values) {
  values.assign(
      schedule.getChannels().size(),
      SmallVector<SmallVector<Value>>(schedule.getChunksPerIteration()));
  if (!loop)
    return success();
  for (Operation &op : *loop.getBody())
    for (Value value : op.getResults()) {
      auto takers = crossing.find(value);
      if (takers == crossing.end())
        continue;
      FailureOr<SmallVector<Field, 1>> carriers =
          findCarriers(value, takers->second);
      if (failed(carriers))
        return failure();
      for (const Field &field : *carriers)
        values[field.channel][getChunk(&op)].push_back(value);
      fields[value] = *carriers;
    }
  return success();
}

/// Fields lie chunk by chunk; in a channel whose slots are for one chunk, each
/// chunk's are the same.
LogicalResult Partition::assignFields() {
  ChannelValues values;
  if (failed(sortCrossing(values)))
    return failure();
  fieldTypes.resize(values.size());
  alike.assign(values.size(), schedule.getChunksPerIteration());
  for (size_t channel = 0; channel < values.size(); ++channel) {
    ChannelSpecAttr spec = schedule.getChannels()[channel];
    SmallVector<Type> &types = fieldTypes[channel], first;
    for (auto [chunk, list] : llvm::enumerate(values[channel])) {
      SmallVector<Type> own;
      size_t begin = spec.getSlotPerChunk() ? 0 : types.size();
      for (Value value : list) {
        for (Field &field : fields[value])
          if (field.channel == channel)
            field.index = begin + own.size();
        own.append(perVTile.contains(value) ? schedule.getVTiles() : 1,
                   value.getType());
      }
      if (chunk == 0)
        first = own;
      else if (own != first)
        alike[channel] = 1;
      if (chunk == 0 || !spec.getSlotPerChunk())
        llvm::append_range(types, own);
    }
    if (spec.getSlotPerChunk() &&
        alike[channel] != schedule.getChunksPerIteration())
      return program.emitOpError("expected the same values of each chunk in "
                                 "channel ")
             << spec.getName() << ", whose slots are for one";
  }
  return success();
}

const Partition::Field *Partition::getField(Value value,
                                            unsigned channel) const {
  auto known = fields.find(value);
  if (known != fields.end())
    for (const Field &field : known->second)
      if (field.channel == channel)
        return &field;
  return nullptr;
}

const Partition::Field *Partition::getFieldOf(Value value,
                                              unsigned taker) const {
  auto known = fields.find(value);
  if (known != fields.end())
    for (const Field &field : known->second)
      if (field.takers.contains(taker))
        return &field;
  return nullptr;
}

int64_t Partition::getChunksOfSlot(unsigned channel) const {
  return schedule.getChannels()[channel].getSlotPerChunk() ? 1 : alike[channel];
}

bool Partition::isRolled(unsigned role) const {
  RoleSpecAttr spec = schedule.getRoles()[role];
  return schedule.getChunksPerIteration() > 1 &&
         (spec.getLoopChunks() || spec.getRoundRobin());
}

/// A role whose chunks are a loop does the same for each, with values of that
/// chunk alone.
LogicalResult Partition::checkRolled(unsigned role) {
  StringRef name = schedule.getRoles()[role].getName();
  if (!needs[role].carried.empty())
    return program.emitOpError("expected no values from one chunk to the next "
                               "in role ")
           << name << ", whose chunks are a loop";
  SmallVector<SmallVector<StringRef>> names(schedule.getChunksPerIteration());
  for (auto &[op, owner] : roles) {
    if (owner != role || !loop || op->getBlock() != loop.getBody())
      continue;
    int64_t chunk = getChunk(op);
    names[chunk].push_back(op->getName().getStringRef());
    for (Value value : getTakenValues(op)) {
      Operation *maker = value.getDefiningOp();
      if (!maker || isFree(maker) || maker->getBlock() != loop.getBody())
        continue;
      const Field *field =
          roles.lookup(maker) == role ? nullptr : getFieldOf(value, role);
      if (getChunk(maker) != chunk || (field && alike[field->channel] == 1))
        return op->emitOpError("expected values of its own chunk, which is "
                               "one of a loop in role ")
               << name;
    }
  }
  if (!llvm::all_equal(names))
    return program.emitOpError(
               "expected the same ops for each chunk of an iteration "
               "in role ")
           << name << ", whose chunks are a loop";
  return success();
}

SmallVector<unsigned> Partition::getFillers(unsigned channel) const {
  SmallVector<unsigned> fillers;
  for (unsigned role = 0; role < schedule.getRoles().size(); ++role)
    if (llvm::any_of(crossing, [&](auto &entry) {
          return getField(entry.first, channel) &&
                 roles.lookup(entry.first.getDefiningOp()) == role;
        }))
      fillers.push_back(role);
  return fillers;
}

int64_t Partition::getFirstWarp(unsigned role) const {
  int64_t first = 0;
  for (RoleSpecAttr spec : schedule.getRoles().take_front(role))
    first += spec.getWarps();
  return first;
}

bool Partition::takes(unsigned role, unsigned channel) const {
  return llvm::any_of(crossing, [&](auto &entry) {
    const Field *field = getField(entry.first, channel);
    return field && field->takers.contains(role);
  });
}

std::optional<unsigned> Partition::getSharer(unsigned channel) const {
  SmallVector<unsigned> fillers = getFillers(channel);
  if (fillers.empty() ||
      !schedule.getRoles()[fillers.back()].getAlternateCtas() ||
      isShared(channel))
    return {};
  return fillers.back();
}

bool Partition::isShared(unsigned channel) const {
  ArrayRef<RoleSpecAttr> specs = schedule.getRoles();
  SmallVector<unsigned> fillers = getFillers(channel);
  return !fillers.empty() && specs[fillers.back()].getAlternateCtas() &&
         llvm::all_of(llvm::seq<unsigned>(0, specs.size()), [&](unsigned role) {
           return specs[role].getAlternateCtas() || !takes(role, channel);
         });
}

IntegerAttr Partition::getTurn(unsigned channel) const {
  if (!getSharer(channel))
    return {};
  int64_t slots = schedule.getChannels()[channel].getSlotPerChunk()
                      ? schedule.getChunksPerIteration()
                      : 1;
  return Builder(schedule.getContext()).getI64IntegerAttr(slots);
}

/// The CTAs of a cluster fill a slot in each of its turns, or one of them does.
LogicalResult Partition::checkShared(unsigned channel) {
  ChannelSpecAttr spec = schedule.getChannels()[channel];
  SmallVector<unsigned> fillers = getFillers(channel);
  if (!llvm::all_equal(llvm::map_range(fillers, [&](unsigned role) {
        return schedule.getRoles()[role].getAlternateCtas();
      })))
    return program.emitOpError("expected channel ")
           << spec.getName()
           << " to be filled by roles that CTAs share, or by others, got both";
  IntegerAttr turn = getTurn(channel);
  if (!turn || spec.getDepth() % (turn.getInt() * schedule.getCluster()) == 0)
    return success();
  return program.emitOpError("expected a multiple of ")
         << turn.getInt() * schedule.getCluster() << " slots in channel "
         << spec.getName() << ", which the CTAs of a cluster fill in turn, got "
         << spec.getDepth();
}

LogicalResult Partition::analyse() {
  if (failed(assignRoles(program.getBody().front())))
    return failure();
  findPerVTile();
  if (failed(checkChunksPerIteration()) || failed(findCrossing()) ||
      failed(assignFields()))
    return failure();
  for (unsigned role = 0; role < schedule.getRoles().size(); ++role)
    if (isRolled(role) && failed(checkRolled(role)))
      return failure();
  for (unsigned channel = 0; channel < fieldTypes.size(); ++channel)
    if (failed(checkShared(channel)))
      return failure();
  for (unsigned role = 0; role < schedule.getRoles().size(); ++role)
    if (failed(checkDelay(role)))
      return failure();
  return success();
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
    Partition work(program, schedule);
    OpBuilder b(program);
    if (failed(work.analyse()) || failed(work.write(b, *launch)))
      return failure();
    program.erase();
    return success();
  }
};
} // namespace
