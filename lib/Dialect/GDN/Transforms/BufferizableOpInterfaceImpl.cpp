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
/// own: later tokens still read v while o is written. A pool of states alone is
/// updated in place.
template <typename LayerOp>
struct LayerModel
    : BufferizableOpInterface::ExternalModel<LayerModel<LayerOp>, LayerOp> {
  /// The operand that is a pool, null where states are not updated in one.
  static OpOperand *findPool(Operation *op) {
    auto layer = cast<LayerOp>(op);
    if (!cast<DeltaRuleOpInterface>(op).getStateIndices() ||
        op->getNumResults() < 2)
      return nullptr;
    return &layer.getInitialStateMutable()[0];
  }

  /// Whether `result` is the updated pool.
  static bool isPool(Operation *op, Value result) {
    return findPool(op) && result == op->getResult(1);
  }

  bool bufferizesToAllocation(Operation *op, Value result) const {
    return !isPool(op, result);
  }

  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return findPool(op) == &operand;
  }

  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (findPool(op) != &operand)
      return {};
    return {{op->getResult(1), BufferRelation::Equivalent}};
  }

  FailureOr<BufferLikeType> getBufferType(Operation *op, Value value,
                                          const BufferizationOptions &options,
                                          const BufferizationState &state,
                                          SmallVector<Value> &stack) const {
    if (isPool(op, value))
      return bufferization::getBufferType(findPool(op)->get(), options, state,
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
      if (isPool(op, result)) {
        outs.push_back(inputs[findPool(op)->getOperandNumber()]);
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
