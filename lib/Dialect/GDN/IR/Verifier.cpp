//===- Verifier.cpp - What every op of the dialect must satisfy -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each check carries the label of its sentence in docs/Spec.md; the test of the
// same name is in test/Dialect/GDN. Checks of a shape are rows of the table in
// Rule.cpp and carry their label there.
//
//===----------------------------------------------------------------------===//

#include "Rule.h"
#include "gdn/Dialect/GDN/IR/Support.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace mlir::gdn;

/// `[B, T, H] = [1, ?, 4]`, for diagnostics.
static std::string describe(ArrayRef<Dim> dims, const RuleDims &sizes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(dims, os, [&](Dim dim) { os << getDimName(dim); });
  os << "] = [";
  llvm::interleaveComma(dims, os, [&](Dim dim) {
    if (ShapedType::isDynamic(sizes.get(dim)))
      os << '?';
    else
      os << sizes.get(dim);
  });
  os << ']';
  return text;
}

/// The two forms of an op: tensors in and out, or memrefs in and `outs`.
static LogicalResult verifyForm(Operation *op) {
  bool buffers = isa<MemRefType>(op->getOperand(0).getType());
  bool hasBufferForm = isa<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp,
                           ChunkGatedDeltaRuleBwdOp>(op);
  // delta_rule_c1
  if (buffers && !hasBufferForm)
    return op->emitOpError("expected tensors, got a memref operand");
  for (Value operand : op->getOperands())
    if (isa<ShapedType>(operand.getType()) &&
        isa<MemRefType>(operand.getType()) != buffers)
      return op->emitOpError("expected all operands to be tensors or all to be "
                             "memrefs, got ")
             << op->getOperand(0).getType() << " and " << operand.getType();
  // buffer_c1
  if (buffers && op->getNumResults() != 0)
    return op->emitOpError("expected no results in the buffer form, got ")
           << op->getNumResults();
  return success();
}

/// Sizes that must be known when compiling, and what a chunk can be.
static LogicalResult verifySizes(Operation *op, const Rule &rule,
                                 ArrayRef<NamedShape> shapes) {
  for (const NamedShape &shape : shapes)
    for (auto [dim, size] : llvm::zip(shape.dims, shape.type.getShape())) {
      bool isHeads = dim == Dim::Hq || dim == Dim::H;
      bool mustBeStatic = dim == Dim::K || dim == Dim::V || dim == Dim::C;
      // delta_rule_c2
      if (mustBeStatic && size <= 0)
        return op->emitOpError("expected a static, positive ")
               << getDimName(dim) << " in " << shape.name << ", got "
               << shape.type;
      // delta_rule_c21
      if (isHeads && size == 0)
        return op->emitOpError("expected a positive ")
               << getDimName(dim) << " in " << shape.name << ", got "
               << shape.type;
      // backward_c4
      bool sumsGroups = isa<BackwardStageOp>(op);
      if (isHeads && sumsGroups && ShapedType::isDynamic(size))
        return op->emitOpError("expected a static ")
               << getDimName(dim) << " in " << shape.name << ", got "
               << shape.type;
    }
  RuleDims dims = getRuleDims(rule);
  bool areHeadsKnown =
      !ShapedType::isDynamic(dims.Hq) && !ShapedType::isDynamic(dims.H);
  // delta_rule_c10
  if (rule.k && rule.beta && areHeadsKnown && dims.H % dims.Hq != 0)
    return op->emitOpError("expected H to be a multiple of Hq, got H = ")
           << dims.H << " and Hq = " << dims.Hq;
  for (auto [dim, size] : {std::pair(Dim::K, dims.K), {Dim::V, dims.V}}) {
    if (ShapedType::isDynamic(size))
      continue;
    // delta_rule_c11
    if (size > support::maxHeadDim)
      return op->emitOpError("expected ")
             << getDimName(dim) << " to be at most " << support::maxHeadDim
             << ", got " << size;
    // chunk_c1
    if (rule.chunked && size % support::headDimMultiple != 0)
      return op->emitOpError("expected ")
             << getDimName(dim) << " to be a multiple of "
             << support::headDimMultiple << ", got " << size;
  }
  // What cuts sequences cuts them between states, too.
  int64_t chunk = rule.chunkSize ? rule.chunkSize.getInt() : 0;
  bool isWhole = isa<SegmentBoundariesStageOp>(op) && chunk > 0 &&
                 chunk % support::savedStateMultiple == 0;
  // chunk_c2
  if (rule.chunkSize && !isWhole && !support::isChunkSize(chunk))
    return op->emitOpError("expected chunk_size to be one of ")
           << llvm::join(llvm::map_range(
                             support::chunkSizes,
                             [](int64_t size) { return std::to_string(size); }),
                         ", ")
           << ", got " << rule.chunkSize.getInt();
  return success();
}

/// Packed sequences.
static LogicalResult verifyBoundaries(Operation *op, const Rule &rule) {
  if (!rule.cuSeqlens)
    return success();
  int64_t batch = cast<ShapedType>(rule.k.getType()).getDimSize(0);
  // delta_rule_c12
  if (!ShapedType::isDynamic(batch) && batch != 1)
    return op->emitOpError("expected B = 1 with cu_seqlens, got B = ") << batch;
  auto type = cast<ShapedType>(rule.cuSeqlens.getType());
  // delta_rule_c13
  if (!type.isDynamicDim(0) && type.getDimSize(0) < 2)
    return op->emitOpError("expected cu_seqlens to have N+1 >= 2 entries, got ")
           << type.getDimSize(0);
  return success();
}

/// Shapes agree with each other, and element types do.
static LogicalResult verifyOperands(Operation *op, const Rule &rule,
                                    ArrayRef<NamedShape> shapes) {
  RuleDims dims = getInitialDims(rule);
  if (const NamedShape *clash = unify(shapes, dims))
    return op->emitOpError("expected ")
           << clash->name << " of shape " << describe(clash->dims, dims)
           << ", got " << clash->type;
  if (!rule.k)
    return success();
  Type element = getElementTypeOrSelf(rule.k.getType());
  for (const NamedShape &shape : shapes) {
    bool isData = shape.value == rule.q || shape.value == rule.v ||
                  shape.value == rule.dO || shape.value == rule.writes ||
                  shape.value == rule.keptStates;
    // delta_rule_c14
    if (isData && shape.type.getElementType() != element)
      return op->emitOpError("expected ")
             << shape.name << " to have the element type of k, " << element
             << ", got " << shape.type.getElementType();
    // backward_c3
    if (shape.value == rule.dFinalState &&
        shape.type.getElementType() != getStateElementType(rule))
      return op->emitOpError("expected d_final_state to have the element type "
                             "of the final state, ")
             << getStateElementType(rule) << ", got "
             << shape.type.getElementType();
  }
  return success();
}

/// How the gate is to be read, and what that needs.
static LogicalResult verifyGate(Operation *op, const Rule &rule) {
  const GateForm &form = formOf(rule.gateDomain);
  // delta_rule_c15
  if (!rule.gate && rule.gateDomain != GateDomain::Log)
    return op->emitOpError("expected a gate with gate_domain ")
           << form.word << ", got none";
  // delta_rule_c16
  if (!form.hasParameters() && (rule.aLog || rule.dtBias))
    return op->emitOpError("expected ")
           << (rule.aLog ? "a_log" : "dt_bias") << " only with gate_domain "
           << listGateForms(std::mem_fn(&GateForm::hasParameters)) << ", got "
           << form.word;
  // delta_rule_c17
  if (form.needsRate() && !rule.aLog)
    return op->emitOpError("expected a_log with gate_domain ")
           << form.word << ", got none";
  // delta_rule_c18
  if (rule.lowerBound ? !form.mayHaveBound() : form.needsBound())
    return op->emitOpError("expected lower_bound with gate_domain ")
           << listGateForms(std::mem_fn(&GateForm::needsBound))
           << ", and none with "
           << listGateForms(std::not_fn(&GateForm::mayHaveBound)) << ", got "
           << (rule.lowerBound ? "one" : "none") << " with " << form.word;
  // delta_rule_c19
  if (rule.lowerBound && !(std::isfinite(rule.lowerBound.getValueAsDouble()) &&
                           rule.lowerBound.getValueAsDouble() < 0))
    return op->emitOpError("expected a finite, negative lower_bound, got ")
           << rule.lowerBound;
  // gate_bound_c2
  if (isa<GateBoundStageOp>(op) && form.needsBound())
    return op->emitOpError("expected gates that may break the bound, got "
                           "gate_domain ")
           << form.word;
  // delta_rule_c20
  if (rule.scale && !(std::isfinite(rule.scale.getValueAsDouble()) &&
                      rule.scale.getValueAsDouble() > 0))
    return op->emitOpError("expected a finite, positive scale, got ")
           << rule.scale;
  return success();
}

/// Results of the tensor form, `outs` of the buffer form.
static LogicalResult verifyResults(Operation *op, const Rule &rule) {
  SmallVector<ResultShape> expected = getResultShapes(op, rule);
  bool buffers = isa<MemRefType>(op->getOperand(0).getType());
  SmallVector<Type> types(op->getResultTypes());
  if (buffers)
    llvm::append_range(types,
                       op->getOperands().take_back(getNumOuts(op)).getTypes());
  // result_c1
  if (types.size() != expected.size())
    return op->emitOpError("expected ")
           << (buffers ? "outs (" : "results (")
           << llvm::join(llvm::map_range(expected,
                                         [](const ResultShape &result) {
                                           return result.name;
                                         }),
                         ", ")
           << "), got " << types.size();
  RuleDims dims = getRuleDims(rule);
  for (auto [result, type] : llvm::zip(expected, types)) {
    auto shaped = cast<ShapedType>(type);
    // result_c2
    NamedShape shape = {result.name, nullptr, shaped, result.dims};
    if (unify(shape, dims))
      return op->emitOpError("expected ")
             << result.name << " of shape " << describe(result.dims, dims)
             << ", got " << type;
    // result_c3
    Type element = shaped.getElementType();
    if (result.element && element != result.element)
      return op->emitOpError("expected ")
             << result.name << " to have element type " << result.element
             << ", got " << element;
    // result_c4
    if (!result.element && !support::isDataType(element))
      return op->emitOpError("expected ")
             << result.name << " to have a data type, got " << element;
  }
  return success();
}

/// The buffer form may not write what it reads, but for a pool, and for the
/// states that are kept after tokens.
static LogicalResult verifyOuts(Operation *op, const Rule &rule) {
  OperandRange operands = op->getOperands();
  unsigned first = operands.size() - getNumOuts(op);
  for (unsigned i = first; i < operands.size(); ++i) {
    bool isKept = rule.stepStates && i + 1 == operands.size();
    // steps_c9
    if (isKept && operands[i] != rule.stepStates)
      return op->emitOpError("expected step_states as the last of outs, got "
                             "another array");
    if (isKept)
      continue;
    bool isPool = rule.hasPool() && i == first + 1;
    // pool_c5
    if (isPool && operands[i] != rule.initialState)
      return op->emitOpError("expected initial_state, the pool, as the second "
                             "of outs, got another array");
    // buffer_c2
    if (!isPool && llvm::is_contained(operands.take_front(i), operands[i]))
      return op->emitOpError("expected outs apart from the inputs and from "
                             "each other, got operand ")
             << i << " twice";
  }
  return success();
}

/// What a forward saves for a backward.
static LogicalResult verifySaved(Operation *op, const Rule &rule) {
  auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(op);
  // saved_c1
  if (backward && (static_cast<bool>(rule.writes) !=
                       static_cast<bool>(rule.stateInterval) ||
                   static_cast<bool>(rule.keptStates) !=
                       static_cast<bool>(rule.stateInterval)))
    return op->emitOpError("expected writes and states exactly with "
                           "state_interval, got ")
           << (rule.stateInterval ? "a state_interval" : "none");
  // saved_c5
  if (rule.sequenceSegments && (rule.sequenceSegments.getInt() < 1 ||
                                (isa<FusedStageOp>(op) && !rule.stateInterval)))
    return op->emitOpError("expected sequence_segments to be positive and "
                           "beside saved states, got ")
           << rule.sequenceSegments.getInt();
  // saved_c5
  RuleDims dims = getRuleDims(rule);
  if (rule.sequenceSegments && !ShapedType::isDynamic(dims.N) &&
      dims.N % rule.sequenceSegments.getInt() != 0)
    return op->emitOpError("expected sequence_segments to divide the ")
           << dims.N << " segments, got " << rule.sequenceSegments.getInt();
  // saved_c3
  if (rule.sequenceNumbers &&
      (rule.sequenceSegments || !rule.cuSeqlens ||
       (isa<FusedStageOp>(op) && !rule.stateInterval && !rule.numStates)))
    return op->emitOpError("expected sequence_numbers beside cu_seqlens and "
                           "saved states or num_states, without "
                           "sequence_segments");
  if (!rule.stateInterval)
    return success();
  int64_t interval = rule.stateInterval.getInt();
  // saved_c2
  if (interval < 1 || interval % support::savedStateMultiple != 0)
    return op->emitOpError("expected state_interval to be a positive multiple "
                           "of ")
           << support::savedStateMultiple << ", got " << interval;
  // saved_c6
  if (isa<FusedStageOp>(op) && !rule.gate)
    return op->emitOpError("expected a gate beside state_interval, got none");
  return success();
}

/// Arrays of states have one for each that is numbered.
static LogicalResult verifyStateCounts(Operation *op, const Rule &rule) {
  if (!rule.keptStates)
    return success();
  RuleDims dims = getRuleDims(rule);
  Dim own = rule.keepsOthers() ? Dim::KeptStates : Dim::S;
  for (auto [name, value, dim] : {std::tuple("states", rule.keptStates, own),
                                  {"d_states", rule.dKeptStates, Dim::S}}) {
    auto type = value ? cast<ShapedType>(value.getType()) : nullptr;
    int64_t count = dims.get(dim);
    // saved_c4
    if (type && !ShapedType::isDynamic(count) && !type.isDynamicDim(0) &&
        type.getDimSize(0) != count)
      return op->emitOpError("expected ")
             << count << " states in " << name << ", got " << type;
  }
  return success();
}

LogicalResult gdn::detail::verifyRule(Operation *op) {
  if (failed(verifyForm(op)))
    return failure();
  Rule rule = getRule(op);
  SmallVector<NamedShape> shapes = getOperandShapes(rule);
  return success(
      succeeded(verifyBoundaries(op, rule)) &&
      succeeded(verifyOperands(op, rule, shapes)) &&
      succeeded(verifySizes(op, rule, shapes)) &&
      succeeded(verifyGate(op, rule)) && succeeded(verifyPool(op, rule)) &&
      succeeded(verifySteps(op, rule)) && succeeded(verifySegments(op, rule)) &&
      succeeded(verifySaved(op, rule)) &&
      succeeded(verifyStateCounts(op, rule)) &&
      succeeded(verifyResults(op, rule)) && succeeded(verifyOuts(op, rule)));
}
