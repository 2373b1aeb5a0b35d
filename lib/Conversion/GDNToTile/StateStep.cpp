//===- StateStep.cpp - One chunk of the forward, with any gate ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"
#include "Kept.h"

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

//===----------------------------------------------------------------------===//
// No gate, and the scalar gate in two forms
//===----------------------------------------------------------------------===//

/// One chunk of the ungated delta rule. Returns S^T.
static Value writeUngated(Program &p, const Chunk &chunk, Value state) {
  ChainOperands in =
      chainOperands(p, chunk, state, decayTriangles(p, chunk, /*decay=*/{}));
  if (chunk.normsScores())
    in.queryFactor = chunk.q.norm;
  Value factor = outputFactor(p, /*decay=*/{}, chunk.outputNorm());
  ChainResult out = writeChain(p, in);
  writeOutput(p, chunk.t, out.output, factor);
  return out.state;
}

namespace {
/// Factors of V, of K S, of Q S and of the output, f32 [C]; null for 1, and of
/// the output where scores and Q S contain all of it.
struct ChainFactors {
  Value values, reads, queries, output;
};
/// The decays of a chunk with a scalar gate; G counts from the reference point.
struct ScalarDecay {
  /// Of each form. A vector that both take has one slot in a kernel.
  ChainFactors free, decayed;
  /// Decay of a write until the chunk's end, f32 [C].
  Value write;
  /// G of the last token.
  Value lastG;
};
} // namespace

/// Whether decayed scores contain the output's scale: then the output needs no
/// factor behind its products. A norm of queries is made beside the scores, and
/// f16 has no room for a scale above 1.
static bool scoresHaveScale(Program &p, const Chunk &chunk) {
  return !chunk.q.norm && p.facts.scale <= 1;
}

/// Decayed triangles of `pairs`, the decay of each pair.
static Value decayTile(Program &p, const Chunk &chunk, Value tile,
                       Value pairs) {
  Value decayed = p.b.mul(tile, pairs);
  return tile == chunk.queryKey && scoresHaveScale(p, chunk)
             ? p.b.scaled(decayed, p.facts.scale)
             : decayed;
}

/// Spec 3.7: the ungated rule on v / gam, read out with gam, where gam is the
/// decay since the reference point. Returns S^ and o^T at the chunk's end,
/// which becomes a new reference point where `low` holds.
static SmallVector<Value> writeDecayFree(Program &p, ChainOperands in,
                                         const ScalarDecay &decay, Value low) {
  TileBuilder &b = p.b;
  in.valueFactor = decay.free.values;
  in.readFactor = decay.free.reads;
  ChainResult out = writeChain(p, in);
  Value output = scaleOutput(p, out.output, decay.free.output);
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

/// Spec 3.3: the decay inside the tiles, for gates of any strength. S^ is read
/// as it is, since what it lacks is in the factors. Returns S, o^T and what is
/// written; the chunk's end is the new reference point.
static ChainResult writeDecayed(Program &p, ChainOperands in,
                                const ScalarDecay &decay) {
  TileBuilder &b = p.b;
  in.valueFactor = decay.decayed.values;
  in.readFactor = decay.decayed.reads;
  in.queryFactor = decay.decayed.queries;
  in.stateDecay = b.exp2(decay.lastG);
  if (in.solve)
    in.writeDecay = decay.write;
  ChainResult out = writeChain(p, in);
  out.output = decay.decayed.output
                   ? scaleOutput(p, out.output, decay.decayed.output)
                   : roundOutput(p, out.output);
  return out;
}

/// One chunk with a scalar gate in the decayed form. Returns S^T.
static Value writeAlwaysDecayed(Program &p, const Chunk &chunk, Value state) {
  TileBuilder &b = p.b;
  if (p["states"])
    keepState(p, "states", chunk.t, state);
  Triangles triangles;
  if (chunk.m || chunk.queryKey) {
    b.step("scores");
    Value pairs = pairDecay(p, chunk.G);
    triangles = makeTriangles(
        p, chunk, [&](Value tile, function_ref<Value(Value)> round) {
          return round(decayTile(p, chunk, tile, pairs));
        });
  }
  ScalarDecay decay;
  b.step("gates");
  Value read = b.exp2(chunk.G);
  decay.write = decayToEnd(p, chunk.G);
  decay.lastG = lastRow(p, chunk.G);
  decay.decayed.queries = read;
  if (scoresHaveScale(p, chunk))
    decay.decayed.queries = outputFactor(p, read, /*norm=*/{});
  else
    decay.decayed.output = outputFactor(p, b.fill(1.0, p.facts.C), //
                                        chunk.outputNorm());
  if (chunk.normsScores() && chunk.q.norm) {
    b.step("query_norms");
    decay.decayed.queries = b.mul(read, chunk.q.norm);
  }
  b.step(chunk.k.norm ? "norms" : "gates");
  decay.decayed.values = chunk.valueFactor;
  decay.decayed.reads = mulVectors(p, chunk.readFactor, read);
  ChainOperands in = chainOperands(p, chunk, state, triangles, decay.write);
  b.step("state");
  ChainResult out = writeDecayed(p, in, decay);
  if (p["writes"])
    storeWrites(p, chunk.t, out.write);
  storeOutput(p, chunk.t, out.output);
  return out.state;
}

/// The factors of both forms. `G` is f32 [C].
static void writeFactors(Program &p, const Chunk &chunk, Value G, Value inRange,
                         ScalarDecay &decay) {
  TileBuilder &b = p.b;
  ChainFactors &free = decay.free, &decayed = decay.decayed;
  Value sign =
      arith::SelectOp::create(b, inRange, b.scalar(-1.0), b.scalar(1.0));
  Value factor = b.exp2(b.mul(G, b.splat(sign, p.facts.C)));
  b.step(chunk.scalesSolve() ? "norms" : "gates");
  if (chunk.valueFactor == chunk.readFactor) {
    free.values = decayed.reads = b.mul(factor, chunk.valueFactor);
    free.reads = decayed.values = chunk.valueFactor;
  } else {
    Value one = b.fill(1.0, p.facts.C);
    auto select = [&](Value ifFree, Value ifDecayed) -> Value {
      return arith::SelectOp::create(b, inRange, ifFree, ifDecayed);
    };
    free.values = decayed.values =
        b.mul(select(factor, one), chunk.valueFactor);
    free.reads = decayed.reads = b.mul(select(one, factor), chunk.readFactor);
  }
  b.step("gates");
  Value read = b.exp2(G);
  if (scoresHaveScale(p, chunk)) {
    free.output = decayed.queries = outputFactor(p, read, /*norm=*/{});
    return;
  }
  decayed.queries = read;
  if (chunk.q.norm)
    b.step("query_norms");
  Value one = b.fill(1.0, p.facts.C);
  Value output = arith::SelectOp::create(b, inRange, read, one);
  free.output = decayed.output = outputFactor(p, output, chunk.q.norm);
}

/// The triangles of both forms: a choice each, kept apart by the cut between
/// them: M and the scores may be made by different warps.
static Triangles chooseTriangles(Program &p, const Chunk &chunk,
                                 Value inRange) {
  TileBuilder &b = p.b;
  b.step("scores");
  return makeTriangles(
      p, chunk, [&](Value tile, function_ref<Value(Value)> round) {
        return choose(
            p, inRange, [&]() -> SmallVector<Value> { return {round(tile)}; },
            [&]() -> SmallVector<Value> {
              return {
                  round(decayTile(p, chunk, tile, pairDecayBelow(p, chunk.G)))};
            },
            /*likely=*/true)[0];
      });
}

/// The scalar gate: the decay-free form while G stays in range, uniformly for
/// the chunk. Carries S^ and G of the last reference point.
static SmallVector<Value> writeScalarGate(Program &p, const Chunk &chunk,
                                          ValueRange carried) {
  TileBuilder &b = p.b;
  ScalarDecay decay;
  b.step("gates");
  // In range, G is small enough for f32; below it, its error is small beside
  // the decay.
  Value G = b.add(b.f32(chunk.G), b.splat(carried[1], p.facts.C));
  decay.lastG = lastRow(p, G);
  Value chunkG = lastRow(p, chunk.G);
  auto compare = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(b, predicate, decay.lastG, b.scalar(bound));
  };
  Value inRange =
      compare(arith::CmpFPredicate::OGE,
              lowestDecayFree(b.getOperandType(), chunk.scalesSolve()));
  Value low = compare(arith::CmpFPredicate::OLT, kNewReference);
  writeFactors(p, chunk, G, inRange, decay);
  Triangles triangles = chooseTriangles(p, chunk, inRange);
  // What a chain of two products folds into its keys: 1 in the decay-free form.
  b.step("gates");
  Value zeroIfFree = arith::SelectOp::create(b, inRange, b.scalar(0.0), //
                                             b.scalar(1.0));
  auto decayUntilEnd = [&] {
    return b.f32(b.sub(b.splat(chunkG, p.facts.C), chunk.G));
  };
  Value untilEnd = decayUntilEnd();
  Value writeDecay = b.exp2(b.mul(untilEnd, b.splat(zeroIfFree, p.facts.C)));
  ChainOperands in = chainOperands(p, chunk, carried[0], triangles, writeDecay);
  // Made with the gates, unless the factors of norms leave no room for it.
  b.step(chunk.scalesSolve() ? "state" : "gates");
  decay.write = b.exp2(decayUntilEnd());
  b.step("state");
  SmallVector<Value> results = choose(
      p, inRange, [&] { return writeDecayFree(p, in, decay, low); },
      [&]() -> SmallVector<Value> {
        ChainResult out = writeDecayed(p, in, decay);
        if (out.output)
          return {out.state, out.output};
        return {out.state};
      },
      /*likely=*/true);
  storeOutput(p, chunk.t, results.size() > 1 ? results[1] : Value());
  // After the decayed form the state is S itself. Where G is low S^ has been
  // made what it is at `first`.
  Value first = b.scalar(firstG(b.getOperandType()));
  Value keep = arith::SelectOp::create(b, low, first, decay.lastG);
  Value next = arith::SelectOp::create(b, inRange, keep, b.scalar(0.0));
  return {results[0], next};
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
