//===- Rule.h - Operands of a delta rule, whichever op has them -*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_RULE_H
#define GDN_DIALECT_GDN_IR_RULE_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"

namespace mlir::gdn {

/// The operands and attributes of any op of the dialect; absent ones are null.
/// Verification, inference, reification and tiling all read this one form.
struct Rule {
  Value q, k, v, beta, gate, initialState, cuSeqlens, aLog, dtBias;
  /// Of forwards whose states lie in a pool.
  Value stateIndices, firstState, hasInitialState, numStates;
  /// Of those that keep the states after tokens.
  Value stepStates, stepIndices, numAccepted, parents, stepStarts,
      stepIntervals;
  /// Of the backward only.
  Value dO, dFinalState;
  /// Of a backward, of what its forward has left to it.
  Value writes, keptStates;
  /// Of gdn.stage.gradients only.
  Value dV, dKeptStates, progress;
  Value qNorm, kNorm;
  /// Of gdn.stage.run only.
  Value bm, decay;
  /// Of gdn.stage.segment_scan only.
  Value map, mapDecay, states, firstSegments;
  /// Of stages that may skip what a segment forgets.
  Value starts, ends, before, closes, boundaries, lastSegments;
  /// Of stages whose heads may have whole sequences.
  Value wholeHeads, wholeBegins;
  /// Of the sequences whose segments are the sequences here.
  Value sequenceState, cutSegments;
  /// Of ops that save states for a backward, or read them.
  Value sequenceNumbers;
  /// Of gdn.stage.segment_boundaries: tokens of a segment that a call chooses.
  Value cutLength, cutParts, longerCut;
  FloatAttr scale, lowerBound;
  IntegerAttr chunkSize;
  /// Of the stages that cut sequences, or keep states in between.
  IntegerAttr segments, segmentLength, fewerSegments;
  /// How many heads of a sample call for the shorter of two lengths.
  DenseI64ArrayAttr liveHeads;
  /// Of the same ops.
  IntegerAttr stateInterval, sequenceSegments;
  /// Of gdn.stage.gate_bound only.
  Value none;
  /// Of gdn.stage.adjoint only.
  IntegerAttr reportingTiles;
  GateDomain gateDomain = GateDomain::Log;
  StateLayout stateLayout = StateLayout::KV;
  /// Of `sequenceState` and a final state with it.
  StateLayout sequenceLayout = StateLayout::KV;
  /// Of gdn.stage.segment_scan only.
  StateLayout segmentLayout = StateLayout::KV;
  /// Whether the op computes in chunks, which restricts K and V.
  bool chunked = true;
  /// Whether it is gdn.stage.segment_boundaries.
  bool cutsSequences = false;
  /// Whether query/key heads are known to have one value head each.
  bool singleHeads = false;

  /// Whether the states that are read have numbers of their own, beside those
  /// of every segment.
  bool keepsOthers() const { return keptStates && segmentLength; }
  /// Whether the states that are read and made are those of a pool. Where the
  /// sequences are segments, they are not.
  bool hasPool() const { return stateIndices && !numStates; }
};

/// The part of a rule that the forward ops, their adaptors and
/// DeltaRuleOpInterface have in common.
template <typename OpOrAdaptor> Rule makeCommonRule(OpOrAdaptor op) {
  Rule rule;
  rule.q = op.getQ();
  rule.k = op.getK();
  rule.v = op.getV();
  rule.beta = op.getBeta();
  rule.gate = op.getGate();
  rule.initialState = op.getInitialState();
  rule.cuSeqlens = op.getCuSeqlens();
  rule.aLog = op.getALog();
  rule.dtBias = op.getDtBias();
  rule.scale = op.getScaleAttr();
  rule.gateDomain = op.getGateDomain();
  rule.lowerBound = op.getLowerBoundAttr();
  rule.stateLayout = op.getStateLayout();
  return rule;
}

/// The rule of an op of the gdn dialect.
Rule getRule(Operation *op);

/// The name of a dimension, as diagnostics and `gdn.dims` have it.
StringRef getDimName(Dim dim);

/// An operand with the names of its dimensions. `type` is the operand's, or
/// the one that a rewrite would like it to have.
struct NamedShape {
  StringRef name;
  Value value;
  ShapedType type;
  SmallVector<Dim, 4> dims;
};

/// A result with the names of its dimensions. A null `element` leaves the
/// choice among the data types to the op.
struct ResultShape {
  StringRef name;
  SmallVector<Dim, 4> dims;
  Type element;
};

/// The operands that are present but `outs`, in their order, with the names of
/// their dimensions.
SmallVector<NamedShape> getOperandShapes(const Rule &rule);

/// Results of a forward: o and, with `withFinalState`, the final state.
SmallVector<ResultShape> getForwardResults(const Rule &rule,
                                           bool withFinalState);

/// Results of gdn.chunk_gated_delta_rule_bwd: gradients of what is present.
SmallVector<ResultShape> getBackwardResults(const Rule &rule);

/// What an op of the dialect returns, or writes to its `outs`.
SmallVector<ResultShape> getResultShapes(Operation *op, const Rule &rule);

/// Element type of a state that the rule returns.
Type getStateElementType(const Rule &rule);

/// Sizes that are known before any operand is looked at.
RuleDims getInitialDims(const Rule &rule);

/// Learns the sizes of `dims` from `shapes`. Returns the first shape that
/// disagrees with what was learnt before it, or null.
const NamedShape *unify(ArrayRef<NamedShape> shapes, RuleDims &dims);

/// Everything that the operands of a rule tell about its sizes.
RuleDims getRuleDims(const Rule &rule);

/// The tensor type of a result.
RankedTensorType getResultType(const ResultShape &result, const RuleDims &dims);

/// Checks how sequences are cut, and what stages know of their segments.
LogicalResult verifySegments(Operation *op, const Rule &rule);

/// Checks what belongs to states in a pool, and to states that are kept after
/// tokens.
LogicalResult verifyPool(Operation *op, const Rule &rule);
LogicalResult verifySteps(Operation *op, const Rule &rule);

/// How many of the last operands are `outs`; none but in the buffer form.
unsigned getNumOuts(Operation *op);

/// A size as a constant, or as ops that compute it from the operands.
OpFoldResult reifyDim(OpBuilder &builder, Location loc, const Rule &rule,
                      Dim dim);

} // namespace mlir::gdn

#endif // GDN_DIALECT_GDN_IR_RULE_H
