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

#include <algorithm>

using namespace mlir;
using namespace mlir::gdn;

/// Tokens with one reference, the last one of their first half.
static constexpr int64_t kBlock = 16, kReference = kBlock / 2 - 1;

/// Largest exponent of a factor, in log2 units. A sum's step from one reference
/// to the next, over half of each block, then is not zero in f32.
static double maxBlockExponent(FloatType operandType) {
  return std::min(maxExponent(operandType), 62.0);
}

Value gdn::keepHere(Value sum) {
  if (Operation *made = sum.getDefiningOp())
    made->setAttr(tile::kMadeHereAttrName, UnitAttr::get(sum.getContext()));
  return sum;
}

Value Piece::sinceReference() {
  return reread(tile::RebaseOp::create(b, G, /*axis=*/0, kBlock, kReference));
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

/// `sum` and a tile, which is all of it so far if it is null.
static Value addTo(TileBuilder &b, Value sum, Value tile) {
  return keepHere(sum ? b.add(sum, tile) : tile);
}

/// Adds sums `part` of the gradients of `rows`, both over a decay, which
/// `factor` makes where it is used.
static RowSums addRows(TileBuilder &b, Piece &in, RowSums sums, Value part,
                       Value rows, function_ref<Value()> factor, bool isRead) {
  Value dots = b.mul(b.f32(in.decayed(rows, factor())), part);
  sums.dots =
      isRead ? keepHere(b.sub(sums.dots, dots)) : addTo(b, sums.dots, dots);
  sums.gradient = addTo(b, sums.gradient, b.mul(part, factor()));
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
// Pairs by halves, for any gates
//===----------------------------------------------------------------------===//

static RowSums addPairsOfHalves(Program &p, Piece &in, Part part, Value state,
                                RowSums sums) {
  TileBuilder &b = p.b;
  if (state) {
    Value term = b.mul(state, in.fromStart());
    sums.gradient = addTo(b, sums.gradient, term);
    Value rows = in.readers(part).second;
    sums.dots = addTo(b, sums.dots, b.mul(in.read(rows), term));
  }
  for (const HalvesLevel &level : in.levels(p)) {
    auto ofLevel = [&](Value m) {
      return b.round(b.mul(b.f32(m), level.mask));
    };
    if (part == Part::ReadKeys) {
      Value read;
      for (Part reader : {Part::Queries, Part::Keys}) {
        auto [m, rows] = in.readers(reader);
        read = b.product("ij,ik->jk", ofLevel(m), in.decayed(rows, level.later),
                         read);
      }
      sums = addRows(
          b, in, sums, read, in.k, [&] { return level.earlier; },
          /*isRead=*/true);
      continue;
    }
    auto [m, rows] = in.readers(part);
    Value sum =
        b.product("ij,jk->ik", ofLevel(m), in.decayed(in.k, level.earlier));
    sums = addRows(
        b, in, sums, sum, rows, [&] { return level.later; }, /*isRead=*/false);
  }
  return sums;
}

Value gdn::isInRange(Program &p, Piece &in) {
  TileBuilder &b = p.b;
  double most = maxBlockExponent(b.getOperandType());
  if (isAlwaysInRange(p, kBlock / 2, most))
    return {};
  // Gates are <= 0, so its first and last token bound the exponents of a block.
  Value worst;
  auto add = [&](int64_t from, int64_t to) {
    Value exponent = b.f32(b.sub(in.gateAt(from), in.gateAt(to)));
    worst =
        worst ? Value(arith::MaximumFOp::create(b, worst, exponent)) : exponent;
  };
  for (int64_t first = 0; first < p.facts.C; first += kBlock) {
    add(first, first + kReference);
    add(first + kReference, first + kBlock - 1);
  }
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, b.maximum(worst),
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
      choose(p, inRange, write(addPairsOfBlocks), write(addPairsOfHalves),
             /*likely=*/true);
  return {chosen[0], chosen[1]};
}
