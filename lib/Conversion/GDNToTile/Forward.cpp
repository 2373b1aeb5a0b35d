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
/// Keys that are not normalised make values and state larger by their lengths:
/// bf16 and f32, which end at 2^128, have room for some 2^30 of them.
static double lowestDecayFree(FloatType operandType, bool hasLengths) {
  return operandType.isF32() ? -40.0 : hasLengths ? -90.0 : -100.0;
}
/// Where G, summed since the reference point, is below this at the end of a
/// chunk, the chunk's end becomes the new reference point.
static constexpr double kNewReference = -24.0;

namespace {
/// What a chunk's preparation leaves for the chain.
struct Chunk {
  Value t, valuesT, beta;
  KeyRows q, k;
  /// Of what the chain takes, in f32 [C]: norm of the keys that read and length
  /// that values are times, either of which is null, and the writes' factor.
  Value readNorm, valueLength, writeBeta;
  /// Lower triangle of the scores and M = Kk Diag(beta), strictly lower; f32
  /// [C, C] without any decay. Null without an output, or with `bm`.
  Value queryKey, m;
  /// What the columns of `m` are still to be times, f32 [C] or null.
  Value columnsOfM;
  /// Bm with the chunk's decay, where prepare has made it.
  Value bm;
  /// Cumulated log2 gate of the chunk, [C].
  Value G;
};
} // namespace

/// Values of `yes` where `condition` holds, else those of `no`. Each branch is
/// of one step: a kernel may give steps to different warps. `likely` is the
/// usual value of the condition, if there is one.
static SmallVector<Value> choose(Program &p, Value condition,
                                 function_ref<SmallVector<Value>()> yes,
                                 function_ref<SmallVector<Value>()> no,
                                 std::optional<bool> likely = {}) {
  TileBuilder &b = p.b;
  auto branch = [&](function_ref<SmallVector<Value>()> write) {
    return [&b, write](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      SmallVector<Value> values = write();
      scf::YieldOp::create(b, values);
    };
  };
  auto choice = scf::IfOp::create(b, condition, branch(yes), branch(no));
  if (likely)
    choice->setAttr(tile::TileDialect::getLikelyAttrName(),
                    b.getBoolAttr(*likely));
  return llvm::to_vector_of<Value>(choice.getResults());
}

/// Whether keys that are not normalised read and write the state as they are.
/// With N their norms, e = N e' and W = N W' turn e = W - Bm (b W) into the
/// same with W' = v / N - Kk S, b' = N^2 b and N^-1 (Bm Diag(b)) N: the chain
/// multiplies no tile by norms. That matrix has the range of the keys' lengths,
/// which bf16 and f32 have room for, f16 does not.
static bool scalesSolve(Program &p, const KeyRows &keys, Value bm) {
  return p.facts.l2norm && keys.loaded && !bm && !p.facts.twoProductChain;
}

/// Loads the chunk at token t; multiplies queries with keys if there is an
/// output, and keys with keys unless Bm is given.
static Chunk loadChunk(Program &p, Value t, Value bm = {}) {
  TileBuilder &b = p.b;
  Chunk chunk;
  chunk.t = t;
  chunk.k = loadKeyRows(p, "k", t);
  if (p["o"])
    chunk.q = loadKeyRows(p, "q", t);
  chunk.valuesT = loadValuesT(p, t);
  chunk.beta = loadBeta(p, t);
  chunk.bm = bm;
  b.step("scores");
  Value keyKey, queryKey;
  if (!bm)
    keyKey = innerProducts(p, chunk.k.tile, chunk.k.tile);
  if (chunk.q.tile)
    queryKey = innerProducts(p, chunk.q.tile, chunk.k.tile);
  b.step("norms");
  bool scales = scalesSolve(p, chunk.k, bm);
  measureRows(p, chunk.k,
              scales ? Value(tile::DiagonalOp::create(b, keyKey)) : Value());
  Value norm = chunk.k.norm, keyBeta = mulVectors(p, chunk.beta, norm);
  if (scales) {
    chunk.columnsOfM = keyBeta;
    chunk.valueLength = chunk.k.length;
    chunk.writeBeta = b.mul(keyBeta, norm);
  } else {
    chunk.readNorm = norm;
    chunk.writeBeta = keyBeta;
  }
  b.step("query_norms");
  measureRows(p, chunk.q);
  b.step("scores");
  if (keyKey)
    chunk.m = mulNorms(p, keyKey, norm, scales ? Value() : keyBeta);
  chunk.queryKey = queryKey;
  return chunk;
}

namespace {
/// M and the scores as the solve and the chain take them; null without.
struct Triangles {
  Value m, scores;
};
} // namespace

/// The chunk's triangles: what `round(x, roundTile)` makes of a tile x [C, C]
/// and how it is rounded. They are cut last: of rounded elements one
/// instruction cuts two.
static Triangles
makeTriangles(Program &p, const Chunk &chunk,
              function_ref<Value(Value, function_ref<Value(Value)>)> round) {
  Triangles triangles;
  // M is left f32 where its columns are to be times a vector yet: that is left
  // to the solve, which knows all of it.
  if (chunk.m)
    triangles.m = tile::CausalOp::create(
        p.b,
        round(chunk.m,
              [&](Value m) {
                return chunk.columnsOfM ? m : roundForSolve(p, m);
              }),
        /*strict=*/true);
  if (chunk.queryKey)
    triangles.scores = tile::CausalOp::create(
        p.b, round(chunk.queryKey, [&](Value x) { return roundScores(p, x); }),
        /*strict=*/false);
  return triangles;
}

/// The chunk's triangles times `decay` [C, C] if given.
static Triangles decayTriangles(Program &p, const Chunk &chunk, Value decay) {
  return makeTriangles(p, chunk,
                       [&](Value x, function_ref<Value(Value)> round) {
                         return round(decay ? p.b.mul(x, decay) : x);
                       });
}

/// The chain's operands that all forms share. `writeDecay`, f32 [C] or null, is
/// what a chain of two products has in its operands.
static ChainOperands chainOperands(Program &p, const Chunk &chunk, Value state,
                                   const Triangles &triangles,
                                   Value writeDecay = {}) {
  ChainOperands in;
  in.state = in.decayedState = state;
  in.readKeys = in.writeKeys = chunk.k.tile;
  in.keyNorm = chunk.readNorm;
  in.readQueries = chunk.q.tile;
  in.values = chunk.valuesT;
  in.valueFactor = chunk.valueLength;
  in.beta = chunk.writeBeta;
  in.scores = triangles.scores;
  in.solve = chunk.bm ? chainSolve(p, chunk.bm, chunk.beta)
                      : chainInverse(p, triangles.m, chunk.columnsOfM,
                                     chunk.valueLength ? chunk.k : KeyRows());
  if (p.facts.twoProductChain) {
    in.writeDecay = writeDecay;
    foldSolve(p, in);
  }
  return in;
}

/// The op's scale times a decay and the queries' norm, f32 [C], each null for
/// 1; null if both are. With a norm the step is "query_norms" afterwards.
static Value outputFactor(Program &p, Value decay, Value norm) {
  TileBuilder &b = p.b;
  if (decay)
    decay = b.scaled(decay, p.facts.scale);
  if (!norm)
    return decay;
  b.step("query_norms");
  return decay ? b.mul(decay, norm) : b.scaled(norm, p.facts.scale);
}

/// o^T times `factor` [C], or times the op's scale if that is null, in the type
/// of o; null without an output.
static Value scaleOutput(Program &p, Value output, Value factor) {
  if (!output)
    return {};
  TileBuilder &b = p.b;
  Value scaled = factor ? b.mulAxis(output, factor, 1)
                        : b.mul(output, b.fill(p.facts.scale, shapeOf(output)));
  return b.to(scaled, cast<MemRefType>(p["o"].getType()).getElementType());
}

/// Stores the output if there is one.
static void storeOutput(Program &p, Value t, Value output) {
  if (output)
    storeOutputT(p, t, output);
}

//===----------------------------------------------------------------------===//
// No gate, and the scalar gate in two forms
//===----------------------------------------------------------------------===//

/// One chunk of the ungated delta rule. Returns S^T.
static Value writeUngated(Program &p, const Chunk &chunk, Value state) {
  ChainOperands in =
      chainOperands(p, chunk, state, decayTriangles(p, chunk, /*decay=*/{}));
  Value factor = outputFactor(p, /*decay=*/{}, chunk.q.norm);
  ChainResult out = writeChain(p, in);
  storeOutput(p, chunk.t, scaleOutput(p, out.output, factor));
  return out.state;
}

namespace {
/// The decays of a chunk with a scalar gate: vectors are f32 [C], of step
/// "gates"; G counts from the reference point, chunk.G from the chunk's start.
struct ScalarDecay {
  /// Factor of the values in the decay-free form: exp2(-G) and their length.
  Value freeValues;
  /// Factors of the output: scale, the queries' norm and, of the decay-free
  /// form, exp2(G); the other's may be null for scale.
  Value freeOutput, decayedOutput;
  /// exp2 of the chunk's G, and the decay of a write until the chunk's end.
  Value read, write;
  /// G of the last token, chunk.G of the last token, and the G that S^ lacks
  /// on entry: scalars.
  Value lastG, chunkG, reference;
};
} // namespace

/// Spec 3.7: the ungated rule on v / gam, read out with gam, where gam is the
/// decay since the reference point. Returns o^T and S^ at the chunk's end,
/// which becomes a new reference point where `low` holds.
static SmallVector<Value> writeDecayFree(Program &p, ChainOperands in,
                                         const ScalarDecay &decay, Value low) {
  TileBuilder &b = p.b;
  in.valueFactor = decay.freeValues;
  ChainResult out = writeChain(p, in);
  Value output = scaleOutput(p, out.output, decay.freeOutput);
  SmallVector<Value> results = choose(
      p, low,
      [&]() -> SmallVector<Value> {
        Value factor = b.splat(b.exp2(decay.lastG), shapeOf(out.state));
        return {b.mul(out.state, factor)};
      },
      [&]() -> SmallVector<Value> { return {out.state}; }, /*likely=*/false);
  if (output)
    results.push_back(output);
  return results;
}

/// Spec 3.3: the decay inside the tiles, for gates of any strength. Returns S
/// and o^T; the chunk's end is the new reference point.
static SmallVector<Value> writeDecayed(Program &p, ChainOperands in,
                                       const ScalarDecay &decay) {
  TileBuilder &b = p.b;
  auto scaled = [&](Value state, Value log2) {
    return b.mul(state, b.splat(b.exp2(log2), shapeOf(state)));
  };
  if (decay.reference)
    in.state = scaled(in.state, decay.reference);
  in.decayedState = scaled(in.state, decay.chunkG);
  in.readDecay = decay.read;
  if (in.solve)
    in.writeDecay = decay.write;
  ChainResult out = writeChain(p, in);
  SmallVector<Value> results = {out.state};
  if (out.output)
    results.push_back(scaleOutput(p, out.output, decay.decayedOutput));
  return results;
}

/// One chunk with a scalar gate in the decayed form. Returns S^T.
static Value writeAlwaysDecayed(Program &p, const Chunk &chunk, Value state) {
  TileBuilder &b = p.b;
  Triangles triangles;
  if (chunk.m || chunk.queryKey) {
    b.step("scores");
    triangles = decayTriangles(p, chunk, pairDecay(p, chunk.G));
  }
  ScalarDecay decay;
  decay.decayedOutput = outputFactor(p, /*decay=*/{}, chunk.q.norm);
  b.step("gates");
  decay.read = b.exp2(chunk.G);
  decay.write = decayToEnd(p, chunk.G);
  decay.chunkG = lastRow(p, chunk.G);
  ChainOperands in = chainOperands(p, chunk, state, triangles, decay.write);
  b.step("state");
  SmallVector<Value> results = writeDecayed(p, in, decay);
  storeOutput(p, chunk.t, results.size() > 1 ? results[1] : Value());
  return results[0];
}

/// The scalar gate: the decay-free form while G stays in range, uniformly for
/// the chunk. Carries S^ and G of the last reference point.
static SmallVector<Value> writeScalarGate(Program &p, const Chunk &chunk,
                                          ValueRange carried) {
  TileBuilder &b = p.b;
  ScalarDecay decay;
  decay.reference = carried[1];
  b.step("gates");
  // In range, G is small enough for f32.
  Value G = b.add(b.f32(chunk.G), b.splat(decay.reference, p.facts.C));
  decay.freeValues = b.exp2(b.neg(G));
  decay.lastG = lastRow(p, G);
  decay.chunkG = lastRow(p, chunk.G);
  auto compare = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(b, predicate, decay.lastG, b.scalar(bound));
  };
  Value inRange =
      compare(arith::CmpFPredicate::OGE,
              lowestDecayFree(b.getOperandType(),
                              static_cast<bool>(chunk.valueLength)));
  Value low = compare(arith::CmpFPredicate::OLT, kNewReference);
  decay.freeOutput = outputFactor(p, b.exp2(G), chunk.q.norm);
  decay.decayedOutput = outputFactor(p, /*decay=*/{}, chunk.q.norm);
  if (chunk.valueLength) {
    b.step("norms");
    decay.freeValues = b.mul(decay.freeValues, chunk.valueLength);
  }

  b.step("scores");
  // A choice each, kept apart by the cut between them: M and the scores may be
  // made by different warps.
  Triangles triangles = makeTriangles(
      p, chunk, [&](Value tile, function_ref<Value(Value)> round) {
        return choose(
            p, inRange, [&]() -> SmallVector<Value> { return {round(tile)}; },
            [&]() -> SmallVector<Value> {
              return {round(b.mul(tile, pairDecayBelow(p, chunk.G)))};
            },
            /*likely=*/true)[0];
      });
  // What a chain of two products folds into its keys: 1 in the decay-free form.
  b.step("gates");
  Value zeroIfFree = arith::SelectOp::create(b, inRange, b.scalar(0.0), //
                                             b.scalar(1.0));
  Value untilEnd = b.f32(b.sub(b.splat(decay.chunkG, p.facts.C), chunk.G));
  Value writeDecay = b.exp2(b.mul(untilEnd, b.splat(zeroIfFree, p.facts.C)));
  ChainOperands in = chainOperands(p, chunk, carried[0], triangles, writeDecay);
  b.step("state");
  // Seldom used: made by those who use them, and not with the gates.
  decay.read = b.exp2(chunk.G);
  decay.write = b.exp2(b.sub(b.splat(decay.chunkG, p.facts.C), chunk.G));
  SmallVector<Value> results = choose(
      p, inRange, [&] { return writeDecayFree(p, in, decay, low); },
      [&] { return writeDecayed(p, in, decay); });
  storeOutput(p, chunk.t, results.size() > 1 ? results[1] : Value());
  // A new reference point: after a chunk in the decayed form, and where low.
  Value zero = b.scalar(0.0);
  Value keep = arith::SelectOp::create(b, low, zero, decay.lastG);
  return {results[0], arith::SelectOp::create(b, inRange, keep, zero)};
}

//===----------------------------------------------------------------------===//
// One gate a channel
//===----------------------------------------------------------------------===//

/// Bm of a chunk with a gate a channel.
static Value solveChannels(Program &p, const ChannelScores &scores, KeyRows k,
                           Value beta) {
  Value keyKey = tile::CausalOp::create(p.b, scores.keyKey, /*strict=*/true);
  return solveBm(p, mulNorms(p, keyKey, k.norm, k.norm), beta);
}

/// One chunk with a gate a channel (spec 4.2). `bm` and `G` may be given (by
/// prepare); both are null in the fused program. Returns S^T.
static Value writeChannelGate(Program &p, Value t, Value state, Value bm,
                              Value G) {
  TileBuilder &b = p.b;
  KeyRows k = loadKeyRows(p, "k", t);
  KeyRows q = p["o"] ? loadKeyRows(p, "q", t) : KeyRows();
  ChainOperands in;
  in.values = loadValuesT(p, t);
  Value beta = loadBeta(p, t);
  b.step("norms");
  measureRows(p, q);
  measureRows(p, k);
  in.keyNorm = k.norm;
  in.beta = mulVectors(p, beta, k.norm);
  if (!G)
    G = cumulatedGate(p, t);
  ChannelScores scores = channelScores(p, q.tile, k.tile, G);
  if (q.tile)
    in.scores = roundScores(
        p, tile::CausalOp::create(b, scores.queryKey, /*strict=*/false));
  if (!bm)
    bm = solveChannels(p, scores, k, beta);
  in.solve = chainSolve(p, bm, beta);
  b.step("gates");
  Value read = b.exp2(G);
  auto decayed = [&](Value x, Value decay) {
    return b.round(b.mul(b.f32(x), decay));
  };
  in.readKeys = decayed(k.tile, read);
  if (q.tile)
    in.readQueries = decayed(q.tile, read);
  in.writeKeys = decayed(k.tile, decayToEnd(p, G));
  Value end = b.exp2(lastRow(p, G));
  if (p.facts.twoProductChain)
    foldSolve(p, in);
  b.step("state");
  in.state = state;
  in.decayedState = b.mulAxis(state, end, 1);
  Value factor = outputFactor(p, /*decay=*/{}, q.norm);
  ChainResult out = writeChain(p, in);
  storeOutput(p, t, scaleOutput(p, out.output, factor));
  return out.state;
}

Value gdn::writeStateStep(Program &p, Value t, Value state) {
  if (p.facts.decay == DecayKind::Channel)
    return writeChannelGate(p, t, state, /*bm=*/{}, /*G=*/{});
  Chunk chunk = loadChunk(p, t);
  if (p.facts.decay == DecayKind::None)
    return writeUngated(p, chunk, state);
  chunk.G = cumulatedGate(p, t);
  return writeAlwaysDecayed(p, chunk, state);
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
    KeyRows k = loadKeyRows(p, "k", t);
    Value beta = loadBeta(p, t);
    b.step("norms");
    measureRows(p, k);
    Value bm, G;
    if (p.facts.decay != DecayKind::None)
      G = cumulatedGate(p, t);
    if (p.facts.decay == DecayKind::Channel) {
      bm = solveChannels(p, channelScores(p, /*q=*/{}, k.tile, G), k, beta);
    } else {
      b.step("scores");
      Value keyKey = tile::CausalOp::create(b, innerProducts(p, k.tile, k.tile),
                                            /*strict=*/true);
      bm = solveBm(p, mulNorms(p, keyKey, k.norm, k.norm), beta);
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
  Value padding = b.to(b.sub(b.fill(1.0, p.facts.C), mask),
                       getElementTypeOrSelf(p["decay"].getType()));
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
    Chunk chunk = loadChunk(p, t, bm);
    if (p.facts.decay == DecayKind::None)
      return {writeUngated(p, chunk, carried[0])};
    chunk.G = loadDecay(p, t);
    return {writeAlwaysDecayed(p, chunk, carried[0])};
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
        storeOutput(p, t, scaleOutput(p, out.output, /*factor=*/{}));
        return {out.state};
      })[0];
  storeStateT(p, state);
}
