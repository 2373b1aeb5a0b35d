//===- GradientChain.h - Chain rules around the backward stage --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_GRADIENTCHAIN_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_GRADIENTCHAIN_H

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace mlir::gdn {

/// The results of `op` from those of its backward stage or stages (dq and dk of
/// every value head, dv, dbeta and, where present, dg and dh0): sums over the
/// value heads of a group, and the chain rules of spec 5.5, as linalg ops on
/// whole tensors. With `ofRows` dq and dk are of rows in front of their norm.
SmallVector<Value> applyGradientChain(OpBuilder &b, ChunkGatedDeltaRuleBwdOp op,
                                      ValueRange stage, bool ofRows);

/// Whether the op has gates a channel, and a bound that keeps decays between
/// the tokens of a block in range. Then dq and dk are rounded before the chain
/// rule of a norm: memory binds the pass over rows that applies it.
bool hasBlocksInRange(ChunkGatedDeltaRuleBwdOp op);

/// q or k of `op` with rows of length 1, in its own type. `rstd` gets the
/// reciprocals of the lengths that these had, f32 [B, T, Hq].
Value normalizeRows(OpBuilder &b, DeltaRuleOpInterface op, Value x,
                    Value *rstd);

/// A log gate of zeros for `op`. The kernels of three stages have one: ptxas
/// serialises their products without.
Value makeNeutralGate(OpBuilder &b, DeltaRuleOpInterface op);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_GRADIENTCHAIN_H
