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

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Where a size of `dims`, const or not, is kept.
template <typename Dims> static auto &sizeOf(Dims &dims, Dim dim) {
  switch (dim) {
  case Dim::B:
    return dims.B;
  case Dim::T:
    return dims.T;
  case Dim::Hq:
    return dims.Hq;
  case Dim::H:
    return dims.H;
  case Dim::K:
    return dims.K;
  case Dim::V:
    return dims.V;
  case Dim::C:
    return dims.C;
  case Dim::N:
  case Dim::Boundaries:
    break;
  }
  return dims.N;
}

StringRef gdn::getDimName(Dim dim) {
  switch (dim) {
  case Dim::B:
    return "B";
  case Dim::T:
    return "T";
  case Dim::Hq:
    return "Hq";
  case Dim::H:
    return "H";
  case Dim::K:
    return "K";
  case Dim::V:
    return "V";
  case Dim::N:
    return "N";
  case Dim::C:
    return "C";
  case Dim::Boundaries:
    return "N+1";
  }
  llvm_unreachable("covered switch");
}

int64_t RuleDims::get(Dim dim) const {
  int64_t size = sizeOf(*this, dim);
  bool plusOne = dim == Dim::Boundaries && !ShapedType::isDynamic(size);
  return plusOne ? size + 1 : size;
}

void RuleDims::set(Dim dim, int64_t size) {
  sizeOf(*this, dim) = dim == Dim::Boundaries ? size - 1 : size;
}

RuleDims gdn::getInitialDims(const Rule &rule) {
  RuleDims dims;
  if (rule.cuSeqlens) {
    dims.B = 1; // Packed sequences have no batch.
    auto type = dyn_cast<ShapedType>(rule.cuSeqlens.getType());
    if (type && type.hasRank() && type.getRank() == 1 && !type.isDynamicDim(0))
      dims.set(Dim::Boundaries, type.getDimSize(0));
  }
  if (rule.chunkSize)
    dims.C = rule.chunkSize.getInt();
  return dims;
}

const NamedShape *gdn::unify(ArrayRef<NamedShape> shapes, RuleDims &dims) {
  for (const NamedShape &shape : shapes) {
    if (shape.type.getRank() != static_cast<int64_t>(shape.dims.size()))
      return &shape;
    for (auto [dim, size] : llvm::zip(shape.dims, shape.type.getShape())) {
      if (ShapedType::isDynamic(size))
        continue;
      if (ShapedType::isDynamic(dims.get(dim)))
        dims.set(dim, size);
      else if (dims.get(dim) != size)
        return &shape;
    }
  }
  return nullptr;
}

RuleDims gdn::getRuleDims(const Rule &rule) {
  RuleDims dims = getInitialDims(rule);
  unify(getOperandShapes(rule), dims);
  if (!rule.cuSeqlens)
    dims.N = dims.B;
  return dims;
}

RuleDims gdn::getRuleDims(DeltaRuleOpInterface op) {
  return getRuleDims(getRule(op));
}

bool gdn::isChannelGate(DeltaRuleOpInterface op) {
  return op.getGate() &&
         cast<ShapedType>(op.getGate().getType()).getRank() == 4;
}

double gdn::getDefaultScale(int64_t channels) {
  return 1.0 / std::sqrt(static_cast<double>(channels));
}

double gdn::getScale(DeltaRuleOpInterface op) {
  if (FloatAttr scale = op.getScaleAttr())
    return scale.getValueAsDouble();
  return getDefaultScale(getRuleDims(op).K);
}

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
      .Case([&](PrepareStageOp prepare) {
        rule.k = prepare.getK();
        rule.beta = prepare.getBeta();
        rule.gate = prepare.getGate();
        rule.cuSeqlens = prepare.getCuSeqlens();
        rule.aLog = prepare.getALog();
        rule.dtBias = prepare.getDtBias();
        rule.gateDomain = prepare.getGateDomain();
        rule.lowerBound = prepare.getLowerBoundAttr();
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

/// Dimensions of a state. Without boundaries there is a sequence a batch row.
static SmallVector<Dim, 4> getStateDims(const Rule &rule) {
  Dim sequences = rule.cuSeqlens ? Dim::N : Dim::B;
  if (rule.stateLayout == StateLayout::KV)
    return {sequences, Dim::H, Dim::K, Dim::V};
  return {sequences, Dim::H, Dim::V, Dim::K};
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
  return shapes;
}

static NamedArray makeNamedArray(StringRef name, Value operand,
                                 ArrayRef<Dim> dims) {
  NamedArray array{name, operand, {}};
  for (Dim dim : dims)
    array.dims.push_back(getDimName(dim));
  return array;
}

SmallVector<NamedArray> gdn::getNamedOperands(Operation *op) {
  SmallVector<NamedArray> arrays;
  for (const NamedShape &shape : getOperandShapes(getRule(op)))
    arrays.push_back(makeNamedArray(shape.name, shape.value, shape.dims));
  return arrays;
}

SmallVector<NamedArray> gdn::getNamedResults(Operation *op) {
  SmallVector<NamedArray> arrays;
  for (const ResultShape &shape : getResultShapes(op, getRule(op)))
    arrays.push_back(makeNamedArray(shape.name, Value(), shape.dims));
  return arrays;
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
  return Float32Type::get(rule.k.getContext());
}

SmallVector<ResultShape> gdn::getForwardResults(const Rule &rule,
                                                bool withFinalState) {
  SmallVector<ResultShape> results = {
      {"o", {Dim::B, Dim::T, Dim::H, Dim::V}, getElementType(rule.v)}};
  if (withFinalState)
    results.push_back(
        {"final_state", getStateDims(rule), getStateElementType(rule)});
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

SmallVector<ResultShape> gdn::getResultShapes(Operation *op, const Rule &rule) {
  return llvm::TypeSwitch<Operation *, SmallVector<ResultShape>>(op)
      .Case<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp>(
          [&](auto forward) {
            return getForwardResults(rule, forward.getOutputFinalState());
          })
      .Case([&](ChunkGatedDeltaRuleBwdOp) { return getBackwardResults(rule); })
      .Case([&](BackwardStageOp) { return getBackwardStageResults(rule); })
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
        return getForwardResults(rule, stage->getNumResults() > 1);
      });
}

RankedTensorType gdn::getResultType(const ResultShape &result,
                                    const RuleDims &dims) {
  SmallVector<int64_t> shape =
      llvm::map_to_vector(result.dims, [&](Dim dim) { return dims.get(dim); });
  return RankedTensorType::get(shape, result.element);
}
