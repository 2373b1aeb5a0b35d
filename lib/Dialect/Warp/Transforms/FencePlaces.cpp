//===- FencePlaces.cpp - Where accesses to slots need a fence -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FencePlaces.h"

#include "ChannelVisits.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::gdn::warp;

bool gdn::warp::isAsyncFence(Operation *op) {
  auto fence = dyn_cast_if_present<FenceOp>(op);
  return fence && fence.getKind() == FenceKind::Async;
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

namespace {
using Field = std::pair<Value, uint64_t>;
using FieldSet = DenseSet<Field>;
/// An op for each slot of a channel that a block names.
using PlaceMap = llvm::MapVector<std::tuple<Block *, Value, Value>, FencePlace>;
} // namespace

/// Fields that products read, or that go to other CTAs: all of a slot does.
static FieldSet findFenced(KernelOp kernel) {
  FieldSet fields;
  kernel.walk([&](SlotOp slot) {
    bool isRead = slot.getDirection() == SlotDirection::Get &&
                  llvm::any_of(getViewUsers(slot), llvm::IsaPred<WgmmaOp>);
    if (isRead || llvm::any_of(slot.getChannel().getUsers(),
                               llvm::IsaPred<CopyToClusterOp>))
      for (uint64_t field : getNamedFields(slot))
        fields.insert({slot.getChannel(), field});
  });
  return fields;
}

static auto isIn(const FieldSet &fields, SlotOp slot) {
  return [&fields, slot](uint64_t field) mutable {
    return fields.contains({slot.getChannel(), field});
  };
}

static FencePlace &getPlace(PlaceMap &places, SlotOp slot) {
  FencePlace &place = places[{findWholeBlock(slot->getBlock()),
                              slot.getChannel(), slot.getIteration()}];
  if (!place.slot || slot->isBeforeInBlock(place.slot))
    place.slot = slot;
  return place;
}

/// The last store of each block and slot to these fields. Many warps wait
/// for a product, or for another CTA's copy: who stored pays, not they.
static PlaceMap findLastStores(KernelOp kernel, const FieldSet &fenced) {
  PlaceMap last;
  kernel.walk([&](SlotOp slot) {
    if (slot.getDirection() != SlotDirection::Put ||
        llvm::none_of(getNamedFields(slot), isIn(fenced, slot)))
      return;
    for (Operation *user : getViewUsers(slot)) {
      if (isa<TmaLoadOp, ShareOp, WgmmaOp>(user))
        continue;
      Operation *&store = getPlace(last, slot).op;
      Operation *outer =
          findWholeBlock(slot->getBlock())->findAncestorOpInBlock(*user);
      if (!store || store->isBeforeInBlock(outer))
        store = outer;
    }
  });
  return last;
}

/// The first copy of each block and slot out of fields that no fence stands
/// behind: the one warp that copies has time, those that stored have none.
static PlaceMap findFirstCopies(KernelOp kernel, const FieldSet &fenced) {
  PlaceMap first;
  kernel.walk([&](SlotOp slot) {
    if (slot.getDirection() != SlotDirection::Get ||
        llvm::all_of(getNamedFields(slot), isIn(fenced, slot)))
      return;
    for (Operation *user : getViewUsers(slot)) {
      if (!isa<TmaStoreOp>(user))
        continue;
      Operation *&copy = getPlace(first, slot).op;
      Operation *outer =
          findWholeBlock(slot->getBlock())->findAncestorOpInBlock(*user);
      if (!copy || outer->isBeforeInBlock(copy))
        copy = outer;
    }
  });
  return first;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Whether a product behind `load` and not behind `end`, which may be around
/// both, takes all of what `load` gives, as an operand or as what it adds to:
/// it begins when the registers are there.
static bool isTakenByProduct(Operation *load, Operation *end) {
  if (load->getNumResults() != 1)
    return false;
  Block *block = load->getBlock();
  SmallVector<Value> open = {load->getResult(0)};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (user->getBlock() != block ||
          (end->getBlock() == block && end->isBeforeInBlock(user)))
        continue;
      if (auto product = dyn_cast<WgmmaOp>(user);
          product && llvm::is_contained(product->getOperands(), value))
        return true;
      bool keepsAll = user->hasTrait<OpTrait::Elementwise>() ||
                      isa<linalg::BroadcastOp>(user);
      if (keepsAll && isMemoryEffectFree(user) && user->getNumResults() == 1)
        open.push_back(user->getResult(0));
    }
  }
  return false;
}

/// Whether the threads of a visit load from the slot, and may still wait for
/// the values where the visit ends.
static bool mayLoadAtEnd(const Visit &visit) {
  for (SlotOp slot : visit.slots)
    for (Operation *user : getViewUsers(slot))
      if (!isa<WgmmaOp, TmaStoreOp>(user) &&
          !isTakenByProduct(user, visit.last))
        return true;
  return false;
}

/// Ends of visits that load from slots which copies fill next. An arrival
/// orders a thread's loads before other threads' accesses, but not before those
/// of the async proxy: on an H200 a load that waits behind stores to memory has
/// read what the next copy brought.
static LogicalResult addLoads(KernelOp kernel,
                              SmallVectorImpl<FencePlace> &places) {
  for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
    ChannelVisits uses(channel, /*lanesArrive=*/false);
    if (failed(uses.collect()))
      return failure();
    bool isCopied = !uses.shares.empty();
    for (auto &[key, visit] : uses.visits)
      isCopied |= visit.fetched > 0;
    for (auto &[key, visit] : uses.visits)
      if (isCopied && std::get<SlotDirection>(key) == SlotDirection::Get &&
          !isAsyncFence(visit.last) && mayLoadAtEnd(visit))
        places.push_back(
            {visit.last, FenceReason::LoadsBeforeRefill, visit.slots.front()});
  }
  return success();
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<FencePlace>> gdn::warp::findFencePlaces(KernelOp kernel) {
  FieldSet fenced = findFenced(kernel);
  SmallVector<FencePlace> places;
  auto add = [&](const PlaceMap &ops, FenceReason reason) {
    for (auto &[key, place] : ops)
      places.push_back({place.op, reason, place.slot});
  };
  add(findLastStores(kernel, fenced), FenceReason::StoresBeforeReads);
  add(findFirstCopies(kernel, fenced), FenceReason::StoresBeforeCopies);
  if (failed(addLoads(kernel, places)))
    return failure();
  return places;
}
