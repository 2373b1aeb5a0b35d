//===- ChannelGradients.cpp - Gradients of a chunk, a gate a channel ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tokens read of the state before the chunk, and write to that behind it,
// takes a decay that is at most 1. Between tokens of the chunk the decay of a
// channel stands inside the sum over pairs, as a factor of either token. With
// blocks of 16 tokens and a reference in each, a sum goes from the reference of
// one block to that of the next by a vector of channels (spec 5.7).
//
//===----------------------------------------------------------------------===//

#include "GradientChunk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

namespace {
/// A piece of K of a chunk.
struct Piece {
  /// Rows in the operand type, and gates summed over the chunk so far.
  Value q, k, G;
  const PairTiles &pairs;
};
/// What tokens of the chunk read of each other's writes: terms of dQ and dK,
/// and the inner products of queries and keys that read with theirs, less those
/// of keys that are read; f32 [C, K piece]. Between tokens on one side of a
/// gate the products cancel, if rounded operands take part on both sides.
struct PairGradients {
  Value queries, keys, dots;
};
} // namespace

Pieces gdn::loadChannelGates(Program &p, Value t) {
  Pieces gates;
  for (int64_t first = 0, size = pieceChannels(p.facts.K); first < p.facts.K;
       first += size) {
    Program part = p;
    part.facts.K = size;
    part.firstK = p.b.index(first);
    part.loadStep = "load_keys";
    part.decayStep = pieceStep(gates.size());
    part.loadGateParameters();
    gates.push_back(loadSummedGate(part, t));
  }
  return gates;
}

static Value cumulate(Program &p, Value gate) {
  return tile::ScanOp::create(p.b, gate, 0, /*reverse=*/false);
}

ChannelWrites gdn::channelWrites(Program &p, Value k, Value gate) {
  TileBuilder &b = p.b;
  Value G = cumulate(p, gate);
  return {b.round(b.mul(b.f32(k), decayToEnd(p, G))),
          b.exp2(b.row(G, p.facts.C - 1))};
}

//===----------------------------------------------------------------------===//
// Pairs with a reference a block
//===----------------------------------------------------------------------===//

/// `sum`, of which rows from `row` on, or those before it, are multiplied by
/// the decay of each channel from token `from` to token `to`.
static Value carryRows(Program &p, Value sum, Value G, int64_t from, int64_t to,
                       int64_t row, bool before) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(sum);
  Value factor = b.exp2(b.sub(b.row(G, to), b.row(G, from)));
  Value numbers = b.broadcast(b.iota(shape[0]), shape, 0);
  Value bound =
      b.splat(arith::ConstantIntOp::create(b, row, /*width=*/32), shape);
  Value isOther = arith::CmpIOp::create(
      b, before ? arith::CmpIPredicate::sge : arith::CmpIPredicate::slt,
      numbers, bound);
  return arith::SelectOp::create(b, isOther, sum, b.mulAxis(sum, factor, 1));
}

/// sum_{j<i} M_ij y_j of rows `y` over their references, over that of row i.
static Value sumRead(Program &p, Value m, Value y, Value G) {
  TileBuilder &b = p.b;
  Value sum;
  for (int64_t first = 0; first < p.facts.C; first += kBlock) {
    if (sum)
      sum = carryRows(p, sum, G, first - kBlock + kReference,
                      first + kReference, first, /*before=*/false);
    sum = b.product("ij,jk->ik", b.columns(m, first, kBlock),
                    b.rows(y, first, kBlock), sum);
  }
  return sum;
}

/// sum_{i>j} M_ij x_i of the readers of both kinds, over the reference of row
/// j.
static Value sumWritten(Program &p, const PairTiles &pairs, Value queries,
                        Value keys, Value G) {
  TileBuilder &b = p.b;
  Value sum;
  for (int64_t first = p.facts.C - kBlock; first >= 0; first -= kBlock) {
    int64_t next = first + kBlock;
    if (sum)
      sum = carryRows(p, sum, G, first + kReference, next + kReference, next,
                      /*before=*/true);
    for (auto [m, x] :
         {std::pair(pairs.queryKey, queries), std::pair(pairs.keyKey, keys)})
      sum = b.product("ij,ik->jk", b.rows(m, first, kBlock),
                      b.rows(x, first, kBlock), sum);
  }
  return sum;
}

static PairGradients pairsOfBlocks(Program &p, const Piece &in) {
  TileBuilder &b = p.b;
  Value E = tile::RebaseOp::create(b, in.G, /*axis=*/0, kBlock, kReference);
  Value later = b.exp2(E), earlier = b.exp2(b.neg(E));
  Value q = b.round(b.mul(b.f32(in.q), later));
  Value k = b.round(b.mul(b.f32(in.k), later));
  Value written = b.round(b.mul(b.f32(in.k), earlier));
  PairGradients out;
  Value ofQueries = sumRead(p, in.pairs.queryKey, written, in.G);
  out.queries = b.mul(ofQueries, later);
  out.dots = b.mul(b.f32(q), ofQueries);
  Value ofKeys = sumRead(p, in.pairs.keyKey, written, in.G);
  out.keys = b.mul(ofKeys, later);
  out.dots = b.add(out.dots, b.mul(b.f32(k), ofKeys));
  Value ofWrites = sumWritten(p, in.pairs, q, k, in.G);
  out.keys = b.add(out.keys, b.mul(ofWrites, earlier));
  out.dots = b.sub(out.dots, b.mul(b.f32(written), ofWrites));
  return out;
}

//===----------------------------------------------------------------------===//
// Pairs by halves, for any gates
//===----------------------------------------------------------------------===//

static PairGradients pairsOfHalves(Program &p, const Piece &in) {
  TileBuilder &b = p.b;
  Value none = b.fill(0.0, shapeOf(in.k));
  PairGradients out = {none, none, none};
  for (const HalvesLevel &level : decayByHalves(p, in.G)) {
    auto ofLevel = [&](Value m) {
      return b.round(b.mul(b.f32(m), level.mask));
    };
    Value queryKey = ofLevel(in.pairs.queryKey);
    Value keyKey = ofLevel(in.pairs.keyKey);
    Value q = b.round(b.mul(b.f32(in.q), level.later));
    Value k = b.round(b.mul(b.f32(in.k), level.later));
    Value written = b.round(b.mul(b.f32(in.k), level.earlier));
    Value ofQueries = b.product("ij,jk->ik", queryKey, written);
    Value ofKeys = b.product("ij,jk->ik", keyKey, written);
    Value ofWrites = b.product("ij,ik->jk", queryKey, q);
    ofWrites = b.product("ij,ik->jk", keyKey, k, ofWrites);
    auto addTo = [&](Value &sum, Value x, Value y) {
      sum = b.add(sum, b.mul(x, y));
    };
    addTo(out.queries, ofQueries, level.later);
    addTo(out.keys, ofKeys, level.later);
    addTo(out.keys, ofWrites, level.earlier);
    addTo(out.dots, b.f32(q), ofQueries);
    addTo(out.dots, b.f32(k), ofKeys);
    out.dots = b.sub(out.dots, b.mul(b.f32(written), ofWrites));
  }
  return out;
}

/// Whether every factor of a block stays in range: gates are <= 0, so its first
/// and last token bound the exponents.
static Value isInRange(Program &p, Value G, double most) {
  TileBuilder &b = p.b;
  Value worst;
  auto add = [&](int64_t from, int64_t to) {
    Value exponent = b.f32(b.sub(b.row(G, from), b.row(G, to)));
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

static PairGradients makePairGradients(Program &p, const Piece &in) {
  double most = maxBlockExponent(p.b.getOperandType());
  if (isAlwaysInRange(p, kBlock / 2, most))
    return pairsOfBlocks(p, in);
  auto write = [&](PairGradients (*make)(Program &, const Piece &)) {
    return [&, make]() -> SmallVector<Value> {
      PairGradients out = make(p, in);
      return {out.queries, out.keys, out.dots};
    };
  };
  SmallVector<Value> chosen =
      choose(p, isInRange(p, in.G, most), write(pairsOfBlocks),
             write(pairsOfHalves), /*likely=*/true);
  return {chosen[0], chosen[1], chosen[2]};
}

//===----------------------------------------------------------------------===//
// A piece of K
//===----------------------------------------------------------------------===//

/// The state before the chunk times the gradient of that behind it, summed over
/// V: f32 [K piece].
static Value sumStates(TileBuilder &b, const GradientTiles &in, size_t piece) {
  Value sum;
  for (auto [state, dState] : llvm::zip(in.state[piece], in.dState[piece])) {
    Value own = b.sum(b.mul(b.f32(state), b.f32(dState)), 0);
    sum = sum ? b.add(sum, own) : own;
  }
  return sum;
}

/// Stores the gradient of a piece of the gate.
static void storeGateGradient(Program &p, Value t, size_t piece, Value dg) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(dg);
  SmallVector<Value> offsets =
      tokenOffsets(p, t, p.head, b.index(piece * shape[1]));
  if (p.facts.gateDomain == GateDomain::Linear)
    dg =
        toGateGradient(p, b.load(p["gate"], offsets, {1, 3}, shape, p.end), dg);
  b.store(dg, p["dgate"], offsets, {1, 3}, p.end);
}

namespace {
/// The gradient of the log gate is the sum of `reads` over the tokens from its
/// own on, of `writes` over those before it, and of what is carried through
/// (spec 5.4, robust form); f32 [C, K piece].
struct GateTerms {
  Value reads, writes;
};
} // namespace

/// `reads` less `writes`, summed from the end, and the sum of all writes: so
/// one tile is kept. Without that of the last token, which may be much larger
/// than all others where decay is strong, writes have the digits for it.
static Value sumGateGradient(Program &p, const GradientChunk &chunk,
                             size_t piece, Value G, GateTerms terms) {
  TileBuilder &b = p.b;
  Value whole = b.exp2(b.row(G, p.facts.C - 1));
  double unit = stateGradientUnit(p);
  Value sum = sumStates(b, chunk.in, piece);
  if (unit != 1)
    sum = b.scaled(sum, unit);
  sum = b.add(b.mul(sum, whole), b.sum(terms.writes, 0));
  Value left = tile::ScanOp::create(b, b.sub(terms.reads, terms.writes), 0,
                                    /*reverse=*/true);
  return b.add(left, b.broadcast(sum, shapeOf(left), 1));
}

/// Adds what keys and queries read of the state before the chunk, and what keys
/// write to the gradient of that behind it. Returns their inner products with
/// these.
static GateTerms addStateTerms(Program &p, GradientChunk &chunk, size_t piece,
                               const Piece &own,
                               function_ref<void(Value)> addQuery,
                               function_ref<void(Value)> addKey) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  GateTerms terms;
  Value read = b.exp2(own.G);
  Value dq = product(b, "iv,vk->ik", in.dO, in.state[piece]);
  dq = b.mul(b.scaled(dq, p.facts.scale), read);
  addQuery(dq);
  terms.reads = b.mul(b.f32(own.q), dq);
  Value dk = product(b, "iv,vk->ik", in.dV, in.state[piece]);
  dk = b.neg(b.mul(dk, read));
  addKey(dk);
  terms.reads = b.add(terms.reads, b.mul(b.f32(own.k), dk));
  bool isTurned = in.source == StateSource::Carried;
  Value dw = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                     in.dState[piece]);
  dw = b.mul(dw, decayToEnd(p, own.G));
  if (double unit = stateGradientUnit(p); unit != 1)
    dw = b.scaled(dw, unit);
  addKey(dw);
  terms.writes = b.mulAxis(b.mul(b.f32(own.k), dw), chunk.followed, 0);
  return terms;
}

void gdn::addChannelGradients(Program &p, GradientChunk &chunk, size_t piece,
                              function_ref<void(Value)> addQuery,
                              function_ref<void()> storeQueries,
                              function_ref<void(Value)> addKey) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  Piece own = {in.q[piece], in.k[piece], cumulate(p, in.channelGates[piece]),
               chunk.pairs};
  GateTerms terms = addStateTerms(p, chunk, piece, own, addQuery, addKey);
  PairGradients pairs = makePairGradients(p, own);
  terms.reads = b.add(terms.reads, pairs.dots);
  // No gate decays what a token reads of its own write.
  addQuery(pairs.queries);
  addQuery(b.mulAxis(widen(b, own.k, /*use=*/0), chunk.pairs.own, 0));
  storeQueries();
  addKey(pairs.keys);
  addKey(b.mulAxis(widen(b, own.q, /*use=*/0), chunk.pairs.own, 0));
  storeGateGradient(p, chunk.t, piece,
                    sumGateGradient(p, chunk, piece, own.G, terms));
}
