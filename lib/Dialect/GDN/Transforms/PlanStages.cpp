//===- PlanStages.cpp - Choose the kernels of every layer op --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanStages.h"

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
struct PlanStages : gdn::impl::PlanStagesPassBase<PlanStages> {
  using PlanStagesPassBase::PlanStagesPassBase;
  void runOnOperation() override;
  /// Checks the options.
  FailureOr<Plans> choosePlans();
  /// Replaces one layer op by its stages; a stage op stays.
  void replaceLayer(DeltaRuleOpInterface op, Plans plans);
};
} // namespace

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
  operands.append(9, Value());
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
