//===- Gradients.cpp - Gradients of tokens from the states around them ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spec 5.7 (c) in its form for gates of any strength: with true states at the
// ends of every chunk, gradients are those of causal linear attention.
//
//===----------------------------------------------------------------------===//

#include "Chain.h"
#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// A gate that is the decay itself is raised to 2^-10 in log2 units. Its
/// gradient is that of its logarithm divided by it, and so holds at 0: what is
/// left of a token's error in f32, which no decay makes smaller, stays below
/// what 16 bits round, and so does what the raised gate lets through.
static constexpr double kLeastLog2Gate = -10.0;

namespace {
/// Tiles of some channels of V, or of K, each: products sum over those of what
/// they contract, and have a result for each of the others.
using Pieces = SmallVector<Value>;

/// What a chunk loads, in the operand type.
struct GradientTiles {
  /// Keys and queries [C, K].
  Pieces q, k;
  /// Gradients of o and v, and writes [C, V].
  Pieces dO, dV, writes;
  /// The state before the chunk and the gradient of that behind it [V, K], by
  /// pieces of K.
  SmallVector<Pieces> state, dState;
  Value beta;
  ChunkGates gates;
};

/// What the pairs of tokens of a chunk make.
struct PairTiles {
  /// d loss / d (q_i . k_j), lower, and minus d loss / d (k_i . k_j), strictly
  /// lower; in the operand type.
  Value queryKey, keyKey;
  Value dBeta;
};

/// Inner products of rows of q and k with their gradients, f32 [C]: of q, of
/// keys that read, of keys that are read later in the chunk, and of keys that
/// write to the state behind it. The gate's gradient is made of them.
struct RowDots {
  Value queries, readers, pairs, writes;
};
} // namespace

/// Channels of a piece: a panel of shared memory, where that divides them.
static int64_t pieceChannels(int64_t channels) {
  constexpr int64_t kPanel = 64;
  return channels % kPanel == 0 ? kPanel : channels;
}

/// A tile for each piece of `channels`, of its first channel and their number.
static Pieces makePieces(int64_t channels,
                         function_ref<Value(int64_t, int64_t)> make) {
  Pieces pieces;
  int64_t size = pieceChannels(channels);
  for (int64_t first = 0; first < channels; first += size)
    pieces.push_back(make(first, size));
  return pieces;
}

/// Rows of the tokens from t on of the array `name`, with `channels` channels.
static Pieces loadRows(Program &p, StringRef name, StringRef step, Value t,
                       Value head, int64_t channels) {
  TileBuilder &b = p.b;
  return makePieces(channels, [&](int64_t first, int64_t size) {
    b.step(step);
    return b.round(b.load(p[name], tokenOffsets(p, t, head, b.index(first)),
                          {1, 3}, {p.facts.C, size}, p.end));
  });
}

static SmallVector<Pieces> loadState(Program &p, StringRef name, StringRef step,
                                     Value segment) {
  TileBuilder &b = p.b;
  SmallVector<Pieces> state;
  int64_t columns = pieceChannels(p.facts.K);
  for (int64_t firstK = 0; firstK < p.facts.K; firstK += columns)
    state.push_back(makePieces(p.facts.V, [&](int64_t first, int64_t size) {
      b.step(step);
      return b.round(b.load(p[name],
                            {segment, p.head, b.index(first), b.index(firstK)},
                            {2, 3}, {size, columns}));
    }));
  return state;
}

/// The sum over what is contracted of products of pieces.
static Value product(TileBuilder &b, StringRef spec, const Pieces &x,
                     const Pieces &y) {
  Value sum;
  for (auto [left, right] : llvm::zip(x, y))
    sum = b.product(spec, left, right, sum);
  return sum;
}

/// What is free first is loaded first: a step each for what lies in slots of
/// its own.
static GradientTiles loadTiles(Program &p, Value t) {
  GradientTiles in;
  int64_t K = p.facts.K, V = p.facts.V;
  in.dO = loadRows(p, "d_o", "load", t, p.head, V);
  in.dV = loadRows(p, "dv", "load", t, p.head, V);
  in.writes = loadRows(p, "writes", "load", t, p.head, V);
  Value segment = keptSegment(p, t);
  in.state = loadState(p, "states", "load_state", segment);
  in.dState = loadState(p, "d_states", "load_gradient", segment);
  in.q = loadRows(p, "q", "load_keys", t, p.keyHead, K);
  in.k = loadRows(p, "k", "load_keys", t, p.keyHead, K);
  in.beta = loadBeta(p, t);
  in.gates = loadChunkGates(p, t);
  return in;
}

/// `sum`, which may be null, and the inner products of rows of x and y.
static Value addDots(TileBuilder &b, Value sum, Value x, Value y) {
  Value dots = b.sum(b.mul(b.f32(x), y), 1);
  return sum ? b.add(sum, dots) : dots;
}

static PairTiles makePairs(Program &p, const GradientTiles &in) {
  TileBuilder &b = p.b;
  PairTiles out;
  b.step("scores");
  Value decay = in.gates.G ? pairDecay(p, in.gates.G) : Value();
  auto decayed = [&](Value tile) { return decay ? b.mul(tile, decay) : tile; };
  auto inner = [&](const Pieces &x, const Pieces &y) {
    return product(b, "ic,jc->ij", x, y);
  };
  Value dKeyKey = decayed(inner(in.dV, in.writes));
  Value diagonal = tile::DiagonalOp::create(b, dKeyKey);
  out.dBeta = b.div(diagonal, b.mul(in.beta, in.beta));
  out.keyKey = tile::CausalOp::create(b, b.round(b.neg(dKeyKey)),
                                      /*strict=*/true);
  Value dQueryKey = decayed(b.scaled(inner(in.dO, in.writes), p.facts.scale));
  out.queryKey = tile::CausalOp::create(b, b.round(dQueryKey),
                                        /*strict=*/false);
  return out;
}

/// `tile` with rows times `factor`, null for 1.
static Value mulRows(TileBuilder &b, Value tile, Value factor) {
  return factor ? b.mulAxis(tile, factor, 0) : tile;
}

/// Adds a value head's part of dQ to `sum`, a piece of K.
static void addQueryGradient(Program &p, const GradientTiles &in,
                             const PairTiles &pairs, Value factor, size_t piece,
                             Value &sum, RowDots &dots) {
  TileBuilder &b = p.b;
  b.step("queries");
  Value dq = product(b, "iv,vk->ik", in.dO, in.state[piece]);
  dq = b.product("ij,jk->ik", pairs.queryKey, in.k[piece],
                 mulRows(b, dq, factor));
  if (in.gates.G)
    dots.queries = addDots(b, dots.queries, in.q[piece], dq);
  sum = b.add(sum, dq);
}

/// A piece of dK of a value head. A sum over the group beside its parts would
/// need more registers than there are.
static Value makeKeyGradient(Program &p, const GradientTiles &in,
                             const PairTiles &pairs, size_t piece,
                             RowDots &dots) {
  TileBuilder &b = p.b;
  b.step("keys");
  Value k = in.k[piece];
  Value sum;
  auto addPart = [&](Value part, Value &rowDots) {
    if (in.gates.G)
      rowDots = addDots(b, rowDots, k, part);
    sum = sum ? b.add(sum, part) : part;
  };
  Value read = product(b, "iv,vk->ik", in.dV, in.state[piece]);
  read = b.neg(mulRows(b, read, in.gates.read));
  addPart(b.product("ij,jk->ik", pairs.keyKey, k, read), dots.readers);
  Value write = product(b, "iv,vk->ik", in.writes, in.dState[piece]);
  addPart(mulRows(b, write, in.gates.write), dots.writes);
  Value later = b.product("ij,ik->jk", pairs.queryKey, in.q[piece]);
  addPart(b.product("ij,ik->jk", pairs.keyKey, k, later), dots.pairs);
  return sum;
}

/// Stores a piece of a gradient of `head`.
static void storePiece(Program &p, StringRef name, Value t, Value head,
                       size_t piece, Value tile) {
  Value first = p.b.index(piece * shapeOf(tile)[1]);
  p.b.store(tile, p[name], tokenOffsets(p, t, head, first), {1, 3}, p.end);
}

/// dQ behind the last value head of a group.
static void storeQueryGradient(Program &p, Value t, Value isLast,
                               const Pieces &sums) {
  TileBuilder &b = p.b;
  b.step("queries");
  auto choice = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  for (auto [piece, sum] : llvm::enumerate(sums))
    storePiece(p, "dq", t, p.keyHead, piece, sum);
}

/// 1 for tokens that others of the chunk follow, and 0 for the others, [C].
static Value hasFollowers(Program &p, Value t) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Value left = arith::IndexCastOp::create(b, b.getI32Type(),
                                          arith::SubIOp::create(b, p.end, t));
  Value tokens = arith::MinSIOp::create(b, left, number(C));
  Value last = arith::SubIOp::create(b, tokens, number(1));
  Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         b.iota(C), b.splat(last, C));
  return b.select(isBefore, b.fill(1.0, C), 0.0);
}

/// Row dots of the state and its gradient, of which only the sum matters.
static Value stateDots(TileBuilder &b, const GradientTiles &in) {
  Value sum;
  for (auto [state, dState] : llvm::zip(in.state, in.dState))
    for (auto [rows, dRows] : llvm::zip(state, dState))
      sum = addDots(b, sum, rows, b.f32(dRows));
  return sum;
}

/// The gradient of the log gate (spec 5.4, robust form): what tokens from its
/// own on read, of the state before the chunk or of each other, what tokens
/// before it write to the state behind the chunk, and what is carried through.
/// What tokens of the chunk read of each other is in two sums over the same
/// numbers, of the readers and of those who are read.
static Value gateGradient(Program &p, Value t, const GradientTiles &in,
                          const RowDots &dots) {
  TileBuilder &b = p.b;
  b.step("sums");
  Value carried = stateDots(b, in);
  b.step("finish");
  auto scan = [&](Value values, bool reverse) -> Value {
    return tile::ScanOp::create(b, values, 0, reverse);
  };
  Value sum =
      b.extract(scan(carried, /*reverse=*/false), {shapeOf(carried)[0] - 1});
  Value whole = b.splat(b.mul(sum, in.gates.whole), p.facts.C);
  Value reads = b.sub(b.add(dots.queries, dots.readers), dots.pairs);
  // Where decay is strong the last write is much larger than the others.
  Value writes = b.mul(dots.writes, hasFollowers(p, t));
  Value before = b.sub(scan(writes, /*reverse=*/false), writes);
  return b.add(scan(reads, /*reverse=*/true), b.add(before, whole));
}

/// The gradient of the gate, which may be its logarithm or itself.
static Value toGateGradient(Program &p, Value t, Value dg) {
  TileBuilder &b = p.b;
  if (p.facts.gateDomain != GateDomain::Linear)
    return dg;
  Value gate = b.load(p["gate"], {p.batch, t, p.head}, {1}, {p.facts.C}, p.end);
  return b.div(dg, b.max(b.f32(gate), std::exp2(kLeastLog2Gate)));
}

/// A chunk of one value head, the `member`th of its group of `group`. Returns
/// the sums of dQ over the group so far.
static Pieces writeGradientChunk(Program &p, Value t, Value member, Value group,
                                 Pieces sums) {
  TileBuilder &b = p.b;
  auto isEqual = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  };
  Value isFirst = isEqual(member, p.zero);
  Value next = arith::AddIOp::create(b, member, b.index(1));
  GradientTiles in = loadTiles(p, t);
  PairTiles pairs = makePairs(p, in);
  b.step("gates");
  Value factor = b.fill(p.facts.scale, p.facts.C);
  if (in.gates.read)
    factor = b.mul(in.gates.read, factor);
  RowDots dots;
  for (auto [piece, sum] : llvm::enumerate(sums)) {
    b.step("queries");
    sum = arith::SelectOp::create(b, isFirst, b.fill(0.0, shapeOf(sum)), sum);
    addQueryGradient(p, in, pairs, factor, piece, sum, dots);
  }
  storeQueryGradient(p, t, isEqual(next, group), sums);
  for (size_t piece = 0; piece < in.k.size(); ++piece)
    storePiece(p, "dk", t, p.head, piece,
               makeKeyGradient(p, in, pairs, piece, dots));
  b.step("finish");
  b.store(pairs.dBeta, p["dbeta"], {p.batch, t, p.head}, {1}, p.end);
  if (!in.gates.G)
    return sums;
  Value dg = toGateGradient(p, t, gateGradient(p, t, in, dots));
  b.store(dg, p["dgate"], {p.batch, t, p.head}, {1}, p.end);
  return sums;
}

void gdn::writeGradients(Program &p) {
  raiseBeta(p);
  if (p.facts.gateDomain == GateDomain::Linear)
    p.facts.leastLog2Gate = kLeastLog2Gate;
  TileBuilder &b = p.b;
  // The work item is of a q/k head. Its parts take the chunks in turn, each the
  // value heads of the group one after the other.
  p.keyHead = p.head;
  Value group = b.index(p.facts.H / p.facts.Hq);
  Value firstHead = arith::MulIOp::create(b, p.keyHead, group);
  Value offset = arith::MulIOp::create(b, p.tile, b.index(p.facts.C));
  Value first = arith::AddIOp::create(b, p.begin, offset);
  Value step = b.index(p.facts.C * p.facts.parts);
  Value left =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, p.end, first), p.zero);
  Value chunks = arith::CeilDivUIOp::create(b, left, step);
  Value upper = arith::MulIOp::create(b, chunks, group);
  Pieces none = makePieces(p.facts.K, [&](int64_t, int64_t size) {
    return b.fill(0.0, {p.facts.C, size});
  });
  auto loop = scf::ForOp::create(b, p.zero, upper, b.index(1), none);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value chunk = arith::DivUIOp::create(b, number, group);
  Value member = arith::RemUIOp::create(b, number, group);
  p.head = arith::AddIOp::create(b, firstHead, member);
  p.loadGateParameters();
  Value t =
      arith::AddIOp::create(b, first, arith::MulIOp::create(b, chunk, step));
  Pieces sums =
      writeGradientChunk(p, t, member, group, Pieces(loop.getRegionIterArgs()));
  scf::YieldOp::create(b, sums);
}
