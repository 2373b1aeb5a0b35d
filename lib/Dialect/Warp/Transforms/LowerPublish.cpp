//===- LowerPublish.cpp - Fragments for products of their own warpgroup
//----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

/// Stores the fragments below each other, or side by side where they are
/// transposed.
static void storeFragments(OpBuilder &b, PublishOp publish, Value view) {
  Location loc = publish.getLoc();
  auto type = cast<ViewType>(view.getType());
  bool isTransposed = publish.getTranspose();
  int64_t all = isTransposed ? type.getColumns() : type.getRows();
  int64_t first = 0;
  for (auto [number, fragment] : llvm::enumerate(publish.getFragments())) {
    bool isLast = number + 1 == publish.getFragments().size();
    DenseI64ArrayAttr rows = isLast ? publish.getRowsAttr() : nullptr;
    int64_t count = isLast ? all - first : format::kWgmmaRows;
    SmallVector<int64_t> shape{count, type.getColumns()};
    if (isTransposed)
      shape = {type.getRows(), count};
    int64_t byte = isTransposed ? first * type.getElementBytes() : 0;
    Value place = view;
    if (count != all)
      place = SliceOp::create(
          b, loc,
          ViewType::get(b.getContext(), shape, type.getElementType(),
                        type.getSwizzle(), type.getStride(),
                        type.getColumn() + byte % format::kPanelBytes),
          view, isTransposed ? 0 : first, isTransposed ? first : 0);
    FragmentStoreOp::create(b, loc, fragment, place, isTransposed, rows,
                            /*guarded=*/false);
    first += count;
  }
}

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
  storeFragments(b, publish, view);
  FenceOp::create(b, loc, FenceKind::Async);
  meet(b, loc, barrier);
  publish.replaceAllUsesWith(view);
  publish.erase();
  return success();
}

/// Whether the warps have met behind a fence, and nothing was stored since.
static bool haveMet(ShareOp share) {
  Operation *op = share->getPrevNode();
  while (op && isMemoryEffectFree(op))
    op = op->getPrevNode();
  return isa_and_present<SyncGroupOp>(op) &&
         isa_and_present<FenceOp>(op->getPrevNode());
}

static void lower(ShareOp share) {
  OpBuilder b(share);
  Location loc = share.getLoc();
  if (!haveMet(share)) {
    FenceOp::create(b, loc, FenceKind::Async);
    meet(b, loc, createBarrier(b, loc, createGroup(b, loc)));
  }
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
