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

#include "ChannelPairs.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

using namespace mlir;
using namespace mlir::gdn;

/// What is rounded, in shared memory for all that takes it.
static Value share(Value rounded) {
  if (auto round = rounded.getDefiningOp<arith::TruncFOp>())
    round->setAttr(tile::kSharedAttrName, UnitAttr::get(rounded.getContext()));
  return rounded;
}

namespace {
/// A piece of K of a chunk.
class DecayedPiece {
public:
  DecayedPiece(Program &p, const GradientChunk &chunk, size_t number);

  /// sum_{j<i} M_ij k_j of earlier tokens and what rows read of the state, over
  /// the decay since the reference of row i.
  Value sumRead(Value m, Value state, double factor);
  /// sum_{i>j} M_ij x_i of the readers of both kinds and what rows write to the
  /// state, over the decay until the reference of row j.
  Value sumWritten(Value writes, double factor);
  /// What all tokens write to the gradient of the state, which is the sum over
  /// V of writes times that, summed over them.
  Value sumWrites(Value writes);

  /// Rows times their decay, in f32.
  Value queries() { return read(q); }
  Value keys() { return read(k); }
  /// Keys over their decay, in f32.
  Value written() { return read(earlier); }
  /// The decay of each token since the reference of its block, and back.
  Value since() { return b.exp2(exponents()); }
  Value until() { return b.exp2(b.neg(exponents())); }
  /// `rows` times what gates do not decay between a query and its own key.
  Value own(Value rows) { return b.mulAxis(rows, chunk.pairs.own, 0); }
  /// The decay of the chunk, f32 [K piece].
  Value whole() { return factors.whole; }

private:
  /// The decay from the reference of the block before token `first` to that of
  /// its own.
  Value stepTo(int64_t first) { return factors.steps[first / kBlock - 1]; }
  /// Those of the reference of each token's block.
  Value references() {
    return again(b.repeatRow(G, kBlock, b.index(kReference)));
  }
  /// Gates summed since there.
  Value exponents() { return again(b.sub(G, references())); }
  /// `made`, which is made where it is used.
  Value again(Value made) {
    made.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                  b.getI64IntegerAttr(uses++));
    return made;
  }
  Value read(Value rows) {
    Value wide = b.f32(rows);
    return wide == rows ? rows : again(wide);
  }
  Value decayed(Value rows, Value decay) {
    return share(b.round(b.mul(rows, decay)));
  }
  Value carryRows(Value sum, Value factor, int64_t row, bool before);

  Program &p;
  TileBuilder &b;
  const GradientChunk &chunk;
  const ChannelFactors &factors;
  /// Gates summed over the chunk so far. A kernel has no registers for what is
  /// made of them, so each use makes it anew of what lies in shared memory.
  Value G;
  /// Queries and keys times their decay, and keys over it.
  Value q, k, earlier;
  int64_t uses = 0;
};
} // namespace

DecayedPiece::DecayedPiece(Program &p, const GradientChunk &chunk,
                           size_t number)
    : p(p), b(p.b), chunk(chunk), factors(chunk.in.factors[number]),
      G(chunk.in.channelGates[number]) {
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

Value DecayedPiece::sumRead(Value m, Value state, double factor) {
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

/// What keys write comes first, for its sums over tokens take the most
/// registers.
Value gdn::addGradientsInRange(Program &p, const GradientChunk &chunk,
                               size_t number, function_ref<Value()> states,
                               Value &dq, function_ref<void()> storeQueries,
                               Value &dk, function_ref<void()> storeKeys) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  DecayedPiece piece(p, chunk, number);
  auto add = [&](Value sum, Value tile) {
    return keepHere(sum ? b.add(sum, tile) : tile);
  };
  auto readState = [&](const Pieces &rows) {
    return product(b, "iv,vk->ik", rows, in.state[number]);
  };
  bool isTurned = in.source == StateSource::Carried;
  Value writes = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                         in.dState[number]);
  double unit = stateGradientUnit(p);
  Value all = piece.sumWrites(writes);
  Value sum = piece.sumWritten(writes, unit);
  // Rows up to the last one have what all tokens write. Of that the last one's
  // own is taken off again, and leaves the digits that bounds on gates ask for.
  Value isLast = b.sub(chunk.tokens, chunk.followed);
  if (unit != 1)
    isLast = b.scaled(isLast, unit);
  Value dots = b.mulAxis(b.broadcast(all, shapeOf(sum), 1), isLast, 0);
  // The gradient comes first: else its gates are loaded while inner products
  // are made, for which there are no registers.
  Value readers = b.add(sum, piece.own(piece.queries()));
  dk = add(dk, b.mul(readers, piece.until()));
  dots = keepHere(b.sub(dots, b.mul(piece.written(), sum)));
  sum = piece.sumRead(chunk.pairs.keyKey, readState(in.dV), -1.0);
  dots = add(dots, b.mul(piece.keys(), sum));
  dk = add(dk, b.mul(sum, piece.since()));
  storeKeys();
  sum = piece.sumRead(chunk.pairs.queryKey, readState(in.dO), p.facts.scale);
  dots = add(dots, b.mul(piece.queries(), sum));
  sum = b.add(sum, piece.own(piece.written()));
  dq = add(dq, b.mul(sum, piece.since()));
  all = b.mul(states(), piece.whole());
  storeQueries();
  return sumFromRow(p, dots, all, chunk.tokens);
}
