//===- HoistScalars.cpp - Load the scalars of a slot together -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_HOISTSCALARSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// The slot that `load` reads, if both stand in `block` and the place in it is
/// known outside; null otherwise.
static SlotOp findSlot(LoadOp load, Block *block) {
  auto slot = load.getView().getDefiningOp<SlotOp>();
  bool isKnown = llvm::none_of(load.getIndices(), [&](Value index) {
    return index.getParentBlock() == block;
  });
  return slot && slot->getBlock() == block && isKnown ? slot : SlotOp();
}

/// Moves the loads of a block behind the first ones of their slots.
static void hoistScalars(Block *block) {
  // Of each slot the field that is loaded first, and its last load so far.
  SmallVector<std::pair<SlotOp, LoadOp>> slots;
  for (Operation &op : llvm::make_early_inc_range(*block)) {
    auto load = dyn_cast<LoadOp>(op);
    SlotOp slot = load ? findSlot(load, block) : SlotOp();
    if (!slot)
      continue;
    auto *known = llvm::find_if(
        slots, [&](auto &other) { return isSameSlot(other.first, slot); });
    if (known == slots.end()) {
      slots.emplace_back(slot, load);
      continue;
    }
    load->moveAfter(known->second);
    if (load->isBeforeInBlock(slot))
      slot->moveBefore(load);
    known->second = load;
  }
}

namespace {
struct HoistScalars : gdn::warp::impl::HoistScalarsPassBase<HoistScalars> {
  void runOnOperation() override {
    getOperation()->walk([](Block *block) { hoistScalars(block); });
  }
};
} // namespace
