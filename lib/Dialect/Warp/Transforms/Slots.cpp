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
    if (auto slice = dyn_cast<SliceOp>(user)) {
      addViewUsers(slice.getResult(), users);
      continue;
    }
    users.push_back(user);
    if (auto share = dyn_cast<ShareOp>(user))
      addViewUsers(share.getResult(), users);
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
