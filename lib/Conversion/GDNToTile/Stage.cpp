//===- Stage.cpp - Read stage ops -----------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stage.h"

#include "StageOperands.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// A result of a stage op with what its dimensions are (NamedOutput). One that
/// belongs to an optional operand is there exactly if the operand is; others
/// may be left out at the end of the list.
struct OutputForm {
  StringLiteral name;
  ArrayRef<Axis> dims;
  StringLiteral operand = "";
};

/// What distinguishes one stage op from another.
struct StageForm {
  StringLiteral op;
  /// Operands as the op declares them; an empty name is not read.
  ArrayRef<StringLiteral> operands;
  ArrayRef<OutputForm> outputs;
  void (*write)(Program &);
  bool splitsV, rounds;
  int64_t parts = 1;
  bool groupsHeads = false;
};
} // namespace

/// Parts of a sequence whose gradients are computed side by side where the pass
/// does not know the device.
static constexpr int64_t kParts = 16;

static constexpr Axis kPerVTile[] = {Axis::Sequence, Axis::Head, Axis::VTile};
static constexpr Axis kPerToken[] = {Axis::Batch, Axis::Token, Axis::Head};
static constexpr Axis kKeysPerToken[] = {Axis::Batch, Axis::Token,
                                         Axis::KeyHead};
static constexpr Axis kPerSequence[] = {Axis::Sequence, Axis::Head};
static constexpr Axis kOneNumber[] = {Axis::One, Axis::One, Axis::One};
static constexpr Axis kPerSegment[] = {Axis::Segment, Axis::Head};
static constexpr Axis kSegmentBoundaries[] = {Axis::SegmentBoundary};
static constexpr Axis kSegments[] = {Axis::Segment};
static constexpr Axis kSequences[] = {Axis::Sequence};
static constexpr Axis kSampledHeads[] = {Axis::SampledHead};
static constexpr Axis kHeads[] = {Axis::Head};
static constexpr Axis kPerCutSequence[] = {Axis::CutSequence, Axis::Head};
static constexpr Axis kSequenceBoundaries[] = {Axis::SequenceBoundary};

static constexpr OutputForm kForwardOutputs[] = {{"o", kPerToken},
                                                 {"final_state", kPerSequence}};
static constexpr OutputForm kStepsOutputs[] = {{"o", kPerToken},
                                               {"step_states", kPerSequence}};
static constexpr OutputForm kStepsOutputsWithState[] = {
    {"o", kPerToken},
    {"final_state", kPerSequence},
    {"step_states", kPerSequence}};
static constexpr OutputForm kSegmentsForwardOutputs[] = {
    {"o", kPerToken}, {"final_state", kPerCutSequence}};
static constexpr OutputForm kSavingOutputs[] = {
    {"o", kPerToken}, {"writes", kPerToken}, {"states", kPerSegment}};
static constexpr OutputForm kSavingOutputsWithState[] = {
    {"o", kPerToken},
    {"final_state", kPerSequence},
    {"writes", kPerToken},
    {"states", kPerSegment}};
static constexpr OutputForm kStatePassOutputs[] = {
    {"final_state", kPerSequence}};
static constexpr OutputForm kPrepareOutputs[] = {{"bm", kPerToken},
                                                 {"decay", kPerToken, "gate"}};
static constexpr OutputForm kGateBoundOutputs[] = {{"strong", kOneNumber}};
static constexpr OutputForm kBackwardOutputs[] = {
    {"dq", kPerToken},
    {"dk", kPerToken},
    {"dv", kPerToken},
    {"dbeta", kPerToken},
    {"dgate", kPerToken, "gate"},
    {"d_initial_state", kPerSequence, "initial_state"}};
static constexpr OutputForm kReplayOutputs[] = {{"writes", kPerToken},
                                                {"states", kPerSegment}};
static constexpr OutputForm kExpandOutputs[] = {{"states", kPerSegment}};
static constexpr OutputForm kAdjointOutputs[] = {
    {"dv", kPerToken},
    {"d_states", kPerSegment},
    {"d_initial_state", kPerSequence}};
static constexpr OutputForm kReportingOutputs[] = {
    {"dv", kPerToken}, {"d_states", kPerSegment}, {"progress", kPerVTile}};
static constexpr OutputForm kReportingOutputsWithState[] = {
    {"dv", kPerToken},
    {"d_states", kPerSegment},
    {"d_initial_state", kPerSequence},
    {"progress", kPerVTile}};
static constexpr OutputForm kAdjointPassOutputs[] = {
    {"d_initial_state", kPerSequence}};
static constexpr OutputForm kGradientsOutputs[] = {{"dq", kKeysPerToken},
                                                   {"dk", kKeysPerToken},
                                                   {"dbeta", kPerToken},
                                                   {"dgate", kPerToken, "gate"},
                                                   {"sums", kPerToken}};
static constexpr OutputForm kSegmentBoundariesOutputs[] = {
    {"boundaries", kSegmentBoundaries}, {"first_segments", kSequenceBoundaries},
    {"before", kSegmentBoundaries},     {"closes", kSegments},
    {"last_segments", kSequences},      {"whole_begins", kSegments},
    {"whole_heads", kSampledHeads}};
static constexpr OutputForm kNumberedBoundariesOutputs[] = {
    {"boundaries", kSegmentBoundaries},
    {"first_segments", kSequenceBoundaries},
    {"sequence_numbers", kSegments}};
static constexpr OutputForm kSegmentStartsOutputs[] = {{"starts", kPerSequence},
                                                       {"decay", kPerSequence}};
static constexpr OutputForm kWholeStartsOutputs[] = {{"starts", kPerSequence},
                                                     {"whole_heads", kHeads}};
static constexpr OutputForm kSegmentEndsOutputs[] = {{"ends", kPerSequence}};
static constexpr OutputForm kSegmentMapOutputs[] = {
    {"map", kPerSequence}, {"decay", kPerSequence, "gate"}};
static constexpr OutputForm kSegmentScanOutputs[] = {
    {"entry_states", kPerSegment}, {"final_state", kPerSequence}};

// The state pass is the fused program without `o`, which then reads no queries;
// the adjoint pass is the adjoint without what it stores for others.
// Token by token and backward nothing is rounded (spec 1, 5).
static const StageForm kForms[] = {
    {"gdn.stage.fused", kFusedOperands, kForwardOutputs, writeFused,
     /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.recurrent", kRecurrentOperands, kForwardOutputs, writeRecurrent,
     /*splitsV=*/true, /*rounds=*/false},
    {"gdn.stage.state_pass", kStatePassOperands, kStatePassOutputs, writeFused,
     /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.prepare", kPrepareOperands, kPrepareOutputs, writePrepare,
     /*splitsV=*/false, /*rounds=*/true},
    {"gdn.stage.run", kRunOperands, kForwardOutputs, writeRun,
     /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.linear_attention", kLinearAttentionOperands, kForwardOutputs,
     writeLinearAttention, /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.backward", kBackwardOperands, kBackwardOutputs, writeBackward,
     /*splitsV=*/false, /*rounds=*/false},
    {"gdn.stage.replay", kReplayOperands, kReplayOutputs, writeReplay,
     /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.expand", kExpandOperands, kExpandOutputs, writeExpand,
     /*splitsV=*/true, /*rounds=*/true, kParts},
    {"gdn.stage.adjoint", kAdjointOperands, kAdjointOutputs, writeAdjoint,
     /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.adjoint_pass", kAdjointPassOperands, kAdjointPassOutputs,
     writeAdjoint, /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.gradients", kGradientsOperands, kGradientsOutputs,
     writeGradients, /*splitsV=*/false, /*rounds=*/true, kParts,
     /*groupsHeads=*/true},
    {"gdn.stage.gate_bound", kGateBoundOperands, kGateBoundOutputs,
     writeGateBound, /*splitsV=*/false, /*rounds=*/false},
    {"gdn.stage.segment_boundaries", kSegmentBoundariesOperands,
     kSegmentBoundariesOutputs, writeSegmentBoundaries, /*splitsV=*/false,
     /*rounds=*/false},
    {"gdn.stage.segment_starts", kSegmentStartsOperands, kSegmentStartsOutputs,
     writeSegmentStarts, /*splitsV=*/false, /*rounds=*/true},
    // Keys as prepare has them; columns of M for those of V.
    {"gdn.stage.segment_map", kSegmentMapOperands, kSegmentMapOutputs,
     writeSegmentMap, /*splitsV=*/true, /*rounds=*/true},
    {"gdn.stage.segment_scan", kSegmentScanOperands, kSegmentScanOutputs,
     writeSegmentScan, /*splitsV=*/true, /*rounds=*/true}};

Value Stage::operator[](StringRef name) const {
  for (const NamedInput &input : inputs)
    if (input.name == name)
      return input.tensor;
  return {};
}

Value Stage::perHead() const {
  for (StringRef name : {"v", "beta", "gate"})
    if (Value input = (*this)[name])
      return input;
  return {};
}

/// Operands by name: those that are present, in order.
static void readOperands(Stage &stage, const StageForm &form) {
  auto segments = stage.op->getAttrOfType<DenseI32ArrayAttr>(
      FusedStageOp::getOperandSegmentSizeAttr());
  // An op with one optional operand, the last, has no sizes.
  SmallVector<int32_t> sizes(stage.op->getNumOperands(), 1);
  if (segments)
    sizes.assign(segments.asArrayRef().begin(), segments.asArrayRef().end());
  unsigned next = 0;
  for (auto [name, size] : llvm::zip(form.operands, sizes)) {
    if (size == 0)
      continue;
    Value operand = stage.op->getOperand(next++);
    if (name == kBoundaries)
      stage.cuSeqlens = operand;
    else if (!name.empty())
      stage.inputs.push_back({name, operand});
  }
}

static void readResults(Stage &stage, ArrayRef<OutputForm> outputs) {
  auto types = stage.op->getResultTypes();
  for (const OutputForm &output : outputs)
    if (output.operand.empty() || stage[output.operand])
      if (size_t next = stage.outputs.size(); next < types.size())
        stage.outputs.push_back(
            {output.name, cast<RankedTensorType>(types[next]), output.dims});
}

/// Arrays that are written where they are, as the final states of a pool: the
/// program takes each once, as what it writes.
static void updateInPlace(Stage &stage) {
  static constexpr std::pair<StringLiteral, StringLiteral> kUpdates[] = {
      {"initial_state", "final_state"},
      {"step_states", "step_states"},
      {"whole_heads", "whole_heads"}};
  for (auto [input, result] : kUpdates) {
    bool isPool = input != result;
    if (isPool && (!stage["state_indices"] || stage["num_states"]))
      continue;
    NamedOutput *written = llvm::find_if(
        stage.outputs, [name = StringRef(result)](const NamedOutput &output) {
          return output.name == name;
        });
    NamedInput *read = llvm::find_if(
        stage.inputs, [name = StringRef(input)](const NamedInput &given) {
          return given.name == name;
        });
    if (written == stage.outputs.end() || read == stage.inputs.end())
      continue;
    written->updated = read->tensor;
    stage.inputs.erase(read);
  }
  // What work items find, others see while they run.
  if (auto look = dyn_cast<GateBoundStageOp>(stage.op))
    stage.outputs.front().updated = look.getNone();
}

/// The results of a stage: where attributes say so, others than its form's.
static ArrayRef<OutputForm> findOutputs(Operation *op, const StageForm &form) {
  if (isa<SegmentBoundariesStageOp>(op) &&
      op->getNumResults() == std::size(kNumberedBoundariesOutputs))
    return kNumberedBoundariesOutputs;
  auto starts = dyn_cast<SegmentStartsStageOp>(op);
  if (starts && starts.getReverse())
    return kSegmentEndsOutputs;
  if (starts && starts.getWholeHeads())
    return kWholeStartsOutputs;
  if (auto adjoint = dyn_cast<AdjointStageOp>(op);
      adjoint && adjoint.getReportingTiles()) {
    if (op->getNumResults() == std::size(kReportingOutputs))
      return kReportingOutputs;
    return kReportingOutputsWithState;
  }
  auto rule = dyn_cast<DeltaRuleOpInterface>(op);
  if (rule && rule.getStepStates())
    return op->getNumResults() == std::size(kStepsOutputs)
               ? ArrayRef<OutputForm>(kStepsOutputs)
               : kStepsOutputsWithState;
  auto fused = dyn_cast<FusedStageOp>(op);
  if (fused && fused.getBefore())
    return kSegmentsForwardOutputs;
  if (!fused || !fused.getStateInterval())
    return form.outputs;
  if (op->getNumResults() == std::size(kSavingOutputs))
    return kSavingOutputs;
  return kSavingOutputsWithState;
}

std::optional<Stage> gdn::readStage(Operation *op) {
  const StageForm *form = llvm::find_if(kForms, [&](const StageForm &form) {
    return op->getName().getStringRef() == form.op;
  });
  if (form == std::end(kForms))
    return std::nullopt;
  Stage stage;
  stage.op = op;
  stage.splitsV = form->splitsV;
  stage.rounds = form->rounds;
  stage.groupsHeads = form->groupsHeads;
  stage.sharesTokens = isa<GateBoundStageOp>(op);
  stage.write = form->write;
  readOperands(stage, *form);
  readResults(stage, findOutputs(op, *form));
  updateInPlace(stage);
  stage.facts = readFacts(stage);
  stage.facts.parts = form->parts;
  // What follows waits for the cuts, so work items share those of a sequence.
  if (stage["parts"])
    stage.facts.parts = kCuttingItems;
  // Blocks of chunks from the end of sequences take the place of parts.
  if (stage["progress"])
    stage.facts.parts = 1;
  stage.sharesChunks = isa<GradientsStageOp>(op) && stage.facts.parts > 1;
  stage.hasTurns =
      stage["progress"] || (isa<FusedStageOp>(op) && stage["before"]);
  return stage;
}
