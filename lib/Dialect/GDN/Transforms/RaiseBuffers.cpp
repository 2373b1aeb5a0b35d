//===- RaiseBuffers.cpp - From the buffer form back to tensors ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

#define DEBUG_TYPE "gdn-raise-buffers"

namespace mlir::gdn {
#define GEN_PASS_DEF_RAISEBUFFERSPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// Replaces a layer op on memrefs with one on tensors. Each memref is wrapped
/// once, whatever operands it is: two `restrict` tensors of one buffer would
/// be a lie. A pool, which is one of `outs` too, may be written.
template <typename LayerOp>
static void raise(RewriterBase &rewriter, LayerOp op) {
  if (op.getOuts().empty())
    return;
  rewriter.setInsertionPoint(op);
  SmallVector<Value> outs(op.getOuts());
  OperandRange inputs = op->getOperands().drop_back(outs.size());
  DenseMap<Value, Value> tensors;
  SmallVector<Value> operands;
  for (Value input : inputs) {
    auto type = dyn_cast<MemRefType>(input.getType());
    if (!type) {
      operands.push_back(input);
      continue;
    }
    Value &tensor = tensors[input];
    if (!tensor)
      tensor = bufferization::ToTensorOp::create(
          rewriter, op.getLoc(),
          RankedTensorType::get(type.getShape(), type.getElementType()), input,
          /*restrict=*/true,
          /*writable=*/llvm::is_contained(outs, input));
    operands.push_back(tensor);
  }
  SmallVector<Type> types = llvm::map_to_vector(outs, [](Value out) -> Type {
    auto type = cast<MemRefType>(out.getType());
    return RankedTensorType::get(type.getShape(), type.getElementType());
  });
  OperationState state(op.getLoc(), op->getName(), operands, types,
                       op->getDiscardableAttrDictionary().getValue());
  typename LayerOp::Properties properties = op.getProperties();
  // The last segment is `outs`.
  properties.operandSegmentSizes.back() = 0;
  state.useProperties(properties);
  Operation *raised = rewriter.create(state);
  for (auto [result, out] : llvm::zip(raised->getResults(), outs))
    bufferization::MaterializeInDestinationOp::create(
        rewriter, op.getLoc(), /*result=*/Type(), result, out,
        /*restrict=*/true, /*writable=*/true);
  rewriter.eraseOp(op);
}

namespace {
struct RaiseBuffers : gdn::impl::RaiseBuffersPassBase<RaiseBuffers> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp,
                ChunkGatedDeltaRuleBwdOp>(
              [&](auto layer) { raise(rewriter, layer); });
    });
  }
};
} // namespace
