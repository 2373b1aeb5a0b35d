//===- ChannelStep.cpp - One chunk of the forward, a gate per channel -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"

using namespace mlir;
using namespace mlir::gdn;

Value gdn::writeChannelGate(Program &p, Value t, Value state, Value bm,
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
