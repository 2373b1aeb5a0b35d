//===- PlanStages.h - What plans of layer ops share -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_PLANSTAGES_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_PLANSTAGES_H

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace mlir::gdn {

enum class Plan { Fused, Separate };
enum class BackwardPlan { One, Three };
/// The kernels of a forward, and those of a backward.
struct Plans {
  Plan forward;
  BackwardPlan backward;
  /// Whether the two recurrences of a backward may run at the same time.
  bool sideBySide;
  /// Tokens between the states that gradients read.
  int64_t stateInterval;
};

/// Tokens between the states that a backward in three stages keeps: the largest
/// chunk that its gradients are computed in.
inline constexpr int64_t kKeptSegment = 64;

/// Attributes that a stage op of type `StageOp` shares with a layer op, with
/// the chunk size made explicit where the stage has one.
template <typename StageOp>
SmallVector<NamedAttribute> stageAttributes(Operation *op, int64_t chunkSize) {
  MLIRContext *context = op->getContext();
  SmallVector<NamedAttribute> attributes;
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "chunk_size" &&
        llvm::is_contained(StageOp::getAttributeNames(), attribute.getName()) &&
        !attribute.getName().strref().ends_with("SegmentSizes"))
      attributes.push_back(attribute);
  if (llvm::is_contained(StageOp::getAttributeNames(), "chunk_size"))
    attributes.emplace_back(
        StringAttr::get(context, "chunk_size"),
        IntegerAttr::get(IntegerType::get(context, 64), chunkSize));
  return attributes;
}

/// Creates the stage op whose operands are the common ones of a delta rule and
/// `more`, each of which may be null.
template <typename StageOp>
StageOp createStage(OpBuilder &b, DeltaRuleOpInterface op, TypeRange results,
                    ArrayRef<Value> operands, int64_t chunkSize) {
  OperationState state(op->getLoc(), StageOp::getOperationName());
  SmallVector<int32_t> segments;
  for (Value operand : operands) {
    segments.push_back(operand ? 1 : 0);
    if (operand)
      state.addOperands(operand);
  }
  state.addTypes(results);
  state.addAttributes(stageAttributes<StageOp>(op, chunkSize));
  state.addAttribute(StageOp::getOperandSegmentSizeAttr(),
                     b.getDenseI32ArrayAttr(segments));
  return cast<StageOp>(b.create(state));
}

/// The common operands in the order of the stage ops.
SmallVector<Value> ruleOperands(DeltaRuleOpInterface op);

/// Those of the stages of a backward in three kernels, and of a forward that
/// saves for one: rows of q and k of length 1 where the op asks for it, and a
/// gate. `norms` gets the reciprocal lengths that rows of q and of k had.
SmallVector<Value> trainingOperands(OpBuilder &b, DeltaRuleOpInterface op,
                                    SmallVectorImpl<Value> *norms = nullptr);

/// Whether this backward becomes three stages, or the last two of them, which
/// alone read what a forward saves.
bool isInThreeStages(ChunkGatedDeltaRuleBwdOp op, const Plans &plans);

/// The backward's stages, with the chain rules of spec 5.5 around them.
/// Returns the results; each may know more of its shape than the op says.
SmallVector<Value> planBackward(OpBuilder &b, ChunkGatedDeltaRuleBwdOp op,
                                const Plans &plans, int64_t chunkSize);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_PLANSTAGES_H
