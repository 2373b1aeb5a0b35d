//===- ChannelDecay.cpp - Decayed products with one gate a channel --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

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
/// of `half` tokens, or for 0 the same token; i1 [C, C].
static Value pairsOfHalves(Program &p, int64_t half,
                           std::optional<int64_t> use = {}) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  SmallVector<int64_t> square = {C, C};
  auto number = [&](int64_t axis) {
    Value all = b.broadcast(b.iota(C), square, axis);
    if (use)
      all.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                   b.getI64IntegerAttr(*use));
    return all;
  };
  Value i = number(0), j = number(1);
  if (half == 0)
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i, j);
  auto splat = [&](int64_t value) {
    return b.splat(arith::ConstantIntOp::create(b, value, 32), square);
  };
  // Numbers of halves: an odd one, and the even one before it. No other number
  // is -1.
  auto halfOf = [&](Value number) -> Value {
    return arith::ShRUIOp::create(b, number, splat(llvm::Log2_64(half)));
  };
  Value one = splat(1), row = halfOf(i);
  Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      arith::AndIOp::create(b, row, one), one);
  Value later = arith::SelectOp::create(b, isOdd, row, splat(-1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, later,
                               arith::XOrIOp::create(b, halfOf(j), one));
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

ChannelWrites gdn::channelWrites(Program &p, Value k, Value G) {
  TileBuilder &b = p.b;
  return {b.round(b.mul(b.f32(k), decayToEnd(p, G))), b.exp2(lastRow(p, G))};
}

/// Rows that are normalised if the op asks for it, f32 [C, K]. What is made of
/// them is rounded once, as of rows that are not.
/// Each `use` reads them again: a kernel has no registers to hold them.
static Value unitRows(Program &p, const KeyRows &rows, int64_t use) {
  TileBuilder &b = p.b;
  Value x = b.f32(rows.tile);
  if (x != rows.tile)
    x.getDefiningOp()->setAttr(tile::kRereadAttrName, b.getI64IntegerAttr(use));
  return rows.norm ? b.mulAxis(x, rows.norm, 0) : x;
}

/// Gates since the middle of the chunk, cumulated [C, K].
static Value sinceMiddle(Program &p, Value G) {
  return sinceHalf(p, G, p.facts.C / 2);
}

/// The decays of the state to the reference, whose cumulated gates are
/// `reference`, and from there to the chunk's end.
static void writeStateDecays(Program &p, Value G, Value reference,
                             ChannelTiles &tiles) {
  TileBuilder &b = p.b;
  tiles.toReference = b.exp2(reference);
  tiles.toEnd = b.exp2(b.sub(lastRow(p, G), reference));
}

/// One reference for the chunk, the last token of its first half: the operands
/// of the scores are those of the state, which is taken there and back.
static void writeFromMiddle(Program &p, const KeyRows &q, const KeyRows &k,
                            Value G, ChannelTiles &tiles) {
  TileBuilder &b = p.b;
  b.step("decay");
  writeStateDecays(p, G, b.row(G, p.facts.C / 2 - 1), tiles);
  Value keys = unitRows(p, k, 0);
  Value E = sinceMiddle(p, G);
  Value later = b.exp2(E);
  Value earlier = b.mul(keys, b.exp2(b.neg(E)));
  tiles.readKeys = b.round(b.mul(keys, later));
  if (q.tile)
    tiles.readQueries = b.round(b.mul(unitRows(p, q, 0), later));
  tiles.writeKeys = b.round(b.mulAxis(earlier, tiles.toEnd, 1));
  Value columns = b.round(earlier);
  tiles.keyKey = innerProducts(p, tiles.readKeys, columns);
  if (q.tile)
    tiles.queryKey = innerProducts(p, tiles.readQueries, columns);
}

/// Scores by halves, for any gates: a token is in the earlier or in the later
/// half of its block, so one factor <= 1 does for both. The diagonal has no
/// decay. The state is read at the start of the chunk.
static void writeByHalves(Program &p, const KeyRows &q, const KeyRows &k,
                          Value G, ChannelTiles &tiles) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  b.step("halves");
  int64_t use = 1;
  auto decayed = [&](const KeyRows &rows, Value decay) -> Value {
    if (!rows.tile)
      return {};
    return b.round(b.mul(unitRows(p, rows, use++), decay));
  };
  // Norms are factors of the sums, for beside a level they would take
  // registers. f16 has no room for rows without them.
  bool isNormLate = !b.getOperandType().isF16();
  KeyRows levelKeys = k, levelQueries = q;
  if (isNormLate)
    levelKeys.norm = levelQueries.norm = {};
  tiles.keyKey = tiles.queryKey = b.fill(0.0, {C, C});
  auto addPairs = [&](int64_t half, Value since) {
    Value factor = b.exp2(b.neg(b.abs(since)));
    Value keys = decayed(levelKeys, factor),
          queries = decayed(levelQueries, factor);
    Value pairs = pairsOfHalves(p, half, use++);
    auto add = [&](Value rows, Value &into) {
      Value products = innerProducts(p, rows, keys);
      into = b.add(into, b.select(pairs, products, 0.0));
      into.getDefiningOp()->setAttr(tile::kMadeHereAttrName, b.getUnitAttr());
    };
    add(keys, tiles.keyKey);
    if (queries)
      add(queries, tiles.queryKey);
  };
  for (int64_t half = C / 2; half >= 1; half /= 2)
    addPairs(half, sinceHalf(p, G, half));
  // Blocks of one token, which are the diagonal.
  addPairs(0, tile::RebaseOp::create(b, G, /*axis=*/0, /*block=*/1, /*at=*/0));
  if (isNormLate) {
    tiles.keyKey = mulNorms(p, tiles.keyKey, k.norm, k.norm);
    tiles.queryKey = mulNorms(p, tiles.queryKey, q.norm, k.norm);
  }
  // Last, since they would take registers beside the products.
  Type element = getElementTypeOrSelf(G.getType());
  writeStateDecays(p, G, b.fill(0.0, p.facts.K, element), tiles);
  Value read = b.exp2(G);
  tiles.readKeys = decayed(k, read);
  tiles.readQueries = decayed(q, read);
  tiles.writeKeys = decayed(k, decayToEnd(p, G));
}

/// Whether every factor from the middle of a chunk stays in range: gates are
/// <= 0, so its first and last token bound the exponents. Null where all do,
/// whatever the gates.
static Value isInRange(Program &p, Value G) {
  TileBuilder &b = p.b;
  int64_t half = p.facts.C / 2;
  double most = support::maxExponent(b.getOperandType());
  if (support::isAlwaysInRange(p.facts.lowerBound, half, most))
    return {};
  b.step("decay");
  Value middle = b.row(G, half - 1);
  Value exponents = arith::MaximumFOp::create(
      b, b.f32(b.neg(middle)), b.f32(b.sub(middle, lastRow(p, G))));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE,
                               b.maximum(exponents), b.scalar(most));
}

ChannelTiles gdn::channelTiles(Program &p, const KeyRows &q, const KeyRows &k,
                               Value G) {
  Value inRange = isInRange(p, G);
  p.b.step("decay");
  ChannelTiles tiles;
  if (!inRange) {
    writeFromMiddle(p, q, k, G, tiles);
    return tiles;
  }
  SmallVector<Value *> places = {&tiles.toReference, &tiles.toEnd,
                                 &tiles.readKeys, &tiles.writeKeys,
                                 &tiles.keyKey};
  if (q.tile)
    places.append({&tiles.readQueries, &tiles.queryKey});
  auto write = [&](auto writeTiles) -> SmallVector<Value> {
    writeTiles(p, q, k, G, tiles);
    return llvm::map_to_vector(places, [](Value *place) { return *place; });
  };
  SmallVector<Value> chosen = choose(
      p, inRange, [&] { return write(writeFromMiddle); },
      [&] { return write(writeByHalves); }, /*likely=*/true);
  for (auto [place, value] : llvm::zip(places, chosen))
    *place = value;
  return tiles;
}
