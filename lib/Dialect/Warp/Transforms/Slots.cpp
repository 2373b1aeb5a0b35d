//===- Slots.cpp - Who uses the views of a slot, and where fences belong --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

using namespace mlir;
using namespace mlir::gdn::warp;

static void addViewUsers(Value view, SmallVectorImpl<Operation *> &users) {
  for (Operation *user : view.getUsers()) {
    if (auto slice = dyn_cast<SliceOp>(user))
      addViewUsers(slice.getResult(), users);
    else
      users.push_back(user);
  }
}

bool gdn::warp::isSameSlot(SlotOp first, SlotOp later) {
  return first.getChannel() == later.getChannel() &&
         llvm::all_of(later->getOperands(), [&](Value operand) {
           return llvm::is_contained(first->getOperands(), operand);
         });
}

SmallVector<uint64_t> gdn::warp::getNamedFields(SlotOp slot) {
  auto channel = slot.getChannel().getDefiningOp<ChannelOp>();
  ArrayRef<Type> types = channel.getType().getFields();
  uint64_t ofChunk = types.size() / channel.getChunks(),
           first = slot.getField(), end = first + 1;
  // The fields of the V tiles follow each other.
  while (slot.getVTile() && end % ofChunk != 0 && types[end] == types[first])
    ++end;
  uint64_t last = slot.getChunk() ? types.size() : end;
  SmallVector<uint64_t> named;
  for (uint64_t chunk = 0; first + chunk < last; chunk += ofChunk)
    llvm::append_range(named, llvm::seq(first + chunk, end + chunk));
  return named;
}

SmallVector<Operation *> gdn::warp::getViewUsers(SlotOp slot) {
  SmallVector<Operation *> users;
  addViewUsers(slot.getResult(), users);
  return users;
}

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
  FencePlace &place =
      places[{slot->getBlock(), slot.getChannel(), slot.getIteration()}];
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
      if (isa<TmaLoadOp>(user))
        continue;
      Operation *&store = getPlace(last, slot).op;
      Operation *outer = slot->getBlock()->findAncestorOpInBlock(*user);
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
      Operation *outer = slot->getBlock()->findAncestorOpInBlock(*user);
      if (!copy || outer->isBeforeInBlock(copy))
        copy = outer;
    }
  });
  return first;
}

SmallVector<FencePlace> gdn::warp::findFencePlaces(KernelOp kernel) {
  FieldSet fenced = findFenced(kernel);
  SmallVector<FencePlace> places;
  auto add = [&](const PlaceMap &ops, bool isStore) {
    for (auto &[key, place] : ops)
      places.push_back({place.op, isStore, place.slot});
  };
  add(findLastStores(kernel, fenced), /*isStore=*/true);
  add(findFirstCopies(kernel, fenced), /*isStore=*/false);
  return places;
}
