//===- ReadRule.cpp - Operands of a delta rule, whichever op has them -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

Rule gdn::getRule(Operation *op) {
  Rule rule;
  if (auto common = dyn_cast<DeltaRuleOpInterface>(op)) {
    rule = makeCommonRule(common);
    rule.stateIndices = common.getStateIndices();
    rule.firstState = common.getFirstState();
    rule.hasInitialState = common.getHasInitialState();
    rule.stepStates = common.getStepStates();
    rule.stepIndices = common.getStepIndices();
    rule.numAccepted = common.getNumAccepted();
    rule.parents = common.getParents();
    rule.stepStarts = common.getStepStarts();
    rule.stepIntervals = common.getStepIntervals();
  }
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
        rule.sequenceNumbers = forward.getSequenceNumbers();
        rule.cutSegments = forward.getFirstSegments();
        rule.numStates = forward.getNumStates();
        rule.wholeBegins = forward.getWholeBegins();
      })
      .Case([&](ReplayStageOp replay) {
        rule.segmentLength = replay.getSegmentLengthAttr();
      })
      .Case([&](ExpandStageOp expand) {
        rule.keptStates = expand.getStates();
        rule.segmentLength = expand.getSegmentLengthAttr();
        rule.stateInterval = expand.getStateIntervalAttr();
      })
      .Case([&](AdjointStageOp adjoint) {
        rule.dO = adjoint.getDO();
        rule.dFinalState = adjoint.getDFinalState();
        rule.reportingTiles = adjoint.getReportingTilesAttr();
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
        rule.progress = gradients.getProgress();
        rule.qNorm = gradients.getQRstd();
        rule.kNorm = gradients.getKRstd();
        rule.singleHeads = gradients.getSingleHeads();
        rule.segmentLength = gradients.getSegmentLengthAttr();
        rule.sequenceSegments = gradients.getSequenceSegmentsAttr();
        rule.sequenceNumbers = gradients.getSequenceNumbers();
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
        rule.beta = stage.getBeta();
        rule.gate = stage.getGate();
        rule.cuSeqlens = stage.getCuSeqlens();
        rule.aLog = stage.getALog();
        rule.dtBias = stage.getDtBias();
        rule.gateDomain = stage.getGateDomain();
        rule.lowerBound = stage.getLowerBoundAttr();
        rule.wholeHeads = stage.getWholeHeads();
        rule.wholeBegins = stage.getWholeBegins();
      })
      .Case([&](GateBoundStageOp stage) {
        rule.k = stage.getK();
        rule.gate = stage.getGate();
        rule.cuSeqlens = stage.getCuSeqlens();
        rule.aLog = stage.getALog();
        rule.dtBias = stage.getDtBias();
        rule.none = stage.getNone();
        rule.gateDomain = stage.getGateDomain();
        rule.lowerBound = stage.getLowerBoundAttr();
      })
      .Case([&](SegmentBoundariesStageOp cut) {
        rule.k = cut.getK();
        rule.gate = cut.getGate();
        rule.fewerSegments = cut.getFewerSegmentsAttr();
        rule.liveHeads = cut.getLiveHeadsAttr();
        rule.cuSeqlens = cut.getCuSeqlens();
        rule.cutsSequences = true;
        rule.cutLength = cut.getLength();
        rule.cutParts = cut.getParts();
        rule.longerCut = cut.getLongerLength();
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
        rule.starts = scan.getStarts();
        rule.boundaries = scan.getBoundaries();
        rule.lastSegments = scan.getLastSegments();
        rule.wholeHeads = scan.getWholeHeads();
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
  llvm::TypeSwitch<Operation *>(op).Case<RunStageOp, SegmentScanStageOp>(
      [&](auto stage) {
        rule.stateIndices = stage.getStateIndices();
        rule.firstState = stage.getFirstState();
        rule.hasInitialState = stage.getHasInitialState();
      });
  if (auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(op)) {
    rule.writes = backward.getWrites();
    rule.keptStates = backward.getStates();
    rule.stateInterval = backward.getStateIntervalAttr();
  }
  llvm::TypeSwitch<Operation *>(op).Case<FusedStageOp, StatePassStageOp>(
      [&](auto stage) {
        rule.sequenceState = stage.getSequenceState();
        rule.sequenceLayout =
            stage.getSequenceLayout().value_or(rule.stateLayout);
      });
  llvm::TypeSwitch<Operation *>(op)
      .Case<FusedStageOp, StatePassStageOp, SegmentMapStageOp>([&](auto stage) {
        rule.starts = stage.getStarts();
        rule.before = stage.getBefore();
        rule.closes = stage.getCloses();
        rule.wholeHeads = stage.getWholeHeads();
      });
  if (auto run = dyn_cast<RunStageOp>(op)) {
    rule.beta = run.getBeta();
    rule.bm = run.getBm();
    rule.decay = run.getDecay();
  }
  return rule;
}
