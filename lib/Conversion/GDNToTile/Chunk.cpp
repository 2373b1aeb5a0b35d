//===- Chunk.cpp - A chunk's rows, triangles, and operands of the chain ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"

#include <utility>

using namespace mlir;
using namespace mlir::gdn;

/// Whether keys that are not normalised read and write the state as they are.
/// With N their norms and Y = -b Bm, W' = N b v - N^2 b K S is N times W, and
/// W' + N Y N^-1 W' is N times the write, which raw keys take as it is: the
/// chain multiplies no tile by norms alone. N Y N^-1 has the range of the keys'
/// lengths, which bf16 has room for, f16 does not.
/// There the keys' norms are in the write, and scores have those of queries.
static bool scalesSolve(Program &p, const KeyRows &keys, Value bm) {
  return p.facts.l2norm && keys.loaded && !bm && p.b.getOperandType().isBF16();
}

Chunk gdn::loadChunk(Program &p, Value t, Value bm) {
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
  bool hasSquares = p.facts.l2norm && chunk.k.loaded && keyKey;
  measureRows(p, chunk.k,
              hasSquares ? Value(tile::DiagonalOp::create(b, keyKey))
                         : Value());
  Value rowBeta = chunk.beta, columnBeta, norm = chunk.k.norm;
  if (p.facts.betaBehindSolve)
    std::swap(rowBeta, columnBeta);
  Value keyBeta = mulVectors(p, rowBeta, norm);
  if (hasSquares)
    chunk.columnsOfM = norm;
  if (scales) {
    chunk.valueFactor = keyBeta;
    chunk.readFactor = b.mul(keyBeta, norm);
  } else {
    chunk.valueFactor = rowBeta;
    chunk.readFactor = keyBeta;
  }
  b.step("query_norms");
  measureRows(p, chunk.q);
  b.step("scores");
  if (keyKey)
    chunk.m = mulNorms(p, keyKey, keyBeta,
                       mulVectors(p, columnBeta, hasSquares ? Value() : norm));
  chunk.queryKey = queryKey;
  if (queryKey && chunk.normsScores())
    chunk.queryKey = mulNorms(p, queryKey, chunk.q.norm, /*yNorm=*/{});
  return chunk;
}

/// M as the solve takes it, or f32 where its columns are to be times a vector
/// yet: that is left to the solve, which knows all of it.
static Value roundM(Program &p, const Chunk &chunk, Value m) {
  return chunk.columnsOfM ? m : roundForSolve(p, m);
}

Triangles gdn::makeTriangles(
    Program &p, const Chunk &chunk,
    function_ref<Value(Value tile, function_ref<Value(Value)> round)> decay) {
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

Triangles gdn::decayTriangles(Program &p, const Chunk &chunk, Value decay) {
  return makeTriangles(p, chunk,
                       [&](Value tile, function_ref<Value(Value)> round) {
                         return round(decay ? p.b.mul(tile, decay) : tile);
                       });
}

ChainOperands gdn::chainOperands(Program &p, const Chunk &chunk, Value state,
                                 const Triangles &triangles, Value writeDecay) {
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
    in.writeNorm = chunk.normsScores() ? chunk.k.writeNorm : chunk.k.norm;
  if (p.facts.betaBehindSolve)
    in.writeNorm = mulVectors(p, in.writeNorm, chunk.beta);
  if (p.facts.twoProductChain) {
    in.writeDecay = writeDecay;
    foldSolve(p, in);
  }
  return in;
}

Value gdn::outputFactor(Program &p, Value decay, Value norm) {
  TileBuilder &b = p.b;
  if (decay)
    decay = b.scaled(decay, p.facts.scale);
  if (!norm)
    return decay;
  b.step("query_norms");
  return decay ? b.mul(decay, norm) : b.scaled(norm, p.facts.scale);
}

Value gdn::scaleOutput(Program &p, Value output, Value factor) {
  if (!output)
    return {};
  TileBuilder &b = p.b;
  Value scaled = factor ? b.mulAxis(output, factor, 1)
                        : b.mul(output, b.fill(p.facts.scale, shapeOf(output)));
  return roundOutput(p, scaled);
}

Value gdn::roundOutput(Program &p, Value output) {
  if (!output)
    return {};
  return p.b.to(output, cast<MemRefType>(p["o"].getType()).getElementType());
}

void gdn::storeOutput(Program &p, Value t, Value output) {
  if (output)
    storeOutputT(p, t, output);
}

void gdn::writeOutput(Program &p, Value t, Value output, Value factor) {
  storeOutput(p, t, scaleOutput(p, output, factor));
}
