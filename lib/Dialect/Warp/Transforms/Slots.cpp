//===- Slots.cpp - Who uses the views of a slot ---------------------------===//
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

SmallVector<Operation *> gdn::warp::getViewUsers(SlotOp slot) {
  SmallVector<Operation *> users;
  addViewUsers(slot.getResult(), users);
  return users;
}
