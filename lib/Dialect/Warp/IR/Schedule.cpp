//===- Schedule.cpp - Checks of schedules ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::gdn::warp;

bool RoleSpecAttr::runs(StringAttr step) const {
  return llvm::is_contained(getSteps(), step) || runsLate(step);
}

bool RoleSpecAttr::runsLate(StringAttr step) const {
  return getDelayedSteps() && llvm::is_contained(getDelayedSteps(), step);
}

int64_t ScheduleAttr::getThreads() const {
  int64_t warps = 0;
  for (RoleSpecAttr role : getRoles())
    warps += role.getWarps();
  return warps * format::kWarpThreads;
}

/// What makes code for each of a number stays below this: chunks, V tiles,
/// iterations that are late or ahead.
static constexpr int64_t kMaxCopies = 64;
/// Any chip has room for fewer than these; what a chip has is checked where the
/// schedule stands (`verifyFor`).
static constexpr int64_t kMaxWarps = 1 << 10, kMaxSlots = 1 << 20;

/// The numbers of a role are small enough to compute with and to write out.
static LogicalResult verifyRole(function_ref<InFlightDiagnostic()> emitError,
                                RoleSpecAttr role) {
  if (role.getWarps() < 1 || role.getWarps() > kMaxWarps)
    return emitError() << "expected 1 to " << kMaxWarps << " warps in role "
                       << role.getName() << ", got " << role.getWarps();
  for (auto [what, iterations] :
       {std::pair("delay", role.getDelay()),
        std::pair("prefetch_distance", role.getPrefetchDistance())})
    if (iterations < 0 || iterations > kMaxCopies)
      return emitError() << "expected " << what << " of 0 to " << kMaxCopies
                         << " iterations in role " << role.getName() << ", got "
                         << iterations;
  int64_t lanes = role.getLanesPerRow();
  if (lanes != 0 && (lanes < 1 || format::kWarpThreads % lanes != 0))
    return emitError() << "expected lanes_per_row that divide "
                       << format::kWarpThreads << " in role " << role.getName()
                       << ", got " << lanes;
  int64_t together = role.getWarpsPerTurn();
  bool areAlike = together == 1 || together == format::kWarpgroupWarps;
  if (!areAlike || (together != 1 &&
                    (!role.getRoundRobin() || role.getWarps() % together != 0)))
    return emitError() << "expected warps_per_turn of 1, or of "
                       << format::kWarpgroupWarps
                       << " with round_robin and whole warpgroups, in role "
                       << role.getName() << ", got " << together << " of "
                       << role.getWarps() << " warps";
  if (role.getShareCode() && role.getWarps() % format::kWarpgroupWarps != 0)
    return emitError() << "expected whole warpgroups of "
                       << format::kWarpgroupWarps << " warps in role "
                       << role.getName() << ", which shares its code, got "
                       << role.getWarps();
  bool isLate = role.getDelayedSteps() && !role.getDelayedSteps().empty();
  if (isLate && role.getDelay() == 0)
    return emitError()
           << "expected a delay of at least 1 iteration for the delayed "
              "steps of role "
           << role.getName() << ", got 0";
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t chunksPerIteration, int64_t vTiles,
                                   int64_t cluster, bool persistent,
                                   int64_t minCtas, bool,
                                   ArrayRef<RoleSpecAttr> roles,
                                   ArrayRef<ChannelSpecAttr> channels) {
  if (chunksPerIteration < 1 || vTiles < 1 || chunksPerIteration > kMaxCopies ||
      vTiles > kMaxCopies)
    return emitError() << "expected 1 to " << kMaxCopies
                       << " chunks an iteration and V tiles, got "
                       << chunksPerIteration << " and " << vTiles;
  if (cluster < 1 || cluster > kMaxCopies || (cluster > 1 && vTiles > 1))
    return emitError() << "expected a cluster of 1 to " << kMaxCopies
                       << " CTAs, of V tiles that are not folded, got "
                       << cluster << " CTAs of " << vTiles << " V tiles";
  if (minCtas < 1 || minCtas > kMaxCopies)
    return emitError() << "expected min_ctas of 1 to " << kMaxCopies << ", got "
                       << minCtas;
  llvm::StringSet<> steps, names;
  for (RoleSpecAttr role : roles) {
    if (!names.insert(role.getName()).second)
      return emitError() << "expected roles of different names, got two of "
                         << role.getName();
    if (failed(verifyRole(emitError, role)))
      return failure();
    if (role.getWarpgroupPerVTile() &&
        role.getWarps() != vTiles * format::kWarpgroupWarps)
      return emitError() << "expected " << vTiles * format::kWarpgroupWarps
                         << " warps in role " << role.getName()
                         << ", a warpgroup a V tile, got " << role.getWarps();
    // One chunk an iteration is no loop.
    if (role.getAlternateCtas() &&
        (cluster == 1 || chunksPerIteration == 1 || !role.getLoopChunks() ||
         role.getDelayedSteps() || role.getPrefetchDistance() != 0))
      return emitError() << "expected a cluster, chunks in a loop, and nothing "
                            "delayed or ahead of its iteration in role "
                         << role.getName() << ", which CTAs share";
    // Else a warp's first chunk may be in the second round of a slot, for which
    // a wait ends at once: a barrier tells two rounds apart by a parity.
    if (role.getAlternateCtas() && role.getRoundRobin() &&
        chunksPerIteration % role.countTurns() != 0)
      return emitError() << "expected warps that take turns and divide the "
                         << chunksPerIteration << " chunks of an iteration in "
                         << "role " << role.getName()
                         << ", which CTAs share, got " << role.countTurns();
    for (ArrayAttr list : {role.getSteps(), role.getDelayedSteps()})
      for (Attribute step : list ? list.getValue() : ArrayRef<Attribute>())
        if (!steps.insert(cast<StringAttr>(step).getValue()).second)
          return emitError()
                 << "expected a step in one role, got " << step << " in two";
  }
  for (ChannelSpecAttr channel : channels)
    if (channel.getDepth() < 1 || channel.getDepth() > kMaxSlots)
      return emitError() << "expected 1 to " << kMaxSlots
                         << " slots in channel " << channel.getName()
                         << ", got " << channel.getDepth();
  return success();
}

LogicalResult ScheduleAttr::verifyFor(Operation *op, const Arch &arch) const {
  auto expect = [&](int64_t most, const Twine &what,
                    int64_t got) -> LogicalResult {
    if (got <= most)
      return success();
    return op->emitOpError("expected at most ")
           << most << ' ' << what << " on " << StringRef(arch.chip) << ", got "
           << got;
  };
  if (failed(expect(arch.maxCluster, "CTAs in a cluster", getCluster())) ||
      failed(expect(arch.maxThreads, "threads in all roles", getThreads())) ||
      failed(expect(arch.maxResidentThreads, "threads in min_ctas CTAs",
                    getThreads() * getMinCtas())))
    return failure();
  for (ChannelSpecAttr channel : getChannels())
    if (failed(expect(arch.maxSlots(), "slots in channel " + channel.getName(),
                      channel.getDepth())))
      return failure();
  return success();
}
