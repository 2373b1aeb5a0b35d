//===- ChannelDecay.cpp - Decayed products with one gate a channel --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;

/// 1 in the rows whose number has `bit` at the place of `power`, a power of
/// two, else 0; f32 [C].
static Value rowsWithBit(Program &p, int64_t power, int64_t bit) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  auto splat = [&](int64_t value) {
    return b.splat(arith::ConstantIntOp::create(b, value, 32), C);
  };
  Value masked = arith::AndIOp::create(b, b.iota(C), splat(power));
  Value has = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, masked,
                                    splat(bit * power));
  return b.select(has, b.fill(1.0, C), 0.0);
}

/// Whether i and j are a later and an earlier token of one block of two halves
/// of `half` tokens; i1 [C, C].
static Value pairsOfHalves(Program &p, int64_t half) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  SmallVector<int64_t> square = {C, C};
  Value i = b.broadcast(b.iota(C), square, 0);
  Value j = b.broadcast(b.iota(C), square, 1);
  Value differing = arith::XOrIOp::create(b, i, j);
  // i > j of this level: their highest differing bit is `half`, set in i.
  auto splat = [&](int64_t value) {
    return b.splat(arith::ConstantIntOp::create(b, value, 32), square);
  };
  Value top = arith::ShRUIOp::create(b, differing, splat(llvm::Log2_64(half)));
  Value sameBlock =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, top, splat(1));
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, i, j);
  return arith::AndIOp::create(b, sameBlock, below);
}

/// Cumulated gates since the last token of the earlier half of every block.
static Value sinceHalf(Program &p, Value G, int64_t half) {
  return tile::RebaseOp::create(p.b, G, /*axis=*/0, 2 * half, half - 1);
}

SmallVector<HalvesLevel> gdn::decayByHalves(Program &p, Value G) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  Type element = getElementTypeOrSelf(G.getType());
  SmallVector<HalvesLevel> levels;
  for (int64_t half = C / 2; half >= 1; half /= 2) {
    Value exponent = sinceHalf(p, G, half);
    // A row is of one of the halves: in the other one its exponent, which could
    // be too large, is made 0.
    auto decayOf = [&](Value exponent, int64_t bit) {
      Value mask = b.to(rowsWithBit(p, half, bit), element);
      return b.exp2(b.mulAxis(exponent, mask, 0));
    };
    levels.push_back(
        {decayOf(exponent, 1), decayOf(b.neg(exponent), 0),
         b.select(pairsOfHalves(p, half), b.fill(1.0, {C, C}), 0.0)});
  }
  return levels;
}

/// Largest exponent of a factor, in log2 units: products with it must stay far
/// from the largest number of the operand type (spec 4.3). 16 gates of -5, and
/// rows up to 2^10 long, are in range of bf16 and f32.
static double maxExponent(FloatType operandType) {
  return operandType.isF16() ? 8.0 : 116.0;
}

/// Rows that are normalised if the op asks for it, f32 [C, K]. What is made of
/// them is rounded once, as of rows that are not.
static Value unitRows(Program &p, const KeyRows &rows) {
  TileBuilder &b = p.b;
  Value x = b.f32(rows.tile);
  return rows.norm ? b.mulAxis(x, rows.norm, 0) : x;
}

/// Gates since the middle of the chunk, cumulated [C, K].
static Value sinceMiddle(Program &p, Value G) {
  return sinceHalf(p, G, p.facts.C / 2);
}

/// One reference for the chunk, the last token of its first half: the operands
/// of the scores are those of the state, which is taken there and back.
static ChannelTiles tilesFromMiddle(Program &p, Value q, Value k, Value G) {
  TileBuilder &b = p.b;
  b.step("decay");
  Value E = sinceMiddle(p, G);
  Value later = b.exp2(E);
  Value earlier = b.mul(k, b.exp2(b.neg(E)));
  ChannelTiles tiles;
  tiles.toReference = b.exp2(b.row(G, p.facts.C / 2 - 1));
  tiles.toEnd = b.exp2(lastRow(p, E));
  tiles.readKeys = b.round(b.mul(k, later));
  if (q)
    tiles.readQueries = b.round(b.mul(q, later));
  tiles.writeKeys = b.round(b.mulAxis(earlier, tiles.toEnd, 1));
  Value columns = b.round(earlier);
  b.step("scores");
  tiles.keyKey = innerProducts(p, tiles.readKeys, columns);
  if (q)
    tiles.queryKey = innerProducts(p, tiles.readQueries, columns);
  return tiles;
}

/// Scores by halves, for any gates: a token is in the earlier or in the later
/// half of its block, so one factor <= 1 does for both. The diagonal has no
/// decay. The state is read at the start of the chunk.
static ChannelTiles tilesByHalves(Program &p, Value q, Value k, Value G) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  b.step("decay");
  ChannelTiles tiles;
  Value read = b.exp2(G);
  tiles.toReference = b.fill(1.0, p.facts.K);
  tiles.toEnd = b.exp2(lastRow(p, G));
  tiles.readKeys = b.round(b.mul(k, read));
  if (q)
    tiles.readQueries = b.round(b.mul(q, read));
  tiles.writeKeys = b.round(b.mul(k, decayToEnd(p, G)));
  b.step("scores");
  tiles.keyKey = b.fill(0.0, {C, C});
  if (q) {
    Value i = b.broadcast(b.iota(C), {C, C}, 0);
    Value j = b.broadcast(b.iota(C), {C, C}, 1);
    Value diagonal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i, j);
    Value dots = b.broadcast(b.sum(b.mul(q, k), 1), {C, C}, 1);
    tiles.queryKey = b.select(diagonal, dots, 0.0);
  }
  for (int64_t half = C / 2; half >= 1; half /= 2) {
    b.step("decay");
    Value factor = b.exp2(b.neg(b.abs(sinceHalf(p, G, half))));
    Value keys = b.round(b.mul(k, factor));
    Value queries = q ? b.round(b.mul(q, factor)) : Value();
    b.step("scores");
    Value pairs = pairsOfHalves(p, half);
    auto add = [&](Value rows, Value &into) {
      Value products = innerProducts(p, rows, keys);
      into = b.add(into, b.select(pairs, products, 0.0));
    };
    add(keys, tiles.keyKey);
    if (q)
      add(queries, tiles.queryKey);
  }
  return tiles;
}

/// Whether every factor from the middle of a chunk stays in range: gates are
/// <= 0, so its first and last token bound the exponents. Null where all do,
/// whatever the gates.
static Value isInRange(Program &p, Value G) {
  TileBuilder &b = p.b;
  int64_t half = p.facts.C / 2;
  double most = maxExponent(b.getOperandType());
  if (p.facts.gateDomain == GateDomain::Bounded &&
      -p.facts.lowerBound * M_LOG2E * half <= most)
    return {};
  b.step("decay");
  Value middle = b.row(G, half - 1);
  auto largest = [&](Value exponents) { return b.maximum(b.f32(exponents)); };
  Value bound = arith::MaximumFOp::create(
      b, largest(b.neg(middle)), largest(b.sub(middle, lastRow(p, G))));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, bound,
                               b.scalar(most));
}

ChannelTiles gdn::channelTiles(Program &p, const KeyRows &q, const KeyRows &k,
                               Value G) {
  TileBuilder &b = p.b;
  Value inRange = isInRange(p, G);
  b.step("decay");
  Value keys = unitRows(p, k), queries = q.tile ? unitRows(p, q) : Value();
  if (!inRange)
    return tilesFromMiddle(p, queries, keys, G);
  auto write = [&](auto makeTiles) -> SmallVector<Value> {
    ChannelTiles tiles = makeTiles(p, queries, keys, G);
    SmallVector<Value> values = {tiles.readKeys, tiles.writeKeys,
                                 tiles.toReference, tiles.toEnd, tiles.keyKey};
    if (q.tile)
      values.append({tiles.readQueries, tiles.queryKey});
    return values;
  };
  SmallVector<Value> chosen = choose(
      p, inRange, [&] { return write(tilesFromMiddle); },
      [&] { return write(tilesByHalves); }, /*likely=*/true);
  ChannelTiles tiles;
  tiles.readKeys = chosen[0];
  tiles.writeKeys = chosen[1];
  tiles.toReference = chosen[2];
  tiles.toEnd = chosen[3];
  tiles.keyKey = chosen[4];
  if (q.tile) {
    tiles.readQueries = chosen[5];
    tiles.queryKey = chosen[6];
  }
  return tiles;
}
