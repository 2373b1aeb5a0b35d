//===- ChannelRows.cpp - Gradients of gates a bound keeps in range --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a gate a channel that a bound keeps in range, one reference for each
// block of 16 tokens does for all of a chunk (spec 5.4). So rows are decayed
// once, for products and for what stands around them, and a sum holds what its
// rows have of a state and of other tokens.
//
//===----------------------------------------------------------------------===//

#include "ChannelRows.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

using namespace mlir;
using namespace mlir::gdn;

/// What is rounded, in shared memory for all that takes it.
static Value share(Value rounded) {
  if (auto round = rounded.getDefiningOp<arith::TruncFOp>())
    round->setAttr(tile::kSharedAttrName, UnitAttr::get(rounded.getContext()));
  return rounded;
}

Value DecayedPiece::references() {
  return again(b.repeatRow(G, kBlock, b.index(kReference)));
}

Value DecayedPiece::again(Value made) {
  made.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                b.getI64IntegerAttr(uses++));
  return made;
}

Value DecayedPiece::read(Value rows) {
  Value wide = b.f32(rows);
  return wide == rows ? rows : again(wide);
}

Value DecayedPiece::decayed(Value rows, Value decay) {
  return share(b.round(b.mul(rows, decay)));
}

DecayedPiece::DecayedPiece(Program &p, const GradientChunk &chunk,
                           size_t number)
    : p(p), b(p.b), chunk(chunk), factors(chunk.in.factors[number]),
      number(number), G(chunk.in.channelGates[number]) {
  Value rows = read(chunk.in.k[number]), since = exponents();
  earlier = decayed(rows, b.exp2(b.neg(since)));
  Value decay = b.exp2(since);
  q = decayed(read(chunk.in.q[number]), decay);
  k = decayed(rows, decay);
}

/// `sum`, of which rows from `row` on, or those before it, are multiplied by
/// `factor`, one for each channel.
Value DecayedPiece::carryRows(Value sum, Value factor, int64_t row,
                              bool before) {
  ArrayRef<int64_t> shape = shapeOf(sum);
  Value isOther = compareRows(
      p, before ? arith::CmpIPredicate::sge : arith::CmpIPredicate::slt, row,
      shape);
  Value factors = again(b.broadcast(factor, shape, 1));
  return b.mul(sum, again(arith::SelectOp::create(
                        b, isOther, b.fill(1.0, shape), factors)));
}

Value DecayedPiece::sumRead(Value m, const Pieces &rows, double factor) {
  Value state = product(b, "iv,vk->ik", rows, chunk.in.state[number]);
  Value sum = b.mulAxis(state, b.scaled(factors.start, factor), 1);
  for (int64_t first = 0; first < p.facts.C; first += kBlock) {
    if (first > 0)
      sum = carryRows(sum, stepTo(first), first, /*before=*/false);
    sum = b.product("ij,jk->ik", b.columns(m, first, kBlock),
                    b.rows(earlier, first, kBlock), sum);
  }
  return sum;
}

Value DecayedPiece::sumWritten(Value writes, double factor) {
  Value sum = b.mulAxis(writes, b.scaled(factors.end, factor), 1);
  std::pair<Value, Value> readers[] = {{chunk.pairs.queryKey, q},
                                       {chunk.pairs.keyKey, k}};
  for (int64_t first = p.facts.C - kBlock; first >= 0; first -= kBlock) {
    int64_t next = first + kBlock;
    if (next < p.facts.C)
      sum = carryRows(sum, stepTo(next), next, /*before=*/true);
    for (auto [m, x] : readers)
      sum = b.product("ij,ik->jk", b.rows(m, first, kBlock),
                      b.rows(x, first, kBlock), sum);
  }
  return sum;
}

Value DecayedPiece::sumWrites(Value writes) {
  ArrayRef<int64_t> shape = shapeOf(G);
  Value end = b.broadcast(b.row(G, p.facts.C - 1), shape, 1);
  Value decay = b.exp2(again(b.sub(end, references())));
  return b.sum(b.mul(b.mul(written(), writes), decay), 0);
}

/// The sum of rows from each one on, and of `all`, one for each channel, as a
/// product with a triangle: two parts in the operand type have digits enough
/// for what bounds on gates leave of a row beside another. `mask` is 1 for each
/// token of the sequence.
static Value sumFromRow(Program &p, Value rows, Value all, Value mask) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(rows);
  Value tokens = b.broadcast(mask, {shape[0], shape[0]}, 0);
  Value before = tile::CausalOp::create(b, tokens, /*strict=*/true);
  before.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                  b.getI64IntegerAttr(0));
  Value from = b.round(b.sub(tokens, before));
  Value sum = b.broadcast(all, shape, 1);
  auto addPart = [&](Value part) {
    sum = b.product("ij,jk->ik", from, part, sum);
  };
  Value part = share(b.round(rows));
  addPart(part);
  if (part != rows)
    addPart(share(b.round(b.sub(rows, b.f32(part)))));
  return sum;
}

void DecayedPiece::addKeys(Value &dk) {
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  Value writes = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                         in.dState[number]);
  double unit = stateGradientUnit(p);
  Value all = sumWrites(writes);
  Value sum = sumWritten(writes, unit);
  // Rows up to the last one have what all tokens write. Of that the last one's
  // own is taken off again, and leaves the digits that bounds on gates ask for.
  Value isLast = b.sub(chunk.tokens, chunk.followed);
  if (unit != 1)
    isLast = b.scaled(isLast, unit);
  dots = b.mulAxis(b.broadcast(all, shapeOf(sum), 1), isLast, 0);
  // The gradient comes first: else its gates are loaded while inner products
  // are made, for which there are no registers.
  Value readers = b.add(sum, own(queries()));
  dk = addHere(b, dk, b.mul(readers, until()));
  dots = keepHere(b.sub(dots, b.mul(written(), sum)));
  sum = sumRead(chunk.pairs.keyKey, in.dV, -1.0);
  dots = addHere(b, dots, b.mul(keys(), sum));
  dk = addHere(b, dk, b.mul(sum, since()));
  // From product to product there are no registers for a part of them.
  if (notesDots)
    keyDots = b.sum(b.mul(plainKeys(), dk), 1);
}

void DecayedPiece::addQueries(Value &dq) {
  Value sum = sumRead(chunk.pairs.queryKey, chunk.in.dO, p.facts.scale);
  Value rows = queries();
  dots = addHere(b, dots, b.mul(rows, sum));
  sum = b.add(sum, own(written()));
  if (notesDots) {
    Value all = b.mul(rows, sum);
    b.step(queryStep(p, number));
    queryDots = b.sum(all, 1);
    b.step(pieceStep(p, number));
  }
  dq = addHere(b, dq, b.mul(sum, since()));
}

Value DecayedPiece::sumGates(Value all) {
  return sumFromRow(p, dots, all, chunk.tokens);
}
