//===- PlanStages.cpp - Choose the kernels of every layer op --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientChain.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

#define DEBUG_TYPE "gdn-plan-stages"

namespace mlir::gdn {
#define GEN_PASS_DEF_PLANSTAGESPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
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

struct PlanStages : gdn::impl::PlanStagesPassBase<PlanStages> {
  using PlanStagesPassBase::PlanStagesPassBase;
  void runOnOperation() override;
  /// Checks the options.
  FailureOr<Plans> choosePlans();
  /// Replaces one layer op by its stages; a stage op stays.
  void replaceLayer(DeltaRuleOpInterface op, Plans plans);
};
} // namespace

/// Attributes that a stage op of type `StageOp` shares with a layer op, with
/// the chunk size made explicit where the stage has one.
template <typename StageOp>
static SmallVector<NamedAttribute> stageAttributes(Operation *op,
                                                   int64_t chunkSize) {
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
static StageOp createStage(OpBuilder &b, DeltaRuleOpInterface op,
                           TypeRange results, ArrayRef<Value> operands,
                           int64_t chunkSize) {
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
static SmallVector<Value> ruleOperands(DeltaRuleOpInterface op) {
  return {op.getQ(),         op.getK(),    op.getV(),
          op.getBeta(),      op.getGate(), op.getInitialState(),
          op.getCuSeqlens(), op.getALog(), op.getDtBias()};
}

/// The operands of the stages of a backward in three kernels, and of a forward
/// that saves for one: rows of q and k of length 1 where the op asks for it,
/// and a gate.
static SmallVector<Value> trainingOperands(OpBuilder &b,
                                           DeltaRuleOpInterface op) {
  SmallVector<Value> operands = ruleOperands(op);
  if (!op.getGate())
    operands[4] = makeNeutralGate(b, op);
  if (op.getQkL2norm()) {
    operands[0] = normalizeRows(b, op, op.getQ());
    operands[1] = normalizeRows(b, op, op.getK());
  }
  return operands;
}

/// A forward token by token. Returns the results.
static SmallVector<Value> planRecurrent(OpBuilder &b, DeltaRuleOpInterface op) {
  SmallVector<Value> operands = ruleOperands(op);
  operands.append({op.getStateIndices(), op.getFirstState(),
                   op.getHasInitialState(), op.getStepStates(),
                   op.getStepIndices(), op.getNumAccepted(), op.getParents()});
  auto stage = createStage<RecurrentStageOp>(b, op, op->getResultTypes(),
                                             operands, /*chunkSize=*/0);
  return llvm::to_vector_of<Value>(stage.getResults());
}

/// A forward as one stage. Returns the results.
static SmallVector<Value> planFused(OpBuilder &b, ChunkGatedDeltaRuleOp op,
                                    int64_t chunkSize) {
  bool saves = op.getStateInterval().has_value();
  auto operands = saves ? trainingOperands(b, op) : ruleOperands(op);
  operands.append({op.getStateIndices(), op.getFirstState(),
                   op.getHasInitialState(), op.getStepStates(),
                   op.getStepIndices(), op.getStepStarts(),
                   op.getStepIntervals()});
  // Only segments have starts, know those beside them, and are of sequences.
  operands.append(7, Value());
  auto stage = createStage<FusedStageOp>(b, op, op->getResultTypes(), operands,
                                         chunkSize);
  // The backward takes normalised rows, rounded: so what it reads is of these.
  if (saves)
    stage.setQkL2norm(false);
  return llvm::to_vector_of<Value>(stage.getResults());
}

/// A forward as prepare and run. Returns the results.
static SmallVector<Value> planSeparate(OpBuilder &b, ChunkGatedDeltaRuleOp op,
                                       int64_t chunkSize) {
  auto k = cast<RankedTensorType>(op.getK().getType());
  auto beta = cast<RankedTensorType>(op.getBeta().getType());
  SmallVector<int64_t> shape(beta.getShape());
  shape.push_back(chunkSize);
  // Entries of Bm are in [-1, 1]: f16 holds them best in 16 bits (spec 3.4, 8).
  Type element = k.getElementType();
  if (!element.isF32())
    element = b.getF16Type();
  SmallVector<Type> types = {RankedTensorType::get(shape, element)};
  if (Value gate = op.getGate())
    types.push_back(cast<RankedTensorType>(gate.getType())
                        .clone(support::cumulatedGateType(k.getElementType())));
  auto prepare = createStage<PrepareStageOp>(b, op, types,
                                             {op.getK(), op.getBeta(),
                                              op.getGate(), op.getCuSeqlens(),
                                              op.getALog(), op.getDtBias()},
                                             chunkSize);
  Value decay = op.getGate() ? Value(prepare.getResult(1)) : Value();
  auto run = createStage<RunStageOp>(
      b, op, op->getResultTypes(),
      {op.getQ(), op.getK(), op.getV(), op.getBeta(), prepare.getResult(0),
       decay, op.getInitialState(), op.getCuSeqlens(), op.getStateIndices(),
       op.getFirstState(), op.getHasInitialState()},
      chunkSize);
  return llvm::to_vector_of<Value>(run.getResults());
}

/// Result types of a backward stage before the gradients of states: dq and dk
/// of every value head, dv, dbeta and, where there is a gate, dg.
static SmallVector<Type> tokenGradientTypes(OpBuilder &b,
                                            ChunkGatedDeltaRuleBwdOp op) {
  auto v = cast<RankedTensorType>(op.getV().getType());
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto beta = cast<RankedTensorType>(op.getBeta().getType());
  Type f32 = b.getF32Type();
  auto perHead = RankedTensorType::get(
      {q.getDimSize(0), q.getDimSize(1), v.getDimSize(2), q.getDimSize(3)},
      f32);
  SmallVector<Type> types = {perHead, perHead, v, beta.clone(f32)};
  if (Value gate = op.getGate())
    types.push_back(cast<RankedTensorType>(gate.getType()).clone(f32));
  return types;
}

/// The backward as one stage. Returns the gradients of the recurrence.
static SmallVector<Value> planBackwardStage(OpBuilder &b,
                                            ChunkGatedDeltaRuleBwdOp op,
                                            int64_t chunkSize) {
  SmallVector<Type> types = tokenGradientTypes(b, op);
  if (Value state = op.getInitialState())
    types.push_back(state.getType());
  SmallVector<Value> operands = ruleOperands(op);
  operands.append({op.getDO(), op.getDFinalState()});
  auto stage = createStage<BackwardStageOp>(b, op, types, operands, chunkSize);
  return llvm::to_vector_of<Value>(stage.getResults());
}

/// Tokens between the states that a backward in three stages keeps: the largest
/// chunk that its gradients are computed in.
static constexpr int64_t kKeptSegment = 64;

/// Whether this backward becomes three stages, or the last two of them, which
/// alone read what a forward saves.
static bool isInThreeStages(ChunkGatedDeltaRuleBwdOp op, Plans plans) {
  return op.getWrites() || plans.backward == BackwardPlan::Three;
}

/// One of the three stages. Rows of q and k have been normalised before it.
template <typename StageOp>
static StageOp createPart(OpBuilder &b, ChunkGatedDeltaRuleBwdOp op,
                          TypeRange types, ArrayRef<Value> operands,
                          int64_t chunkSize) {
  auto stage = createStage<StageOp>(b, op, types, operands, chunkSize);
  stage.setSegmentLength(kKeptSegment);
  stage.setQkL2norm(false);
  return stage;
}

/// The backward as three stages: the forward once more, the chain of the
/// state's gradient, and the gradients of all segments side by side. Returns
/// the gradients of the recurrence.
static SmallVector<Value> planBackwardStages(OpBuilder &b,
                                             ChunkGatedDeltaRuleBwdOp op,
                                             const Plans &plans,
                                             int64_t chunkSize) {
  RuleDims dims = getRuleDims(op);
  Type values = op.getV().getType();
  auto statesEvery = [&](int64_t tokens) -> Type {
    return RankedTensorType::get(
        {countSegments(dims, std::nullopt, tokens), dims.H, dims.V, dims.K},
        getElementTypeOrSelf(values));
  };
  SmallVector<Value> operands = trainingOperands(b, op);
  Value writes = op.getWrites(), keptStates = op.getStates();
  int64_t interval = op.getStateInterval().value_or(plans.stateInterval);
  if (!writes) {
    auto replay = createPart<ReplayStageOp>(
        b, op, {values, statesEvery(interval)}, operands, chunkSize);
    replay.setSegmentLength(interval);
    // On a GPU two V tiles of a head are a cluster, and such kernels run at the
    // same time where both fit.
    replay.setBeside(plans.sideBySide || dims.V == 128);
    writes = replay.getResult(0);
    keptStates = replay.getResult(1);
  }
  operands.push_back(op.getDO());
  SmallVector<Value> chainOperands = operands;
  chainOperands.push_back(op.getDFinalState());
  SmallVector<Type> types = {values, statesEvery(kKeptSegment)};
  if (Value state = op.getInitialState())
    types.push_back(state.getType());
  auto chain =
      createPart<AdjointStageOp>(b, op, types, chainOperands, chunkSize);
  // The gradients make a state before every second chunk themselves.
  if (op.getWrites() && interval > 2 * kKeptSegment) {
    SmallVector<Value> own(ArrayRef(operands).drop_back());
    own[2] = writes; // in the place of v
    own.push_back(keptStates);
    keptStates = createPart<ExpandStageOp>(b, op, statesEvery(kKeptSegment),
                                           own, kKeptSegment)
                     ->getResult(0);
    chain.setBeside(true); // which needs none of the states
    interval = kKeptSegment;
  }
  operands.append({writes, chain.getResult(0), keptStates, chain.getResult(1),
                   /*progress=*/Value(), /*sequence_numbers=*/Value()});
  SmallVector<Type> gradients = tokenGradientTypes(b, op);
  gradients.erase(gradients.begin() + 2);
  Type ofGates =
      cast<RankedTensorType>(operands[4].getType()).clone(b.getF32Type());
  if (!op.getGate())
    gradients.push_back(ofGates);
  // The stage rounds dq and dk, of a group their sum. Kernels for any gates,
  // and those that may follow the adjoint, have no registers for such a sum.
  auto q = cast<RankedTensorType>(op.getQ().getType());
  bool isAlone = dims.H == dims.Hq && !ShapedType::isDynamic(dims.H);
  bool isSummed = isChannelGate(op) && !isAlone;
  bool isWide = !hasBlocksInRange(op) && (isSummed || op.getQkL2norm());
  isWide |= isSummed && op.getWrites();
  gradients[0] = gradients[1] = isWide ? q.clone(b.getF32Type()) : q;
  bool hasSums = isSummed && !isWide;
  if (hasSums)
    gradients.push_back(ofGates);
  auto stage =
      createPart<GradientsStageOp>(b, op, gradients, operands, kKeptSegment);
  stage.removeStateIntervalAttr();
  if (interval != kKeptSegment)
    stage.setStateInterval(interval);
  SmallVector<Value> results(
      stage.getResults().drop_back(hasSums || !op.getGate() ? 1 : 0));
  results.insert(results.begin() + 2, chain.getResult(0));
  if (op.getInitialState())
    results.push_back(chain.getResult(2));
  return results;
}

/// The backward's stages, with the chain rules of spec 5.5 around them.
/// Returns the results; each may know more of its shape than the op says.
static SmallVector<Value> planBackward(OpBuilder &b,
                                       ChunkGatedDeltaRuleBwdOp op, Plans plans,
                                       int64_t chunkSize) {
  bool isThree = isInThreeStages(op, plans);
  SmallVector<Value> results =
      applyGradientChain(b, op,
                         isThree ? planBackwardStages(b, op, plans, chunkSize)
                                 : planBackwardStage(b, op, chunkSize));
  for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
    if (result.getType() != type)
      result = tensor::CastOp::create(b, op.getLoc(), type, result);
  return results;
}

FailureOr<Plans> PlanStages::choosePlans() {
  if (!support::isChunkSize(chunkSize)) {
    InFlightDiagnostic error =
        getOperation().emitError("expected chunk-size to be one of ");
    llvm::interleaveComma(support::chunkSizes, error);
    return error << ", got " << chunkSize.getValue();
  }
  if (plan != "fused" && plan != "separate")
    return getOperation().emitError(
               "expected plan 'fused' or 'separate', got '")
           << plan.getValue() << "'";
  if (backward != "one" && backward != "three")
    return getOperation().emitError("expected backward 'one' or 'three', got '")
           << backward.getValue() << "'";
  if (stateInterval < 1 || stateInterval % kKeptSegment != 0)
    return getOperation().emitError(
               "expected state-interval to be a positive multiple of ")
           << kKeptSegment << ", got " << stateInterval.getValue();
  return Plans{plan == "fused" ? Plan::Fused : Plan::Separate,
               backward == "one" ? BackwardPlan::One : BackwardPlan::Three,
               sideBySide, stateInterval};
}

void PlanStages::replaceLayer(DeltaRuleOpInterface op, Plans plans) {
  OpBuilder b(op);
  auto chunkOf = [&](auto layer) -> int64_t {
    return layer.getChunkSize().value_or(chunkSize);
  };
  SmallVector<Value> results;
  if (auto chunk = dyn_cast<ChunkGatedDeltaRuleOp>(*op))
    results = plans.forward == Plan::Separate
                  ? planSeparate(b, chunk, chunkOf(chunk))
                  : planFused(b, chunk, chunkOf(chunk));
  else if (auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(*op))
    results = planBackward(b, backward, plans, chunkOf(backward));
  else if (isa<RecurrentGatedDeltaRuleOp>(op))
    results = planRecurrent(b, op);
  else
    return; // a stage op already
  op->replaceAllUsesWith(results);
  op->erase();
}

/// A backward in one stage sums gradients over value heads in ops behind it,
/// which must know them.
static LogicalResult checkHeads(DeltaRuleOpInterface layer, Plans plans) {
  auto op = dyn_cast<ChunkGatedDeltaRuleBwdOp>(*layer);
  if (!op || isInThreeStages(op, plans))
    return success();
  for (auto [name, rows] : {std::pair("Hq", op.getQ()), {"H", op.getV()}})
    if (cast<ShapedType>(rows.getType()).isDynamicDim(2))
      return op.emitOpError("expected a static ")
             << name << " for a backward in one stage, got " << rows.getType();
  return success();
}

/// What a plan can save and keep.
static LogicalResult checkSaved(DeltaRuleOpInterface layer, Plans plans) {
  auto op = dyn_cast<ChunkGatedDeltaRuleOp>(*layer);
  if (!op || plans.forward == Plan::Fused ||
      !(op.getStateInterval() || op.getStepIntervals()))
    return success();
  return op.emitOpError("expected plan 'fused' with ")
         << (op.getStateInterval() ? "state_interval" : "step_intervals")
         << ", got 'separate'";
}

void PlanStages::runOnOperation() {
  FailureOr<Plans> plans = choosePlans();
  if (failed(plans))
    return signalPassFailure();
  SmallVector<DeltaRuleOpInterface> layers;
  getOperation()->walk([&](DeltaRuleOpInterface op) { layers.push_back(op); });
  for (DeltaRuleOpInterface op : layers) {
    if (!isa<RankedTensorType>(op.getK().getType())) {
      op->emitOpError("expected the tensor form, got operands of type ")
          << op.getK().getType();
      return signalPassFailure();
    }
    if (failed(checkHeads(op, *plans)) || failed(checkSaved(op, *plans)))
      return signalPassFailure();
    replaceLayer(op, *plans);
  }
}
