//===- Schedule.cpp - Checks of schedules ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::gdn::warp;

bool RolePlanAttr::runs(StringAttr step) const {
  return llvm::is_contained(getSteps(), step) || runsLate(step);
}

bool RolePlanAttr::runsLate(StringAttr step) const {
  return getDelayed() && llvm::is_contained(getDelayed(), step);
}

int64_t ScheduleAttr::getThreads() const {
  int64_t warps = 0;
  for (RolePlanAttr role : getRoles())
    warps += role.getWarps();
  return warps * kSm90a.warpThreads;
}

/// What makes code for each of a number stays below this: chunks, parts, trips
/// that are late or ahead.
static constexpr int64_t kMaxCopies = 64;

/// The numbers of a role are small enough to compute with and to write out.
static LogicalResult verifyRole(function_ref<InFlightDiagnostic()> emitError,
                                RolePlanAttr role) {
  int64_t maxWarps = kSm90a.maxThreads / kSm90a.warpThreads;
  if (role.getWarps() < 1 || role.getWarps() > maxWarps)
    return emitError() << "expected 1 to " << maxWarps << " warps in role "
                       << role.getName() << ", got " << role.getWarps();
  for (auto [what, trips] : {std::pair("delay", role.getDelay()),
                             std::pair("ahead", role.getAhead())})
    if (trips < 0 || trips > kMaxCopies)
      return emitError() << "expected " << what << " of 0 to " << kMaxCopies
                         << " trips in role " << role.getName() << ", got "
                         << trips;
  bool isLate = role.getDelayed() && !role.getDelayed().empty();
  if (isLate && role.getDelay() == 0)
    return emitError() << "expected a delay of at least 1 trip for the delayed "
                          "steps of role "
                       << role.getName() << ", got 0";
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t trip, int64_t parts, int64_t cluster,
                                   bool persistent, bool separate,
                                   ArrayRef<RolePlanAttr> roles,
                                   ArrayRef<ChannelPlanAttr> channels) {
  if (trip < 1 || parts < 1 || trip > kMaxCopies || parts > kMaxCopies)
    return emitError() << "expected 1 to " << kMaxCopies
                       << " chunks a trip and parts, got " << trip << " and "
                       << parts;
  if (cluster < 1 || cluster > kSm90a.maxCluster || (cluster > 1 && parts > 1))
    return emitError() << "expected a cluster of 1 to " << kSm90a.maxCluster
                       << " CTAs, of parts that are not folded, got " << cluster
                       << " CTAs of " << parts << " parts";
  llvm::StringSet<> steps, names;
  for (RolePlanAttr role : roles) {
    if (!names.insert(role.getName()).second)
      return emitError() << "expected roles of different names, got two of "
                         << role.getName();
    if (failed(verifyRole(emitError, role)))
      return failure();
    if (role.getSplit() && role.getWarps() != parts * kSm90a.warpgroupWarps)
      return emitError() << "expected " << parts * kSm90a.warpgroupWarps
                         << " warps in role " << role.getName()
                         << ", a warpgroup a part, got " << role.getWarps();
    // One chunk a trip is no loop.
    if (role.getShare() && (cluster == 1 || trip == 1 || !role.getRoll() ||
                            role.getDelayed() || role.getAhead() != 0))
      return emitError() << "expected a cluster, chunks in a loop, and nothing "
                            "delayed or ahead of its trip in role "
                         << role.getName() << ", which CTAs share";
    for (ArrayAttr list : {role.getSteps(), role.getDelayed()})
      for (Attribute step : list ? list.getValue() : ArrayRef<Attribute>())
        if (!steps.insert(cast<StringAttr>(step).getValue()).second)
          return emitError()
                 << "expected a step in one role, got " << step << " in two";
  }
  for (ChannelPlanAttr channel : channels)
    if (channel.getDepth() < 1 || channel.getDepth() > kSm90a.maxSlots())
      return emitError() << "expected 1 to " << kSm90a.maxSlots()
                         << " slots in channel " << channel.getName()
                         << ", got " << channel.getDepth();
  return success();
}
