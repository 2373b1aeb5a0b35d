//===- PlanBackward.cpp - The stages of a backward ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientChain.h"
#include "PlanStages.h"

#include "gdn/Dialect/GDN/IR/RuleDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

SmallVector<Value> gdn::ruleOperands(DeltaRuleOpInterface op) {
  return {op.getQ(),         op.getK(),    op.getV(),
          op.getBeta(),      op.getGate(), op.getInitialState(),
          op.getCuSeqlens(), op.getALog(), op.getDtBias()};
}

SmallVector<Value> gdn::trainingOperands(OpBuilder &b, DeltaRuleOpInterface op,
                                         SmallVectorImpl<Value> *norms) {
  SmallVector<Value> operands = ruleOperands(op);
  if (!op.getGate())
    operands[4] = makeNeutralGate(b, op);
  if (!op.getQkL2norm())
    return operands;
  for (Value &rows : MutableArrayRef(operands).take_front(2)) {
    Value norm;
    rows = normalizeRows(b, op, rows, norms ? &norm : nullptr);
    if (norms)
      norms->push_back(norm);
  }
  return operands;
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

bool gdn::isInThreeStages(ChunkGatedDeltaRuleBwdOp op, const Plans &plans) {
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

/// Tokens between the states that the gradients of three stages read.
static int64_t getStateInterval(ChunkGatedDeltaRuleBwdOp op,
                                const Plans &plans) {
  return op.getStateInterval().value_or(plans.stateInterval);
}

/// Whether gradients have a kernel for query/key heads of one value head, and
/// another one for groups, which adds up heads in memory. Without such sums
/// they are rounded once, where a group's may need a pass behind them, and in
/// range of a bound there are registers for a norm's chain rule. Kernels that
/// carry states have none.
static bool hasKernelOfSingleHeads(ChunkGatedDeltaRuleBwdOp op,
                                   const Plans &plans) {
  bool carriesStates =
      !op.getWrites() && getStateInterval(op, plans) > 2 * kKeptSegment;
  return isChannelGate(op) && isInThreeStages(op, plans) && !carriesStates &&
         (hasBlocksInRange(op) || !op.getQkL2norm());
}

/// Whether gradients are those of rows in front of their norm if a query/key
/// head has one value head.
static bool takesNorms(ChunkGatedDeltaRuleBwdOp op, const Plans &plans) {
  return op.getQkL2norm() && hasKernelOfSingleHeads(op, plans);
}

/// The backward as three stages: the forward once more, the chain of the
/// state's gradient, and the gradients of all segments side by side. `isAlone`
/// says that a query/key head has one value head. Returns the gradients of the
/// recurrence, those of q and k as takesNorms() says.
static SmallVector<Value> planBackwardStages(OpBuilder &b,
                                             ChunkGatedDeltaRuleBwdOp op,
                                             const Plans &plans,
                                             int64_t chunkSize, bool isAlone) {
  RuleDims dims = getRuleDims(op);
  Type values = op.getV().getType();
  auto statesEvery = [&](int64_t tokens) -> Type {
    return RankedTensorType::get(
        {countSegments(dims, std::nullopt, tokens), dims.H, dims.V, dims.K},
        getElementTypeOrSelf(values));
  };
  SmallVector<Value> norms;
  bool ofRows = isAlone && takesNorms(op, plans);
  SmallVector<Value> operands =
      trainingOperands(b, op, ofRows ? &norms : nullptr);
  Value writes = op.getWrites(), keptStates = op.getStates();
  int64_t interval = getStateInterval(op, plans);
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
  norms.resize(2);
  operands.append(norms);
  SmallVector<Type> gradients = tokenGradientTypes(b, op);
  gradients.erase(gradients.begin() + 2);
  Type ofGates =
      cast<RankedTensorType>(operands[4].getType()).clone(b.getF32Type());
  if (!op.getGate())
    gradients.push_back(ofGates);
  // The stage rounds dq and dk, of a group their sum. Kernels for any gates,
  // and those that may follow the adjoint, have no registers for such a sum.
  auto q = cast<RankedTensorType>(op.getQ().getType());
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
  bool areOpen =
      ShapedType::isDynamic(dims.H) || ShapedType::isDynamic(dims.Hq);
  stage.setSingleHeads(isAlone && areOpen);
  SmallVector<Value> results(
      stage.getResults().drop_back(hasSums || !op.getGate() ? 1 : 0));
  results.insert(results.begin() + 2, chain.getResult(0));
  if (op.getInitialState())
    results.push_back(chain.getResult(2));
  return results;
}

/// The stages and the chain rules around them; `isAlone` as above.
static SmallVector<Value> planGroups(OpBuilder &b, ChunkGatedDeltaRuleBwdOp op,
                                     const Plans &plans, int64_t chunkSize,
                                     bool isAlone) {
  bool isThree = isInThreeStages(op, plans);
  SmallVector<Value> results = applyGradientChain(
      b, op,
      isThree ? planBackwardStages(b, op, plans, chunkSize, isAlone)
              : planBackwardStage(b, op, chunkSize),
      /*ofRows=*/isAlone && takesNorms(op, plans));
  for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
    if (result.getType() != type)
      result = tensor::CastOp::create(b, op.getLoc(), type, result);
  return results;
}

SmallVector<Value> gdn::planBackward(OpBuilder &b, ChunkGatedDeltaRuleBwdOp op,
                                     const Plans &plans, int64_t chunkSize) {
  RuleDims dims = getRuleDims(op);
  bool areKnown =
      !ShapedType::isDynamic(dims.H) && !ShapedType::isDynamic(dims.Hq);
  // In f32 they add up heads where they store.
  bool hasBoth =
      hasKernelOfSingleHeads(op, plans) &&
      (takesNorms(op, plans) || !getElementTypeOrSelf(op.getQ()).isF32());
  if (areKnown || !hasBoth)
    return planGroups(b, op, plans, chunkSize, areKnown && dims.H == dims.Hq);
  Location loc = op.getLoc();
  auto countHeads = [&](Value rows) -> Value {
    return tensor::DimOp::create(b, loc, rows, 2);
  };
  Value isAlone =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            countHeads(op.getQ()), countHeads(op.getV()));
  auto choice = scf::IfOp::create(b, loc, op->getResultTypes(), isAlone,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (Block *block : {choice.thenBlock(), choice.elseBlock()}) {
    b.setInsertionPointToStart(block);
    scf::YieldOp::create(b, loc,
                         planGroups(b, op, plans, chunkSize,
                                    /*isAlone=*/block == choice.thenBlock()));
  }
  return llvm::to_vector_of<Value>(choice.getResults());
}
