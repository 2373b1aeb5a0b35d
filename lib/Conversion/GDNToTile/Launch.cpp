//===- Launch.cpp - Launches of the programs of stage ops -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

tile::ProgramOp gdn::createProgram(Operation *op, ModuleOp module,
                                   SymbolTable &symbols, TypeRange inputs,
                                   TypeRange outputs, ArrayRef<StringRef> names,
                                   int64_t gridRank) {
  Operation *top = op;
  while (top->getParentOp() != module)
    top = top->getParentOp();
  // gdn.stage.fused in @layer: @layer_fused.
  StringRef kind = op->getName().stripDialect();
  kind.consume_front("stage.");
  std::string name = kind.str();
  if (auto symbol = dyn_cast<SymbolOpInterface>(top))
    name = symbol.getName().str() + "_" + name;
  OpBuilder builder(top);
  auto program = tile::ProgramOp::create(builder, op->getLoc(), name, inputs,
                                         outputs, names, gridRank);
  program->setAttr(tile::TileDialect::getStageAttrName(),
                   builder.getStringAttr(kind));
  // Renames the program where the name is taken.
  symbols.insert(program);
  return program;
}

/// One size of a tensor that a result is made for.
static OpFoldResult sizeOf(OpBuilder &b, Location loc, Value tensor,
                           int64_t dim) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return b.getIndexAttr(size);
  return tensor::DimOp::create(b, loc, tensor, dim).getResult();
}

/// N: one sequence a batch, or one less than the boundaries.
static OpFoldResult numSequences(OpBuilder &b, const Stage &stage) {
  Location loc = stage.op->getLoc();
  if (!stage.cuSeqlens)
    return sizeOf(b, loc, stage.keys(), 0);
  OpFoldResult boundaries = sizeOf(b, loc, stage.cuSeqlens, 0);
  if (auto size = dyn_cast<Attribute>(boundaries))
    return b.getIndexAttr(cast<IntegerAttr>(size).getInt() - 1);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return arith::SubIOp::create(b, loc, cast<Value>(boundaries), one)
      .getResult();
}

/// H, of the first input that has value heads; 1 where none has.
static OpFoldResult numHeads(OpBuilder &b, const Stage &stage) {
  Location loc = stage.op->getLoc();
  if (Value map = stage["map"])
    return sizeOf(b, loc, map, 1);
  if (Value perHead = stage.perHead())
    return sizeOf(b, loc, perHead, 2);
  return b.getIndexAttr(1);
}

/// The segments of `length` tokens, or of as many as the stage says: of packed
/// sequences as many as all tokens need, and one more for each but the first.
static Value numCuts(OpBuilder &b, const Stage &stage, Value length,
                     Value parts, Value sequences) {
  Location loc = stage.op->getLoc();
  if (parts)
    return arith::MulIOp::create(
        b, loc,
        numCuts(b, stage, arith::MulIOp::create(b, loc, length, parts),
                /*parts=*/{}, sequences),
        parts);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  if (!length)
    length = arith::ConstantIndexOp::create(b, loc, stage.facts.segmentLength);
  Value tokens =
      getValueOrCreateConstantIndexOp(b, loc, sizeOf(b, loc, stage.keys(), 1));
  Value pieces = arith::MaxUIOp::create(
      b, loc, arith::CeilDivUIOp::create(b, loc, tokens, length), one);
  if (!stage.facts.isPacked)
    return arith::MulIOp::create(b, loc, sequences, pieces);
  return arith::SubIOp::create(
      b, loc, arith::AddIOp::create(b, loc, pieces, sequences), one);
}

/// S of the stage that cuts sequences; of those that follow it, their own.
static Value numSegments(OpBuilder &b, const Stage &stage) {
  Location loc = stage.op->getLoc();
  auto index = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  if (Value map = stage["map"])
    return index(sizeOf(b, loc, map, 0));
  Value sequences = index(numSequences(b, stage));
  const StageFacts &facts = stage.facts;
  if (facts.sequenceSegments)
    sequences = arith::DivUIOp::create(
        b, loc, sequences, index(b.getIndexAttr(facts.sequenceSegments)));
  if (facts.segments)
    return arith::MulIOp::create(b, loc, sequences,
                                 index(b.getIndexAttr(facts.segments)));
  if (auto cut = dyn_cast<SegmentBoundariesStageOp>(stage.op))
    return numCuts(b, stage, cut.getLength(), cut.getParts(), sequences);
  Value tokens =
      arith::MulIOp::create(b, loc, index(sizeOf(b, loc, stage.keys(), 0)),
                            index(sizeOf(b, loc, stage.keys(), 1)));
  Value whole = arith::DivUIOp::create(
      b, loc, tokens, index(b.getIndexAttr(facts.segmentLength)));
  return arith::AddIOp::create(b, loc, whole, sequences);
}

/// One more than `count`.
static OpFoldResult plusOne(OpBuilder &b, Location loc, OpFoldResult count) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value value = getValueOrCreateConstantIndexOp(b, loc, count);
  return arith::AddIOp::create(b, loc, value, one).getResult();
}

OpFoldResult gdn::countDim(OpBuilder &b, const Stage &stage, Axis dim) {
  Location loc = stage.op->getLoc();
  switch (dim) {
  case Axis::Batch:
    return sizeOf(b, loc, stage.keys(), 0);
  case Axis::Token:
    return sizeOf(b, loc, stage.keys(), 1);
  case Axis::Head:
    return numHeads(b, stage);
  case Axis::KeyHead:
    return sizeOf(b, loc, stage.keys(), 2);
  case Axis::Sequence:
    return numSequences(b, stage);
  case Axis::Segment:
    return numSegments(b, stage);
  case Axis::CutSequence: {
    Value first = cast<FusedStageOp>(stage.op).getFirstSegments();
    OpFoldResult boundaries = sizeOf(b, loc, first, 0);
    return arith::SubIOp::create(
               b, loc, getValueOrCreateConstantIndexOp(b, loc, boundaries),
               arith::ConstantIndexOp::create(b, loc, 1))
        .getResult();
  }
  case Axis::SequenceBoundary:
    return plusOne(b, loc, numSequences(b, stage));
  case Axis::SegmentBoundary:
    return plusOne(b, loc, numSegments(b, stage));
  case Axis::SampledHead:
    return sizeOf(b, loc, stage["sampled_gate"], 2);
  case Axis::VTile:
    return b.getIndexAttr(*cast<AdjointStageOp>(stage.op).getReportingTiles());
  case Axis::One:
    return b.getIndexAttr(1);
  }
  llvm_unreachable("covered switch");
}

/// The tensor that one result is made in: an empty one, whose dimensions the
/// stage's table tells, unless the stage updates another one.
static Value createOutput(OpBuilder &b, const Stage &stage,
                          const NamedOutput &output) {
  Location loc = stage.op->getLoc();
  if (output.updated)
    return output.updated.getType() == output.type
               ? output.updated
               : tensor::CastOp::create(b, loc, output.type, output.updated);
  SmallVector<Value> dynamic;
  for (auto [size, dim] : llvm::zip(output.type.getShape(), output.dims))
    if (ShapedType::isDynamic(size))
      dynamic.push_back(
          getValueOrCreateConstantIndexOp(b, loc, countDim(b, stage, dim)));
  return tensor::EmptyOp::create(b, loc, output.type, dynamic);
}

/// Whether `reader` takes what `op` makes, in whatever form.
static bool takes(Operation *reader, Operation *op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return user == reader || (!isa<tensor::DimOp>(user) && !readStage(user) &&
                              takes(reader, user));
  });
}

/// Notes on launches that the second of two may run beside the first, and so
/// beside those that the first runs beside.
static void markBeside(Operation *stage, tile::LaunchOp launch) {
  MLIRContext *context = stage->getContext();
  StringRef beside = tile::TileDialect::getBesideAttrName();
  if (Attribute isBeside = stage->getAttr(beside))
    launch->setAttr(beside, isBeside);
  Operation *next = stage->getNextNode();
  if (!stage->hasAttr("beside") || !next || !readStage(next) ||
      takes(next, stage))
    return;
  for (Operation *op = launch; op->hasAttr(beside);) {
    do
      op = op->getPrevNode();
    while (op && !isa<tile::LaunchOp>(op));
    if (!op)
      break;
    if (takes(next, op))
      return;
  }
  launch->setAttr(tile::TileDialect::getFirstOfTwoAttrName(),
                  UnitAttr::get(context));
  next->setAttr(beside, UnitAttr::get(context));
}

/// Notes on an adjoint that reports that the gradients behind it may begin when
/// it has.
static void markFollowed(Operation *stage, tile::LaunchOp launch) {
  auto adjoint = dyn_cast<AdjointStageOp>(stage);
  auto next = dyn_cast_or_null<GradientsStageOp>(stage->getNextNode());
  if (!adjoint || !adjoint.getReportingTiles() || !next ||
      next.getProgress() != adjoint.getResults().back())
    return;
  Attribute unit = UnitAttr::get(stage->getContext());
  launch->setAttr(tile::TileDialect::getFirstOfTwoAttrName(), unit);
  next->setAttr(tile::TileDialect::getBesideAttrName(), unit);
}

/// The turns of a stage that has some: two for a forward of segments, one or
/// two a block for gradients.
static Value countTurns(OpBuilder &b, const Stage &stage) {
  Location loc = stage.op->getLoc();
  if (!stage["progress"])
    return arith::ConstantIndexOp::create(b, loc, 2);
  auto index = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  return countBlockTurns(b, loc, index(sizeOf(b, loc, stage.keys(), 1)),
                         index(sizeOf(b, loc, stage["progress"], 0)),
                         [&](Value x, Value y) -> Value {
                           return arith::CeilDivUIOp::create(b, loc, x, y);
                         });
}

void gdn::replaceByLaunch(const Stage &stage, tile::ProgramOp program) {
  OpBuilder b(stage.op);
  Location loc = stage.op->getLoc();
  auto index = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  const StageFacts &facts = stage.facts;
  int64_t tiles = facts.vTileChannels ? facts.V / facts.vTileChannels : 1;
  tiles *= facts.parts * std::max<int64_t>(facts.cluster, 1);
  Axis heads = stage.groupsHeads ? Axis::KeyHead : Axis::Head;
  SmallVector<Value> grid = {index(numSequences(b, stage)),
                             index(countDim(b, stage, heads)),
                             index(b.getIndexAttr(tiles))};
  if (stage.hasTurns)
    grid.push_back(countTurns(b, stage));
  if (Value parts = stage[kPartCount])
    grid.push_back(parts);
  Value tokens = index(sizeOf(b, loc, stage.rows(), stage.tokenDim()));
  SmallVector<Value> inputs, outputs;
  for (const NamedInput &input : stage.inputs)
    inputs.push_back(input.tensor);
  for (const NamedOutput &output : stage.outputs)
    outputs.push_back(createOutput(b, stage, output));
  auto launch = tile::LaunchOp::create(
      b, loc, stage.op->getResultTypes(), SymbolRefAttr::get(program), grid,
      tokens, stage.cuSeqlens, inputs, outputs);
  markBeside(stage.op, launch);
  markFollowed(stage.op, launch);
  // The forward of segments is in a function of its own, or the next stage.
  auto scan = dyn_cast<SegmentScanStageOp>(stage.op);
  if (scan && scan.getBefore() && scan.getBeside())
    launch->setAttr(tile::TileDialect::getFirstOfTwoAttrName(),
                    b.getUnitAttr());
  // To find the longest takes a CTA as long as to see that it has no work.
  if (stage["before"] && stage.keys())
    launch->setAttr(tile::TileDialect::getInOrderAttrName(), b.getUnitAttr());
  if (isa<FusedStageOp>(stage.op) && stage.hasTurns)
    launch->setAttr(tile::TileDialect::getBesideAttrName(), b.getUnitAttr());
  if (stage.hasTurns)
    launch->setAttr(tile::TileDialect::getInTurnsAttrName(), b.getUnitAttr());
  stage.op->replaceAllUsesWith(launch.getResults());
  stage.op->erase();
}
