//===- CloneLikelyPath.cpp - The usual way through a loop's body ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_CLONELIKELYPATHPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;

static bool isLikely(scf::IfOp branch) {
  auto likely = branch->getAttrOfType<BoolAttr>(
      gdn::warp::WarpDialect::getLikelyAttrName());
  return likely && likely.getValue();
}

namespace {
/// The likely branches of a loop's body outside of inner loops, as far as their
/// conditions are known at `place`, the op of the body that holds the first.
struct LikelyBranches {
  explicit LikelyBranches(Block &body);

  Operation *place = nullptr;
  SmallVector<scf::IfOp> branches;
};
} // namespace

LikelyBranches::LikelyBranches(Block &body) {
  IRRewriter rewriter(body.getParentOp()->getContext());
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op))
      return WalkResult::skip();
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || !isLikely(branch))
      return WalkResult::advance();
    Operation *first = place ? place : body.findAncestorOpInBlock(*op);
    if (succeeded(
            moveValueDefinitions(rewriter, branch.getCondition(), first))) {
      place = first;
      branches.push_back(branch);
    }
    return WalkResult::advance();
  });
}

/// Replaces `branch` by what it does if taken.
static void inlineTaken(scf::IfOp branch) {
  IRRewriter rewriter(branch);
  scf::YieldOp yield = branch.thenYield();
  rewriter.inlineBlockBefore(branch.thenBlock(), branch);
  rewriter.replaceOp(branch, yield.getOperands());
  rewriter.eraseOp(yield);
}

/// Whether all of `branches` are taken.
static Value areTaken(ImplicitLocOpBuilder &b, ArrayRef<scf::IfOp> branches) {
  llvm::SmallSetVector<Value, 4> conditions;
  for (scf::IfOp branch : branches)
    conditions.insert(branch.getCondition());
  Value all = conditions.front();
  for (Value condition : llvm::drop_begin(conditions))
    all = arith::AndIOp::create(b, all, condition);
  return all;
}

/// Gives the rest of the loop's body from the first of its likely branches on a
/// copy for where all of them are taken.
static void separate(scf::ForOp loop) {
  Block &body = *loop.getBody();
  LikelyBranches likely(body);
  if (likely.branches.empty())
    return;
  ImplicitLocOpBuilder b(loop.getLoc(), likely.place);
  Operation *yield = body.getTerminator();
  auto choice =
      scf::IfOp::create(b, yield->getOperandTypes(),
                        areTaken(b, likely.branches), /*withElseRegion=*/true);
  // In what is left no branch is likelier than another.
  for (scf::IfOp branch : likely.branches)
    branch->removeAttr(gdn::warp::WarpDialect::getLikelyAttrName());
  auto rest =
      llvm::make_range(std::next(choice->getIterator()), yield->getIterator());
  IRMapping map;
  b.setInsertionPointToStart(choice.thenBlock());
  for (Operation &op : rest)
    b.clone(op, map);
  SmallVector<Value> values(yield->getOperands());
  if (!values.empty()) {
    scf::YieldOp::create(b, llvm::map_to_vector(values, [&](Value value) {
                           return map.lookupOrDefault(value);
                         }));
    b.setInsertionPointToEnd(choice.elseBlock());
    scf::YieldOp::create(b, values);
  }
  Block *other = choice.elseBlock();
  other->getOperations().splice(other->begin(), body.getOperations(),
                                rest.begin(), rest.end());
  yield->setOperands(choice.getResults());
  // Inner ones first: an outer one may go with what holds them.
  for (scf::IfOp branch : llvm::reverse(likely.branches))
    inlineTaken(cast<scf::IfOp>(map.lookup(branch.getOperation())));
}

namespace {
struct CloneLikelyPath
    : gdn::warp::impl::CloneLikelyPathPassBase<CloneLikelyPath> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    if (getOperation()->removeAttr(
            gdn::warp::WarpDialect::getCloneLikelyPathAttrName()))
      getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      separate(loop);
    getOperation()->walk([](gdn::warp::WgmmaOp product) {
      if (auto branch = dyn_cast<scf::IfOp>(product->getParentOp()))
        branch->removeAttr(gdn::warp::WarpDialect::getLikelyAttrName());
    });
  }
};
} // namespace
