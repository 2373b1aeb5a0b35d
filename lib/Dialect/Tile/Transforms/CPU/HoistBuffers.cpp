//===- HoistBuffers.cpp - Tile buffers once a work item -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#define DEBUG_TYPE "gdn-tile-hoist-buffers"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_HOISTBUFFERSPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// True if a loop around the buffer hands it on to its next iteration, where a
/// second one must exist beside it.
static bool isCarried(memref::AllocOp alloc, BufferViewFlowAnalysis &flow) {
  return llvm::any_of(flow.resolve(alloc.getMemref()), [&](Value alias) {
    auto argument = dyn_cast<BlockArgument>(alias);
    Operation *parent = argument ? argument.getOwner()->getParentOp() : nullptr;
    return isa_and_nonnull<LoopLikeOpInterface>(parent) &&
           parent->isProperAncestor(alloc);
  });
}

namespace {
struct HoistBuffers : gdn::tile::impl::HoistBuffersPassBase<HoistBuffers> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(TileDialect::getProgramAttrName()) ||
        function.isExternal())
      return;
    // Buffer deallocation, which follows, insists on placing all of them.
    function.walk([](memref::DeallocOp dealloc) { dealloc.erase(); });
    BufferViewFlowAnalysis flow(function);
    SmallVector<memref::AllocOp> allocs;
    function.walk([&](memref::AllocOp alloc) {
      if (alloc.getType().hasStaticShape() && !isCarried(alloc, flow))
        allocs.push_back(alloc);
    });
    Block &entry = function.getBody().front();
    for (memref::AllocOp alloc : llvm::reverse(allocs))
      alloc->moveBefore(&entry, entry.begin());
  }
};
} // namespace
