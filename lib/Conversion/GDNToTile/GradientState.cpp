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
  out.keys = cutKeyPieces(p, loadRows(before, "k", "load_between", out.first,
                                      p.keyHead, p.facts.K));
  if (p.facts.decay == DecayKind::Channel)
    out.channelGates = loadChannelGates(before, out.first);
  else
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
  int64_t columns = keyPieceChannels(p);
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

/// What tokens write that is left behind a chunk, in the operand type, with a
/// row for each along `axis`.
static Value decayWrites(TileBuilder &b, const ChunkGates &gates, Value writes,
                         int64_t axis) {
  return gates.G ? b.round(b.mulAxis(b.f32(writes), gates.write, axis))
                 : writes;
}

/// What is left behind a chunk of a piece of the state before it.
static Value decayState(TileBuilder &b, const ChunkGates &gates,
                        const ChannelWrites &channels, Value state) {
  if (channels.whole)
    return b.mulAxis(state, channels.whole, 1);
  return gates.G ? b.mul(state, b.splat(gates.whole, shapeOf(state))) : state;
}

/// Keys of a piece as they write to the state behind the chunk, with a gate a
/// channel; without, as they are.
static ChannelWrites writeKeys(Program &p, const Pieces &keys,
                               const Pieces &gates, size_t piece) {
  return gates.empty() ? ChannelWrites{keys[piece], {}}
                       : channelWrites(p, keys[piece], gates[piece]);
}

void gdn::makeState(Program &p, const TokensBetween &between,
                    GradientTiles &in) {
  TileBuilder &b = p.b;
  SmallVector<Pieces> kept = loadKept(p, between.first);
  in.state.resize(kept.size());
  SmallVector<ChannelWrites> keys;
  for (size_t piece = 0; piece < kept.size(); ++piece) {
    b.step(stateStep(piece));
    keys.push_back(writeKeys(p, between.keys, between.channelGates, piece));
  }
  // All of some channels of V at a time: their writes leave registers then.
  for (auto [row, writes] : llvm::enumerate(between.writes)) {
    b.step(stateStep(0));
    Value written = decayWrites(b, between.gates, writes, /*axis=*/1);
    for (auto [piece, tiles] : llvm::enumerate(kept)) {
      b.step(stateStep(piece));
      Value sum = decayState(b, between.gates, keys[piece], b.f32(tiles[row]));
      sum = b.product("vc,ck->vk", written, keys[piece].keys, sum);
      in.state[piece].push_back(b.round(sum));
    }
  }
}

Pieces gdn::carryState(Program &p, GradientChunk &chunk, size_t piece,
                       const Pieces &state) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  ChannelWrites keys = writeKeys(p, in.k, in.channelGates, piece);
  Pieces next;
  Value dots;
  for (auto [rows, dRows, writes] :
       llvm::zip(state, in.dState[piece], in.writes)) {
    if (in.gates.G) {
      Value own = b.sum(b.mul(rows, b.f32(dRows)), 1);
      dots = dots ? b.add(dots, own) : own;
    }
    Value sum = decayState(b, in.gates, keys, rows);
    Value written = decayWrites(b, in.gates, writes, isTurned ? 1 : 0);
    next.push_back(b.product(isTurned ? "vc,ck->vk" : "cv,ck->vk", written,
                             keys.keys, sum));
  }
  if (dots)
    chunk.dots.carried.push_back(dots);
  return next;
}
