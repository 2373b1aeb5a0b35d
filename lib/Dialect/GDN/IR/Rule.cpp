//===- Rule.cpp - Shapes of what a delta rule takes and returns -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Whether `value` is there and has one entry a channel.
static bool hasChannels(Value value) {
  auto type = value ? dyn_cast<ShapedType>(value.getType()) : nullptr;
  return type && type.getRank() == 4;
}

/// What counts the sequences. Without boundaries there is one a batch row.
static Dim getSequences(const Rule &rule) {
  return rule.cuSeqlens || rule.firstSegments ? Dim::N : Dim::B;
}

/// Dimensions of an array with a state for each of what `first` counts.
static SmallVector<Dim, 4> getStateDims(Dim first, StateLayout layout) {
  if (layout == StateLayout::KV)
    return {first, Dim::H, Dim::K, Dim::V};
  return {first, Dim::H, Dim::V, Dim::K};
}
static SmallVector<Dim, 4> getStateDims(const Rule &rule) {
  return getStateDims(rule.hasPool() ? Dim::P : getSequences(rule),
                      rule.stateLayout);
}

/// Dimensions of a segment's decay, with one entry a head or a channel.
static SmallVector<Dim, 4> getMapDecayDims(Dim segments, bool hasChannels) {
  if (hasChannels)
    return {segments, Dim::H, Dim::K};
  return {segments, Dim::H};
}

/// Dimensions of a gate with one entry a token, or a token and channel.
static SmallVector<Dim, 4> getGateDims(Value gate) {
  if (hasChannels(gate))
    return {Dim::B, Dim::T, Dim::H, Dim::K};
  return {Dim::B, Dim::T, Dim::H};
}

SmallVector<NamedShape> gdn::getOperandShapes(const Rule &rule) {
  SmallVector<NamedShape> shapes;
  auto add = [&](StringRef name, Value value, ArrayRef<Dim> dims) {
    auto type = value ? dyn_cast<ShapedType>(value.getType()) : nullptr;
    if (type && type.hasRank())
      shapes.push_back({name, value, type, SmallVector<Dim, 4>(dims)});
  };
  SmallVector<Dim, 4> keys = {Dim::B, Dim::T, Dim::Hq, Dim::K};
  SmallVector<Dim, 4> values = {Dim::B, Dim::T, Dim::H, Dim::V};
  SmallVector<Dim, 4> bias = {Dim::H};
  if (hasChannels(rule.gate))
    bias.push_back(Dim::K);
  add("q", rule.q, keys);
  add("k", rule.k, keys);                                      // delta_rule_c3
  add("v", rule.v, values);                                    // delta_rule_c4
  add("beta", rule.beta, {Dim::B, Dim::T, Dim::H});            // delta_rule_c5
  add("bm", rule.bm, {Dim::B, Dim::T, Dim::H, Dim::C});        // stage_run_c1
  add("decay", rule.decay, getGateDims(rule.decay));           // stage_run_c2
  add("gate", rule.gate, getGateDims(rule.gate));              // delta_rule_c6
  add("initial_state", rule.initialState, getStateDims(rule)); // delta_rule_c7
  add("cu_seqlens", rule.cuSeqlens, {Dim::Boundaries});
  add("a_log", rule.aLog, {Dim::H});                      // delta_rule_c8
  add("dt_bias", rule.dtBias, bias);                      // delta_rule_c9
  add("none", rule.none, {Dim::One, Dim::One, Dim::One}); // gate_bound_c1
  add("state_indices", rule.stateIndices,
      {rule.numStates ? Dim::Cut : getSequences(rule)}); // pool_c1
  add("has_initial_state", rule.hasInitialState,
      {getSequences(rule)}); // pool_c8
  SmallVector<Dim, 4> steps = {getSequences(rule), Dim::Steps};
  add("step_states", rule.stepStates,
      getStateDims(Dim::R, rule.stateLayout));                 // steps_c1
  add("step_indices", rule.stepIndices, steps);                // steps_c2
  add("num_accepted", rule.numAccepted, {getSequences(rule)}); // steps_c3
  add("parents", rule.parents, steps);                         // steps_c4
  add("step_starts", rule.stepStarts,
      {rule.cuSeqlens ? Dim::Boundaries : Dim::BatchBoundaries});  // steps_c10
  add("step_intervals", rule.stepIntervals, {getSequences(rule)}); // steps_c11
  add("d_o", rule.dO, values);                                // backward_c1
  add("d_final_state", rule.dFinalState, getStateDims(rule)); // backward_c2
  SmallVector<Dim, 4> kept = {Dim::S, Dim::H, Dim::V, Dim::K};
  Dim S = rule.keepsOthers() ? Dim::KeptStates : Dim::S;
  add("writes", rule.writes, values);                          // gradients_c1
  add("dv", rule.dV, values);                                  // gradients_c2
  add("states", rule.keptStates, {S, Dim::H, Dim::V, Dim::K}); // gradients_c3
  add("d_states", rule.dKeptStates, kept);                     // gradients_c4
  add("progress", rule.progress,
      {getSequences(rule), Dim::H, Dim::VTiles});         // gradients_c6
  add("q_rstd", rule.qNorm, {Dim::B, Dim::T, Dim::Hq});   // gradients_c8
  add("k_rstd", rule.kNorm, {Dim::B, Dim::T, Dim::Hq});   // gradients_c8
  add("map", rule.map, {Dim::S, Dim::H, Dim::K, Dim::K}); // segment_scan_c1
  bool hasDecays =
      rule.mapDecay && cast<ShapedType>(rule.mapDecay.getType()).getRank() == 3;
  add("decay", rule.mapDecay,
      getMapDecayDims(Dim::S, hasDecays)); // segment_scan_c2
  add("states", rule.states,
      getStateDims(Dim::S, rule.segmentLayout)); // segment_scan_c3
  add("first_segments", rule.firstSegments, {Dim::Boundaries});
  add("starts", rule.starts,
      {rule.map ? Dim::S : getSequences(rule), Dim::H}); // segment_starts_c3
  add("ends", rule.ends, {getSequences(rule), Dim::H});  // segment_starts_c4
  add("before", rule.before,
      {rule.map ? Dim::SegmentBoundaries
                : Dim::Boundaries}); // segment_before_c1
  add("boundaries", rule.boundaries, {Dim::SegmentBoundaries});
  add("last_segments", rule.lastSegments, {Dim::N});
  add("closes", rule.closes, {getSequences(rule)}); // segment_before_c5
  add("whole_heads", rule.wholeHeads, {Dim::H});    // segment_whole_c1
  add("whole_begins", rule.wholeBegins, {getSequences(rule)});
  add("first_segments", rule.cutSegments, {Dim::CutBoundaries});
  add("sequence_numbers", rule.sequenceNumbers,
      {getSequences(rule)}); // saved_c3
  add("sequence_state", rule.sequenceState,
      getStateDims(Dim::Cut, rule.sequenceLayout)); // segment_before_c6
  return shapes;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Element type of an operand that must be there, null in malformed IR.
static Type getElementType(Value value) {
  auto type = value ? dyn_cast<ShapedType>(value.getType()) : nullptr;
  return type ? type.getElementType() : nullptr;
}

Type gdn::getStateElementType(const Rule &rule) {
  if (rule.cutSegments && !rule.sequenceState)
    return Float32Type::get(rule.k.getContext());
  if (rule.cutSegments)
    return getElementType(rule.sequenceState);
  if (rule.initialState)
    return getElementType(rule.initialState);
  Value any = rule.k ? rule.k : rule.map;
  return Float32Type::get(any.getContext());
}

/// What a forward leaves to its backward.
static SmallVector<ResultShape> getSavedResults(const Rule &rule) {
  Type element = getElementType(rule.v);
  return {{"writes", {Dim::B, Dim::T, Dim::H, Dim::V}, element},
          {"states", {Dim::S, Dim::H, Dim::V, Dim::K}, element}};
}

SmallVector<ResultShape> gdn::getForwardResults(const Rule &rule,
                                                bool withFinalState) {
  SmallVector<ResultShape> results = {
      {"o", {Dim::B, Dim::T, Dim::H, Dim::V}, getElementType(rule.v)}};
  if (withFinalState)
    results.push_back({"final_state",
                       rule.cutSegments
                           ? getStateDims(Dim::Cut, rule.sequenceLayout)
                           : getStateDims(rule),
                       getStateElementType(rule)});
  if (rule.stateInterval)
    llvm::append_range(results, getSavedResults(rule));
  if (rule.stepStates)
    results.push_back({"step_states", getStateDims(Dim::R, rule.stateLayout),
                       getElementType(rule.stepStates)});
  return results;
}

SmallVector<ResultShape> gdn::getBackwardResults(const Rule &rule) {
  static constexpr std::pair<StringLiteral, StringLiteral> gradients[] = {
      {"q", "dq"},         {"k", "dk"},
      {"v", "dv"},         {"beta", "dbeta"},
      {"gate", "dgate"},   {"initial_state", "dinitial_state"},
      {"a_log", "da_log"}, {"dt_bias", "ddt_bias"}};
  SmallVector<NamedShape> operands = getOperandShapes(rule);
  SmallVector<ResultShape> results;
  for (auto [operand, gradient] : gradients)
    for (const NamedShape &shape : operands)
      if (shape.name == operand)
        results.push_back({gradient, shape.dims, shape.type.getElementType()});
  return results;
}

/// Results of gdn.stage.backward: a value head at a time, mostly in f32.
static SmallVector<ResultShape> getBackwardStageResults(const Rule &rule) {
  Type f32 = Float32Type::get(rule.k.getContext());
  SmallVector<Dim, 4> headKeys = {Dim::B, Dim::T, Dim::H, Dim::K};
  SmallVector<ResultShape> results = {
      {"dq", headKeys, f32},
      {"dk", headKeys, f32},
      {"dv", {Dim::B, Dim::T, Dim::H, Dim::V}, getElementType(rule.v)},
      {"dbeta", {Dim::B, Dim::T, Dim::H}, f32}};
  if (rule.gate)
    results.push_back({"dg", getGateDims(rule.gate), f32});
  if (rule.initialState)
    results.push_back(
        {"dh0", getStateDims(rule), getElementType(rule.initialState)});
  return results;
}

/// Results of the stages of a backward in three kernels.
static SmallVector<ResultShape> getPartResults(ReplayStageOp,
                                               const Rule &rule) {
  return getSavedResults(rule);
}
static SmallVector<ResultShape> getPartResults(ExpandStageOp op,
                                               const Rule &rule) {
  return {{"states", {Dim::S, Dim::H, Dim::V, Dim::K}, getElementType(rule.v)}};
}
static SmallVector<ResultShape> getPartResults(AdjointStageOp op,
                                               const Rule &rule) {
  Type element = getElementType(rule.v);
  SmallVector<ResultShape> results = {
      {"dv", {Dim::B, Dim::T, Dim::H, Dim::V}, element},
      {"d_states", {Dim::S, Dim::H, Dim::V, Dim::K}, element}};
  unsigned reports = op.getReportingTiles() ? 1 : 0;
  if (op->getNumResults() > 2 + reports)
    results.push_back(
        {"d_initial_state", getStateDims(rule), getStateElementType(rule)});
  if (reports)
    results.push_back({"progress",
                       {getSequences(rule), Dim::H, Dim::VTiles},
                       IntegerType::get(op.getContext(), 32)});
  return results;
}
static SmallVector<ResultShape> getPartResults(AdjointPassStageOp,
                                               const Rule &rule) {
  return {{"d_initial_state", getStateDims(rule), getStateElementType(rule)}};
}
static SmallVector<ResultShape> getPartResults(GradientsStageOp op,
                                               const Rule &rule) {
  Type f32 = Float32Type::get(rule.k.getContext());
  SmallVector<Dim, 4> keys = {Dim::B, Dim::T, Dim::Hq, Dim::K};
  SmallVector<ResultShape> results = {{"dq", keys, nullptr},
                                      {"dk", keys, nullptr},
                                      {"dbeta", {Dim::B, Dim::T, Dim::H}, f32}};
  if (rule.gate)
    results.push_back({"dg", getGateDims(rule.gate), f32});
  if (op->getNumResults() > results.size())
    results.push_back({"sums", {Dim::B, Dim::T, Dim::H, Dim::K}, f32});
  return results;
}

/// Results of the stages that cut sequences and work on their segments.
static SmallVector<ResultShape> getSegmentResults(SegmentBoundariesStageOp op,
                                                  const Rule &rule) {
  Type boundary = rule.cuSeqlens ? getElementType(rule.cuSeqlens)
                                 : IntegerType::get(op.getContext(),
                                                    rule.cutLength ? 32 : 64);
  SmallVector<ResultShape> results = {
      {"boundaries", {Dim::SegmentBoundaries}, boundary},
      {"first_segments", {Dim::Boundaries}, boundary}};
  Type token = IntegerType::get(op.getContext(), 32);
  if (op->getNumResults() == 3)
    results.push_back({"sequence_numbers", {Dim::S}, token});
  if (op->getNumResults() > 3)
    llvm::append_range(results, SmallVector<ResultShape>{
                                    {"before", {Dim::SegmentBoundaries}, token},
                                    {"closes", {Dim::S}, token}});
  if (op->getNumResults() > 4)
    results.push_back({"last_segments", {Dim::N}, token});
  if (rule.gate && hasChannels(rule.gate))
    llvm::append_range(
        results, SmallVector<ResultShape>{{"whole_begins", {Dim::S}, token},
                                          {"whole_heads", {Dim::H}, token}});
  return results;
}
static SmallVector<ResultShape> getSegmentResults(SegmentStartsStageOp op,
                                                  const Rule &rule) {
  Dim segments = getSequences(rule);
  Type token = IntegerType::get(op.getContext(), 32);
  if (op.getReverse())
    return {{"ends", {segments, Dim::H}, token}};
  SmallVector<ResultShape> results = {{"starts", {segments, Dim::H}, token}};
  if (!rule.gate || !hasChannels(rule.gate))
    results.push_back(
        {"decay", {segments, Dim::H}, Float32Type::get(op.getContext())});
  if (rule.wholeHeads)
    results.push_back({"whole_heads", {Dim::H}, token});
  return results;
}
static SmallVector<ResultShape> getSegmentResults(SegmentMapStageOp op,
                                                  const Rule &rule) {
  Dim segments = getSequences(rule);
  SmallVector<ResultShape> results = {
      {"map", {segments, Dim::H, Dim::K, Dim::K}, nullptr}};
  if (rule.gate)
    results.push_back({"decay",
                       getMapDecayDims(segments, hasChannels(rule.gate)),
                       Float32Type::get(op.getContext())});
  return results;
}
static SmallVector<ResultShape> getSegmentResults(SegmentScanStageOp op,
                                                  const Rule &rule) {
  SmallVector<ResultShape> results = {{"entry_states",
                                       getStateDims(Dim::S, rule.segmentLayout),
                                       Float32Type::get(op.getContext())}};
  if (op->getNumResults() > 1)
    results.push_back(
        {"final_state", getStateDims(rule), getStateElementType(rule)});
  return results;
}

SmallVector<ResultShape> gdn::getResultShapes(Operation *op, const Rule &rule) {
  return llvm::TypeSwitch<Operation *, SmallVector<ResultShape>>(op)
      .Case<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp>(
          [&](auto forward) {
            return getForwardResults(rule, forward.getOutputFinalState());
          })
      .Case([&](ChunkGatedDeltaRuleBwdOp) { return getBackwardResults(rule); })
      .Case([&](BackwardStageOp) { return getBackwardStageResults(rule); })
      .Case<SegmentBoundariesStageOp, SegmentStartsStageOp, SegmentMapStageOp,
            SegmentScanStageOp>(
          [&](auto stage) { return getSegmentResults(stage, rule); })
      .Case<ReplayStageOp, ExpandStageOp, AdjointStageOp, AdjointPassStageOp,
            GradientsStageOp>(
          [&](auto stage) { return getPartResults(stage, rule); })
      .Case([&](StatePassStageOp) {
        return SmallVector<ResultShape>{getForwardResults(rule, true)[1]};
      })
      .Case([&](GateBoundStageOp) {
        return SmallVector<ResultShape>{{"strong",
                                         {Dim::One, Dim::One, Dim::One},
                                         Float32Type::get(op->getContext())}};
      })
      .Case([&](PrepareStageOp) {
        SmallVector<ResultShape> results = {
            {"bm", {Dim::B, Dim::T, Dim::H, Dim::C}, nullptr}};
        if (rule.gate)
          results.push_back(
              {"decay", getGateDims(rule.gate),
               support::cumulatedGateType(getElementType(rule.k))});
        return results;
      })
      .Default([&](Operation *stage) {
        // With a final state there are two, or four, beside those of steps.
        unsigned others = rule.stepStates ? 1 : 0;
        return getForwardResults(rule,
                                 (stage->getNumResults() - others) % 2 == 0);
      });
}

RankedTensorType gdn::getResultType(const ResultShape &result,
                                    const RuleDims &dims) {
  SmallVector<int64_t> shape =
      llvm::map_to_vector(result.dims, [&](Dim dim) { return dims.get(dim); });
  return RankedTensorType::get(shape, result.element);
}
