//===- GradientChunk.cpp - Gradients of the tokens of a chunk -------------===//
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

#include "ChannelPairs.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// A gate that is the decay itself is raised to 2^-10 in log2 units. Its
/// gradient is that of its logarithm divided by it, and so holds at 0: what is
/// left of a token's error in f32, which no decay makes smaller, stays below
/// what 16 bits round, and so does what the raised gate lets through.
static constexpr double kLeastLog2Gate = -10.0;

static SmallVector<Pieces> loadState(Program &p, StringRef name, StringRef step,
                                     Value segment) {
  TileBuilder &b = p.b;
  SmallVector<Pieces> state;
  int64_t columns = pieceChannels(p.facts.K);
  for (int64_t firstK = 0; firstK < p.facts.K; firstK += columns) {
    Pieces rows = makePieces(p.facts.V, [&](int64_t first, int64_t size) {
      b.step(step);
      return b.round(b.load(p[name],
                            {segment, p.head, b.index(first), b.index(firstK)},
                            {2, 3}, {size, columns}));
    });
    SmallVector<Pieces> cut = llvm::map_to_vector(
        rows, [&](Value tile) { return cutKeyPieces(p, {tile}); });
    for (size_t piece = 0; piece < cut.front().size(); ++piece)
      state.push_back(llvm::map_to_vector(
          cut, [&](const Pieces &own) { return own[piece]; }));
  }
  return state;
}

/// What is free first is loaded first: a step each for what lies in slots of
/// its own.
static GradientTiles loadTiles(Program &p, Value t, StateSource source) {
  GradientTiles in;
  in.source = source;
  bool isKept = source == StateSource::Kept,
       isMade = source == StateSource::ChunkBefore;
  int64_t K = p.facts.K, V = p.facts.V;
  auto loadOutputs = [&](StringRef step) {
    in.dO = loadRows(p, "d_o", step, t, p.head, V);
  };
  int64_t length = p.facts.segmentLength;
  auto loadGradient = [&] {
    in.dState =
        loadState(p, "d_states", "load_gradient", keptSegment(p, t, length));
  };
  bool writesFirst = p.facts.decay == DecayKind::Channel && areBlocksInRange(p);
  if (writesFirst)
    loadGradient();
  if (isKept)
    loadOutputs("load");
  in.dV = loadRows(p, "dv", "load", t, p.head, V);
  in.writes =
      loadRows(p, "writes", isMade ? "load_write" : "load", t, p.head, V,
               /*isTurned=*/source == StateSource::Carried);
  // In one slot, it would keep the others, which have two, waiting.
  if (source == StateSource::Carried)
    loadOutputs("load_output");
  if (isKept)
    in.state = loadState(p, "states", "load_state", savedSegment(p, t, length));
  if (!writesFirst)
    loadGradient();
  if (isMade)
    loadOutputs("load_output");
  in.q = cutKeyPieces(p, loadRows(p, "q", "load_keys", t, p.keyHead, K));
  in.k = cutKeyPieces(p, loadRows(p, "k", "load_keys", t, p.keyHead, K));
  in.beta = loadBeta(p, t);
  if (p.facts.decay == DecayKind::Channel) {
    in.channelGates = loadChannelGates(p, t);
    in.factors = makeChannelFactors(p, in.channelGates);
  } else {
    in.gates = loadChunkGates(p, t);
  }
  return in;
}

/// `x` in f32. With `use` it is read for that alone.
static Value widen(TileBuilder &b, Value x, std::optional<int64_t> use) {
  Value wide = b.f32(x);
  if (use && wide != x)
    wide.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                  b.getI64IntegerAttr(*use));
  return wide;
}

Value gdn::rowDots(TileBuilder &b, Value x, Value y,
                   std::optional<int64_t> use) {
  return b.sum(b.mul(widen(b, x, use), y), 1);
}

static PairTiles makePairs(Program &p, const GradientTiles &in) {
  TileBuilder &b = p.b;
  PairTiles out;
  b.step("scores");
  // Masks of its own would not fit beside a state that is made.
  Value decay;
  if (in.gates.G)
    decay = in.source == StateSource::ChunkBefore
                ? pairDecayBelow(p, in.gates.G)
                : pairDecay(p, in.gates.G);
  auto decayed = [&](Value tile) { return decay ? b.mul(tile, decay) : tile; };
  auto inner = [&](const Pieces &x) {
    return product(
        b, in.source == StateSource::Carried ? "ic,cj->ij" : "ic,jc->ij", x,
        in.writes);
  };
  Value dKeyKey = decayed(inner(in.dV));
  Value diagonal = tile::DiagonalOp::create(b, dKeyKey);
  out.dBeta = b.div(diagonal, b.mul(in.beta, in.beta));
  out.keyKey = tile::CausalOp::create(b, b.round(b.neg(dKeyKey)),
                                      /*strict=*/true);
  // No gate decays what a token reads of its own write. Beside what gates
  // decay, which may be much smaller, it would leave their gradient no digits.
  bool hasGate = p.facts.decay != DecayKind::None;
  Value dQueryKey = decayed(b.scaled(inner(in.dO), p.facts.scale));
  if (hasGate)
    out.own = tile::DiagonalOp::create(b, dQueryKey);
  if (in.gates.G && in.source == StateSource::Kept) {
    // What is left of the lower triangle without the one below the diagonal.
    Value lower = tile::CausalOp::create(b, dQueryKey, /*strict=*/false);
    Value below = tile::CausalOp::create(b, dQueryKey, /*strict=*/true);
    out.ownTile = b.round(b.sub(lower, below));
  }
  out.queryKey = tile::CausalOp::create(b, b.round(dQueryKey),
                                        /*strict=*/hasGate);
  return out;
}

/// `tile` with rows times `factor`, null for 1.
static Value mulRows(TileBuilder &b, Value tile, Value factor) {
  return factor ? b.mulAxis(tile, factor, 0) : tile;
}

/// Hands what the gradients of queries have of their tokens' own keys, or the
/// other way round, to `add`; `rows` are the others.
static void addOwn(Program &p, const GradientChunk &chunk, Value rows,
                   int64_t use, function_ref<void(Value)> add) {
  TileBuilder &b = p.b;
  if (Value own = chunk.pairs.own)
    add(b.mulAxis(widen(b, rows, use), own, 0));
}

Value gdn::addQueryGradient(Program &p, GradientChunk &chunk, size_t piece,
                            function_ref<void(Value)> add) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  Value dq = product(b, "iv,vk->ik", in.dO, in.state[piece]);
  dq = b.product("ij,jk->ik", chunk.pairs.queryKey, in.k[piece],
                 mulRows(b, dq, chunk.queryFactor));
  Value dots = in.gates.G ? rowDots(b, in.q[piece], dq) : Value();
  Value ownTile = chunk.pairs.ownTile;
  if (ownTile)
    dq = b.product("ij,jk->ik", ownTile, in.k[piece], dq);
  add(dq);
  if (!ownTile)
    addOwn(p, chunk, in.k[piece], /*use=*/3, add);
  return dots;
}

/// Row dots of a key with a part of its gradient. Where states are made or
/// carried there is no room for keys between their uses.
static Value keyDots(Program &p, const GradientTiles &in, size_t piece,
                     Value part, int64_t use) {
  bool isKept = in.source == StateSource::Kept;
  return rowDots(p.b, in.k[piece], part,
                 isKept ? std::nullopt : std::optional(use));
}

/// What a key reads and how it is read later share registers, and the row dots
/// of the latter are a difference: with what else a warp holds, more parts
/// would not fit.
void gdn::addReadKeyGradient(Program &p, GradientChunk &chunk, size_t piece,
                             Value queries, function_ref<void(Value)> add,
                             function_ref<void()> meanwhile) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  const PairTiles &pairs = chunk.pairs;
  Value k = in.k[piece];
  Value part = product(b, "iv,vk->ik", in.dV, in.state[piece]);
  if (meanwhile)
    meanwhile();
  part = b.neg(mulRows(b, part, in.gates.read));
  part = b.product("ij,jk->ik", pairs.keyKey, k, part);
  Value readers = in.gates.G ? keyDots(p, in, piece, part, /*use=*/0) : Value();
  part = b.product("ij,ik->jk", pairs.queryKey, in.q[piece], part);
  part = b.product("ij,ik->jk", pairs.keyKey, k, part);
  if (in.gates.G) {
    Value pairDots = b.sub(keyDots(p, in, piece, part, /*use=*/1), readers);
    chunk.dots.reads.push_back(b.sub(b.add(queries, readers), pairDots));
  }
  add(part);
  addOwn(p, chunk, in.q[piece], /*use=*/0, add);
}

void gdn::addWriteKeyGradient(Program &p, GradientChunk &chunk, size_t piece,
                              function_ref<void(Value)> add) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  Value write = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                        in.dState[piece]);
  double unit = stateGradientUnit(p);
  Value factor = in.gates.write;
  if (unit != 1)
    factor = factor ? b.scaled(factor, unit) : b.fill(unit, p.facts.C);
  write = mulRows(b, write, factor);
  add(write);
  if (in.gates.G)
    chunk.dots.writes.push_back(keyDots(p, in, piece, write, /*use=*/2));
}

void gdn::addStateDots(Program &p, GradientChunk &chunk, size_t piece) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  if (!in.gates.G)
    return;
  Value sum;
  for (auto [rows, dRows] : llvm::zip(in.state[piece], in.dState[piece])) {
    Value own = rowDots(b, rows, b.f32(dRows));
    sum = sum ? b.add(sum, own) : own;
  }
  chunk.dots.carried.push_back(sum);
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
    for (auto [rows, dRows] : llvm::zip(state, dState)) {
      Value dots = rowDots(b, rows, b.f32(dRows));
      sum = sum ? b.add(sum, dots) : dots;
    }
  return sum;
}

/// The gradient of the log gate (spec 5.4, robust form): what tokens from its
/// own on read, of the state before the chunk or of each other, what tokens
/// before it write to the state behind the chunk, and what is carried through.
/// What tokens of the chunk read of each other is in two sums over the same
/// numbers, of the readers and of those who are read.
static Value gateGradient(Program &p, const GradientChunk &chunk) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  const RowDots &dots = chunk.dots;
  auto total = [&](const Pieces &pieces) {
    Value sum = pieces.front();
    for (Value piece : ArrayRef(pieces).drop_front())
      sum = b.add(sum, piece);
    return sum;
  };
  Value carried;
  if (dots.carried.empty()) {
    b.step("sums");
    carried = stateDots(b, in);
  }
  b.step("finish");
  if (!carried)
    carried = total(dots.carried);
  auto scan = [&](Value values, bool reverse) -> Value {
    return tile::ScanOp::create(b, values, 0, reverse);
  };
  Value sum =
      b.extract(scan(carried, /*reverse=*/false), {shapeOf(carried)[0] - 1});
  double unit = stateGradientUnit(p);
  Value left = in.gates.whole;
  if (unit != 1)
    left = b.mul(left, b.scalar(unit));
  Value whole = b.splat(b.mul(sum, left), p.facts.C);
  Value reads = total(dots.reads);
  // Where decay is strong the last write is much larger than the others.
  Value writes = b.mul(total(dots.writes), hasFollowers(p, chunk.t));
  Value before = b.sub(scan(writes, /*reverse=*/false), writes);
  return b.add(scan(reads, /*reverse=*/true), b.add(before, whole));
}

Value gdn::toGateGradient(Program &p, Value gate, Value dg) {
  TileBuilder &b = p.b;
  return b.div(dg, b.max(b.f32(gate), std::exp2(kLeastLog2Gate)));
}

GradientChunk gdn::beginGradientChunk(Program &p, Value t, StateSource source) {
  TileBuilder &b = p.b;
  GradientChunk chunk;
  chunk.t = t;
  // What makes the state is free first, and is needed first.
  TokensBetween between;
  if (source == StateSource::ChunkBefore)
    between = loadBetween(p, t);
  chunk.in = loadTiles(p, t, source);
  if (source == StateSource::ChunkBefore)
    makeState(p, between, chunk.in);
  chunk.pairs = makePairs(p, chunk.in);
  b.step("gates");
  if (p.facts.decay == DecayKind::Channel) {
    chunk.followed = hasFollowers(p, t);
    if (areBlocksInRange(p))
      chunk.tokens = tokenMask(p, t);
    auto loadNorms = [&](StringRef name) -> Value {
      SmallVector<Value> offsets = {p.batch, t, p.keyHead};
      return p[name] ? b.load(p[name], offsets, {1}, {p.facts.C}, p.end)
                     : Value();
    };
    chunk.queryNorm = loadNorms("q_rstd");
    chunk.keyNorm = loadNorms("k_rstd");
    return chunk;
  }
  chunk.queryFactor = b.fill(p.facts.scale, p.facts.C);
  if (chunk.in.gates.read)
    chunk.queryFactor = b.mul(chunk.in.gates.read, chunk.queryFactor);
  return chunk;
}

void gdn::storeScalarGradients(Program &p, GradientChunk &chunk) {
  TileBuilder &b = p.b;
  Value t = chunk.t;
  b.step("finish");
  b.store(chunk.pairs.dBeta, p["dbeta"], {p.batch, t, p.head}, {1}, p.end);
  if (!chunk.in.gates.G)
    return;
  Value dg = gateGradient(p, chunk);
  if (p.facts.gateDomain == GateDomain::Linear)
    dg = toGateGradient(
        p, b.load(p["gate"], {p.batch, t, p.head}, {1}, {p.facts.C}, p.end),
        dg);
  b.store(dg, p["dgate"], {p.batch, t, p.head}, {1}, p.end);
}

void gdn::raiseLinearGate(Program &p) {
  if (p.facts.gateDomain == GateDomain::Linear)
    p.facts.leastLog2Gate = kLeastLog2Gate;
}
