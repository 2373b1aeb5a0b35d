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

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

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
/// Queries and keys that read the writes of other tokens, and keys that they
/// read.
enum class Part { Queries, Keys, ReadKeys };

/// A piece of K of a chunk. A kernel has no registers for rows, gates and
/// decays between their uses, so each use makes them anew of what lies in
/// shared memory.
class Piece {
public:
  Piece(Program &p, const GradientChunk &chunk, size_t piece)
      : pairs(chunk.pairs), q(chunk.in.q[piece]), k(chunk.in.k[piece]), b(p.b),
        G(chunk.in.channelGates[piece]), last(p.facts.C - 1) {}

  /// Rows in f32.
  Value read(Value rows) {
    Value wide = b.f32(rows);
    return wide == rows ? rows : reread(wide);
  }
  /// Rows times a factor, in the operand type.
  Value decayed(Value rows, Value factor) {
    return b.round(b.mul(read(rows), factor));
  }
  /// The decay from the start of the chunk to each token, and from there to its
  /// end.
  Value fromStart() { return reread(b.exp2(G)); }
  Value untilEnd() {
    Value end = b.broadcast(b.row(G, last), shapeOf(G), 1);
    return b.exp2(reread(b.sub(end, G)));
  }
  /// That from the reference of a token's block to the token, and back.
  Value later() { return b.exp2(sinceReference()); }
  Value earlier() { return b.exp2(b.neg(sinceReference())); }
  /// Keys as tokens read them, over the reference of their block.
  Value written() {
    if (!keys || keys.getParentBlock() != b.getInsertionBlock())
      keys = decayed(k, earlier());
    return keys;
  }
  /// That of each channel between two tokens, and over the chunk.
  Value between(int64_t from, int64_t to) {
    return b.exp2(reread(b.sub(b.row(G, to), b.row(G, from))));
  }
  Value whole() { return b.exp2(b.row(G, last)); }
  /// The gradients of pairs, and the rows that read.
  std::pair<Value, Value> readers(Part part) const {
    if (part == Part::Queries)
      return {pairs.queryKey, q};
    return {pairs.keyKey, k};
  }
  /// The levels of the decay by halves.
  SmallVector<HalvesLevel> levels(Program &p) { return decayByHalves(p, G); }
  /// The summed gate at a token.
  Value gateAt(int64_t token) { return b.row(G, token); }

  const PairTiles &pairs;
  /// In the operand type.
  const Value q, k;

private:
  Value sinceReference() {
    return reread(tile::RebaseOp::create(b, G, /*axis=*/0, kBlock, kReference));
  }
  Value reread(Value made) {
    made.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                  b.getI64IntegerAttr(uses++));
    return made;
  }

  TileBuilder &b;
  /// Gates summed over the chunk so far.
  Value G;
  /// written() of the block in which it was made.
  Value keys;
  int64_t last, uses = 0;
};

/// The gradients of the rows of q or k, and the inner products of rows with
/// theirs that the gate's gradient is made of; f32 [C, K piece]. To these, what
/// tokens of the chunk read of each other's writes adds those of queries and of
/// keys that read, less those of keys that are read. Between tokens on one side
/// of a gate they cancel, if rounded rows take part on both sides.
struct RowSums {
  Value gradient, dots;
};
/// Of the sums, what is in registers from here on.
static Value keep(Value sum) {
  if (Operation *made = sum.getDefiningOp())
    made->setAttr(tile::kMadeHereAttrName, UnitAttr::get(sum.getContext()));
  return sum;
}

} // namespace

Pieces gdn::loadChannelGates(Program &p, Value t) {
  // Those who sum them up load them: they have no slots in a kernel.
  Pieces gates;
  for (int64_t first = 0, size = pieceChannels(p.facts.K); first < p.facts.K;
       first += size) {
    Program part = p;
    part.facts.K = size;
    part.firstK = p.b.index(first);
    part.loadStep = "decay";
    part.loadGateParameters();
    gates.push_back(cumulatedGate(part, t));
  }
  return gates;
}

ChannelWrites gdn::channelWrites(Program &p, Value k, Value G) {
  TileBuilder &b = p.b;
  return {b.round(b.mul(b.f32(k), decayToEnd(p, G))),
          b.exp2(b.row(G, p.facts.C - 1))};
}

//===----------------------------------------------------------------------===//
// Pairs with a reference a block
//===----------------------------------------------------------------------===//

/// How the numbers of rows compare with `row`, i1 of `shape`.
static Value compareRows(Program &p, arith::CmpIPredicate predicate,
                         int64_t row, ArrayRef<int64_t> shape) {
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

/// sum_{j<i} M_ij y_j of rows `y` over their references, over that of row i.
static Value sumRead(Program &p, Piece &in, Value m, Value y) {
  TileBuilder &b = p.b;
  Value sum;
  for (int64_t first = 0; first < p.facts.C; first += kBlock) {
    if (sum)
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
  sums.dots = keep(isRead ? b.sub(sums.dots, dots) : b.add(sums.dots, dots));
  sums.gradient = keep(b.add(sums.gradient, b.mul(part, factor())));
  return sums;
}

static RowSums addPairsOfBlocks(Program &p, Piece &in, Part part,
                                RowSums sums) {
  if (part == Part::ReadKeys)
    return addRows(
        p.b, in, sums, sumWritten(p, in), in.k, [&] { return in.earlier(); },
        /*isRead=*/true);
  auto [m, rows] = in.readers(part);
  return addRows(
      p.b, in, sums, sumRead(p, in, m, in.written()), rows,
      [&] { return in.later(); }, /*isRead=*/false);
}

//===----------------------------------------------------------------------===//
// Pairs by halves, for any gates
//===----------------------------------------------------------------------===//

static RowSums addPairsOfHalves(Program &p, Piece &in, Part part,
                                RowSums sums) {
  TileBuilder &b = p.b;
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
        b, in, sums, sum, rows, [&] { return level.later; },
        /*isRead=*/false);
  }
  return sums;
}

/// Whether every factor of a block stays in range: gates are <= 0, so its first
/// and last token bound the exponents.
static Value isInRange(Program &p, Piece &in, double most) {
  TileBuilder &b = p.b;
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

/// Adds what tokens of the chunk read of each other. `inRange` is null where
/// every factor is.
static RowSums addPairs(Program &p, Piece &in, Value inRange, Part part,
                        RowSums sums) {
  if (!inRange)
    return addPairsOfBlocks(p, in, part, sums);
  auto write = [&](RowSums (*add)(Program &, Piece &, Part, RowSums)) {
    return [&, add]() -> SmallVector<Value> {
      RowSums out = add(p, in, part, sums);
      return {out.gradient, out.dots};
    };
  };
  SmallVector<Value> chosen =
      choose(p, inRange, write(addPairsOfBlocks), write(addPairsOfHalves),
             /*likely=*/true);
  return {chosen[0], chosen[1]};
}

//===----------------------------------------------------------------------===//
// A piece of K
//===----------------------------------------------------------------------===//

/// The state before the chunk times the gradient of that behind it, summed over
/// V: f32 [K piece]. Kept ones are no tiles of who adds up the gradients.
static Value sumStates(Program &p, const GradientTiles &in, size_t piece) {
  TileBuilder &b = p.b;
  Value dots;
  bool isKept = in.source == StateSource::Kept;
  b.step(isKept ? StringRef("sums") : pieceStep(piece));
  for (auto [state, dState] : llvm::zip(in.state[piece], in.dState[piece])) {
    Value own = b.mul(b.f32(state), b.f32(dState));
    dots = keep(dots ? b.add(dots, own) : own);
  }
  Value sum = b.sum(dots, 0);
  if (double unit = stateGradientUnit(p); unit != 1)
    sum = b.scaled(sum, unit);
  b.step(pieceStep(piece));
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

/// Adds what a token reads of its own write, which no gate decays: `rows` are
/// the others of its pair.
static void addOwn(Program &p, Piece &in, Value rows, RowSums &sums) {
  TileBuilder &b = p.b;
  Value own = b.mulAxis(in.read(rows), in.pairs.own, 0);
  sums.gradient = keep(b.add(sums.gradient, own));
}

/// Adds a term of the gradient of `rows` that no pair of tokens has.
static void addTerm(TileBuilder &b, Piece &in, Value rows, Value term,
                    RowSums &sums) {
  sums.gradient = keep(b.add(sums.gradient, term));
  Value dots = b.mul(in.read(rows), term);
  sums.dots = keep(sums.dots ? b.add(sums.dots, dots) : dots);
}

/// Adds what keys write to the gradient of the state behind the chunk, whose
/// inner products with it the gate's gradient has of tokens before its own, and
/// what is carried through, which all tokens have. These inner products are
/// taken off, and their sum is added to those of the last token: of all sums
/// from there on, those of tokens before a token are left. Without that of the
/// last token, which may be much larger than all others where decay is strong,
/// they have the digits for it.
static void addWrites(Program &p, const GradientChunk &chunk, size_t piece,
                      Piece &own, RowSums &sums) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  Value write = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                        in.dState[piece]);
  write = b.mul(write, own.untilEnd());
  Value states = sumStates(p, in, piece);
  if (double unit = stateGradientUnit(p); unit != 1)
    write = b.scaled(write, unit);
  sums.gradient = keep(b.add(sums.gradient, write));
  Value dots = b.mulAxis(b.mul(own.read(own.k), write), chunk.followed, 0);
  Value all = b.add(b.mul(states, own.whole()), b.sum(dots, 0));
  dots = b.sub(sums.dots, dots);
  ArrayRef<int64_t> shape = shapeOf(dots);
  Value isLast = compareRows(p, arith::CmpIPredicate::eq, p.facts.C - 1, shape);
  sums.dots = keep(arith::SelectOp::create(
      b, isLast, b.add(dots, b.broadcast(all, shape, 1)), dots));
}

/// Queries come first, then keys: so few sums are kept at a time.
void gdn::addChannelGradients(Program &p, GradientChunk &chunk, size_t piece,
                              Value &dq, function_ref<void()> storeQueries,
                              Value &dk) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  Piece own(p, chunk, piece);
  double most = maxBlockExponent(b.getOperandType());
  Value inRange;
  if (!isAlwaysInRange(p, kBlock / 2, most))
    inRange = isInRange(p, own, most);
  auto readState = [&](const Pieces &rows, double factor) {
    Value part = product(b, "iv,vk->ik", rows, in.state[piece]);
    return b.mul(b.scaled(part, factor), own.fromStart());
  };
  RowSums sums = {dq, Value()};
  addTerm(b, own, own.q, readState(in.dO, p.facts.scale), sums);
  sums = addPairs(p, own, inRange, Part::Queries, sums);
  addOwn(p, own, own.k, sums);
  dq = sums.gradient;
  storeQueries();
  sums.gradient = dk;
  addTerm(b, own, own.k, readState(in.dV, -1.0), sums);
  sums = addPairs(p, own, inRange, Part::Keys, sums);
  addWrites(p, chunk, piece, own, sums);
  sums = addPairs(p, own, inRange, Part::ReadKeys, sums);
  addOwn(p, own, own.q, sums);
  dk = sums.gradient;
  storeGateGradient(p, chunk.t, piece,
                    tile::ScanOp::create(b, sums.dots, 0, /*reverse=*/true));
}
