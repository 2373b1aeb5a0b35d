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

/// True if `value` is `argument` after a chain of writes into it, so that it
/// is in its buffer anyway.
static bool isWrittenInPlace(Value value, BlockArgument argument) {
  while (value != argument) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return false;
    if (auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner())) {
      value = op.getTiedOpOperand(result)->get();
      continue;
    }
    auto loop = dyn_cast<LoopLikeOpInterface>(result.getOwner());
    OpOperand *init = loop ? loop.getTiedLoopInit(result) : nullptr;
    if (!init)
      return false;
    value = init->get();
  }
  return true;
}

/// Writes each yielded tile into the buffer of the argument that carries it.
static void yieldInPlace(ValueRange arguments,
                         MutableArrayRef<OpOperand> yielded) {
  if (yielded.empty())
    return;
  Operation *yield = yielded.front().getOwner();
  OpBuilder builder(yield);
  for (auto [carried, operand] : llvm::zip(arguments, yielded)) {
    auto argument = cast<BlockArgument>(carried);
    if (!isa<RankedTensorType>(argument.getType()) ||
        isWrittenInPlace(operand.get(), argument))
      continue;
    auto written = bufferization::MaterializeInDestinationOp::create(
        builder, yield->getLoc(), operand.get(), argument);
    operand.set(written.getResult());
  }
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
