//===- RuleDims.cpp - Sizes of a delta rule -------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// Where a size of `dims`, const or not, is kept.
template <typename Dims> static auto &sizeOf(Dims &dims, Dim dim) {
  switch (dim) {
  case Dim::B:
  case Dim::BatchBoundaries:
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
  case Dim::P:
    return dims.P;
  case Dim::R:
    return dims.R;
  case Dim::Steps:
    return dims.steps;
  case Dim::C:
    return dims.C;
  case Dim::S:
  case Dim::SegmentBoundaries:
    return dims.S;
  case Dim::KeptStates:
    return dims.keptStates;
  case Dim::Cut:
  case Dim::CutBoundaries:
    return dims.cut;
  case Dim::VTiles:
    return dims.vTiles;
  case Dim::One:
    return dims.one;
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
  case Dim::P:
    return "P";
  case Dim::R:
    return "R";
  case Dim::Steps:
    return "steps";
  case Dim::C:
    return "C";
  case Dim::S:
    return "S";
  case Dim::KeptStates:
    return "S of states";
  case Dim::Boundaries:
    return "N+1";
  case Dim::BatchBoundaries:
    return "B+1";
  case Dim::SegmentBoundaries:
    return "S+1";
  case Dim::Cut:
    return "sequences";
  case Dim::CutBoundaries:
    return "sequences+1";
  case Dim::VTiles:
    return "V tiles";
  case Dim::One:
    return "1";
  }
  llvm_unreachable("covered switch");
}

static bool areBoundaries(Dim dim) {
  return dim == Dim::Boundaries || dim == Dim::BatchBoundaries ||
         dim == Dim::SegmentBoundaries || dim == Dim::CutBoundaries;
}

int64_t RuleDims::get(Dim dim) const {
  int64_t size = sizeOf(*this, dim);
  bool plusOne = areBoundaries(dim) && !ShapedType::isDynamic(size);
  return plusOne ? size + 1 : size;
}

void RuleDims::set(Dim dim, int64_t size) {
  sizeOf(*this, dim) = areBoundaries(dim) ? size - 1 : size;
}

int64_t gdn::countSegments(const RuleDims &dims,
                           std::optional<int64_t> segments,
                           std::optional<int64_t> length) {
  bool needsTokens = !segments;
  if (ShapedType::isDynamic(dims.N) ||
      (needsTokens &&
       (ShapedType::isDynamic(dims.B) || ShapedType::isDynamic(dims.T))))
    return ShapedType::kDynamic;
  if (segments)
    return dims.N * *segments;
  // A length of zero, which the verifier refuses, says nothing.
  return length && *length > 0 ? dims.B * dims.T / *length + dims.N
                               : ShapedType::kDynamic;
}

int64_t gdn::countCuts(const RuleDims &dims, std::optional<int64_t> segments,
                       std::optional<int64_t> length, bool isPacked) {
  bool isKnown = !ShapedType::isDynamic(dims.N) &&
                 (segments || !ShapedType::isDynamic(dims.T));
  if (!isKnown || (!segments && (!length || *length <= 0)))
    return ShapedType::kDynamic;
  if (segments)
    return dims.N * *segments;
  int64_t pieces = std::max<int64_t>(llvm::divideCeil(dims.T, *length), 1);
  return isPacked ? pieces + dims.N - 1 : pieces * dims.N;
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
  if (rule.reportingTiles)
    dims.vTiles = rule.reportingTiles.getInt();
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
  if (!rule.cuSeqlens && !rule.firstSegments)
    dims.N = dims.B;
  auto number = [](IntegerAttr attribute) -> std::optional<int64_t> {
    if (!attribute)
      return std::nullopt;
    return attribute.getInt();
  };
  if (rule.cutsSequences)
    dims.S = countCuts(dims, number(rule.segments), number(rule.segmentLength),
                       /*isPacked=*/static_cast<bool>(rule.cuSeqlens));
  else if (rule.segments || rule.segmentLength)
    dims.S =
        countSegments(dims, number(rule.segments), number(rule.segmentLength));
  // Of a forward, or what a backward reads of it: by sequences, which may be
  // cut into segments here.
  RuleDims whole = dims;
  // The verifier asks for sizes before it refuses zero.
  if (int64_t n = number(rule.sequenceSegments).value_or(1);
      n > 1 && !ShapedType::isDynamic(dims.N))
    whole.N /= n;
  if (rule.keepsOthers())
    dims.keptStates = countSegments(
        whole, std::nullopt,
        number(rule.stateInterval ? rule.stateInterval : rule.segmentLength));
  else if (rule.stateInterval)
    dims.S = countSegments(whole, std::nullopt, number(rule.stateInterval));
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
