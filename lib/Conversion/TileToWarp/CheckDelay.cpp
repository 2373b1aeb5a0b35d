//===- CheckDelay.cpp - Can the late steps of a role run late? ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// An iteration's late steps know its number and what comes through channels;
/// what the role has made or carried since is of later iterations.
static LogicalResult checkLateValues(const Partition &partition,
                                     unsigned role) {
  for (auto &[op, owner] : partition.roles) {
    std::optional<unsigned> number = partition.findLoop(op);
    if (owner != role || !number)
      continue;
    scf::ForOp loop = partition.loops[*number];
    for (Value value : findSources(op)) {
      Operation *maker = value.getDefiningOp();
      auto argument = dyn_cast<BlockArgument>(value);
      bool isCarried = argument && argument.getOwner() == loop.getBody() &&
                       value != loop.getInductionVar();
      bool isOwn = maker && !partition.getFieldOf(value, role);
      bool isLate = partition.isLate(op);
      if ((!isLate || !isCarried) &&
          (!isOwn || partition.isLate(maker) == isLate))
        continue;
      InFlightDiagnostic diagnostic =
          op->emitOpError("expected values through a channel between steps "
                          "that are delayed and others, got one that role ")
          << partition.getRole(role).getName()
          << (isCarried ? " carries from iteration to iteration"
                        : " makes itself");
      diagnostic.attachNote(maker ? maker->getLoc() : loop.getLoc())
          << (maker ? "made here" : "carried here");
      return diagnostic;
    }
  }
  return success();
}

namespace {
/// A channel and what is done with it.
using ChannelUse = std::pair<unsigned, SlotDirection>;
} // namespace

/// What steps of a role that are late, or those that are not, do.
static SetVector<ChannelUse> findUses(const Partition &partition, unsigned role,
                                      bool late) {
  SetVector<ChannelUse> uses;
  for (auto &[op, owner] : partition.roles) {
    if (owner != role || partition.isLate(op) != late)
      continue;
    for (Value value : findSources(op))
      if (const Field *field = partition.getFieldOf(value, role))
        uses.insert({field->channel, SlotDirection::Get});
    for (Value value : op->getResults())
      for (const Field &field : partition.fields.lookup(value))
        uses.insert({field.channel, SlotDirection::Put});
  }
  return uses;
}

/// A role visits a slot once: in the slot's iteration or late.
static LogicalResult checkLateUses(const Partition &partition, unsigned role) {
  tile::ProgramOp program = partition.program;
  SetVector<ChannelUse> now = findUses(partition, role, /*late=*/false);
  for (ChannelUse use : findUses(partition, role, /*late=*/true))
    if (now.contains(use))
      return program.emitOpError("expected role ")
             << partition.getRole(role).getName() << " to "
             << (use.second == SlotDirection::Put ? "fill" : "take")
             << " channel " << partition.getSpec(use.first).getName()
             << " either in steps that are delayed or in others, got both; "
                "use two channels";
  return success();
}

/// Chunks that the slots of these channels hold together.
static int64_t countSlotChunks(const Partition &partition,
                               ArrayRef<unsigned> channels) {
  int64_t chunks = 0;
  for (unsigned channel : channels)
    chunks += partition.getDepth(channel) *
              (partition.isByChunk(channel)
                   ? 1
                   : partition.schedule.getChunksPerIteration());
  return chunks;
}

/// For each channel of a loop the channels on the way to it, itself the last,
/// that have the fewest slots: from a role's undelayed steps, who fills one of
/// them takes from the one before. Empty where there is no way.
static SmallVector<SmallVector<unsigned>>
findNarrowestWays(const Partition &partition, unsigned role, unsigned loop) {
  size_t count = partition.channels.size();
  auto isHere = [&](unsigned channel) {
    return llvm::is_contained(partition.channels[channel].loops, loop);
  };
  SmallVector<SmallVector<unsigned>> ways(count);
  for (auto &[value, takers] : partition.crossing)
    if (partition.getMakingRole(value) == role &&
        !partition.isLate(value.getDefiningOp()))
      for (const Field &field : partition.fields.lookup(value))
        if (isHere(field.channel))
          ways[field.channel] = {field.channel};
  // No narrowest way has a channel twice.
  for (size_t round = 0; round < count; ++round)
    for (unsigned from = 0; from < count; ++from)
      for (unsigned to = 0; to < count; ++to) {
        bool follows =
            isHere(to) &&
            llvm::any_of(partition.getFillers(to), [&](unsigned other) {
              return other != role && partition.takes(other, from);
            });
        if (ways[from].empty() || !follows)
          continue;
        SmallVector<unsigned> way = ways[from];
        way.push_back(to);
        if (ways[to].empty() || countSlotChunks(partition, way) <
                                    countSlotChunks(partition, ways[to]))
          ways[to] = way;
      }
  return ways;
}

/// A role fills a slot before it takes, late, what came of earlier ones: until
/// then all must have room on the way. Otherwise the roles wait for each other.
static LogicalResult checkWays(const Partition &partition, unsigned role,
                               unsigned loop) {
  RoleSpecAttr spec = partition.getRole(role);
  tile::ProgramOp program = partition.program;
  int64_t needed =
      partition.schedule.getChunksPerIteration() * (spec.getDelay() + 1);
  SmallVector<SmallVector<unsigned>> ways =
      findNarrowestWays(partition, role, loop);
  for (auto [channel, direction] : findUses(partition, role, /*late=*/true)) {
    if (direction == SlotDirection::Put)
      continue;
    ArrayRef<unsigned> way = ways[channel];
    int64_t chunks = countSlotChunks(partition, way);
    if (way.empty() || chunks >= needed)
      continue;
    return program.emitOpError("expected slots for at least ")
           << needed << " chunks in the channels from role " << spec.getName()
           << " back to its steps that are delayed by " << spec.getDelay()
           << " iterations ("
           << llvm::join(
                  llvm::map_range(way,
                                  [&](unsigned index) {
                                    return partition.getSpec(index).getName();
                                  }),
                  ", ")
           << "), or it waits for ever, got " << chunks
           << "; give them more slots or delay less";
  }
  return success();
}

LogicalResult gdn::checkDelay(const Partition &partition, unsigned role) {
  if (partition.getRole(role).getDelay() == 0)
    return success();
  if (failed(checkLateValues(partition, role)) ||
      failed(checkLateUses(partition, role)))
    return failure();
  for (unsigned loop = 0; loop < partition.loops.size(); ++loop)
    if (failed(checkWays(partition, role, loop)))
      return failure();
  return success();
}
