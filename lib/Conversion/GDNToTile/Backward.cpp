//===- Backward.cpp - The program of the chunked backward -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"
#include "LinearGate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Decayed products of one chunk and their adjoints (spec 2, 5.3), the same
/// for all three kinds of gate. Matrices M [C, C] are strictly lower.
class ChunkDecay {
public:
  ChunkDecay(Program &p, Value t);

  /// sum_c x_ic y_jc decay_ijc for i > j, zero elsewhere.
  Value scores(Value x, Value y);
  /// sum_{j<i} M_ij decay_ij o y_j.
  Value rows(Value m, Value y);
  /// sum_{i>j} M_ij decay_ij o x_i.
  Value cols(Value m, Value x);
  /// Rows of [C, K] decayed since the chunk's start, or until its end.
  Value read(Value x) { return scaleRows(x, fromStart); }
  Value write(Value x) { return scaleRows(x, untilEnd); }
  /// A state [V, K], or a row of one [K], decayed over the whole chunk.
  Value whole(Value state);

  /// The log2 gate and its sum over the chunk so far; null without a gate.
  Value gate, G;

private:
  Value scaleRows(Value x, Value decay);

  Program &p;
  TileBuilder &b;
  Value fromStart, untilEnd, all;
  /// Scalar gate: decay of a pair [C, C]. Channel gate: the levels by halves.
  Value pairs;
  SmallVector<HalvesLevel> levels;
};

/// The tiles of one chunk that several gradients need, all f32.
struct ChunkTiles {
  Value q, k, beta;
  /// d loss / d o; write u = beta e; gradient of v.
  Value dO, u, dW;
  /// scale tril(Q K^T, -1) and tril(K K^T, -1), both with decay.
  Value scores, keyScores;
  /// tril(dO U^T, -1).
  Value dOU;
  /// State on entry [V, K] and d loss / d state on exit.
  Value state, dState;
  /// (rho K) dS1 [C, V].
  Value writeGrad;
  /// State times dState, summed over V [K].
  Value carried;
};
} // namespace

ChunkDecay::ChunkDecay(Program &p, Value t) : p(p), b(p.b) {
  if (p.facts.decay == DecayKind::None)
    return;
  gate = loadSummedGate(p, t);
  G = tile::ScanOp::create(b, gate, 0, /*reverse=*/false);
  fromStart = b.exp2(G);
  untilEnd = decayToEnd(p, G);
  all = b.exp2(lastRow(p, G));
  b.step("scores");
  if (p.facts.decay == DecayKind::Scalar)
    pairs = pairDecay(p, G);
  else
    levels = decayByHalves(p, G);
}

Value ChunkDecay::scaleRows(Value x, Value decay) {
  if (!decay)
    return x;
  return shapeOf(decay).size() == 1 ? b.mulAxis(x, decay, 0) : b.mul(x, decay);
}

Value ChunkDecay::whole(Value state) {
  if (!all)
    return state;
  ArrayRef<int64_t> shape = shapeOf(state);
  if (!isa<RankedTensorType>(all.getType()))
    return b.mul(state, b.splat(all, shape));
  return shape.size() == 1 ? b.mul(state, all) : b.mulAxis(state, all, 1);
}

Value ChunkDecay::scores(Value x, Value y) {
  if (levels.empty()) {
    Value m = tile::CausalOp::create(b, innerProducts(p, x, y), true);
    return pairs ? b.mul(m, pairs) : m;
  }
  Value sum = b.fill(0.0, {p.facts.C, p.facts.C});
  for (HalvesLevel &level : levels) {
    Value m = innerProducts(p, b.mul(x, level.later), b.mul(y, level.earlier));
    sum = b.add(sum, b.mul(level.mask, m));
  }
  return sum;
}

Value ChunkDecay::rows(Value m, Value y) {
  if (levels.empty())
    return b.product("ij,jk->ik", pairs ? b.mul(m, pairs) : m, y);
  Value sum = b.fill(0.0, shapeOf(y));
  for (HalvesLevel &level : levels) {
    Value part =
        b.product("ij,jk->ik", b.mul(level.mask, m), b.mul(y, level.earlier));
    sum = b.add(sum, b.mul(part, level.later));
  }
  return sum;
}

Value ChunkDecay::cols(Value m, Value x) {
  if (levels.empty())
    return b.product("ij,ik->jk", pairs ? b.mul(m, pairs) : m, x);
  Value sum = b.fill(0.0, shapeOf(x));
  for (HalvesLevel &level : levels) {
    Value part =
        b.product("ij,ik->jk", b.mul(level.mask, m), b.mul(x, level.later));
    sum = b.add(sum, b.mul(part, level.earlier));
  }
  return sum;
}

/// A [C, V] tile of the array `name`, f32.
static Value loadRows(Program &p, StringRef name, Value t) {
  p.b.step("load");
  return p.b.f32(p.b.load(p[name], tokenOffsets(p, t, p.head, p.zero), {1, 3},
                          {p.facts.C, p.facts.V}, p.end));
}

/// Stores a [C, *] tile to [B, T, H, *].
static void storeRows(Program &p, StringRef name, Value t, Value tile) {
  p.b.step("store");
  p.b.store(tile, p[name], tokenOffsets(p, t, p.head, p.zero), {1, 3}, p.end);
}

/// sum over the last axis of x o y, [C].
static Value rowDots(TileBuilder &b, Value x, Value y) {
  return b.sum(b.mul(x, y), 1);
}

namespace {
/// The gradient of a log gate in two parts, each f32 [C] or [C, K]: g_t decays
/// what tokens from t on read, and what those before t write to the state on
/// exit.
struct GateGradient {
  /// To be summed over the tokens from t on.
  Value reads;
  /// To be summed over the tokens before t.
  Value writes;
  /// The same for all tokens: of the state that is carried through [K], or its
  /// sum.
  Value carried;
  /// Of the pairs of tokens around t; null where `reads` has them.
  Value pairs;
};
} // namespace

/// Spec 5.4 for the scalar gate, from the scores that it decays: row and column
/// sums of their gradients, as the spec has it, would nearly cancel.
static GateGradient scalarGateGradient(Program &p, ChunkDecay &decay,
                                       const ChunkTiles &c, Value dKeyKey,
                                       Value dqState, Value dkState) {
  TileBuilder &b = p.b;
  // g_t decays the scores of the pairs with j < t <= i.
  Value pairs = b.add(b.mul(c.dOU, c.scores), b.mul(dKeyKey, c.keyScores));
  Value below = tile::ScanOp::create(b, pairs, 0, /*reverse=*/true);
  return {b.add(rowDots(b, c.q, dqState), rowDots(b, c.k, dkState)),
          rowDots(b, c.u, c.writeGrad), b.sum(decay.whole(c.carried), 0),
          b.sum(tile::CausalOp::create(b, below, /*strict=*/true), 1)};
}

/// Spec 5.4 for the channel gate, robust form.
static GateGradient channelGateGradient(Program &p, ChunkDecay &decay,
                                        const ChunkTiles &c, Value dq,
                                        Value dkReader, Value dkWriter,
                                        Value dkWrite) {
  TileBuilder &b = p.b;
  Value dG = b.add(b.mul(c.q, dq), b.mul(c.k, b.sub(dkReader, dkWriter)));
  return {dG, b.mul(c.k, dkWrite), decay.whole(c.carried), Value()};
}

/// The sum of the rows before each one. The sum up to a row less that row would
/// have no digits where the row is much larger than those before it.
static Value sumsBefore(Program &p, Value tile) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(tile);
  auto indices = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(b.getContext(), values);
  };
  SmallVector<int64_t> first(shape.size(), 0), second(first), sizes(shape);
  second[0] = 1;
  sizes[0] -= 1;
  auto ones = indices(SmallVector<int64_t>(shape.size(), 1));
  Value rows = tensor::ExtractSliceOp::create(
      b, b.tileType(sizes), tile, indices(first), indices(sizes), ones);
  Value moved = tensor::InsertSliceOp::create(
      b, rows, b.fill(0.0, shape), indices(second), indices(sizes), ones);
  return tile::ScanOp::create(b, moved, 0, /*reverse=*/false);
}

/// The gradient of the log gate. Spec 5.4 adds the writes to dG of the last
/// token and takes them off again on the way back; where decay is strong they
/// are much larger than what remains, so here they are summed from the front,
/// each token's without its own.
static Value sumGateGradient(Program &p, const GateGradient &gradient) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(gradient.reads);
  Value before = sumsBefore(p, gradient.writes);
  Value carried = shape.size() == 1
                      ? b.splat(b.extract(gradient.carried, {}), shape)
                      : b.broadcast(gradient.carried, shape, 1);
  Value dg = b.add(tile::ScanOp::create(b, gradient.reads, 0, /*reverse=*/true),
                   b.add(before, carried));
  return gradient.pairs ? b.add(dg, gradient.pairs) : dg;
}

/// Stores the gradient of the gate; of a linear one it is that of the decay, of
/// others that of the log gate.
static void storeGateGradient(Program &p, Value t,
                              function_ref<GateGradient()> gradientOfLog,
                              const DecayedTerms &terms) {
  TileBuilder &b = p.b;
  if (p.facts.decay == DecayKind::None)
    return;
  b.step("gates");
  Value dg = p.facts.gateDomain == GateDomain::Linear
                 ? decayGradient(p, terms)
                 : sumGateGradient(p, gradientOfLog());
  if (p.facts.decay == DecayKind::Channel)
    return storeRows(p, "dgate", t, dg);
  b.step("store");
  b.store(dg, p["dgate"], {p.batch, t, p.head}, {1}, p.end);
}

/// Score, q, k and gate gradients (spec 5.2 to 5.4). Returns dS0.
static Value writeScoreGradients(Program &p, Value t, ChunkDecay &decay,
                                 const ChunkTiles &c, Value dWh) {
  TileBuilder &b = p.b;
  double scale = p.facts.scale;
  b.step("scores");
  Value dP = b.scaled(c.dOU, scale);
  Value diagonal = b.scaled(rowDots(b, c.dO, c.u), scale);
  Value dWhU = tile::CausalOp::create(b, b.product("iv,jv->ij", dWh, c.u),
                                      /*strict=*/true);
  Value dKeyKey = b.mulAxis(dWhU, b.neg(c.beta), 0);
  b.step("state");
  Value dQueryState = b.scaled(b.product("cv,vk->ck", c.dO, c.state), scale);
  Value dKeyState = b.product("cv,vk->ck", c.dW, c.state);
  Value dWrite = b.product("cv,vk->ck", c.u, c.dState);
  DecayedTerms terms = {decay.gate, decay.G,     c.q,       c.k,    dP,
                        dKeyKey,    dQueryState, dKeyState, dWrite, c.carried};
  Value dqState = decay.read(dQueryState);
  Value dkState = b.neg(decay.read(dKeyState));
  Value dkWrite = decay.write(dWrite);
  b.step("scores");
  Value dq = b.add(dqState, decay.rows(dP, c.k));
  Value dkReader = b.add(dkState, decay.rows(dKeyKey, c.k));
  Value dkWriter = b.add(decay.cols(dP, c.q), decay.cols(dKeyKey, c.k));
  Value dk = b.add(b.add(dkReader, dkWriter), dkWrite);
  storeRows(p, "dq", t, b.add(dq, b.mulAxis(c.k, diagonal, 0)));
  storeRows(p, "dk", t, b.add(dk, b.mulAxis(c.q, diagonal, 0)));
  auto gradientOfLog = [&]() {
    return p.facts.decay == DecayKind::Scalar
               ? scalarGateGradient(p, decay, c, dKeyKey, dqState, dkState)
               : channelGateGradient(p, decay, c, dq, dkReader, dkWriter,
                                     dkWrite);
  };
  storeGateGradient(p, t, gradientOfLog, terms);
  b.step("state");
  Value dState = b.product("cv,ck->vk", b.scaled(c.dO, scale), decay.read(c.q),
                           decay.whole(c.dState));
  return b.product("cv,ck->vk", b.neg(c.dW), decay.read(c.k), dState);
}

/// One chunk in reverse (spec 5.1). Returns d loss / d state on entry.
static Value writeBackwardChunk(Program &p, Value t, Value state,
                                Value dState) {
  TileBuilder &b = p.b;
  ChunkTiles c;
  c.state = state;
  c.dState = dState;
  b.step("state");
  c.carried = b.sum(b.mul(state, dState), 0);
  c.q = loadKeys(p, "q", t);
  c.k = loadKeys(p, "k", t);
  c.dO = loadRows(p, "d_o", t);
  c.beta = loadBeta(p, t);
  Value v = loadRows(p, "v", t);
  ChunkDecay decay(p, t);
  b.step("scores");
  c.keyScores = decay.scores(c.k, c.k);
  Value bm = solveBm(p, c.keyScores, c.beta);
  b.step("scores");
  c.scores = b.scaled(decay.scores(c.q, c.k), p.facts.scale);
  Value diagonal = b.scaled(rowDots(b, c.q, c.k), p.facts.scale);
  b.step("state");
  Value w = b.sub(v, b.product("ck,vk->cv", decay.read(c.k), state));
  Value readError = b.product("ij,jv->iv", bm, b.mulAxis(w, c.beta, 0));
  Value e = b.sub(w, readError);
  c.u = b.mulAxis(e, c.beta, 0);
  c.writeGrad = b.product("ck,vk->cv", decay.write(c.k), dState);
  Value dU = b.add(b.mulAxis(c.dO, diagonal, 0), c.writeGrad);
  dU = b.product("ij,iv->jv", c.scores, c.dO, dU);
  Value z = b.product("ij,iv->jv", bm, b.mulAxis(dU, c.beta, 0));
  Value dWh = b.sub(dU, z);
  c.dW = b.mulAxis(dWh, c.beta, 0);
  c.dOU = tile::CausalOp::create(b, b.product("iv,jv->ij", c.dO, c.u),
                                 /*strict=*/true);
  storeRows(p, "dv", t, c.dW);
  b.store(rowDots(b, dWh, e), p["dbeta"], {p.batch, t, p.head}, {1}, p.end);
  return writeScoreGradients(p, t, decay, c, dWh);
}

void gdn::writeBackward(Program &p) {
  TileBuilder &b = p.b;
  Value chunk = b.index(p.facts.C);
  auto chunkIndex = [&](Value t) -> Value {
    Value from = arith::SubIOp::create(b, t, p.begin);
    return arith::DivUIOp::create(b, from, chunk);
  };
  // The state on entry of every chunk, kept from a replay of the forward.
  Value count = arith::CeilDivUIOp::create(
      b, arith::SubIOp::create(b, p.end, p.begin), chunk);
  Value states = memref::AllocOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, p.facts.V, p.facts.K},
                      b.getF32Type()),
      count);
  forEachChunk(
      p, loadStateT(p), [&](Value t, ValueRange carried) -> SmallVector<Value> {
        b.step("state");
        b.store(carried[0], states, {chunkIndex(t), p.zero, p.zero}, {1, 2});
        return {writeStateStep(p, t, carried[0])};
      });
  Value dState = forEachChunk(
      p, loadStateT(p, "d_final_state"),
      [&](Value t, ValueRange carried) -> SmallVector<Value> {
        b.step("state");
        Value state = b.load(states, {chunkIndex(t), p.zero, p.zero}, {1, 2},
                             {p.facts.V, p.facts.K});
        return {writeBackwardChunk(p, t, state, carried[0])};
      },
      /*reversed=*/true)[0];
  memref::DeallocOp::create(b, states);
  storeStateT(p, dState, "d_initial_state");
}
