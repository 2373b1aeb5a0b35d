//===- Forward.cpp - Programs of the chunked forward in one kernel --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// The decay-free form (spec 3.7) scales by exp2(-G). Lowest G for which it is
/// used: far from the range of bf16 and f32; in f32 programs also where the
/// rounding of G itself, 2^-24 |G|, stays below 1e-5.
static double lowestDecayFree(FloatType operandType) {
  return operandType.isF32() ? -40.0 : -100.0;
}
/// Where G, summed since the reference point, is below this at the end of a
/// chunk, the chunk's end becomes the new reference point.
static constexpr double kNewReference = -24.0;

namespace {
/// What a chunk's preparation leaves for either form of the chain.
struct Chunk {
  Value t, q, k, valuesT, beta;
  /// Scores and Bm, f32 [C, C], without any decay.
  Value queryKey, bm;
  /// Bm with the chunk's decay, where prepare has made it.
  Value decayedBm;
  /// Cumulated log2 gate of the chunk, f32 [C].
  Value G;
};
} // namespace

/// Loads the chunk at token t and multiplies queries with keys.
static Chunk loadChunk(Program &p, Value t) {
  TileBuilder &b = p.b;
  Chunk chunk;
  chunk.t = t;
  chunk.k = loadKeys(p, "k", t);
  chunk.valuesT = loadValuesT(p, t);
  chunk.beta = loadBeta(p, t);
  if (!p["o"])
    return chunk;
  chunk.q = loadKeys(p, "q", t);
  b.step("scores");
  chunk.queryKey =
      tile::CausalOp::create(b, innerProducts(p, chunk.q, chunk.k), false);
  return chunk;
}

/// Bm without decay from keys and beta alone (spec 3.2).
static Value solveChunk(Program &p, Value k, Value beta) {
  p.b.step("scores");
  Value keyKey = tile::CausalOp::create(p.b, innerProducts(p, k, k), true);
  return solveBm(p, keyKey, beta);
}

/// The log2 gate summed over the chunk so far.
static Value cumulatedGate(Program &p, Value t) {
  Value gate = loadLog2Gate(p, t);
  return tile::ScanOp::create(p.b, gate, 0, /*reverse=*/false);
}

/// The chain's operands that both forms share.
static ChainOperands chainOperands(const Chunk &chunk, Value state) {
  ChainOperands in;
  in.state = in.decayedState = state;
  in.readKeys = in.writeKeys = chunk.k;
  in.readQueries = chunk.q;
  in.values = chunk.valuesT;
  in.beta = chunk.beta;
  return in;
}

/// Stores o^T times scale, and times `decay` [C] if given.
static void storeScaled(Program &p, Value t, Value output, Value decay = {}) {
  if (!output)
    return;
  TileBuilder &b = p.b;
  Value factor =
      decay ? b.broadcast(b.scaled(decay, p.facts.scale), shapeOf(output), 1)
            : b.fill(p.facts.scale, shapeOf(output));
  storeOutputT(p, t, b.mul(output, factor));
}

//===----------------------------------------------------------------------===//
// No gate, and the scalar gate in two forms
//===----------------------------------------------------------------------===//

/// One chunk of the ungated delta rule. Returns S^T.
static Value writeUngated(Program &p, const Chunk &chunk, Value state) {
  TileBuilder &b = p.b;
  ChainOperands in = chainOperands(chunk, state);
  in.solve = chainSolve(p, chunk.bm, chunk.beta);
  b.step("scores");
  in.scores = chunk.queryKey ? b.round(chunk.queryKey) : Value();
  ChainResult out = writeChain(p, in);
  storeScaled(p, chunk.t, out.output);
  return out.state;
}

/// Spec 3.7: the ungated rule on v / gam, read out with gam, where gam is the
/// decay since the reference point. Returns S^ and G at the chunk's end, or at
/// a new reference point.
static SmallVector<Value> writeDecayFree(Program &p, const Chunk &chunk,
                                         Value state, Value G, Value lastG) {
  TileBuilder &b = p.b;
  ChainOperands in = chainOperands(chunk, state);
  in.solve = chainSolve(p, chunk.bm, chunk.beta);
  b.step("scores");
  in.scores = chunk.queryKey ? b.round(chunk.queryKey) : Value();
  b.step("gates");
  Value gam = b.exp2(G), inverse = b.exp2(b.neg(G));
  b.step("state");
  in.values = b.mulAxis(chunk.valuesT, inverse, 1);
  ChainResult out = writeChain(p, in);
  storeScaled(p, chunk.t, out.output, gam);
  Value low = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, lastG,
                                    b.scalar(kNewReference));
  auto rescale =
      scf::IfOp::create(b, TypeRange{out.state.getType(), lastG.getType()}, low,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rescale.thenBlock());
  b.step("state");
  Value factor = b.splat(b.exp2(lastG), shapeOf(out.state));
  scf::YieldOp::create(b, ValueRange{b.mul(out.state, factor), b.scalar(0.0)});
  b.setInsertionPointToStart(rescale.elseBlock());
  scf::YieldOp::create(b, ValueRange{out.state, lastG});
  return llvm::to_vector_of<Value>(rescale.getResults());
}

/// Spec 3.3: the decay inside the tiles, for gates of any strength. `G` counts
/// from the chunk's start; `reference` is the decay that S^ lacks. Returns S
/// and 0: the chunk's end is the new reference point.
static SmallVector<Value> writeDecayed(Program &p, const Chunk &chunk,
                                       Value state, Value reference) {
  TileBuilder &b = p.b;
  b.step("scores");
  Value decay = pairDecay(p, chunk.G);
  ChainOperands in = chainOperands(chunk, state);
  in.scores = chunk.queryKey ? b.round(b.mul(chunk.queryKey, decay)) : Value();
  Value bm = chunk.decayedBm ? chunk.decayedBm : b.mul(chunk.bm, decay);
  in.solve = chainSolve(p, bm, chunk.beta);
  b.step("gates");
  in.readDecay = b.exp2(chunk.G);
  in.writeDecay = decayToEnd(p, chunk.G);
  Value end = b.exp2(lastRow(p, chunk.G));
  b.step("state");
  if (reference)
    in.state = b.mul(state, b.splat(b.exp2(reference), shapeOf(state)));
  in.decayedState = b.mul(in.state, b.splat(end, shapeOf(state)));
  ChainResult out = writeChain(p, in);
  storeScaled(p, chunk.t, out.output);
  return {out.state, b.scalar(0.0)};
}

/// The scalar gate: the decay-free form while G stays in range, uniformly for
/// the chunk. Carries S^ and G of the last reference point.
static SmallVector<Value> writeScalarGate(Program &p, const Chunk &chunk,
                                          ValueRange carried) {
  TileBuilder &b = p.b;
  Value state = carried[0], reference = carried[1];
  b.step("gates");
  Value G = b.add(chunk.G, b.splat(reference, p.facts.C));
  Value lastG = lastRow(p, G);
  Value inRange =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, lastG,
                            b.scalar(lowestDecayFree(b.getOperandType())));
  auto choice = scf::IfOp::create(b, carried.getTypes(), inRange,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, writeDecayFree(p, chunk, state, G, lastG));
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, writeDecayed(p, chunk, state, reference));
  return llvm::to_vector_of<Value>(choice.getResults());
}

//===----------------------------------------------------------------------===//
// One gate a channel
//===----------------------------------------------------------------------===//

/// One chunk with a gate a channel (spec 4.2). `bm` and `G` may be given (by
/// prepare); both are null in the fused program. Returns S^T.
static Value writeChannelGate(Program &p, Value t, Value state, Value bm,
                              Value G) {
  TileBuilder &b = p.b;
  Value k = loadKeys(p, "k", t);
  Value q = p["o"] ? loadKeys(p, "q", t) : Value();
  ChainOperands in;
  in.values = loadValuesT(p, t);
  in.beta = loadBeta(p, t);
  if (!G)
    G = cumulatedGate(p, t);
  ChannelScores scores = channelScores(p, q, k, G);
  if (q)
    in.scores =
        b.round(tile::CausalOp::create(b, scores.queryKey, /*strict=*/false));
  if (!bm)
    bm = solveBm(p, tile::CausalOp::create(b, scores.keyKey, /*strict=*/true),
                 in.beta);
  in.solve = chainSolve(p, bm, in.beta);
  b.step("gates");
  Value read = b.exp2(G);
  auto decayed = [&](Value x, Value decay) {
    return b.round(b.mul(b.f32(x), decay));
  };
  in.readKeys = decayed(k, read);
  if (q)
    in.readQueries = decayed(q, read);
  in.writeKeys = decayed(k, decayToEnd(p, G));
  Value end = b.exp2(lastRow(p, G));
  b.step("state");
  in.state = state;
  in.decayedState = b.mulAxis(state, end, 1);
  ChainResult out = writeChain(p, in);
  storeScaled(p, t, out.output);
  return out.state;
}

Value gdn::writeStateStep(Program &p, Value t, Value state) {
  if (p.facts.decay == DecayKind::Channel)
    return writeChannelGate(p, t, state, /*bm=*/{}, /*G=*/{});
  Chunk chunk = loadChunk(p, t);
  chunk.bm = solveChunk(p, chunk.k, chunk.beta);
  if (p.facts.decay == DecayKind::None)
    return writeUngated(p, chunk, state);
  chunk.G = cumulatedGate(p, t);
  return writeDecayed(p, chunk, state, /*reference=*/{})[0];
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void gdn::writeFused(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<Value> carried = {loadStateT(p)};
  // fp16 has no room for exp2(-G): always the decayed form (spec 3.7).
  bool decayFree =
      p.facts.decay == DecayKind::Scalar && !b.getOperandType().isF16();
  if (decayFree)
    carried.push_back(b.scalar(0.0));
  carried = forEachChunk(
      p, carried, [&](Value t, ValueRange carried) -> SmallVector<Value> {
        if (!decayFree)
          return {writeStateStep(p, t, carried[0])};
        Chunk chunk = loadChunk(p, t);
        chunk.bm = solveChunk(p, chunk.k, chunk.beta);
        chunk.G = cumulatedGate(p, t);
        return writeScalarGate(p, chunk, carried);
      });
  Value state = carried[0];
  if (decayFree) {
    b.step("state");
    state = b.mul(state, b.splat(b.exp2(carried[1]), shapeOf(state)));
  }
  storeStateT(p, state);
}

void gdn::writePrepare(Program &p) {
  TileBuilder &b = p.b;
  forEachChunk(p, {}, [&](Value t, ValueRange) -> SmallVector<Value> {
    Value k = loadKeys(p, "k", t);
    Value beta = loadBeta(p, t);
    Value bm, G;
    if (p.facts.decay != DecayKind::None)
      G = cumulatedGate(p, t);
    if (p.facts.decay == DecayKind::Channel) {
      ChannelScores scores = channelScores(p, /*q=*/{}, k, G);
      bm = solveBm(p, tile::CausalOp::create(b, scores.keyKey, true), beta);
    } else {
      bm = solveChunk(p, k, beta);
      if (G)
        bm = b.mul(bm, pairDecay(p, G));
    }
    b.step("store");
    b.store(bm, p["bm"], tokenOffsets(p, t, p.head, p.zero), {1, 3}, p.end);
    if (p.facts.decay == DecayKind::Scalar)
      b.store(G, p["decay"], {p.batch, t, p.head}, {1}, p.end);
    if (p.facts.decay == DecayKind::Channel)
      b.store(G, p["decay"], tokenOffsets(p, t, p.head, p.zero), {1, 3}, p.end);
    return {};
  });
}

/// prepare's cumulated gate of the chunk at token t. Beyond the end, where
/// nothing is stored, it stays at the last token's value (spec 2).
static Value loadDecay(Program &p, Value t) {
  TileBuilder &b = p.b;
  b.step("gates");
  Value next = arith::MinUIOp::create(
      b, arith::AddIOp::create(b, t, b.index(p.facts.C)), p.end);
  Value last = arith::SubIOp::create(b, next, b.index(1));
  Value mask = tokenMask(p, t);
  Value padding = b.sub(b.fill(1.0, p.facts.C), mask);
  if (p.facts.decay == DecayKind::Scalar) {
    Value G = b.load(p["decay"], {p.batch, t, p.head}, {1}, {p.facts.C}, p.end);
    Value end = b.load(p["decay"], {p.batch, last, p.head}, {1}, {1});
    Value flat = b.splat(b.extract(end, {0}), p.facts.C);
    return b.add(G, b.mul(flat, padding));
  }
  Value G = b.load(p["decay"], tokenOffsets(p, t, p.head, p.zero), {1, 3},
                   {p.facts.C, p.facts.K}, p.end);
  Value end = b.load(p["decay"], tokenOffsets(p, last, p.head, p.zero), {3},
                     {p.facts.K});
  Value flat = b.broadcast(end, shapeOf(G), 1);
  return b.add(G, b.mulAxis(flat, padding, 0));
}

void gdn::writeRun(Program &p) {
  TileBuilder &b = p.b;
  Value state = loadStateT(p);
  auto writeChunk = [&](Value t, ValueRange carried) -> SmallVector<Value> {
    b.step("load");
    Value bm = b.f32(b.load(p["bm"], tokenOffsets(p, t, p.head, p.zero), {1, 3},
                            {p.facts.C, p.facts.C}, p.end));
    if (p.facts.decay == DecayKind::Channel)
      return {writeChannelGate(p, t, carried[0], bm, loadDecay(p, t))};
    Chunk chunk = loadChunk(p, t);
    if (p.facts.decay == DecayKind::None) {
      chunk.bm = bm;
      return {writeUngated(p, chunk, carried[0])};
    }
    chunk.decayedBm = bm;
    chunk.G = loadDecay(p, t);
    return {writeDecayed(p, chunk, carried[0], /*reference=*/{})[0]};
  };
  state = forEachChunk(p, state, writeChunk)[0];
  storeStateT(p, state);
}

void gdn::writeLinearAttention(Program &p) {
  TileBuilder &b = p.b;
  Value state = forEachChunk(
      p, loadStateT(p), [&](Value t, ValueRange carried) -> SmallVector<Value> {
        ChainOperands in;
        in.state = in.decayedState = carried[0];
        in.writeKeys = loadKeys(p, "k", t);
        in.readQueries = loadKeys(p, "q", t);
        in.values = loadValuesT(p, t);
        b.step("scores");
        Value scores = innerProducts(p, in.readQueries, in.writeKeys);
        in.scores = b.round(tile::CausalOp::create(b, scores, false));
        ChainResult out = writeChain(p, in);
        storeScaled(p, t, out.output);
        return {out.state};
      })[0];
  storeStateT(p, state);
}
