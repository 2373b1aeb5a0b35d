//===- PrepareBufferization.cpp - What bufferization cannot know ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#define DEBUG_TYPE "gdn-tile-prepare-bufferization"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_PREPAREBUFFERIZATIONPASS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;
using bufferization::BufferizationDialect;

/// Callers keep their arrays: nothing is computed in place in an argument.
static void prepareInterface(func::FuncOp function) {
  Builder builder(function.getContext());
  for (BlockArgument argument : function.getArguments())
    if (isa<TensorType>(argument.getType()))
      function.setArgAttr(argument.getArgNumber(),
                          BufferizationDialect::kWritableAttrName,
                          builder.getBoolAttr(false));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    builder.getUnitAttr());
}

static void placeYield(OpOperand &yielded, BlockArgument argument);

/// Makes `value` be computed in the buffer of `argument`, by giving the ops
/// that lead to it that destination. Fails where one of them has no
/// destination.
static LogicalResult place(Value value, BlockArgument argument) {
  while (value != argument) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return failure();
    Operation *op = result.getOwner();
    OpOperand *init = nullptr;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned number = result.getResultNumber();
      placeYield(branch.thenYield()->getOpOperand(number), argument);
      placeYield(branch.elseYield()->getOpOperand(number), argument);
      return success();
    }
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
      init = destination.getTiedOpOperand(result);
    else if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
      init = loop.getTiedLoopInit(result);
    if (!init)
      return failure();
    if (init->get().getDefiningOp<tensor::EmptyOp>()) {
      init->set(argument);
      return success();
    }
    value = init->get();
  }
  return success();
}

/// Has a yielded tile written into the buffer of `argument`: in place if the
/// ops that compute it allow that, by a copy otherwise.
static void placeYield(OpOperand &yielded, BlockArgument argument) {
  if (succeeded(place(yielded.get(), argument)))
    return;
  OpBuilder builder(yielded.getOwner());
  auto written = bufferization::MaterializeInDestinationOp::create(
      builder, yielded.getOwner()->getLoc(), yielded.get(), argument);
  yielded.set(written.getResult());
}

/// Keeps each tile that a loop carries in one buffer.
static void yieldInPlace(ValueRange arguments,
                         MutableArrayRef<OpOperand> yielded) {
  for (auto [carried, operand] : llvm::zip(arguments, yielded))
    if (isa<RankedTensorType>(carried.getType()))
      placeYield(operand, cast<BlockArgument>(carried));
}

namespace {
struct PrepareBufferization
    : gdn::tile::impl::PrepareBufferizationPassBase<PrepareBufferization> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isPublic() && !function.isExternal())
        prepareInterface(function);
      if (!function->hasAttr(TileDialect::getProgramAttrName()))
        continue;
      function.walk([](scf::ForOp loop) {
        yieldInPlace(loop.getRegionIterArgs(), *loop.getYieldedValuesMutable());
      });
      function.walk([](scf::WhileOp loop) {
        scf::ConditionOp condition = loop.getConditionOp();
        if (llvm::equal(condition.getArgs(), loop.getBeforeArguments()))
          yieldInPlace(loop.getAfterArguments(),
                       loop.getYieldOp()->getOpOperands());
      });
    }
  }
};
} // namespace
