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

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Tiles of some channels of V each, which products sum over one after the
/// other.
using Pieces = SmallVector<Value>;

/// What a chunk loads, in the operand type.
struct GradientTiles {
  /// Keys and queries [C, K].
  Value q, k;
  /// Gradients of o and v, and writes [C, V].
  Pieces dO, dV, writes;
  /// The state before the chunk and the gradient of that behind it [V, K].
  Pieces state, dState;
  Value beta;
  ChunkGates gates;
};

/// What the pairs of tokens of a chunk make.
struct PairTiles {
  /// d loss / d (q_i . k_j), lower, and minus d loss / d (k_i . k_j), strictly
  /// lower; in the operand type.
  Value queryKey, keyKey;
  /// Sums of a pair's part of the gradient of the gates between them, over the
  /// later and the earlier token [C].
  Value rows, columns;
  Value dBeta;
};

/// The row dots of which the gate's gradient is made: of what queries and keys
/// read of the state before the chunk, and of what keys write, f32 [C].
struct RowDots {
  Value queries, keys, writes;
};
} // namespace

/// V channels of a piece: the rows of a fragment, where they divide V.
static int64_t pieceChannels(Program &p) {
  constexpr int64_t kRows = 64;
  return p.facts.V % kRows == 0 ? kRows : p.facts.V;
}

/// Pieces of V of the array `name`: of rows [C, V], or of a state [V, K].
static Pieces loadPieces(
    Program &p, StringRef name,
    function_ref<Value(Value array, Value firstV, int64_t channels)> load) {
  Pieces pieces;
  int64_t channels = pieceChannels(p);
  for (int64_t first = 0; first < p.facts.V; first += channels) {
    p.b.step("load");
    pieces.push_back(p.b.round(load(p[name], p.b.index(first), channels)));
  }
  return pieces;
}

static Pieces loadRows(Program &p, StringRef name, Value t) {
  return loadPieces(p, name, [&](Value array, Value firstV, int64_t channels) {
    return p.b.load(array, tokenOffsets(p, t, p.head, firstV), {1, 3},
                    {p.facts.C, channels}, p.end);
  });
}

static Pieces loadState(Program &p, StringRef name, Value segment) {
  return loadPieces(p, name, [&](Value array, Value firstV, int64_t channels) {
    return p.b.load(array, {segment, p.head, firstV, p.zero}, {2, 3},
                    {channels, p.facts.K});
  });
}

/// The sum over V of products of pieces.
static Value product(TileBuilder &b, StringRef spec, const Pieces &x,
                     const Pieces &y) {
  Value sum;
  for (auto [left, right] : llvm::zip(x, y))
    sum = b.product(spec, left, right, sum);
  return sum;
}

static GradientTiles loadTiles(Program &p, Value t) {
  GradientTiles in;
  in.q = loadKeys(p, "q", t);
  in.k = loadKeys(p, "k", t);
  in.dO = loadRows(p, "d_o", t);
  in.dV = loadRows(p, "dv", t);
  in.writes = loadRows(p, "writes", t);
  Value segment = keptSegment(p, t);
  in.state = loadState(p, "states", segment);
  in.dState = loadState(p, "d_states", segment);
  in.beta = loadBeta(p, t);
  in.gates = loadChunkGates(p, t);
  return in;
}

static Value rowDots(TileBuilder &b, Value x, Value y) {
  return b.sum(b.mul(b.f32(x), y), 1);
}

static PairTiles makePairs(Program &p, const GradientTiles &in) {
  TileBuilder &b = p.b;
  PairTiles out;
  b.step("scores");
  Value decay = in.gates.G ? pairDecay(p, in.gates.G) : Value();
  auto decayed = [&](Value tile) { return decay ? b.mul(tile, decay) : tile; };
  auto inner = [&](const Pieces &x, const Pieces &y) {
    return product(b, "iv,jv->ij", x, y);
  };
  Value dQueryKey = decayed(b.scaled(inner(in.dO, in.writes), p.facts.scale));
  Value dKeyKey = decayed(inner(in.dV, in.writes));
  Value diagonal = tile::DiagonalOp::create(b, dKeyKey);
  out.dBeta = b.div(diagonal, b.mul(in.beta, in.beta));
  out.queryKey = tile::CausalOp::create(b, b.round(dQueryKey),
                                        /*strict=*/false);
  out.keyKey = tile::CausalOp::create(b, b.round(b.neg(dKeyKey)),
                                      /*strict=*/true);
  if (!decay)
    return out;
  Value pairs = b.sub(b.mul(dQueryKey, innerProducts(p, in.q, in.k)),
                      b.mul(dKeyKey, innerProducts(p, in.k, in.k)));
  pairs = tile::CausalOp::create(b, pairs, /*strict=*/true);
  out.rows = b.sum(pairs, 1);
  out.columns = b.sum(pairs, 0);
  return out;
}

/// Stores a gradient [C, K] of this value head, in the step that makes it: f32
/// tiles do not fit beside the others.
static void storeGradient(Program &p, StringRef name, Value t, Value tile) {
  p.b.store(tile, p[name], tokenOffsets(p, t, p.head, p.zero), {1, 3}, p.end);
}

/// `tile` with rows times `decay`, null for 1.
static Value mulRows(TileBuilder &b, Value tile, Value decay) {
  return decay ? b.mulAxis(tile, decay, 0) : tile;
}

/// dQ and dK, but for the sum over the value heads of a group.
static RowDots writeKeyGradients(Program &p, Value t, const GradientTiles &in,
                                 const PairTiles &pairs) {
  TileBuilder &b = p.b;
  RowDots dots;
  b.step("queries");
  Value dq = b.scaled(product(b, "iv,vk->ik", in.dO, in.state), p.facts.scale);
  dq = mulRows(b, dq, in.gates.read);
  if (in.gates.G)
    dots.queries = rowDots(b, in.q, dq);
  dq = b.product("ij,jk->ik", pairs.queryKey, in.k, dq);
  storeGradient(p, "dq", t, dq);
  b.step("keys");
  Value read =
      mulRows(b, product(b, "iv,vk->ik", in.dV, in.state), in.gates.read);
  Value write =
      mulRows(b, product(b, "iv,vk->ik", in.writes, in.dState), in.gates.write);
  if (in.gates.G) {
    dots.keys = rowDots(b, in.k, read);
    dots.writes = rowDots(b, in.k, write);
  }
  Value dk = b.product("ij,ik->jk", pairs.queryKey, in.q, b.sub(write, read));
  dk = b.product("ij,jk->ik", pairs.keyKey, in.k, dk);
  dk = b.product("ij,ik->jk", pairs.keyKey, in.k, dk);
  storeGradient(p, "dk", t, dk);
  return dots;
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
  for (auto [state, dState] : llvm::zip(in.state, in.dState)) {
    Value dots = rowDots(b, state, b.f32(dState));
    sum = sum ? b.add(sum, dots) : dots;
  }
  return sum;
}

/// The gradient of the log gate. Every term of it is written before the gate's
/// token and read from it on, so nothing cancels.
static Value gateGradient(Program &p, Value t, const GradientTiles &in,
                          const PairTiles &pairs, const RowDots &dots) {
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
  Value reads =
      b.add(b.sub(dots.queries, dots.keys), b.sub(pairs.rows, pairs.columns));
  // Where decay is strong the last write is much larger than the others.
  Value writes = b.mul(dots.writes, hasFollowers(p, t));
  Value before = b.sub(scan(writes, /*reverse=*/false), writes);
  return b.add(scan(reads, /*reverse=*/true), b.add(before, whole));
}

static void writeGradientChunk(Program &p, Value t) {
  TileBuilder &b = p.b;
  GradientTiles in = loadTiles(p, t);
  PairTiles pairs = makePairs(p, in);
  RowDots dots = writeKeyGradients(p, t, in, pairs);
  b.step("finish");
  b.store(pairs.dBeta, p["dbeta"], {p.batch, t, p.head}, {1}, p.end);
  if (!in.gates.G)
    return;
  Value dg = gateGradient(p, t, in, pairs, dots);
  b.store(dg, p["dgate"], {p.batch, t, p.head}, {1}, p.end);
}

void gdn::writeGradients(Program &p) {
  raiseBeta(p);
  TileBuilder &b = p.b;
  // The parts take the chunks in turn.
  Value first = arith::MulIOp::create(b, p.tile, b.index(p.facts.C));
  Value lower = arith::AddIOp::create(b, p.begin, first);
  Value step = b.index(p.facts.C * p.facts.parts);
  auto loop = scf::ForOp::create(b, lower, p.end, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  writeGradientChunk(p, loop.getInductionVar());
}
