//===- CheckSchedule.cpp - Does a schedule go with its program? -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Chunks of an iteration
//===----------------------------------------------------------------------===//

/// The loop takes as many chunks an iteration as the schedule says.
LogicalResult Partition::checkChunksPerIteration() {
  int64_t chunksPerIteration = schedule.getChunksPerIteration(), chunks = 1;
  WalkResult walked = program.walk([&](Operation *op) {
    int64_t chunk = getChunk(op);
    if (chunk < 0 || chunk >= chunksPerIteration) {
      op->emitOpError("expected gdn_tile.chunk in [0, ")
          << chunksPerIteration
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
  if (!loop || chunks == chunksPerIteration)
    return success();
  return program.emitOpError("expected a loop of ")
         << chunksPerIteration
         << " chunks an iteration, as the schedule says "
            "(gdn-tile-unroll-chunks), "
            "got "
         << chunks;
}

//===----------------------------------------------------------------------===//
// Steps that run late
//===----------------------------------------------------------------------===//

bool Partition::isLate(Operation *op) const {
  auto owner = roles.find(op);
  return owner != roles.end() && op->getParentOp() == loop &&
         schedule.getRoles()[owner->second].runsLate(getStep(op));
}

/// What `op` takes, through ops that are copied: what other ops make, what the
/// loop carries, and arguments.
static SetVector<Value> findSources(Operation *op) {
  SetVector<Value> sources;
  SetVector<Value> open = Partition::getTakenValues(op);
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!seen.insert(value).second)
      continue;
    if (maker && Partition::isFree(maker))
      open.set_union(Partition::getTakenValues(maker));
    else
      sources.insert(value);
  }
  return sources;
}

/// An iteration's late steps know its number and what comes through channels;
/// what the role has made or carried since is of later iterations.
LogicalResult Partition::checkLateValues(unsigned role) {
  for (auto &[op, owner] : roles) {
    if (owner != role || op->getParentOp() != loop)
      continue;
    for (Value value : findSources(op)) {
      Operation *maker = value.getDefiningOp();
      auto argument = dyn_cast<BlockArgument>(value);
      bool isCarried = argument && argument.getOwner() == loop.getBody() &&
                       value != loop.getInductionVar();
      bool isOwn = maker && roles.lookup(maker) == role;
      if ((isLate(op) && isCarried) || (isOwn && isLate(maker) != isLate(op)))
        return op->emitOpError("expected values through a channel between "
                               "steps that are delayed and others, got one "
                               "that role ")
               << schedule.getRoles()[role].getName()
               << (isCarried ? " carries from iteration to iteration"
                             : " makes itself");
    }
  }
  return success();
}

SetVector<Partition::ChannelUse> Partition::findUses(unsigned role,
                                                     bool late) const {
  SetVector<ChannelUse> uses;
  for (auto &[op, owner] : roles) {
    if (owner != role || isLate(op) != late)
      continue;
    for (Value value : findSources(op))
      if (const Field *field = getFieldOf(value, role))
        uses.insert({field->channel, SlotDirection::Get});
    for (Value value : op->getResults())
      for (const Field &field : fields.lookup(value))
        uses.insert({field.channel, SlotDirection::Put});
  }
  return uses;
}

/// A role visits a slot once: in the slot's iteration or late.
LogicalResult Partition::checkLateUses(unsigned role) {
  SetVector<ChannelUse> now = findUses(role, /*late=*/false);
  for (ChannelUse use : findUses(role, /*late=*/true))
    if (now.contains(use))
      return program.emitOpError("expected role ")
             << schedule.getRoles()[role].getName() << " to "
             << (use.second == SlotDirection::Put ? "fill" : "take")
             << " channel " << schedule.getChannels()[use.first].getName()
             << " either in steps that are delayed or in others, got both; "
                "use two channels";
  return success();
}

int64_t Partition::countSlotChunks(ArrayRef<unsigned> channels) const {
  int64_t chunks = 0;
  for (unsigned channel : channels) {
    ChannelSpecAttr spec = schedule.getChannels()[channel];
    chunks += spec.getDepth() *
              (spec.getSlotPerChunk() ? 1 : schedule.getChunksPerIteration());
  }
  return chunks;
}

/// For each channel the channels on the way to it, itself the last, that have
/// the fewest slots: from a role's undelayed steps, who fills one of them takes
/// from the one before. Empty where there is no way.
SmallVector<SmallVector<unsigned>>
Partition::findNarrowestWays(unsigned role) const {
  size_t count = schedule.getChannels().size();
  SmallVector<SmallVector<unsigned>> ways(count);
  for (auto &[value, takers] : crossing) {
    Operation *maker = value.getDefiningOp();
    if (roles.lookup(maker) == role && !isLate(maker))
      for (const Field &field : fields.lookup(value))
        ways[field.channel] = {field.channel};
  }
  // No narrowest way has a channel twice.
  for (size_t round = 0; round < count; ++round)
    for (unsigned from = 0; from < count; ++from)
      for (unsigned to = 0; to < count; ++to) {
        bool follows = llvm::any_of(getFillers(to), [&](unsigned other) {
          return other != role && takes(other, from);
        });
        if (ways[from].empty() || !follows)
          continue;
        SmallVector<unsigned> way = ways[from];
        way.push_back(to);
        if (ways[to].empty() ||
            countSlotChunks(way) < countSlotChunks(ways[to]))
          ways[to] = way;
      }
  return ways;
}

/// A role fills a slot before it takes, late, what came of earlier ones: until
/// then all must have room on the way. Otherwise the roles wait for each other.
LogicalResult Partition::checkDelay(unsigned role) {
  RoleSpecAttr spec = schedule.getRoles()[role];
  if (spec.getDelay() == 0)
    return success();
  if (failed(checkLateValues(role)) || failed(checkLateUses(role)))
    return failure();
  int64_t needed = schedule.getChunksPerIteration() * (spec.getDelay() + 1);
  SmallVector<SmallVector<unsigned>> ways = findNarrowestWays(role);
  for (auto [channel, direction] : findUses(role, /*late=*/true)) {
    if (direction == SlotDirection::Put)
      continue;
    ArrayRef<unsigned> way = ways[channel];
    int64_t chunks = countSlotChunks(way);
    if (way.empty() || chunks >= needed)
      continue;
    return program.emitOpError("expected slots for at least ")
           << needed << " chunks in the channels from role " << spec.getName()
           << " back to its steps that are delayed by " << spec.getDelay()
           << " iterations ("
           << llvm::join(llvm::map_range(
                             way,
                             [&](unsigned index) {
                               return schedule.getChannels()[index].getName();
                             }),
                         ", ")
           << "), or it waits for ever, got " << chunks
           << "; give them more slots or delay less";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

/// Whether `tokens` may be all that `array` has along `dim`.
static bool mayBeExtent(Value tokens, Value array, int64_t dim) {
  auto type = dyn_cast<ShapedType>(array.getType());
  std::optional<int64_t> constant = getConstantIntValue(tokens);
  return !constant || !type || !type.hasRank() || type.isDynamicDim(dim) ||
         type.getDimSize(dim) == *constant;
}

/// Whether `tokens` is what `array` has along `dim`, or comes from outside.
static bool isExtent(Value tokens, Value array, int64_t dim) {
  Operation *op = tokens.getDefiningOp();
  if (!op)
    return true;
  if (std::optional<int64_t> constant = getConstantIntValue(tokens))
    return cast<ShapedType>(array.getType()).getDimSize(dim) == *constant;
  if (auto of = dyn_cast<tensor::DimOp>(op))
    return of.getSource() == array && of.getConstantIndex() == dim;
  if (auto of = dyn_cast<memref::DimOp>(op))
    return of.getSource() == array && of.getConstantIndex() == dim;
  return false;
}

LogicalResult gdn::checkTokens(tile::ProgramOp program, tile::LaunchOp launch) {
  if (launch.getCuSeqlens())
    return success();
  SmallVector<Value> arrays(launch.getInputs());
  llvm::append_range(arrays, launch.getOutputs());
  bool hasEnds = false, isKnown = false, differs = false;
  auto visit = [&](Value array, Value end, std::optional<uint64_t> dim) {
    auto argument = dyn_cast<BlockArgument>(array);
    if (end != program.getEnd() || !dim || !argument ||
        argument.getOwner() != &program.getBody().front())
      return;
    Value given = arrays[argument.getArgNumber()];
    hasEnds = true;
    isKnown |= isExtent(launch.getTokens(), given, *dim);
    differs |= !mayBeExtent(launch.getTokens(), given, *dim);
  };
  program.walk([&](tile::LoadOp op) {
    visit(op.getSource(), op.getEnd(), op.getDim());
  });
  program.walk([&](tile::StoreOp op) {
    visit(op.getTarget(), op.getEnd(), op.getDim());
  });
  if (!hasEnds || (isKnown && !differs))
    return success();
  InFlightDiagnostic diagnostic = launch.emitOpError(
      "expected as many tokens as the arrays have that end there, since copies "
      "do: the extent of one of them (a tensor.dim, or the constant), got ");
  if (std::optional<int64_t> tokens = getConstantIntValue(launch.getTokens()))
    return diagnostic << *tokens;
  return diagnostic << "another value";
}

FailureOr<tile::LaunchOp> gdn::findLaunch(ModuleOp module,
                                          tile::ProgramOp program) {
  tile::LaunchOp first, second;
  module.walk([&](tile::LaunchOp op) {
    if (op.getProgram() == program.getSymName())
      (first ? second : first) = op;
  });
  if (!first)
    return program.emitOpError("expected a launch of the program, got none");
  if (!second)
    return first;
  InFlightDiagnostic diagnostic =
      second.emitOpError("expected one launch of program @")
      << program.getSymName()
      << ", whose kernel is made for its grid and tokens, got two; give each "
         "one a program of its own";
  diagnostic.attachNote(first.getLoc()) << "the other launch";
  return diagnostic;
}
