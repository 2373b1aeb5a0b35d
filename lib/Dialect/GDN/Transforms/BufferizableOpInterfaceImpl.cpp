//===- BufferizableOpInterfaceImpl.cpp - Bufferize layer ops --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/Transforms/BufferizableOpInterfaceImpl.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::gdn;

/// A new buffer for a result, of the sizes that the op reifies.
static FailureOr<Value> allocateResult(RewriterBase &rewriter, OpResult result,
                                       ArrayRef<OpFoldResult> sizes,
                                       const BufferizationOptions &options,
                                       const BufferizationState &state) {
  FailureOr<BufferLikeType> type =
      bufferization::getBufferType(result, options, state);
  if (failed(type))
    return failure();
  SmallVector<Value> dynamicSizes;
  for (OpFoldResult size : sizes)
    if (auto value = dyn_cast<Value>(size))
      dynamicSizes.push_back(value);
  return options.createAlloc(rewriter, result.getLoc(), cast<MemRefType>(*type),
                             dynamicSizes);
}

namespace {
/// A layer op reads all its operands and writes its results to buffers of its
/// own: later tokens still read v while o is written. A pool of states, and
/// states that are kept after tokens, are updated in place.
template <typename LayerOp>
struct LayerModel
    : BufferizableOpInterface::ExternalModel<LayerModel<LayerOp>, LayerOp> {
  /// The operands that are updated, with the results that they become.
  static SmallVector<std::pair<OpOperand *, OpResult>>
  findUpdates(Operation *op) {
    SmallVector<std::pair<OpOperand *, OpResult>> updates;
    auto rule = cast<DeltaRuleOpInterface>(op);
    auto layer = cast<LayerOp>(op);
    bool hasSteps = static_cast<bool>(rule.getStepStates());
    if (rule.getStateIndices() && op->getNumResults() > (hasSteps ? 2 : 1))
      updates.emplace_back(&layer.getInitialStateMutable()[0],
                           op->getResult(1));
    if constexpr (!std::is_same_v<LayerOp, ChunkGatedDeltaRuleBwdOp>)
      if (hasSteps)
        updates.emplace_back(&layer.getStepStatesMutable()[0],
                             op->getResults().back());
    return updates;
  }

  /// The operand that becomes `result`, null for a new array.
  static OpOperand *findUpdated(Operation *op, Value result) {
    for (auto [operand, updated] : findUpdates(op))
      if (updated == result)
        return operand;
    return nullptr;
  }

  bool bufferizesToAllocation(Operation *op, Value result) const {
    return !findUpdated(op, result);
  }

  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &state) const {
    return !getAliasingValues(op, operand, state).getAliases().empty();
  }

  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    for (auto [updated, result] : findUpdates(op))
      if (updated == &operand)
        return {{result, BufferRelation::Equivalent}};
    return {};
  }

  FailureOr<BufferLikeType> getBufferType(Operation *op, Value value,
                                          const BufferizationOptions &options,
                                          const BufferizationState &state,
                                          SmallVector<Value> &stack) const {
    if (OpOperand *updated = findUpdated(op, value))
      return bufferization::getBufferType(updated->get(), options, state,
                                          stack);
    auto type = cast<TensorType>(value.getType());
    std::optional<Attribute> space = options.defaultMemorySpaceFn(type);
    if (!space)
      return op->emitOpError("expected a known memory space, got none");
    return cast<BufferLikeType>(
        getMemRefTypeWithStaticIdentityLayout(type, *space));
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    ReifiedRankedShapedTypeDims shapes;
    if (failed(cast<LayerOp>(op).reifyResultShapes(rewriter, shapes)))
      return failure();
    SmallVector<Value> inputs, outs;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        inputs.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      inputs.push_back(*buffer);
    }
    for (auto [result, sizes] : llvm::zip(op->getResults(), shapes)) {
      if (OpOperand *updated = findUpdated(op, result)) {
        outs.push_back(inputs[updated->getOperandNumber()]);
        continue;
      }
      FailureOr<Value> out =
          allocateResult(rewriter, result, sizes, options, state);
      if (failed(out))
        return failure();
      outs.push_back(*out);
    }
    auto layer = cast<LayerOp>(mlir::clone(rewriter, op, TypeRange(), inputs));
    layer.getOutsMutable().append(outs);
    replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }
};
} // namespace

void gdn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GDNDialect *) {
    ChunkGatedDeltaRuleOp::attachInterface<LayerModel<ChunkGatedDeltaRuleOp>>(
        *context);
    RecurrentGatedDeltaRuleOp::attachInterface<
        LayerModel<RecurrentGatedDeltaRuleOp>>(*context);
    ChunkGatedDeltaRuleBwdOp::attachInterface<
        LayerModel<ChunkGatedDeltaRuleBwdOp>>(*context);
    context->loadDialect<memref::MemRefDialect>();
  });
}
