//===- StageFacts.cpp - Sizes and attributes of stages --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stage.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// The attribute of that name as an enumeration, its default if absent.
template <typename Attr>
static auto readEnum(Operation *op, StringRef name,
                     decltype(Attr().getValue()) otherwise) {
  auto attribute = op->getAttrOfType<Attr>(name);
  return attribute ? attribute.getValue() : otherwise;
}

/// Gate variant by the rank of the gate, of one that is looked at here and
/// there, or of its sum that prepare made.
static DecayKind readDecay(const Stage &stage) {
  Value gate;
  for (StringRef name : {"gate", "sampled_gate", "decay"})
    if (!gate)
      gate = stage[name];
  if (!gate)
    return DecayKind::None;
  // A token's decay has a batch row and a token, a segment's one number.
  int64_t rankOfScalars = stage.keys() ? 3 : 2;
  return cast<ShapedType>(gate.getType()).getRank() == rankOfScalars
             ? DecayKind::Scalar
             : DecayKind::Channel;
}

/// Head counts and channels of the scan over segments, which has no keys: no
/// head of it reads another's.
static void readScanSizes(const Stage &stage, StageFacts &facts) {
  facts.H = facts.Hq = 1;
  facts.K = cast<RankedTensorType>(stage["map"].getType()).getDimSize(3);
  auto states = cast<RankedTensorType>(stage["states"].getType());
  facts.V = states.getDimSize(facts.segmentLayout == StateLayout::KV ? 3 : 2);
}

/// Head counts and channels, of keys, values and beta.
static void readSizes(const Stage &stage, StageFacts &facts) {
  auto keys = cast<RankedTensorType>(stage.keys().getType());
  facts.Hq = keys.getDimSize(2);
  facts.K = keys.getDimSize(3);
  Value values = stage["v"] ? stage["v"] : stage["d_o"];
  if (values)
    facts.V = cast<RankedTensorType>(values.getType()).getDimSize(3);
  else if (stage.splitsV)
    facts.V = facts.K;
  if (Value perHead = stage.perHead())
    facts.H = cast<RankedTensorType>(perHead.getType()).getDimSize(2);
  else
    facts.H = facts.Hq = 1; // nothing of a head
}

StageFacts gdn::readFacts(const Stage &stage) {
  Operation *op = stage.op;
  StageFacts facts;
  if (auto chunk = op->getAttrOfType<IntegerAttr>("chunk_size"))
    facts.C = chunk.getInt();
  facts.isPacked = static_cast<bool>(stage.cuSeqlens);
  facts.decay = readDecay(stage);
  facts.gateDomain =
      readEnum<GateDomainAttr>(op, "gate_domain", GateDomain::Log);
  if (auto bound = op->getAttrOfType<FloatAttr>("lower_bound"))
    facts.lowerBound = bound.getValueAsDouble();
  // No logarithm is below what all of a block are together.
  if (!formOf(facts.gateDomain).needsBound() && facts.lowerBound < 0.0)
    facts.leastLog2Gate = std::max(
        facts.leastLog2Gate, support::boundTokens * facts.lowerBound * M_LOG2E);
  facts.l2norm = op->hasAttr("qk_l2norm");
  facts.betaDomain =
      readEnum<BetaDomainAttr>(op, "beta_domain", BetaDomain::Value);
  facts.stateLayout =
      readEnum<StateLayoutAttr>(op, "state_layout", StateLayout::KV);
  facts.sequenceLayout =
      readEnum<StateLayoutAttr>(op, "sequence_layout", facts.stateLayout);
  facts.segmentLayout =
      readEnum<StateLayoutAttr>(op, "segment_layout", facts.stateLayout);
  if (stage.keys())
    readSizes(stage, facts);
  else
    readScanSizes(stage, facts);
  facts.scale = 1.0 / std::sqrt(static_cast<double>(facts.K));
  if (auto scale = op->getAttrOfType<FloatAttr>("scale"))
    facts.scale = scale.getValueAsDouble();
  if (auto segments = op->getAttrOfType<IntegerAttr>("segments"))
    facts.segments = segments.getInt();
  if (auto interval = op->getAttrOfType<IntegerAttr>("state_interval"))
    facts.stateInterval = facts.segmentLength = interval.getInt();
  if (auto length = op->getAttrOfType<IntegerAttr>("segment_length"))
    facts.segmentLength = length.getInt();
  if (facts.stateInterval == 0)
    facts.stateInterval = facts.segmentLength;
  if (auto segments = op->getAttrOfType<IntegerAttr>("sequence_segments"))
    facts.sequenceSegments = segments.getInt();
  if (auto tolerance = op->getAttrOfType<FloatAttr>("tolerance"))
    facts.tolerance = tolerance.getValueAsDouble();
  if (auto live = op->getAttrOfType<IntegerAttr>("fewer_segments"))
    facts.fewerSegments = live.getInt();
  if (auto live = op->getAttrOfType<DenseI64ArrayAttr>("live_heads"))
    facts.liveHeads = {live[0], live[1]};
  facts.reverse = op->hasAttr("reverse");
  facts.singleHeads = op->hasAttr("single_heads");
  facts.vTileChannels = facts.V;
  return facts;
}
