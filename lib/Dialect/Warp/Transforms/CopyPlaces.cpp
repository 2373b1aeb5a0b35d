//===- CopyPlaces.cpp - Where slots are copied to other CTAs --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChannelVisits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn::warp;

/// Whether a copy may stand behind `op`: it waits for nothing, but for the
/// warps of its group.
static bool mayPass(Operation *op) {
  if (isa<FenceOp, SyncGroupOp, WgmmaFenceOp, WgmmaOp, WgmmaCommitOp>(op))
    return true;
  return isMemoryEffectFree(op) && !isa<SlotOp, WgmmaWaitOp>(op);
}

Operation *ChannelVisits::findCopyPlace(CopyToClusterOp copy) {
  Operation *guard = copy->getParentOp();
  auto role = copy->getParentOfType<RoleOp>();
  if (!role->hasAttr(WarpDialect::getHandOnEarlyAttrName()) ||
      !isa<scf::IfOp>(guard) ||
      !llvm::hasSingleElement(guard->getRegion(0).front().without_terminator()))
    return nullptr;
  Operation *place = nullptr;
  for (auto &[key, visit] : visits)
    if (std::get<SlotDirection>(key) == SlotDirection::Put && visit.closes &&
        std::get<Value>(key) == copy.getIteration())
      place = guard->getBlock()->findAncestorOpInBlock(*visit.last);
  if (!place)
    return nullptr;
  do
    place = place->getNextNode();
  while (place != guard && mayPass(place));
  return place;
}

void gdn::warp::hoistGuard(Operation *guard, Operation *place) {
  if (!place || place == guard)
    return;
  for (Value operand : guard->getOperands())
    if (Operation *op = operand.getDefiningOp();
        op && op->getBlock() == place->getBlock() &&
        !op->isBeforeInBlock(place))
      hoistGuard(op, place);
  guard->moveBefore(place);
}
