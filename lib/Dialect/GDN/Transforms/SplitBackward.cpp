//===- SplitBackward.cpp - Gradients of segments side by side -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each segment of a backward runs from the state before it and from the
// gradient of the state behind it. Both come from scans over the same maps
// (spec 6.2).
//
//===----------------------------------------------------------------------===//

#include "SplitSequences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Gradients of the states between segments, and of the initial state.
struct StateGradients {
  Value behind, initial;
};
} // namespace

/// `state` in the element type of `type`.
static Value roundState(ImplicitLocOpBuilder &b, Value state, Type type) {
  return state.getType() == type
             ? state
             : Value(arith::TruncFOp::create(b, type, state));
}

/// The scan from the gradient of the final state, or zero, to that of the
/// initial state, of type `initial` unless that is null. `added` is what each
/// segment adds to the gradient of the state before it. The scan may run at the
/// same time as what is behind it if `isBeside`.
template <typename Op>
static StateGradients scanGradients(Splitter<Op> &splitter, Value added,
                                    Value dFinal, Type initial,
                                    bool isBeside = false) {
  ImplicitLocOpBuilder &b = splitter.b;
  Type last;
  if (initial)
    last = cast<RankedTensorType>(initial).clone(
        dFinal ? getElementTypeOrSelf(dFinal.getType()) : Type(b.getF32Type()));
  auto scan =
      splitter.scanMaps(added, dFinal, last, /*reverse=*/true, isBeside);
  StateGradients gradients = {scan.getResult(0), Value()};
  if (initial)
    gradients.initial = roundState(b, scan.getResult(1), initial);
  return gradients;
}

//===----------------------------------------------------------------------===//
// One stage
//===----------------------------------------------------------------------===//

/// What a segment adds to the gradient of the state before it is that of the
/// same backward, run with a gradient of zero behind it.
void gdn::splitBackward(BackwardStageOp op, const Cut &cut) {
  Splitter<BackwardStageOp> splitter(op, cut);
  ImplicitLocOpBuilder &b = splitter.b;
  splitter.packOperands();
  splitter.cutSequences(op.getChunkSizeAttr());
  splitter.makeMapsAndStates();
  Value entry = splitter
                    .scanMaps(splitter.states, op.getInitialState(),
                              /*last=*/{}, /*reverse=*/false)
                    .getResult(0);
  Value dO = splitter.packed(op.getDO());
  SmallVector<Type> own(op.getResultTypes());
  Type stateType = op.getInitialState() ? own.pop_back_val() : Type();
  SmallVector<Type> types = llvm::map_to_vector(
      own, [&](Type type) { return Type(splitter.packedType(type)); });
  types.push_back(entry.getType());
  auto createBackward = [&](Value dState) {
    return BackwardStageOp::create(
        b, types, splitter.q, splitter.k, splitter.v, splitter.beta,
        splitter.gate, entry, splitter.boundaries, op.getALog(), op.getDtBias(),
        dO, dState, op.getScaleAttr(), op.getGateDomainAttr(),
        op.getLowerBoundAttr(), op.getQkL2normAttr(), op.getBetaDomainAttr(),
        splitter.segmentLayout(), op.getChunkSizeAttr());
  };
  Value added = createBackward(/*dState=*/{}).getResults().back();
  StateGradients states =
      scanGradients(splitter, added, op.getDFinalState(), stateType);
  auto gradients = createBackward(states.behind);
  SmallVector<Value> results;
  for (auto [value, type] : llvm::zip(gradients.getResults(), own))
    results.push_back(splitter.unpacked(value, type));
  if (stateType)
    results.push_back(states.initial);
  op->replaceAllUsesWith(results);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Three stages
//===----------------------------------------------------------------------===//

namespace {
/// The stages of one backward. It has no `replay` where its forward saved what
/// that makes.
struct Parts {
  ReplayStageOp replay;
  AdjointStageOp adjoint;
  GradientsStageOp gradients;
};

/// Writes the stages of a backward for its segments.
class PartsSplitter {
public:
  PartsSplitter(Parts parts, const Cut &cut)
      : parts(parts), splitter(parts.adjoint, cut), b(splitter.b) {
    // Behind the operands of all stages.
    if (!parts.replay)
      b.setInsertionPoint(parts.gradients);
    else if (parts.adjoint->isBeforeInBlock(parts.replay))
      b.setInsertionPoint(parts.replay);
  }
  void split();

private:
  Value findEnds();
  Value addGradients(Value ends);
  /// The states before segments; null without a replay, which alone reads them.
  Value scanStates();
  /// These states, and the gradients of those behind segments.
  std::pair<Value, StateGradients> makeStates();
  /// The stage that makes writes and states once more, from the states before
  /// segments.
  ReplayStageOp createReplay(Value entry);
  /// The recurrence from the gradients of the states behind segments.
  AdjointStageOp createAdjoint(Value behind);
  GradientsStageOp createGradients(ReplayStageOp replay,
                                   AdjointStageOp adjoint);
  /// The type of states that a stage keeps every `length` tokens, given that
  /// without segments.
  Type keptType(Type type, int64_t length);
  /// The types of what a recurrence makes for each token, and of its states.
  template <typename StageOp> SmallVector<Type> recurrenceTypes(StageOp op);
  void replace(Operation *op, ValueRange results);

  Parts parts;
  Splitter<AdjointStageOp> splitter;
  ImplicitLocOpBuilder &b;
  Value dO;
};
} // namespace

/// Where segments end for a head as far as the gradients of the states before
/// them go; null for their last tokens. With a gate a channel only starts are
/// found.
Value PartsSplitter::findEnds() {
  if (!splitter.mayForget() || isChannelGate(parts.adjoint))
    return {};
  RuleDims &dims = splitter.dims;
  Type type = RankedTensorType::get({dims.S, dims.H}, b.getI32Type());
  return splitter.createStarts(type, /*reverse=*/true).getResult(0);
}

/// What the gradient of the state before each segment is where that of the
/// state behind it is zero.
Value PartsSplitter::addGradients(Value ends) {
  AdjointStageOp op = parts.adjoint;
  RuleDims &dims = splitter.dims;
  auto pass = AdjointPassStageOp::create(
      b,
      RankedTensorType::get({dims.S, dims.H, dims.V, dims.K}, b.getF32Type()),
      splitter.q, splitter.k, splitter.v, splitter.beta, splitter.gate,
      /*initial_state=*/Value(), splitter.boundaries, op.getALog(),
      op.getDtBias(), dO, ends, op.getScaleAttr(), op.getGateDomainAttr(),
      op.getLowerBoundAttr(), op.getQkL2normAttr(), op.getBetaDomainAttr(),
      splitter.segmentLayout(), op.getChunkSizeAttr(), splitter.cut.sideBySide);
  return pass.getResult(0);
}

Value PartsSplitter::scanStates() {
  if (!parts.replay)
    return {};
  return splitter
      .scanMaps(splitter.states, parts.replay.getInitialState(), /*last=*/{},
                /*reverse=*/false)
      .getResult(0);
}

std::pair<Value, StateGradients> PartsSplitter::makeStates() {
  AdjointStageOp op = parts.adjoint;
  bool hasReplay = static_cast<bool>(parts.replay);
  // What makes the gradients' B, the maps and B takes nothing of each other; so
  // do the scans. The gradients' B is first: it takes longest.
  Value ends = findEnds();
  splitter.findStarts();
  Value added = addGradients(ends);
  splitter.addMaps(/*areBeside=*/hasReplay);
  if (hasReplay)
    splitter.addStates();
  Type initial = op.getNumResults() > 2 ? op.getResult(2).getType() : Type();
  StateGradients gradients = scanGradients(splitter, added, op.getDFinalState(),
                                           initial, /*isBeside=*/hasReplay);
  return {scanStates(), gradients};
}

Type PartsSplitter::keptType(Type type, int64_t length) {
  auto states = cast<RankedTensorType>(type);
  RuleDims dims = splitter.dims;
  auto k = cast<RankedTensorType>(splitter.k.getType());
  dims.B = 1;
  dims.T = k.getDimSize(1);
  dims.N = dims.S;
  SmallVector<int64_t> shape(states.getShape());
  shape.front() = countSegments(dims, /*segments=*/std::nullopt, length);
  return RankedTensorType::get(shape, states.getElementType());
}

template <typename StageOp>
SmallVector<Type> PartsSplitter::recurrenceTypes(StageOp op) {
  return {splitter.packedType(op.getResult(0).getType()),
          keptType(op.getResult(1).getType(), op.getSegmentLength())};
}

ReplayStageOp PartsSplitter::createReplay(Value entry) {
  ReplayStageOp op = parts.replay;
  return ReplayStageOp::create(
      b, recurrenceTypes(op), splitter.q, splitter.k, splitter.v, splitter.beta,
      splitter.gate, entry, splitter.boundaries, op.getALog(), op.getDtBias(),
      op.getScaleAttr(), op.getGateDomainAttr(), op.getLowerBoundAttr(),
      op.getQkL2normAttr(), op.getBetaDomainAttr(), splitter.segmentLayout(),
      op.getChunkSizeAttr(), op.getSegmentLengthAttr(), /*beside=*/UnitAttr());
}

AdjointStageOp PartsSplitter::createAdjoint(Value behind) {
  AdjointStageOp op = parts.adjoint;
  // Of the two recurrences the first says whether they run beside each other.
  // It was replay.
  UnitAttr beside = parts.replay ? parts.replay.getBesideAttr() : UnitAttr();
  return AdjointStageOp::create(
      b, recurrenceTypes(op), splitter.q, splitter.k, splitter.v, splitter.beta,
      splitter.gate, /*initial_state=*/Value(), splitter.boundaries,
      op.getALog(), op.getDtBias(), dO, behind, op.getScaleAttr(),
      op.getGateDomainAttr(), op.getLowerBoundAttr(), op.getQkL2normAttr(),
      op.getBetaDomainAttr(), splitter.segmentLayout(), op.getChunkSizeAttr(),
      op.getSegmentLengthAttr(), beside,
      /*reporting_tiles=*/IntegerAttr());
}

GradientsStageOp PartsSplitter::createGradients(ReplayStageOp replay,
                                                AdjointStageOp adjoint) {
  GradientsStageOp op = parts.gradients;
  SmallVector<Type> types =
      llvm::map_to_vector(op.getResultTypes(), [&](Type type) {
        return Type(splitter.packedType(type));
      });
  Value writes = replay ? replay.getResult(0) : splitter.packed(op.getWrites());
  Value states = replay ? replay.getResult(1) : op.getStates();
  return GradientsStageOp::create(
      b, types, splitter.q, splitter.k, splitter.v, splitter.beta,
      splitter.gate, /*initial_state=*/Value(), splitter.boundaries,
      op.getALog(), op.getDtBias(), dO, writes, adjoint.getResult(0), states,
      adjoint.getResult(1), /*progress=*/Value(), splitter.sequenceNumbers,
      splitter.packed(op.getQRstd()), splitter.packed(op.getKRstd()),
      op.getScaleAttr(), op.getGateDomainAttr(), op.getLowerBoundAttr(),
      op.getQkL2normAttr(), op.getBetaDomainAttr(), splitter.segmentLayout(),
      op.getChunkSizeAttr(), op.getSegmentLengthAttr(),
      replay ? IntegerAttr() : splitter.cut.segments, op.getStateIntervalAttr(),
      op.getSingleHeadsAttr());
}

/// Replaces the results of `op` that somebody reads by `results`, which may be
/// packed.
void PartsSplitter::replace(Operation *op, ValueRange results) {
  for (auto [old, result] : llvm::zip(op->getResults(), results))
    if (!old.use_empty())
      old.replaceAllUsesWith(splitter.unpacked(result, old.getType()));
}

void PartsSplitter::split() {
  auto [replay, adjoint, gradients] = parts;
  splitter.packOperands();
  dO = splitter.packed(adjoint.getDO());
  // Chunks of all stages lie as without the split. The states that a forward
  // saved have the numbers of whole sequences.
  splitter.cutSequences(cutsOf(gradients), /*runsBefore=*/false,
                        /*numbersSequences=*/!replay &&
                            splitter.cut.lengthOfCall);
  auto [entry, states] = makeStates();
  AdjointStageOp newAdjoint = createAdjoint(states.behind);
  ReplayStageOp newReplay = replay ? createReplay(entry) : ReplayStageOp();
  GradientsStageOp newGradients = createGradients(newReplay, newAdjoint);
  if (states.initial)
    adjoint.getResult(2).replaceAllUsesWith(states.initial);
  replace(gradients, newGradients.getResults());
  // It alone reads the states that the others keep, which are not packed as
  // tokens are.
  gradients->dropAllReferences();
  replace(adjoint, newAdjoint.getResults());
  if (replay)
    replace(replay, newReplay.getResults());
  // The builder stands before one of them as long as results are unpacked.
  gradients.erase();
  adjoint.erase();
  if (replay)
    replay.erase();
}

/// Whether two stages take the same of what a forward takes, by the same rule.
static bool haveSameRule(DeltaRuleOpInterface x, DeltaRuleOpInterface y) {
  constexpr StringLiteral kRule[] = {"scale",       "gate_domain",
                                     "lower_bound", "qk_l2norm",
                                     "beta_domain", "state_layout"};
  return x.getQ() == y.getQ() && x.getK() == y.getK() && x.getV() == y.getV() &&
         x.getBeta() == y.getBeta() && x.getGate() == y.getGate() &&
         x.getCuSeqlens() == y.getCuSeqlens() && x.getALog() == y.getALog() &&
         x.getDtBias() == y.getDtBias() &&
         llvm::all_of(kRule, [&](StringRef name) {
           return x->getAttr(name) == y->getAttr(name);
         });
}

/// An op that reads `first` before `second`, where nothing of a split backward
/// is there yet; null for none.
static Operation *findReaderBetween(Operation *first, Operation *second) {
  for (Operation *user : first->getUsers()) {
    Operation *reader = first->getBlock()->findAncestorOpInBlock(*user);
    if (reader && reader->isBeforeInBlock(second))
      return user;
  }
  return nullptr;
}

/// Whether the stages lie so that those of segments may replace them: none in
/// another block, and none of the first one's results read before the second,
/// in front of which segments are computed.
static LogicalResult checkOrder(const Parts &parts) {
  auto [replay, adjoint, gradients] = parts;
  Block *block = gradients->getBlock();
  if (adjoint->getBlock() != block || (replay && replay->getBlock() != block))
    return gradients.emitOpError("expected gdn.stage.replay and "
                                 "gdn.stage.adjoint in its block to split, "
                                 "got another");
  Operation *first = adjoint, *second = gradients;
  if (replay)
    second = replay;
  if (second->isBeforeInBlock(first))
    std::swap(first, second);
  Operation *reader = findReaderBetween(first, second);
  if (!reader)
    return success();
  InFlightDiagnostic error = first->emitOpError()
                             << "expected results that nobody reads before "
                             << second->getName() << " to split, got a reader";
  error.attachNote(reader->getLoc()) << "reader is here";
  return error;
}

/// The stages of which `gradients` is the last.
static FailureOr<Parts> findParts(GradientsStageOp gradients) {
  Parts parts = {gradients.getWrites().getDefiningOp<ReplayStageOp>(),
                 gradients.getDv().getDefiningOp<AdjointStageOp>(), gradients};
  auto [replay, adjoint, last] = parts;
  if (!adjoint || (replay && !haveSameRule(replay, gradients)) ||
      !haveSameRule(adjoint, gradients) || adjoint.getDO() != gradients.getDO())
    return gradients.emitOpError("expected dv to split of gdn.stage.adjoint, "
                                 "and writes of gdn.stage.replay if of any, "
                                 "with the same operands and rule, got others");
  if (adjoint.getReportingTiles() || gradients.getProgress() ||
      gradients.getSequenceNumbers() || gradients.getSequenceSegments())
    return gradients.emitOpError("expected whole sequences to split, without "
                                 "progress, got others");
  // Segments number the states that are kept otherwise.
  if (gradients.getDStates() != adjoint.getResult(1) ||
      !adjoint.getResult(1).hasOneUse() ||
      (replay && (gradients.getStates() != replay.getResult(1) ||
                  !replay.getResult(1).hasOneUse())))
    return gradients.emitOpError("expected to be the only one that reads the "
                                 "states of its recurrences to split, got "
                                 "others");
  if (failed(checkOrder(parts)))
    return failure();
  return parts;
}

LogicalResult gdn::splitBackward(GradientsStageOp op, const Cut &cut) {
  FailureOr<Parts> parts = findParts(op);
  if (failed(parts) || (!parts->replay && failed(checkSavedCut(op, cut))))
    return failure();
  PartsSplitter(*parts, cut).split();
  return success();
}
