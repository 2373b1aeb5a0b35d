//===- ExpandCopies.cpp - Copies between strided buffers become linalg ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#define DEBUG_TYPE "gdn-tile-expand-copies"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_EXPANDCOPIESPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;

/// True if a copy from or to `type` may be one block of memory.
static bool isDense(BaseMemRefType type) {
  auto ranked = dyn_cast<MemRefType>(type);
  return ranked && ranked.getLayout().isIdentity();
}

namespace {
struct ExpandCopies : gdn::tile::impl::ExpandCopiesPassBase<ExpandCopies> {
  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) {
      auto source = cast<BaseMemRefType>(copy.getSource().getType());
      auto target = cast<BaseMemRefType>(copy.getTarget().getType());
      if (source.hasRank() && target.hasRank() &&
          !(isDense(source) && isDense(target)))
        copies.push_back(copy);
    });
    for (memref::CopyOp copy : copies) {
      OpBuilder builder(copy);
      linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
      copy.erase();
    }
  }
};
} // namespace
