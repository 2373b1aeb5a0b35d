//===- VerifyChannels.cpp - Check that slots are handed over right --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FencePlaces.h"
#include "SimulateRoles.h"

#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "gdn-warp-verify-channels"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_VERIFYCHANNELSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Fences directly behind `op`: who accesses arrives behind them.
static bool isFencedBehind(Operation *op) {
  do
    op = op->getNextNode();
  while (op && isa<FenceOp>(op) && !isAsyncFence(op));
  return isAsyncFence(op);
}

static LogicalResult verifyFence(const FencePlace &place) {
  SlotOp slot = place.slot;
  auto isFence = [](Operation &op) { return isAsyncFence(&op); };
  bool isFenced =
      place.isBehind()
          ? isFencedBehind(place.op)
          : llvm::any_of(llvm::make_range(Block::iterator(slot),
                                          Block::iterator(place.op)),
                         isFence);
  if (isFenced)
    return success();
  auto channel = slot.getChannel().getDefiningOp<ChannelOp>();
  auto [where, why] = [&]() -> std::pair<StringRef, StringRef> {
    switch (place.reason) {
    case FenceReason::StoresBeforeReads:
      return {"directly behind the last store to",
              ", which products or other CTAs read"};
    case FenceReason::StoresBeforeCopies:
      return {"before the first copy out of",
              ", to which other threads have stored"};
    case FenceReason::LoadsBeforeRefill:
      return {"directly behind the last load from", ", which copies fill"};
    }
    llvm_unreachable("a reason of a fence");
  }();
  InFlightDiagnostic diagnostic =
      place.op->emitOpError("expected gdn_warp.fence async ")
      << where << " channel " << channel.getNameAttr() << why
      << ", got none (gdn-warp-insert-fences)";
  diagnostic.attachNote(channel.getLoc()) << "the channel";
  return diagnostic;
}

namespace {
/// A channel and what is done with it.
using Use = std::pair<Value, SlotDirection>;
} // namespace

/// What a region does with channels, and one op that does it.
static llvm::MapVector<Use, Operation *> collectUses(Region &region) {
  llvm::MapVector<Use, Operation *> uses;
  region.walk([&](Operation *op) {
    if (auto slot = dyn_cast<SlotOp>(op))
      uses.insert({{slot.getChannel(), slot.getDirection()}, op});
    if (auto release = dyn_cast<ReleaseUnusedOp>(op))
      uses.insert({{release.getChannel(), SlotDirection::Get}, op});
  });
  return uses;
}

/// Who fills or takes a slot on one side of a branch does so on the other one:
/// the slot waits for an arrival in each iteration. A branch with one side is a
/// guard of lanes, warps or rounds; where CTAs share a role, the side of the
/// other CTA's iterations fills nothing.
static LogicalResult verifyBranch(scf::IfOp branch) {
  if (!branch.elseBlock() || branch.elseBlock()->without_terminator().empty())
    return success();
  llvm::MapVector<Use, Operation *> sides[] = {
      collectUses(branch.getThenRegion()), collectUses(branch.getElseRegion())};
  for (auto [mine, other] : {std::pair(0, 1), std::pair(1, 0)})
    for (auto &[use, op] : sides[mine]) {
      if (sides[other].contains(use))
        continue;
      auto channel = use.first.getDefiningOp<ChannelOp>();
      InFlightDiagnostic diagnostic =
          op->emitOpError("expected both sides of the branch to ")
          << (use.second == SlotDirection::Put ? "fill" : "take")
          << " slots of channel " << channel.getNameAttr()
          << ", got one: where the other one runs, the slot waits for ever";
      diagnostic.attachNote(branch.getLoc()) << "the branch";
      return diagnostic;
    }
  return success();
}

/// Of a slot that a CTA fills for the others they take by products, which are
/// awaited, and by loads of vectors, which the arrival in the other CTA orders
/// at CTA scope.
static LogicalResult verifyTakes(ChannelOp channel) {
  if (!channel.getTurn())
    return success();
  for (Operation *user : channel->getUsers()) {
    auto slot = dyn_cast<SlotOp>(user);
    if (!slot || slot.getDirection() == SlotDirection::Put ||
        slot->getParentOfType<RoleOp>()->hasAttr(
            WarpDialect::getAlternateCtasAttrName()))
      continue;
    for (Operation *taker : getViewUsers(slot)) {
      if (isa<WgmmaOp, VectorLoadOp>(taker))
        continue;
      InFlightDiagnostic diagnostic =
          taker->emitOpError(
              "expected products and loads of vectors alone to read slots of "
              "channel ")
          << channel.getNameAttr()
          << ", which CTAs fill for each other: the arrival in the other CTA "
             "is not ordered behind a load";
      diagnostic.attachNote(channel.getLoc()) << "the channel";
      return diagnostic;
    }
  }
  return success();
}

/// What is taken was filled: arrivals are for a slot, whatever its fields hold.
static LogicalResult verifyFilled(ChannelOp channel) {
  DenseSet<uint64_t> filled;
  SmallVector<SlotOp> takes;
  for (Operation *user : channel->getUsers())
    if (auto slot = dyn_cast<SlotOp>(user)) {
      if (slot.getDirection() == SlotDirection::Get)
        takes.push_back(slot);
      else if (!getViewUsers(slot).empty())
        filled.insert_range(getNamedFields(slot));
    }
  for (SlotOp slot : takes)
    if (!filled.contains(slot.getField())) {
      InFlightDiagnostic diagnostic =
          slot.emitOpError("expected a role that fills field ")
          << slot.getField() << " of channel " << channel.getNameAttr()
          << ", which is taken here, got none";
      diagnostic.attachNote(channel.getLoc()) << "the channel";
      return diagnostic;
    }
  return success();
}

namespace {
struct VerifyChannels
    : gdn::warp::impl::VerifyChannelsPassBase<VerifyChannels> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    for (auto channel : kernel.getBody().getOps<ChannelOp>())
      if (failed(verifyFilled(channel)) || failed(verifyTakes(channel)))
        return signalPassFailure();
    FailureOr<SmallVector<FencePlace>> places = findFencePlaces(kernel);
    if (failed(places))
      return signalPassFailure();
    for (const FencePlace &place : *places)
      if (failed(verifyFence(place)))
        return signalPassFailure();
    for (auto role : kernel.getBody().getOps<RoleOp>()) {
      if (role->hasAttr(WarpDialect::getAlternateCtasAttrName()))
        continue;
      if (role.walk([](scf::IfOp branch) {
                return failed(verifyBranch(branch)) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
              })
              .wasInterrupted())
        return signalPassFailure();
    }
    if (failed(simulateRoles(kernel)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
