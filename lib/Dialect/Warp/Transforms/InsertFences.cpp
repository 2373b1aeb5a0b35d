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

using Field = std::pair<Value, uint64_t>;

/// Fields that products read, or that go to other CTAs: all of a slot does.
static DenseSet<Field> findFields(KernelOp kernel) {
  DenseSet<Field> fields;
  kernel.walk([&](SlotOp slot) {
    bool isRead = slot.getDirection() == SlotDirection::Get &&
                  llvm::any_of(getViewUsers(slot), llvm::IsaPred<ProductOp>);
    if (isRead ||
        llvm::any_of(slot.getChannel().getUsers(), llvm::IsaPred<ShareOp>))
      fields.insert({slot.getChannel(), slot.getField()});
  });
  return fields;
}

/// Behind the last store of a block and channel to these fields. Many warps
/// wait for a product, or for another CTA's copy: who stored pays, not they.
static void insertBehindStores(KernelOp kernel, const DenseSet<Field> &fenced) {
  llvm::MapVector<std::pair<Block *, Value>, Operation *> last;
  kernel.walk([&](SlotOp slot) {
    if (slot.getDirection() != SlotDirection::Put ||
        !fenced.contains({slot.getChannel(), slot.getField()}))
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

/// Before the first copy of a block and channel out of fields that no fence
/// stands behind: the one warp that copies has time, those that stored have
/// none.
static void insertBeforeCopies(KernelOp kernel, const DenseSet<Field> &fenced) {
  llvm::MapVector<std::pair<Block *, Value>, Operation *> first;
  kernel.walk([&](SlotOp slot) {
    if (slot.getDirection() != SlotDirection::Get ||
        fenced.contains({slot.getChannel(), slot.getField()}))
      return;
    for (Operation *user : getViewUsers(slot)) {
      if (!isa<FlushOp>(user))
        continue;
      Operation *&copy = first[{slot->getBlock(), slot.getChannel()}];
      Operation *outer = slot->getBlock()->findAncestorOpInBlock(*user);
      if (!copy || outer->isBeforeInBlock(copy))
        copy = outer;
    }
  });
  for (auto &[key, copy] : first) {
    OpBuilder b(copy);
    FenceOp::create(b, copy->getLoc(), FenceKind::Async);
  }
}

namespace {
struct InsertFences : gdn::warp::impl::InsertFencesPassBase<InsertFences> {
  void runOnOperation() override {
    DenseSet<Field> fenced = findFields(getOperation());
    insertBehindStores(getOperation(), fenced);
    insertBeforeCopies(getOperation(), fenced);
  }
};
} // namespace
