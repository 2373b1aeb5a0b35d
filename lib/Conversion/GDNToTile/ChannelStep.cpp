//===- ChannelStep.cpp - One chunk of the forward, a gate per channel -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"
#include "Kept.h"

using namespace mlir;
using namespace mlir::gdn;

Value gdn::writeChannelGate(Program &p, Value t, Value state, Value bm,
                            Value G) {
  TileBuilder &b = p.b;
  if (p["states"])
    keepState(p, "states", t, state);
  KeyRows k = loadKeyRows(p, "k", t);
  KeyRows q = p["o"] ? loadKeyRows(p, "q", t) : KeyRows();
  ChainOperands in;
  in.values = loadValuesT(p, t);
  Value beta = loadBeta(p, t);
  b.step("norms");
  measureRows(p, k);
  b.step("query_norms");
  measureRows(p, q);
  if (p.facts.betaBehindSolve)
    in.writeNorm = beta;
  else
    in.valueFactor = in.readFactor = beta;
  if (!G)
    G = cumulatedGate(p, t);
  ChannelTiles tiles = channelTiles(p, q, k, G);
  in.readKeys = tiles.readKeys;
  in.readQueries = tiles.readQueries;
  in.writeKeys = tiles.writeKeys;
  b.step("scores");
  if (q.tile)
    in.scores = tile::CausalOp::create(b, roundScores(p, tiles.queryKey),
                                       /*strict=*/false);
  if (bm) {
    in.solve = chainSolve(p, bm, beta);
  } else {
    in.solve = invertKeyScores(p, tiles.keyKey, beta,
                               /*betaAxis=*/p.facts.betaBehindSolve ? 1 : 0);
  }
  if (p.facts.twoProductChain)
    foldSolve(p, in);
  b.step("state");
  in.state = b.mulAxis(state, tiles.toReference, 1);
  in.decayedState = b.mulAxis(in.state, tiles.toEnd, 1);
  ChainResult out = writeChain(p, in);
  Value output = scaleOutput(p, out.output, /*factor=*/{});
  if (p["writes"])
    storeWrites(p, t, out.write);
  storeOutput(p, t, output);
  return out.state;
}
