//===- Rule.cpp - Operands of a delta rule, whichever op has them ---------===//
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

Rule gdn::getRule(Operation *op) {
  Rule rule;
  if (auto common = dyn_cast<DeltaRuleOpInterface>(op))
    rule = makeCommonRule(common);
  rule.chunked = !isa<RecurrentGatedDeltaRuleOp, RecurrentStageOp>(op);
  if (rule.chunked)
    rule.chunkSize = op->getAttrOfType<IntegerAttr>("chunk_size");
  llvm::TypeSwitch<Operation *>(op)
      .Case<ChunkGatedDeltaRuleBwdOp, BackwardStageOp>([&](auto backward) {
        rule.dO = backward.getDO();
        rule.dFinalState = backward.getDFinalState();
      })
      .Case([&](ChunkGatedDeltaRuleOp forward) {
        rule.stateInterval = forward.getStateIntervalAttr();
      })
      .Case([&](FusedStageOp forward) {
        rule.stateInterval = forward.getStateIntervalAttr();
        rule.sequenceSegments = forward.getSequenceSegmentsAttr();
      })
      .Case([&](ReplayStageOp replay) {
        rule.segmentLength = replay.getSegmentLengthAttr();
      })
      .Case([&](AdjointStageOp adjoint) {
        rule.dO = adjoint.getDO();
        rule.dFinalState = adjoint.getDFinalState();
        rule.segmentLength = adjoint.getSegmentLengthAttr();
      })
      .Case([&](AdjointPassStageOp pass) {
        rule.dO = pass.getDO();
        rule.ends = pass.getEnds();
      })
      .Case([&](GradientsStageOp gradients) {
        rule.dO = gradients.getDO();
        rule.writes = gradients.getWrites();
        rule.dV = gradients.getDv();
        rule.keptStates = gradients.getStates();
        rule.dKeptStates = gradients.getDStates();
        rule.segmentLength = gradients.getSegmentLengthAttr();
        rule.sequenceSegments = gradients.getSequenceSegmentsAttr();
        rule.stateInterval = gradients.getStateIntervalAttr();
      })
      .Case<PrepareStageOp, SegmentMapStageOp>([&](auto prepare) {
        rule.k = prepare.getK();
        rule.beta = prepare.getBeta();
        rule.gate = prepare.getGate();
        rule.cuSeqlens = prepare.getCuSeqlens();
        rule.aLog = prepare.getALog();
        rule.dtBias = prepare.getDtBias();
        rule.gateDomain = prepare.getGateDomain();
        rule.lowerBound = prepare.getLowerBoundAttr();
      })
      .Case([&](SegmentStartsStageOp stage) {
        rule.k = stage.getK();
        rule.gate = stage.getGate();
        rule.cuSeqlens = stage.getCuSeqlens();
        rule.aLog = stage.getALog();
        rule.dtBias = stage.getDtBias();
        rule.gateDomain = stage.getGateDomain();
        rule.lowerBound = stage.getLowerBoundAttr();
      })
      .Case([&](SegmentBoundariesStageOp cut) {
        rule.k = cut.getK();
        rule.cuSeqlens = cut.getCuSeqlens();
        rule.segments = cut.getSegmentsAttr();
        rule.segmentLength = cut.getSegmentLengthAttr();
      })
      .Case([&](SegmentScanStageOp scan) {
        rule.map = scan.getMap();
        rule.mapDecay = scan.getDecay();
        rule.states = scan.getStates();
        rule.initialState = scan.getInitialState();
        rule.firstSegments = scan.getFirstSegments();
        rule.before = scan.getBefore();
        rule.stateLayout = scan.getStateLayout();
        rule.segmentLayout = scan.getSegmentLayout().value_or(rule.stateLayout);
      })
      .Case<RunStageOp, LinearAttentionStageOp>([&](auto stage) {
        rule.q = stage.getQ();
        rule.k = stage.getK();
        rule.v = stage.getV();
        rule.initialState = stage.getInitialState();
        rule.cuSeqlens = stage.getCuSeqlens();
        rule.scale = stage.getScaleAttr();
        rule.stateLayout = stage.getStateLayout();
      });
  if (auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(op)) {
    rule.writes = backward.getWrites();
    rule.keptStates = backward.getStates();
    rule.stateInterval = backward.getStateIntervalAttr();
  }
  llvm::TypeSwitch<Operation *>(op).Case<FusedStageOp, StatePassStageOp>(
      [&](auto stage) {
        rule.starts = stage.getStarts();
        rule.before = stage.getBefore();
      });
  if (auto maps = dyn_cast<SegmentMapStageOp>(op))
    rule.starts = maps.getStarts();
  if (auto run = dyn_cast<RunStageOp>(op)) {
    rule.beta = run.getBeta();
    rule.bm = run.getBm();
    rule.decay = run.getDecay();
  }
  return rule;
}

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
  return getStateDims(getSequences(rule), rule.stateLayout);
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
  add("a_log", rule.aLog, {Dim::H});                          // delta_rule_c8
  add("dt_bias", rule.dtBias, bias);                          // delta_rule_c9
  add("d_o", rule.dO, values);                                // backward_c1
  add("d_final_state", rule.dFinalState, getStateDims(rule)); // backward_c2
  SmallVector<Dim, 4> kept = {Dim::S, Dim::H, Dim::V, Dim::K};
  Dim S = rule.dKeptStates ? Dim::KeptStates : Dim::S;
  add("writes", rule.writes, values);                          // gradients_c1
  add("dv", rule.dV, values);                                  // gradients_c2
  add("states", rule.keptStates, {S, Dim::H, Dim::V, Dim::K}); // gradients_c3
  add("d_states", rule.dKeptStates, kept);                     // gradients_c4
  add("map", rule.map, {Dim::S, Dim::H, Dim::K, Dim::K}); // segment_scan_c1
  bool hasDecays =
      rule.mapDecay && cast<ShapedType>(rule.mapDecay.getType()).getRank() == 3;
  add("decay", rule.mapDecay,
      getMapDecayDims(Dim::S, hasDecays)); // segment_scan_c2
  add("states", rule.states,
      getStateDims(Dim::S, rule.segmentLayout)); // segment_scan_c3
  add("first_segments", rule.firstSegments, {Dim::Boundaries});
  add("starts", rule.starts, {getSequences(rule), Dim::H}); // segment_starts_c3
  add("ends", rule.ends, {getSequences(rule), Dim::H});     // segment_starts_c4
  add("before", rule.before,
      {rule.map ? Dim::SegmentBoundaries
                : Dim::Boundaries}); // segment_before_c1
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
    results.push_back(
        {"final_state", getStateDims(rule), getStateElementType(rule)});
  if (rule.stateInterval)
    llvm::append_range(results, getSavedResults(rule));
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
static SmallVector<ResultShape> getPartResults(AdjointStageOp op,
                                               const Rule &rule) {
  Type element = getElementType(rule.v);
  SmallVector<ResultShape> results = {
      {"dv", {Dim::B, Dim::T, Dim::H, Dim::V}, element},
      {"d_states", {Dim::S, Dim::H, Dim::V, Dim::K}, element}};
  if (op->getNumResults() > 2)
    results.push_back(
        {"d_initial_state", getStateDims(rule), getStateElementType(rule)});
  return results;
}
static SmallVector<ResultShape> getPartResults(AdjointPassStageOp,
                                               const Rule &rule) {
  return {{"d_initial_state", getStateDims(rule), getStateElementType(rule)}};
}
static SmallVector<ResultShape> getPartResults(GradientsStageOp,
                                               const Rule &rule) {
  Type f32 = Float32Type::get(rule.k.getContext());
  SmallVector<Dim, 4> keys = {Dim::B, Dim::T, Dim::Hq, Dim::K};
  SmallVector<ResultShape> results = {{"dq", keys, nullptr},
                                      {"dk", keys, nullptr},
                                      {"dbeta", {Dim::B, Dim::T, Dim::H}, f32}};
  if (rule.gate)
    results.push_back({"dg", getGateDims(rule.gate), f32});
  return results;
}

/// Results of the stages that cut sequences and work on their segments.
static SmallVector<ResultShape> getSegmentResults(SegmentBoundariesStageOp op,
                                                  const Rule &rule) {
  Type boundary = rule.cuSeqlens ? getElementType(rule.cuSeqlens)
                                 : IntegerType::get(op.getContext(), 64);
  SmallVector<ResultShape> results = {
      {"boundaries", {Dim::SegmentBoundaries}, boundary},
      {"first_segments", {Dim::Boundaries}, boundary}};
  if (op->getNumResults() > 2)
    results.push_back({"before",
                       {Dim::SegmentBoundaries},
                       IntegerType::get(op.getContext(), 32)});
  return results;
}
static SmallVector<ResultShape> getSegmentResults(SegmentStartsStageOp op,
                                                  const Rule &rule) {
  Dim segments = getSequences(rule);
  Type token = IntegerType::get(op.getContext(), 32);
  if (op.getReverse())
    return {{"ends", {segments, Dim::H}, token}};
  return {{"starts", {segments, Dim::H}, token},
          {"decay", {segments, Dim::H}, Float32Type::get(op.getContext())}};
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
      .Case<ReplayStageOp, AdjointStageOp, AdjointPassStageOp,
            GradientsStageOp>(
          [&](auto stage) { return getPartResults(stage, rule); })
      .Case([&](StatePassStageOp) {
        return SmallVector<ResultShape>{getForwardResults(rule, true)[1]};
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
        // With a final state there are two, or four.
        return getForwardResults(rule, stage->getNumResults() % 2 == 0);
      });
}

RankedTensorType gdn::getResultType(const ResultShape &result,
                                    const RuleDims &dims) {
  SmallVector<int64_t> shape =
      llvm::map_to_vector(result.dims, [&](Dim dim) { return dims.get(dim); });
  return RankedTensorType::get(shape, result.element);
}
