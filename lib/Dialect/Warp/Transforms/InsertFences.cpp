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

namespace {
struct InsertFences : gdn::warp::impl::InsertFencesPassBase<InsertFences> {
  void runOnOperation() override {
    OpBuilder b(&getContext());
    for (auto [place, isStore, slot] : findFencePlaces(getOperation())) {
      if (isStore)
        b.setInsertionPointAfter(place);
      else
        b.setInsertionPoint(place);
      FenceOp::create(b, place->getLoc(), FenceKind::Async);
    }
  }
};
} // namespace
