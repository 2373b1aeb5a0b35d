//===- Ops.cpp - Verifiers and effects of the layer ops -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace mlir::gdn;

/// Tensors have no effects; the buffer form reads its inputs and writes `outs`.
static void
addBufferEffects(MutableOperandRange inputs, MutableOperandRange outs,
                 SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &input : inputs)
    if (isa<MemRefType>(input.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &input);
  for (OpOperand &out : outs)
    effects.emplace_back(MemoryEffects::Write::get(), &out);
}

#define GDN_RULE_OP(OP)                                                        \
  LogicalResult OP::verify() { return success(); }                             \
  void OP::getEffects(                                                         \
      SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {               \
    MutableOperandRange outs = getOutsMutable();                               \
    unsigned first = (*this)->getNumOperands() - outs.size();                  \
    addBufferEffects(MutableOperandRange(*this, 0, first), outs, effects);     \
  }
GDN_RULE_OP(ChunkGatedDeltaRuleOp)
GDN_RULE_OP(RecurrentGatedDeltaRuleOp)
GDN_RULE_OP(ChunkGatedDeltaRuleBwdOp)

#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/Ops.cpp.inc"
