//===- Forward.cpp - Programs of the chunked forward ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"
#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::gdn;

/// Whether segment `s` forgets what is before it, where it begins at `begin`.
static Value forgets(Program &p, Value s, Value begin) {
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::sgt,
                               loadNumber(p, "starts", {s, p.head}), begin);
}

/// Of a state pass, whether anybody needs the state: not where this segment
/// forgets what is before it, and the next one of the sequence does.
static void skipUnneeded(Program &p) {
  TileBuilder &b = p.b;
  Value next = arith::AddIOp::create(b, p.sequence, b.index(1));
  Value last = arith::SubIOp::create(
      b, memref::DimOp::create(b, p["starts"], 0), b.index(1));
  // Of a segment that begins a sequence, or of none, that is 2^31 - 1.
  Value behind = loadNumber(p, "before", {next});
  Value follows =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, behind,
                            b.index(std::numeric_limits<int32_t>::max()));
  Value nextForgets = forgets(p, arith::MinUIOp::create(b, next, last), p.end);
  Value isForgotten = arith::AndIOp::create(b, follows, nextForgets);
  Value isUnneeded =
      arith::AndIOp::create(b, isForgotten, forgets(p, p.sequence, p.begin));
  p.begin = arith::SelectOp::create(b, isUnneeded, p.end, loadStart(p));
  tile::LeaveOp::create(b, isUnneeded, p["final_state"]);
}

/// Of a segment behind one that forgets, the tokens of that one from its start
/// on, run from zero, make the state: these work items take the first turn. All
/// others wait for the scan. Returns the state on entry.
static Value enterSegment(Program &p) {
  TileBuilder &b = p.b;
  Value one = b.index(1);
  Value previous =
      arith::SubIOp::create(b, arith::MaxUIOp::create(b, p.sequence, one), one);
  Value before = loadNumber(p, "before", {p.sequence});
  Value isOwn = forgets(p, previous, before);
  Value isFirstTurn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, p.turn, p.zero);
  Value isOther = arith::XOrIOp::create(b, isOwn, isFirstTurn);
  Value isEmpty =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, p.begin, p.end);
  Value isIdle = arith::OrIOp::create(b, isOther, isEmpty);
  Value start = loadNumber(p, "starts", {previous, p.head});
  p.firstStored = p.begin;
  p.begin = arith::SelectOp::create(b, isOwn, start, p.begin);
  p.begin = arith::SelectOp::create(b, isIdle, p.end, p.begin);
  tile::LeaveOp::create(b, isIdle, ValueRange());
  Value waits = arith::XOrIOp::create(
      b, isOwn, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  tile::AwaitOp::create(b, p["before"], waits);
  Value state = loadStateT(p);
  Value none = b.fill(0.0, shapeOf(state));
  b.step("state");
  return arith::SelectOp::create(b, isOwn, none, state);
}

void gdn::writeFused(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<Value> carried;
  if (p["before"] && p["o"]) {
    carried = {enterSegment(p)};
  } else {
    if (p["before"])
      skipUnneeded(p);
    else
      p.begin = loadStart(p);
    carried = {loadStateT(p)};
  }
  bool saves = static_cast<bool>(p["writes"]);
  if (saves)
    prepareWrites(p);
  // fp16 has no room for exp2(-G): always the decayed form (spec 3.7). So it is
  // where the state itself and what tokens add to it are saved.
  bool decayFree = p.facts.decay == DecayKind::Scalar && !saves &&
                   !b.getOperandType().isF16();
  if (decayFree)
    carried.push_back(b.scalar(0.0));
  carried = forEachChunk(
      p, carried, [&](Value t, ValueRange carried) -> SmallVector<Value> {
        if (!decayFree)
          return {writeStateStep(p, t, carried[0])};
        return writeDecayFreeStep(p, t, carried);
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
    Value G = p.facts.decay == DecayKind::None ? Value() : loadDecay(p, t);
    return {writeStateStep(p, t, carried[0], bm, G)};
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
        writeOutput(p, t, out.output, /*factor=*/{});
        return {out.state};
      })[0];
  storeStateT(p, state);
}
