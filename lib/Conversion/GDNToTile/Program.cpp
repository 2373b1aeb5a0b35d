//===- Program.cpp - Loads, stores and loops that programs share ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// eps of the l2 norm (spec 1).
static constexpr double kNormEps = 1e-6;

Program::Program(TileBuilder &b, const StageFacts &facts, tile::ProgramOp op)
    : b(b), facts(facts), sequence(op.getSequence()), head(op.getHead()),
      tile(op.getVTile()), batch(op.getBatch()), begin(op.getBegin()),
      end(op.getEnd()) {
  for (auto [array, name] : llvm::zip(op.getArrays(), *op.getArgNames()))
    arrays[cast<StringAttr>(name).getValue()] = array;
  if (op.getGridRank() > tile::ProgramOp::kMinGridRank)
    turn = op.getCoordinates()[tile::ProgramOp::kMinGridRank];
  zero = firstK = b.index(0);
  keyHead = findKeyHead();
  if ((*this)["sequence_numbers"])
    savedSequence = loadNumber(*this, "sequence_numbers", {sequence});
  else if (facts.sequenceSegments)
    savedSequence =
        arith::DivUIOp::create(b, sequence, b.index(facts.sequenceSegments));
  stateRow = sequence;
  if ((*this)["state_indices"])
    readStateIndex();
  firstV = facts.vTileChannels == facts.V
               ? zero
               : arith::MulIOp::create(b, tile, b.index(facts.vTileChannels));
  if (facts.C > 1)
    loadGateParameters();
}

/// The q/k head of the work item. Heads that are known when running alone make
/// one division of 32 bits.
Value Program::findKeyHead() {
  bool isKnown =
      !ShapedType::isDynamic(facts.H) && !ShapedType::isDynamic(facts.Hq);
  if (isKnown && facts.H == facts.Hq)
    return head;
  if (isKnown)
    return arith::DivUIOp::create(b, head, b.index(facts.H / facts.Hq));
  // head / (H / Hq) = head Hq / H, for H is a multiple of Hq.
  Value perHead;
  for (StringRef name : {"gate", "beta", "v"})
    if (Value array = (*this)[name])
      perHead = array;
  Value heads = memref::DimOp::create(b, perHead, 2),
        keyHeads = memref::DimOp::create(b, (*this)["k"], 2);
  Value product = arith::MulIOp::create(b, b.toI32(head), b.toI32(keyHeads));
  Value quotient = arith::DivUIOp::create(b, product, b.toI32(heads));
  return b.toIndex(quotient);
}

SmallVector<Value> gdn::tokenOffsets(Program &p, Value t, Value head,
                                     Value channel) {
  return {p.batch, t, head, channel};
}

/// q or k as it lies in memory.
static Value loadArrayRows(Program &p, StringRef name, Value t) {
  p.b.step("load");
  return p.b.load(p[name], tokenOffsets(p, t, p.keyHead, p.firstK), {1, 3},
                  {p.facts.C, p.facts.K}, p.end);
}

/// |row|^2 of each row.
static Value sumSquares(Program &p, Value rows) {
  Value x = p.b.f32(rows);
  return p.b.sum(p.b.mul(x, x), 1);
}

/// `squares` of lengths as norms are made of them: none is zero.
static Value addEpsilon(Program &p, Value squares) {
  return p.b.add(squares, p.b.fill(kNormEps, p.facts.C));
}

Value gdn::inverseLength(Program &p, Value squares) {
  TileBuilder &b = p.b;
  Value sum = b.extract(b.sum(squares, 0), {});
  return math::RsqrtOp::create(b, b.add(sum, b.scalar(kNormEps)));
}

Value gdn::loadKeys(Program &p, StringRef name, Value t) {
  TileBuilder &b = p.b;
  Value rows = loadArrayRows(p, name, t);
  if (p.facts.l2norm) {
    b.step("norms");
    Value norm = math::RsqrtOp::create(b, addEpsilon(p, sumSquares(p, rows)));
    rows = b.mulAxis(b.f32(rows), norm, 0);
  }
  return b.round(rows);
}

KeyRows gdn::loadKeyRows(Program &p, StringRef name, Value t) {
  // f16, to which a chain of two products rounds too, has no room for what such
  // a chain makes of rows of any length; f32 needs none of it. With a gate per
  // channel rows are multiplied before they are rounded.
  bool isLater =
      p.facts.decay == DecayKind::Channel ||
      (p.b.getOperandType().getWidth() == 16 && !p.facts.twoProductChain);
  if (!isLater)
    return {loadKeys(p, name, t)};
  Value rows = loadArrayRows(p, name, t);
  return {p.b.round(rows), rows};
}

void gdn::measureRows(Program &p, KeyRows &rows, Value squares) {
  if (!p.facts.l2norm || !rows.loaded)
    return;
  squares = addEpsilon(p, squares ? squares : sumSquares(p, rows.loaded));
  rows.norm = math::RsqrtOp::create(p.b, squares);
  rows.length = p.b.mul(squares, rows.norm);
  if (!p.b.getOperandType().isF16())
    return;
  Value hasLength = arith::CmpFOp::create(
      p.b, arith::CmpFPredicate::OGT, squares, p.b.fill(kNormEps, p.facts.C));
  rows.writeNorm = p.b.select(hasLength, rows.norm, 0.0);
}

Value gdn::loadValuesT(Program &p, Value t) {
  if (!p["v"])
    return {};
  p.b.step("load");
  return p.b.f32(p.b.load(p["v"], tokenOffsets(p, t, p.head, p.firstV), {3, 1},
                          {p.facts.vTileChannels, p.facts.C}, p.end));
}

Value gdn::tokenMask(Program &p, Value t) {
  TileBuilder &b = p.b;
  Value left = arith::IndexCastOp::create(b, b.getI32Type(),
                                          arith::SubIOp::create(b, p.end, t));
  Value valid =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.iota(p.facts.C),
                            b.splat(left, p.facts.C));
  return b.select(valid, b.fill(1.0, p.facts.C), 0.0);
}

void gdn::storeOutputT(Program &p, Value t, Value output) {
  TileBuilder &b = p.b;
  b.step("store");
  OpBuilder::InsertionGuard guard(b);
  if (p.firstStored) {
    Value isOwn =
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, t, p.firstStored);
    auto choice = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
    b.setInsertionPointToStart(choice.thenBlock());
  }
  b.store(output, p["o"], tokenOffsets(p, t, p.head, p.firstV), {3, 1}, p.end);
}

Value gdn::loadNumber(Program &p, StringRef name, ValueRange at) {
  // Not a tile: all roles of a kernel know where the work item begins and ends.
  Value number = memref::LoadOp::create(p.b, p[name], at);
  return arith::IndexCastOp::create(p.b, p.b.getIndexType(), number);
}

Value gdn::isFirstSegment(Program &p) {
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::slt,
                               loadNumber(p, "before", {p.sequence}), p.zero);
}

Value gdn::isLastSegment(Program &p) {
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::sge,
                               loadNumber(p, "closes", {p.sequence}), p.zero);
}

Value gdn::isLeftWhole(Program &p) {
  if (!p["whole_heads"])
    return {};
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::ne,
                               loadNumber(p, "whole_heads", {p.head}), p.zero);
}

/// The work item's token in the array `name`, or `otherwise` without it.
static Value loadToken(Program &p, StringRef name, Value otherwise) {
  return p[name] ? loadNumber(p, name, {p.sequence, p.head}) : otherwise;
}

Value gdn::loadStart(Program &p) { return loadToken(p, "starts", p.begin); }

Value gdn::loadEnd(Program &p) { return loadToken(p, "ends", p.end); }

SmallVector<Value>
gdn::forEachChunk(Program &p, ValueRange carried,
                  function_ref<SmallVector<Value>(Value, ValueRange)> body,
                  bool reversed) {
  TileBuilder &b = p.b;
  Value step = b.index(p.facts.C);
  Value lower = p.begin, upper = p.end;
  if (reversed) {
    // Chunk c of n starts at begin + (n - 1 - c) C.
    Value count = arith::CeilDivUIOp::create(
        b, arith::SubIOp::create(b, p.end, p.begin), step);
    lower = p.zero;
    upper = arith::MulIOp::create(b, count, step);
  }
  auto loop = scf::ForOp::create(b, lower, upper, step, carried);
  // Zeros as keys, values and log2 gates change nothing.
  if (!reversed && !carried.empty())
    loop->setAttr(tile::kNeutralPastEndAttrName, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  if (reversed) {
    Value last = arith::SubIOp::create(b, upper, step);
    t = arith::AddIOp::create(b, p.begin, arith::SubIOp::create(b, last, t));
  }
  SmallVector<Value> next = body(t, loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

Value gdn::getPart(Program &p) { return p[kPartCount] ? p.turn : p.tile; }

Value gdn::countParts(Program &p) {
  Value count = p[kPartCount];
  return count ? count : Value(p.b.index(p.facts.parts));
}

SmallVector<Value> gdn::choose(Program &p, Value condition,
                               function_ref<SmallVector<Value>()> yes,
                               function_ref<SmallVector<Value>()> no,
                               std::optional<bool> likely) {
  TileBuilder &b = p.b;
  auto branch = [&](function_ref<SmallVector<Value>()> write) {
    return [&b, write](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      SmallVector<Value> values = write();
      scf::YieldOp::create(b, values);
    };
  };
  auto choice = scf::IfOp::create(b, condition, branch(yes), branch(no));
  if (likely)
    choice->setAttr(tile::TileDialect::getLikelyAttrName(),
                    b.getBoolAttr(*likely));
  return llvm::to_vector_of<Value>(choice.getResults());
}
