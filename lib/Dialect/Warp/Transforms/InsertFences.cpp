//===- InsertFences.cpp - Order accesses before async ones
//-----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FencePlaces.h"

#include "gdn/Dialect/Warp/Transforms/Passes.h"

#define DEBUG_TYPE "gdn-warp-insert-fences"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_INSERTFENCESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {
struct InsertFences : gdn::warp::impl::InsertFencesPassBase<InsertFences> {
  void runOnOperation() override {
    FailureOr<SmallVector<FencePlace>> places = findFencePlaces(getOperation());
    if (failed(places))
      return signalPassFailure();
    OpBuilder b(&getContext());
    for (const FencePlace &place : *places) {
      if (!place.isBehind())
        b.setInsertionPoint(place.op);
      else if (isAsyncFence(place.op->getNextNode()))
        continue;
      else
        b.setInsertionPointAfter(place.op);
      FenceOp::create(b, place.op->getLoc(), FenceKind::Async);
    }
  }
};
} // namespace
