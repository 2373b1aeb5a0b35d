//===- ChannelPairs.cpp - Pairs of tokens, a gate a channel ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between tokens of a chunk the decay of a channel stands inside the sum over
// pairs, as a factor of either token. With blocks of 16 tokens and a reference
// in each, a sum goes from the reference of one block to that of the next by a
// vector of channels (spec 5.4).
//
//===----------------------------------------------------------------------===//

#include "ChannelPairs.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <tuple>

using namespace mlir;
using namespace mlir::gdn;

Value gdn::keepHere(Value sum) {
  if (Operation *made = sum.getDefiningOp())
    made->setAttr(tile::kMadeHereAttrName, UnitAttr::get(sum.getContext()));
  return sum;
}

Value gdn::addHere(TileBuilder &b, Value sum, Value tile) {
  return keepHere(sum ? b.add(sum, tile) : tile);
}

Value Piece::reread(Value made) {
  made.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                b.getI64IntegerAttr(uses++));
  return made;
}

//===----------------------------------------------------------------------===//
// Pairs with a reference a block
//===----------------------------------------------------------------------===//

Value gdn::compareRows(Program &p, arith::CmpIPredicate predicate, int64_t row,
                       ArrayRef<int64_t> shape) {
  TileBuilder &b = p.b;
  Value bound =
      b.splat(arith::ConstantIntOp::create(b, row, /*width=*/32), shape);
  return arith::CmpIOp::create(b, predicate,
                               b.broadcast(b.iota(shape[0]), shape, 0), bound);
}

/// `sum`, of which rows from `row` on, or those before it, are multiplied by
/// `factor`, one for each channel.
static Value carryRows(Program &p, Value sum, Value factor, int64_t row,
                       bool before) {
  Value isOther = compareRows(
      p, before ? arith::CmpIPredicate::sge : arith::CmpIPredicate::slt, row,
      shapeOf(sum));
  return arith::SelectOp::create(p.b, isOther, sum,
                                 p.b.mulAxis(sum, factor, 1));
}

/// sum_{j<i} M_ij y_j of rows `y` over their references, and what rows read of
/// the state, over the reference of row i: one sum holds both.
static Value sumRead(Program &p, Piece &in, Value m, Value y, Value state) {
  TileBuilder &b = p.b;
  Value sum = b.mulAxis(state, in.until(kReference), 1);
  for (int64_t first = 0; first < p.facts.C; first += kBlock) {
    if (first > 0)
      sum = carryRows(
          p, sum, in.between(first - kBlock + kReference, first + kReference),
          first,
          /*before=*/false);
    sum = b.product("ij,jk->ik", b.columns(m, first, kBlock),
                    b.rows(y, first, kBlock), sum);
  }
  return sum;
}

/// sum_{i>j} M_ij x_i of the readers of both kinds, over that of row j.
static Value sumWritten(Program &p, Piece &in) {
  TileBuilder &b = p.b;
  Value later = in.later();
  std::pair<Value, Value> readers[] = {
      {in.pairs.queryKey, in.decayed(in.q, later)},
      {in.pairs.keyKey, in.decayed(in.k, later)}};
  Value sum;
  for (int64_t first = p.facts.C - kBlock; first >= 0; first -= kBlock) {
    int64_t next = first + kBlock;
    if (sum)
      sum = carryRows(p, sum, in.between(first + kReference, next + kReference),
                      next, /*before=*/true);
    for (auto [m, x] : readers)
      sum = b.product("ij,ik->jk", b.rows(m, first, kBlock),
                      b.rows(x, first, kBlock), sum);
  }
  return sum;
}

/// Adds sums `part` of the gradients of `rows`, both over a decay, which
/// `factor` makes where it is used.
static RowSums addRows(TileBuilder &b, Piece &in, RowSums sums, Value part,
                       Value rows, function_ref<Value()> factor, bool isRead) {
  Value dots = b.mul(b.f32(in.decayed(rows, factor())), part);
  sums.dots =
      isRead ? keepHere(b.sub(sums.dots, dots)) : addHere(b, sums.dots, dots);
  sums.gradient = addHere(b, sums.gradient, b.mul(part, factor()));
  return sums;
}

static RowSums addPairsOfBlocks(Program &p, Piece &in, Part part, Value state,
                                RowSums sums) {
  if (part == Part::ReadKeys)
    return addRows(
        p.b, in, sums, sumWritten(p, in), in.k, [&] { return in.earlier(); },
        /*isRead=*/true);
  auto [m, rows] = in.readers(part);
  return addRows(
      p.b, in, sums, sumRead(p, in, m, in.written(), state), rows,
      [&] { return in.later(); }, /*isRead=*/false);
}

//===----------------------------------------------------------------------===//
// Pairs for any gates
//===----------------------------------------------------------------------===//
//
// Between blocks a sum goes by the last token of one and the first token of the
// next, and so has no factor above 1. Tokens of one block are pairs with one of
// them after the other.

Value Piece::elementOf(Value m, Value n) {
  ArrayRef<int64_t> shape = shapeOf(m);
  auto number = [&](int64_t axis) {
    return reread(b.broadcast(b.iota(shape[axis]), shape, axis));
  };
  auto splat = [&](Value value) { return b.splat(value, shape); };
  Value mask = arith::ConstantIntOp::create(b, -kBlock, /*width=*/32);
  Value first = arith::AndIOp::create(b, number(0), splat(mask));
  Value column = arith::AddIOp::create(b, first, splat(b.toI32(n)));
  Value isOther =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number(1), column);
  return b.sum(b.f32(b.select(isOther, m, 0.0)), 1);
}

/// Rows of `tile` from `row` on, or those before it; the others are 0.
static Value takeRows(Program &p, Value tile, int64_t row, bool before) {
  Value isTaken = compareRows(
      p, before ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge, row,
      shapeOf(tile));
  return p.b.select(isTaken, tile, 0.0);
}

/// sum_j M_ij y_j over earlier blocks, and what rows read of the state, over
/// the reader's decay since the first token of its block.
static Value sumReadOfBlocks(Program &p, Piece &in, Value m, Value state) {
  TileBuilder &b = p.b;
  Value y = in.decayed(in.k, in.untilLast());
  Value sum = b.mulAxis(state, in.until(0), 1);
  for (int64_t first = kBlock; first < p.facts.C; first += kBlock) {
    int64_t before = first - kBlock;
    auto carry = [&](int64_t from, int64_t to) {
      return carryRows(p, sum, in.between(from, to), first, /*before=*/false);
    };
    sum = carry(before, first - 1);
    Value readers = takeRows(p, b.columns(m, before, kBlock), first,
                             /*before=*/false);
    sum = b.product("ij,jk->ik", readers, b.rows(y, before, kBlock), sum);
    sum = carry(first - 1, first);
  }
  return sum;
}

/// sum_i M_ij x_i over the readers of later blocks, over the decay until the
/// last token of the block of what is read.
static Value sumWrittenToBlocks(Program &p, Piece &in) {
  TileBuilder &b = p.b;
  Value since = in.sinceFirst(), sum;
  std::pair<Value, Value> readers[] = {
      {in.pairs.queryKey, in.decayed(in.q, since)},
      {in.pairs.keyKey, in.decayed(in.k, since)}};
  for (int64_t first = p.facts.C - kBlock; first > 0; first -= kBlock) {
    int64_t before = first - kBlock;
    for (auto [m, x] : readers) {
      Value rows = b.transpose(b.rows(m, first, kBlock));
      sum = b.product("ji,ik->jk", takeRows(p, rows, first, /*before=*/true),
                      b.rows(x, first, kBlock), sum);
    }
    sum = carryRows(p, sum, in.between(first - 1, first), first,
                    /*before=*/true);
    if (before > 0)
      sum = carryRows(p, sum, in.between(before, first - 1), before,
                      /*before=*/true);
  }
  return sum;
}

/// The pairs of the tokens of a block.
static RowSums addPairsInBlocks(Program &p, Piece &in, Part part,
                                RowSums sums) {
  TileBuilder &b = p.b;
  auto loop = scf::ForOp::create(b, b.index(0), b.index(kBlock), b.index(1),
                                 ValueRange{sums.gradient, sums.dots});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value n = loop.getInductionVar(), gradient = loop.getRegionIterArgs()[0],
        dots = loop.getRegionIterArgs()[1], term, rows = in.k;
  if (part == Part::ReadKeys) {
    for (Part reader : {Part::Queries, Part::Keys}) {
      auto [m, x] = in.readers(reader);
      Value own = b.mulAxis(in.rowOf(x, n), in.elementOf(b.transpose(m), n), 0);
      term = term ? b.add(term, own) : own;
    }
    term = b.mul(term, in.untilToken(n));
    dots = b.sub(dots, b.mul(in.read(rows), term));
  } else {
    Value m;
    std::tie(m, rows) = in.readers(part);
    term = b.mulAxis(in.rowOf(in.k, n), in.elementOf(m, n), 0);
    term = b.mul(term, in.sinceToken(n));
    dots = b.add(dots, b.mul(in.read(rows), term));
  }
  SmallVector<Value> next = {keepHere(b.add(gradient, term)), keepHere(dots)};
  scf::YieldOp::create(b, next);
  return {loop.getResult(0), loop.getResult(1)};
}

static RowSums addPairsOfAny(Program &p, Piece &in, Part part, Value state,
                             RowSums sums) {
  p.b.step(pairStep(p, in.number));
  auto [m, rows] = in.readers(part);
  if (part != Part::ReadKeys)
    sums = addRows(
        p.b, in, sums, sumReadOfBlocks(p, in, m, state), rows,
        [&] { return in.sinceFirst(); }, /*isRead=*/false);
  else if (Value sum = sumWrittenToBlocks(p, in))
    sums = addRows(
        p.b, in, sums, sum, rows, [&] { return in.untilLast(); },
        /*isRead=*/true);
  return addPairsInBlocks(p, in, part, sums);
}

bool gdn::areBlocksInRange(const Program &p) {
  return support::areBlocksInRange(p.facts.lowerBound, p.b.getOperandType());
}

int64_t gdn::keyPieceChannels(const Program &p) {
  int64_t size = pieceChannels(p.facts.K);
  bool hasTwoWays = p.facts.decay == DecayKind::Channel && !areBlocksInRange(p);
  return hasTwoWays && size < p.facts.K ? size / 2 : size;
}

Value gdn::isInRange(Program &p, Piece &in) {
  if (areBlocksInRange(p))
    return {};
  TileBuilder &b = p.b;
  double most = support::maxBlockExponent(b.getOperandType());
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE,
                               b.maximum(b.maximum(in.exponents(), 1)),
                               b.scalar(most));
}

RowSums gdn::addPairs(Program &p, Piece &in, Value inRange, Part part,
                      Value state, RowSums sums) {
  if (!inRange)
    return addPairsOfBlocks(p, in, part, state, sums);
  auto write = [&](RowSums (*add)(Program &, Piece &, Part, Value, RowSums)) {
    return [&, add]() -> SmallVector<Value> {
      RowSums out = add(p, in, part, state, sums);
      return {out.gradient, out.dots};
    };
  };
  SmallVector<Value> chosen =
      choose(p, inRange, write(addPairsOfBlocks), write(addPairsOfAny),
             /*likely=*/true);
  p.b.step(pieceStep(p, in.number));
  return {chosen[0], chosen[1]};
}
