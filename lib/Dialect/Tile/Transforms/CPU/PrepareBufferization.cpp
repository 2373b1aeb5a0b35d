//===- PrepareBufferization.cpp - What bufferization cannot know ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandRows.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#define DEBUG_TYPE "gdn-tile-prepare-bufferization"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_PREPAREBUFFERIZATIONPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;
using bufferization::BufferizationDialect;

/// Drops what the gdn dialect notes of an argument or a result: programs have
/// been written by it, and memref descriptors say the rest.
static SmallVector<NamedAttribute> withoutNotes(ArrayRef<NamedAttribute> all) {
  return llvm::filter_to_vector(all, [](NamedAttribute attribute) {
    return attribute.getName().strref().split('.').first != "gdn";
  });
}

static void dropNotes(FunctionOpInterface function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.setArgAttrs(i, withoutNotes(function.getArgAttrs(i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.setResultAttrs(i, withoutNotes(function.getResultAttrs(i)));
}

/// Callers keep their arrays: nothing is computed in place in an argument,
/// unless the function says so.
static void prepareInterface(func::FuncOp function) {
  dropNotes(function);
  Builder builder(function.getContext());
  for (BlockArgument argument : function.getArguments())
    if (isa<TensorType>(argument.getType()) &&
        !function.getArgAttr(argument.getArgNumber(),
                             BufferizationDialect::kWritableAttrName))
      function.setArgAttr(argument.getArgNumber(),
                          BufferizationDialect::kWritableAttrName,
                          builder.getBoolAttr(false));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    builder.getUnitAttr());
}

static void placeYield(OpOperand &yielded, BlockArgument argument);

/// True if nothing in the block of `op` reads `value` behind it.
static bool isLastUser(Operation *op, Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return !ancestor || ancestor == op || ancestor->isBeforeInBlock(op);
  });
}

/// Moves `op` down to its user, but not behind the copies that end an
/// iteration.
static void sink(Operation *op, Operation *user) {
  Operation *next = op->getNextNode();
  while (next != user && !isa<bufferization::MaterializeInDestinationOp>(next))
    next = next->getNextNode();
  op->moveBefore(next);
}

/// Makes the ops that lead to `value` compute it in the buffer of `argument`,
/// as far as they have a destination to give. Returns true if it is there for
/// certain: after the loops of our own that fill a tile row by row.
static bool place(Value value, BlockArgument argument) {
  bool isCertain = true;
  while (value != argument) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return false;
    Operation *op = result.getOwner();
    OpOperand *init = nullptr;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (!isLastUser(op, argument))
        return false;
      for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
        placeYield(yield->getOpOperand(result.getResultNumber()), argument);
      return true;
    }
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
      init = destination.getTiedOpOperand(result);
    else if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
      init = loop.getTiedLoopInit(result);
    if (!init)
      return false;
    if (isa<linalg::LinalgOp>(op)) {
      isCertain = false;
      // Readers of the old tile should come before it is overwritten.
      if (value.hasOneUse() && value.user_begin()->getBlock() == op->getBlock())
        sink(op, *value.user_begin());
    }
    if (init->get().getDefiningOp<tensor::EmptyOp>()) {
      init->set(argument);
      isCertain = false;
    }
    value = init->get();
  }
  return isCertain;
}

/// Has a yielded tile written into the buffer of `argument`. The copy that says
/// so is none if the tile was computed there; bufferization then drops it.
static void placeYield(OpOperand &yielded, BlockArgument argument) {
  if (place(yielded.get(), argument))
    return;
  Location loc = yielded.getOwner()->getLoc();
  Value value = yielded.get();
  if (auto other = dyn_cast<BlockArgument>(value)) {
    // Tiles that change places: each is copied before one is overwritten.
    auto builder = OpBuilder::atBlockBegin(other.getOwner());
    value = bufferization::AllocTensorOp::create(
        builder, loc, cast<RankedTensorType>(other.getType()), ValueRange{},
        /*copy=*/other);
  }
  OpBuilder builder(yielded.getOwner());
  auto written = bufferization::MaterializeInDestinationOp::create(
      builder, loc, value, argument);
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
      copyExpandedRows(function);
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
