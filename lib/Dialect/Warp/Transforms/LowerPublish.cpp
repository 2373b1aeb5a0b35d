//===- LowerPublish.cpp - Fragments for products of their own warpgroup ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FencePlaces.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#define DEBUG_TYPE "gdn-warp-lower-publish"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_LOWERPUBLISHPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// The number of the warpgroup that runs what `b` writes.
static Value createGroup(OpBuilder &b, Location loc) {
  return arith::DivUIOp::create(
      b, loc, IdOp::create(b, loc, IdKind::Warp),
      arith::ConstantIndexOp::create(b, loc, format::kWarpgroupWarps));
}

/// The barrier of a warpgroup. Barrier 0 is that of the CTA.
static Value createBarrier(OpBuilder &b, Location loc, Value group) {
  return arith::IndexCastOp::create(
      b, loc, b.getI32Type(),
      arith::AddIOp::create(b, loc, group,
                            arith::ConstantIndexOp::create(b, loc, 1)));
}

/// The warps of a warpgroup wait for each other.
static void meet(OpBuilder &b, Location loc, Value barrier) {
  SyncGroupOp::create(b, loc, barrier,
                      format::kWarpgroupWarps * format::kWarpThreads);
}

namespace {
/// Tiles for whose products the warps have not met yet. What several store one
/// after the other takes one meeting, in front of the first op that takes any
/// of them.
class Pending {
public:
  /// Whether the warps meet behind `made`, the next tile of its block: for it
  /// and for those before it. Else they meet for another tile behind it.
  bool meetsBehind(Operation *made);

private:
  /// The ops that take the tiles, by block.
  DenseMap<Block *, SmallVector<Operation *>> takers;
};
} // namespace

/// Adds what takes `view`, a slice of it, or what it is shared as.
static void collectTakers(Value view, SmallVectorImpl<Operation *> &takers) {
  for (Operation *user : view.getUsers()) {
    if (isa<SliceOp, ShareOp>(user))
      collectTakers(user->getResult(0), takers);
    else
      takers.push_back(user);
  }
}

bool Pending::meetsBehind(Operation *made) {
  SmallVector<Operation *> &known = takers[made->getBlock()];
  collectTakers(made->getResult(0), known);
  for (Operation *op = made->getNextNode(); op; op = op->getNextNode()) {
    auto publish = dyn_cast<PublishOp>(op);
    if (isa<ShareOp>(op) || (publish && !publish.getFragments().empty()))
      return false;
    if (llvm::any_of(known,
                     [&](Operation *taker) { return op->isAncestor(taker); }))
      break;
  }
  known.clear();
  return true;
}

static LogicalResult lower(PublishOp publish, Pending &pending) {
  auto place = publish->getAttrOfType<DenseI64ArrayAttr>(
      WarpDialect::getScratchAttrName());
  if (!place)
    return publish.emitOpError("expected a place in shared memory in ")
           << WarpDialect::getScratchAttrName()
           << " (gdn-warp-allocate-shared)";
  OpBuilder b(publish);
  Location loc = publish.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value group = createGroup(b, loc);
  Value offset = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, group, constant(place[1])),
      constant(place[0]));
  Value barrier = createBarrier(b, loc, group);
  Value view = ViewOp::create(b, loc, publish.getType(), offset);
  meet(b, loc, barrier);
  if (!publish.getFragments().empty()) {
    publish.storeTo(b, view);
    if (pending.meetsBehind(publish)) {
      FenceOp::create(b, loc, FenceKind::Async);
      meet(b, loc, barrier);
    }
  }
  publish.replaceAllUsesWith(view);
  publish.erase();
  return success();
}

/// The op with an effect before `op`.
static Operation *findPrevious(Operation *op) {
  do
    op = op->getPrevNode();
  while (op && isMemoryEffectFree(op));
  return op;
}

static void lower(ShareOp share, Pending &pending) {
  OpBuilder b(share);
  Location loc = share.getLoc();
  if (pending.meetsBehind(share)) {
    if (!isAsyncFence(findPrevious(share)))
      FenceOp::create(b, loc, FenceKind::Async);
    meet(b, loc, createBarrier(b, loc, createGroup(b, loc)));
  }
  share.replaceAllUsesWith(share.getView());
  share.erase();
}

namespace {
struct LowerPublish : gdn::warp::impl::LowerPublishPassBase<LowerPublish> {
  void runOnOperation() override {
    SmallVector<Operation *> made;
    getOperation().walk([&](Operation *op) {
      if (isa<PublishOp, ShareOp>(op))
        made.push_back(op);
    });
    Pending pending;
    for (Operation *op : made) {
      if (auto share = dyn_cast<ShareOp>(op))
        lower(share, pending);
      else if (failed(lower(cast<PublishOp>(op), pending)))
        return signalPassFailure();
    }
  }
};
} // namespace
