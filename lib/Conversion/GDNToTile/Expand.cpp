//===- Expand.cpp - States between those that a forward saved -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tokens write is known, so a state follows from the one before by one
// product (spec 3.3). A work item has a part of a sequence, which begins at a
// kept state, and a tile of V.
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"
#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Stores the state before the chunk at token t. Returns the one behind it.
static Value expandChunk(Program &p, Value t, Value state) {
  TileBuilder &b = p.b;
  keepState(p, "states", t, state);
  Value k = loadKeys(p, "k", t);
  b.step("load");
  Value writes = b.load(p["v"], tokenOffsets(p, t, p.head, p.firstV), {3, 1},
                        {p.facts.vTileChannels, p.facts.C}, p.end);
  if (p.facts.decay == DecayKind::Channel) {
    ChannelWrites keys = channelWrites(p, k, cumulatedGate(p, t));
    b.step("state");
    return b.product("vc,ck->vk", b.round(writes), keys.keys,
                     b.mulAxis(state, keys.whole, 1));
  }
  ChunkGates gates = loadChunkGates(p, t);
  b.step("state");
  if (!gates.G)
    return b.product("vc,ck->vk", writes, k, state);
  Value left = b.round(b.mulAxis(b.f32(writes), gates.write, 1));
  Value decayed = b.mul(state, b.splat(gates.whole, shapeOf(state)));
  return b.product("vc,ck->vk", left, k, decayed);
}

void gdn::writeExpand(Program &p) {
  TileBuilder &b = p.b;
  // Tiles of V come first among those of a sequence and head.
  Value tiles = b.index(p.facts.V / p.facts.vTileChannels);
  Value tile = arith::RemUIOp::create(b, p.tile, tiles);
  p.firstV = arith::MulIOp::create(b, tile, b.index(p.facts.vTileChannels));
  TokenRange range = makeKeptRange(p, arith::DivUIOp::create(b, p.tile, tiles));
  Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                        range.first, range.end);
  tile::LeaveOp::create(b, isEmpty, ValueRange(), /*early=*/true);
  Value segment = keptSegment(p, range.first, p.facts.stateInterval);
  b.step("state");
  Value kept = b.load(p["kept"], {segment, p.head, p.firstV, p.zero}, {2, 3},
                      {p.facts.vTileChannels, p.facts.K});
  auto loop = scf::ForOp::create(b, range.first, range.end, b.index(p.facts.C),
                                 b.f32(kept));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(
      b, expandChunk(p, loop.getInductionVar(), loop.getRegionIterArg(0)));
}
