//===- StateStep.cpp - One chunk of the forward, with any gate ------------===//
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
/// Keys and queries that are not normalised read S^ as they are: bf16 and f32,
/// which end at 2^128, have room for lengths of some 2^30.
static double lowestDecayFree(FloatType operandType, bool hasLengths) {
  return operandType.isF32() ? -40.0 : hasLengths ? -90.0 : -100.0;
}
/// S is 2^G S^. Where G is below this at the end of a chunk, that becomes the
/// new reference point.
static constexpr double kNewReference = -24.0;
/// G at a new reference point: the higher, the longer until the next one.
/// 2^(the lowest G - this) must stay above 2^-126, where f32 ends. In f32
/// programs the rounding of G, which adds up over chunks, counts.
static double firstG(FloatType operandType) {
  return operandType.isF32() ? 0.0 : 24.0;
}

namespace {
/// What a chunk's preparation leaves for the chain.
struct Chunk {
  Value t, valuesT, beta;
  KeyRows q, k;
  /// What the chain takes values and what keys read times, f32 [C].
  Value valueFactor, readFactor;
  /// Lower triangle of the scores and M = Diag(beta) Kk, strictly lower; f32
  /// [C, C] without any decay. Null without an output, or with `bm`.
  Value queryKey, m;
  /// What the columns of `m` are still to be times, f32 [C]: norms, which the
  /// solve's result has in it then. Null without.
  Value columnsOfM;
  bool scalesSolve() const { return static_cast<bool>(columnsOfM); }
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
/// With N their norms and Y = -b Bm, W' = N b v - N^2 b K S is N times W, and
/// W' + N Y N^-1 W' is N times the write, which raw keys take as it is: the
/// chain multiplies no tile by norms alone. N Y N^-1 has the range of the keys'
/// lengths, which bf16 and f32 have room for, f16 does not.
static bool scalesSolve(Program &p, const KeyRows &keys, Value bm) {
  return p.facts.l2norm && keys.loaded && !bm;
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
    chunk.columnsOfM = norm;
    chunk.valueFactor = keyBeta;
    chunk.readFactor = b.mul(keyBeta, norm);
  } else {
    chunk.valueFactor = chunk.beta;
    chunk.readFactor = keyBeta;
  }
  b.step("query_norms");
  measureRows(p, chunk.q);
  b.step("scores");
  if (keyKey)
    chunk.m = mulNorms(p, keyKey, keyBeta, scales ? Value() : norm);
  chunk.queryKey = queryKey;
  return chunk;
}

namespace {
/// M and the scores as the solve and the chain take them; null without.
struct Triangles {
  Value m, scores;
};
} // namespace

/// M as the solve takes it, or f32 where its columns are to be times a vector
/// yet: that is left to the solve, which knows all of it.
static Value roundM(Program &p, const Chunk &chunk, Value m) {
  return chunk.columnsOfM ? m : roundForSolve(p, m);
}

/// The chunk's triangles: what `decay(tile, round)` makes of each tile [C, C],
/// rounded by the function `round`. They are cut last: of rounded elements one
/// instruction cuts two.
template <typename Decay>
static Triangles makeTriangles(Program &p, const Chunk &chunk, Decay decay) {
  auto roundedM = [&](Value m) { return roundM(p, chunk, m); };
  auto roundedScores = [&](Value x) { return roundScores(p, x); };
  Triangles triangles;
  if (chunk.m)
    triangles.m = tile::CausalOp::create(p.b, decay(chunk.m, roundedM),
                                         /*strict=*/true);
  if (chunk.queryKey)
    triangles.scores = tile::CausalOp::create(
        p.b, decay(chunk.queryKey, roundedScores), /*strict=*/false);
  return triangles;
}

/// The chunk's triangles times `decay` [C, C] if given.
static Triangles decayTriangles(Program &p, const Chunk &chunk, Value decay) {
  return makeTriangles(p, chunk, [&](Value tile, auto round) {
    return round(decay ? p.b.mul(tile, decay) : tile);
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
  in.readQueries = chunk.q.tile;
  in.values = chunk.valuesT;
  in.valueFactor = chunk.valueFactor;
  in.readFactor = chunk.readFactor;
  in.scores = triangles.scores;
  in.solve = chunk.bm ? chainSolve(p, chunk.bm, chunk.beta)
                      : chainInverse(p, triangles.m, chunk.columnsOfM,
                                     chunk.scalesSolve() ? chunk.k : KeyRows());
  if (!chunk.scalesSolve())
    in.writeNorm = chunk.k.norm;
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

void gdn::writeOutput(Program &p, Value t, Value output, Value factor) {
  storeOutput(p, t, scaleOutput(p, output, factor));
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
  writeOutput(p, chunk.t, out.output, factor);
  return out.state;
}

namespace {
/// The decays of a chunk with a scalar gate: vectors are f32 [C], of step
/// "gates"; G counts from the reference point, chunk.G from the chunk's start.
struct ScalarDecay {
  /// Factor of the values in the decay-free form: theirs, times exp2(-G).
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
/// decay since the reference point. Returns S^ and o^T at the chunk's end,
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
        Value log2 = arith::SubFOp::create(
            b, decay.lastG, b.scalar(firstG(b.getOperandType())));
        return {b.mul(out.state, b.splat(b.exp2(log2), shapeOf(out.state)))};
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
              lowestDecayFree(b.getOperandType(), chunk.scalesSolve()));
  Value low = compare(arith::CmpFPredicate::OLT, kNewReference);
  decay.freeOutput = outputFactor(p, b.exp2(G), chunk.q.norm);
  decay.decayedOutput = outputFactor(p, /*decay=*/{}, chunk.q.norm);
  b.step(chunk.scalesSolve() ? "norms" : "gates");
  decay.freeValues = b.mul(decay.freeValues, chunk.valueFactor);

  b.step("scores");
  // A choice each, kept apart by the cut between them: M and the scores may be
  // made by different warps.
  Triangles triangles = makeTriangles(p, chunk, [&](Value tile, auto round) {
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
      [&] { return writeDecayed(p, in, decay); }, /*likely=*/true);
  storeOutput(p, chunk.t, results.size() > 1 ? results[1] : Value());
  // After the decayed form the state is S itself. Where G is low S^ has been
  // made what it is at `first`.
  Value first = b.scalar(firstG(b.getOperandType()));
  Value keep = arith::SelectOp::create(b, low, first, decay.lastG);
  Value next = arith::SelectOp::create(b, inRange, keep, b.scalar(0.0));
  return {results[0], next};
}

//===----------------------------------------------------------------------===//
// One gate a channel
//===----------------------------------------------------------------------===//

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
  in.valueFactor = beta;
  in.readFactor = mulVectors(p, beta, k.norm);
  in.writeNorm = k.norm;
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
  writeOutput(p, t, out.output, factor);
  return out.state;
}

//===----------------------------------------------------------------------===//
// Any gate
//===----------------------------------------------------------------------===//

Value gdn::writeStateStep(Program &p, Value t, Value state, Value bm, Value G) {
  if (p.facts.decay == DecayKind::Channel)
    return writeChannelGate(p, t, state, bm, G);
  Chunk chunk = loadChunk(p, t, bm);
  if (p.facts.decay == DecayKind::None)
    return writeUngated(p, chunk, state);
  chunk.G = G ? G : cumulatedGate(p, t);
  return writeAlwaysDecayed(p, chunk, state);
}

SmallVector<Value> gdn::writeDecayFreeStep(Program &p, Value t,
                                           ValueRange carried) {
  Chunk chunk = loadChunk(p, t);
  chunk.G = cumulatedGate(p, t);
  return writeScalarGate(p, chunk, carried);
}
