//===- InsertFences.cpp - Order stores before async readers ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include "gdn/Dialect/Warp/Transforms/Passes.h"

#define DEBUG_TYPE "gdn-warp-insert-fences"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_INSERTFENCESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Fields that products or copies read: through the async proxy.
static DenseSet<std::pair<Value, uint64_t>> findAsyncFields(KernelOp kernel) {
  DenseSet<std::pair<Value, uint64_t>> fields;
  kernel.walk([&](SlotOp slot) {
    if (slot.getDirection() != SlotDirection::Get)
      return;
    for (Operation *user : getViewUsers(slot))
      if (isa<ProductOp, FlushOp>(user))
        fields.insert({slot.getChannel(), slot.getField()});
  });
  return fields;
}

namespace {
struct InsertFences : gdn::warp::impl::InsertFencesPassBase<InsertFences> {
  void runOnOperation() override {
    DenseSet<std::pair<Value, uint64_t>> async =
        findAsyncFields(getOperation());
    // Of each block and channel the last store that needs a fence behind it.
    llvm::MapVector<std::pair<Block *, Value>, Operation *> last;
    getOperation().walk([&](SlotOp slot) {
      if (slot.getDirection() != SlotDirection::Put ||
          !async.contains({slot.getChannel(), slot.getField()}))
        return;
      for (Operation *user : getViewUsers(slot)) {
        if (isa<FetchOp>(user))
          continue;
        Operation *&store = last[{slot->getBlock(), slot.getChannel()}];
        Operation *outer = slot->getBlock()->findAncestorOpInBlock(*user);
        if (!store || store->isBeforeInBlock(outer))
          store = outer;
      }
    });
    for (auto &[key, store] : last) {
      OpBuilder b(store->getContext());
      b.setInsertionPointAfter(store);
      FenceOp::create(b, store->getLoc(), FenceKind::Async);
    }
  }
};
} // namespace
