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

static LogicalResult lower(PublishOp publish) {
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
    FenceOp::create(b, loc, FenceKind::Async);
    meet(b, loc, barrier);
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

static void lower(ShareOp share) {
  OpBuilder b(share);
  Location loc = share.getLoc();
  Operation *previous = findPrevious(share);
  // The warps may have met behind a fence, with nothing stored since.
  bool haveMet = isa_and_present<SyncGroupOp>(previous) &&
                 isAsyncFence(findPrevious(previous));
  if (!haveMet && !isAsyncFence(previous))
    FenceOp::create(b, loc, FenceKind::Async);
  if (!haveMet)
    meet(b, loc, createBarrier(b, loc, createGroup(b, loc)));
  share.replaceAllUsesWith(share.getView());
  share.erase();
}

namespace {
struct LowerPublish : gdn::warp::impl::LowerPublishPassBase<LowerPublish> {
  void runOnOperation() override {
    SmallVector<PublishOp> all;
    getOperation().walk([&](PublishOp publish) { all.push_back(publish); });
    for (PublishOp publish : all)
      if (failed(lower(publish)))
        return signalPassFailure();
    SmallVector<ShareOp> shares;
    getOperation().walk([&](ShareOp share) { shares.push_back(share); });
    for (ShareOp share : shares)
      lower(share);
  }
};
} // namespace
