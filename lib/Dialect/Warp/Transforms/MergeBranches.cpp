//===- MergeBranches.cpp - Branches on one condition become one -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_MERGEBRANCHESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;

/// Appends the ops of `from`, which may be null, to one side of `branch`.
static void append(Block *from, scf::IfOp branch, bool isThen) {
  if (!from)
    return;
  Block *to = isThen ? branch.thenBlock() : branch.elseBlock();
  if (!to) {
    branch.getElseRegion().takeBody(*from->getParent());
    return;
  }
  Operation *end = to->getTerminator();
  to->getOperations().splice(Block::iterator(end), from->getOperations(),
                             from->begin(),
                             from->getTerminator()->getIterator());
}

/// The next branch behind `branch` on the same condition, if nothing between
/// the two but ops without effects; those go to `between`.
static scf::IfOp findNext(scf::IfOp branch,
                          SmallVectorImpl<Operation *> &between) {
  for (Operation *op = branch->getNextNode(); op; op = op->getNextNode()) {
    auto next = dyn_cast<scf::IfOp>(op);
    if (next)
      return next.getCondition() == branch.getCondition() &&
                     next.getNumResults() == 0
                 ? next
                 : scf::IfOp();
    if (!isMemoryEffectFree(op) || op->getNumRegions())
      return {};
    between.push_back(op);
  }
  return {};
}

/// Takes what the next branches on its condition do into `branch`.
static void mergeNext(scf::IfOp branch) {
  if (branch.getNumResults() != 0)
    return;
  SmallVector<Operation *> between;
  while (scf::IfOp next = findNext(branch, between)) {
    for (Operation *op : between)
      op->moveBefore(branch);
    between.clear();
    append(next.thenBlock(), branch, /*isThen=*/true);
    append(next.elseBlock(), branch, /*isThen=*/false);
    next.erase();
  }
}

namespace {
struct MergeBranches : gdn::warp::impl::MergeBranchesPassBase<MergeBranches> {
  void runOnOperation() override {
    // Outer ones first: what they take may then stand side by side in them.
    getOperation()->walk<WalkOrder::PreOrder>([](Block *block) {
      for (auto it = block->begin(); it != block->end(); ++it)
        if (auto branch = dyn_cast<scf::IfOp>(*it))
          mergeNext(branch);
    });
  }
};
} // namespace
