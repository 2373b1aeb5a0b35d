//===- StateStep.cpp - One chunk of the forward, with any gate ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"

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
  decay.decayedOutput = outputFactor(p, /*decay=*/{}, chunk.outputNorm());
  b.step("gates");
  decay.read = b.exp2(chunk.G);
  decay.write = decayToEnd(p, chunk.G);
  decay.chunkG = lastRow(p, chunk.G);
  ChainOperands in = chainOperands(p, chunk, state, triangles, decay.write);
  if (chunk.normsScores() && chunk.q.norm) {
    b.step("query_norms");
    in.queryFactor = b.mul(decay.read, chunk.q.norm);
  }
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
