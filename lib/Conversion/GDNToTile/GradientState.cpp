//===- GradientState.cpp - States that gradients make of those before -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is kept before every second chunk. The others take one product from
// it, for what the tokens between them write is known: they add it to the
// decayed state. Chunks behind a kept state do the same with zeros, which no
// memory is read for. Where states are further apart, programs carry one.
//
//===----------------------------------------------------------------------===//

#include "GradientChunk.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;

/// The token of the kept state that the chunk at token t takes.
static Value findKept(Program &p, Value t) {
  TileBuilder &b = p.b;
  int64_t chunks = p.facts.stateInterval / p.facts.C;
  Value between = arith::RemUIOp::create(b, chunkNumber(p, t), b.index(chunks));
  Value tokens = arith::MulIOp::create(b, between, b.index(p.facts.C));
  return arith::SubIOp::create(b, t, tokens);
}

TokensBetween gdn::loadBetween(Program &p, Value t) {
  Program before = p;
  before.end = t;
  TokensBetween out;
  out.first = findKept(p, t);
  out.writes = loadRows(before, "writes", "load_between", out.first, p.head,
                        p.facts.V, /*isTurned=*/true);
  out.keys =
      loadRows(before, "k", "load_between", out.first, p.keyHead, p.facts.K);
  out.gates = loadChunkGates(before, out.first);
  return out;
}

/// The kept state before token `first` of the work item's head, by pieces of K
/// and then of V. Shared memory has room for one piece. The others are loaded
/// to registers while that one is used.
static SmallVector<Pieces> loadKept(Program &p, Value first) {
  TileBuilder &b = p.b;
  Value segment = savedSegment(p, first, p.facts.stateInterval);
  SmallVector<Pieces> state;
  int64_t columns = pieceChannels(p.facts.K);
  for (int64_t firstK = 0; firstK < p.facts.K; firstK += columns)
    state.push_back(makePieces(p.facts.V, [&](int64_t firstV, int64_t size) {
      b.step(firstK == 0 ? "load_kept" : stateStep(0));
      Value loaded = b.load(p["states"],
                            {segment, p.head, b.index(firstV), b.index(firstK)},
                            {2, 3}, {size, columns});
      if (firstK == 0)
        return b.round(loaded);
      loaded.getDefiningOp()->setAttr(tile::kWordsAttrName, b.getUnitAttr());
      return loaded;
    }));
  return state;
}

/// What tokens write that is left at the chunk, [V, C], in the operand type.
static Value decayWrites(TileBuilder &b, const ChunkGates &gates,
                         Value writes) {
  return gates.G ? b.round(b.mulAxis(b.f32(writes), gates.write, 1)) : writes;
}

void gdn::makeState(Program &p, const TokensBetween &between,
                    GradientTiles &in) {
  TileBuilder &b = p.b;
  SmallVector<Pieces> kept = loadKept(p, between.first);
  in.state.resize(kept.size());
  // All of some channels of V at a time: their writes leave registers then.
  for (auto [row, writes] : llvm::enumerate(between.writes)) {
    b.step(stateStep(0));
    Value written = decayWrites(b, between.gates, writes);
    for (auto [piece, tiles] : llvm::enumerate(kept)) {
      b.step(stateStep(piece));
      Value sum = b.f32(tiles[row]);
      if (between.gates.G)
        sum = b.mul(sum, b.splat(between.gates.whole, shapeOf(sum)));
      sum = b.product("vc,ck->vk", written, between.keys[piece], sum);
      in.state[piece].push_back(b.round(sum));
    }
  }
}

Pieces gdn::carryState(Program &p, GradientChunk &chunk, size_t piece,
                       const Pieces &state) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  Pieces next;
  Value dots;
  for (auto [rows, dRows, writes] :
       llvm::zip(state, in.dState[piece], in.writes)) {
    if (in.gates.G) {
      Value own = b.sum(b.mul(rows, b.f32(dRows)), 1);
      dots = dots ? b.add(dots, own) : own;
    }
    Value sum = rows, written = writes;
    if (in.gates.G) {
      sum = b.mul(rows, b.splat(in.gates.whole, shapeOf(rows)));
      written =
          b.round(b.mulAxis(b.f32(writes), in.gates.write, isTurned ? 1 : 0));
    }
    next.push_back(b.product(isTurned ? "vc,ck->vk" : "cv,ck->vk", written,
                             in.k[piece], sum));
  }
  if (dots)
    chunk.dots.carried.push_back(dots);
  return next;
}
