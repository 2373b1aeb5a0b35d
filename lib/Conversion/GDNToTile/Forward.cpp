//===- Forward.cpp - Programs of the chunked forward ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"
#include "Kept.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Whether segment `s` forgets what is before it, where it begins at `begin`.
static Value forgets(Program &p, Value s, Value begin) {
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::sgt,
                               loadNumber(p, "starts", {s, p.head}), begin);
}

/// Of a state pass, whether anybody needs the state: not where the sequence
/// ends with this segment, nor where it forgets what is before it and the next
/// one has no need of a state either, nor of a head that is left whole.
static void skipUnneeded(Program &p) {
  TileBuilder &b = p.b;
  auto orElse = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, x, y);
  };
  Value one = b.index(1);
  Value last =
      arith::SubIOp::create(b, memref::DimOp::create(b, p["starts"], 0), one);
  Value next = arith::MinUIOp::create(
      b, arith::AddIOp::create(b, p.sequence, one), last);
  Program following = p;
  following.sequence = next;
  Value nextNeedsNone =
      orElse(isLastSegment(following), forgets(p, next, p.end));
  Value isUnneeded =
      arith::AndIOp::create(b, forgets(p, p.sequence, p.begin), nextNeedsNone);
  isUnneeded = orElse(isUnneeded, isLastSegment(p));
  // Behind the last segment with tokens nobody reads anything.
  Value isEmpty =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, p.begin, p.end);
  isUnneeded = orElse(isUnneeded, isEmpty);
  if (Value isWhole = isLeftWhole(p))
    isUnneeded = orElse(isUnneeded, isWhole);
  p.begin = arith::SelectOp::create(b, isUnneeded, p.end, loadStart(p));
  tile::LeaveOp::create(b, isUnneeded, ValueRange());
}

/// The state before the sequence that was cut if `isFirst`, else zero. A
/// segment that is its first one, or closes it and has all of its tokens, knows
/// it.
static Value loadSequenceState(Program &p, Value isFirst) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.vTileChannels, p.facts.K};
  b.step("state");
  if (!p["sequence_state"])
    return b.fill(0.0, shape);
  Program whole = p;
  whole.facts.stateLayout = p.facts.sequenceLayout;
  // -1 - n is not n.
  whole.stateRow = arith::SubIOp::create(b, b.index(-1),
                                         loadNumber(p, "before", {p.sequence}));
  Value isWhole = p["whole_begins"] ? isLeftWhole(p) : Value();
  return choose(
      p, isFirst,
      [&]() -> SmallVector<Value> {
        // In the branch: what is loaded at the end, too, would live until then.
        if (isWhole)
          whole.stateRow = arith::SelectOp::create(
              b, isWhole, loadNumber(p, "closes", {p.sequence}),
              whole.stateRow);
        return {loadStateT(whole, "sequence_state")};
      },
      [&]() -> SmallVector<Value> { return {b.fill(0.0, shape)}; })[0];
}

/// Of a segment behind one that forgets, the tokens of that one from its start
/// on, run from zero, make the state. These work items take the first turn, and
/// so do first segments of sequences. All others wait for the scan. Of a head
/// that is left whole the segment that closes a sequence has all of its tokens:
/// it stores the final state anyway. Returns the state on entry, and whether
/// the work item has any tokens or state to store.
static std::pair<Value, Value> enterSegment(Program &p) {
  TileBuilder &b = p.b;
  Value one = b.index(1);
  Value previous =
      arith::SubIOp::create(b, arith::MaxUIOp::create(b, p.sequence, one), one);
  Value before = loadNumber(p, "before", {p.sequence});
  Value isFirst = isFirstSegment(p), isWhole = isLeftWhole(p);
  if (isWhole) {
    // Of others than the one that closes it is -1.
    Value begin = loadNumber(p, "whole_begins", {p.sequence});
    Value closes =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, begin, p.zero);
    p.begin = arith::SelectOp::create(b, isWhole, begin, p.begin);
    isFirst = arith::SelectOp::create(b, isWhole, closes, isFirst);
  }
  Value isLater = b.isNot(isFirst);
  Value isOwn = arith::AndIOp::create(b, isLater, forgets(p, previous, before));
  // isOwn implies isLater, so they differ where a segment waits.
  Value waits = arith::XOrIOp::create(b, isLater, isOwn);
  Value isSecondTurn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, p.turn, p.zero);
  Value isOther = arith::XOrIOp::create(b, waits, isSecondTurn);
  // Of a sequence without tokens the first segment has its final state.
  Value isEmpty =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, p.begin, p.end);
  Value isUnused = arith::AndIOp::create(b, isEmpty, isLater);
  Value isIdle = arith::OrIOp::create(b, isOther, isUnused);
  if (isWhole)
    isIdle = arith::OrIOp::create(b, isIdle,
                                  arith::AndIOp::create(b, isWhole, isLater));
  Value isBusy = b.isNot(isIdle);
  Value start = loadNumber(p, "starts", {previous, p.head});
  p.firstStored = p.begin;
  p.begin = arith::SelectOp::create(b, isOwn, start, p.begin);
  p.begin = arith::SelectOp::create(b, isIdle, p.end, p.begin);
  tile::LeaveOp::create(b, isIdle, ValueRange());
  tile::AwaitOp::create(b, p["before"], waits);
  Value state = loadSequenceState(p, isFirst);
  b.step("state");
  state = choose(
      p, waits, [&]() -> SmallVector<Value> { return {loadStateT(p)}; },
      [&]() -> SmallVector<Value> { return {state}; })[0];
  return {state, isBusy};
}

/// Stores the state behind the segment that ends a sequence as that one's, if
/// the work item `isBusy`.
static void storeSequenceState(Program &p, Value state, Value isBusy) {
  if (!p["final_state"])
    return;
  TileBuilder &b = p.b;
  Program whole = p;
  whole.facts.stateLayout = p.facts.sequenceLayout;
  whole.stateRow = loadNumber(p, "closes", {p.sequence});
  auto branch =
      scf::IfOp::create(b, arith::AndIOp::create(b, isLastSegment(p), isBusy),
                        /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  storeStateT(whole, state);
}

/// S^T from what a loop over chunks carries: S^, and with the decay-free form G
/// (spec 3.7).
static Value trueState(Program &p, ValueRange carried) {
  TileBuilder &b = p.b;
  Value state = carried[0];
  b.step("state");
  if (carried.size() == 1)
    return state;
  return b.mul(state, b.splat(b.exp2(carried[1]), shapeOf(state)));
}

void gdn::writeFused(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<Value> carried;
  bool isOfSegments = p["before"] && p["o"];
  Value isBusy;
  if (isOfSegments) {
    carried.emplace_back();
    std::tie(carried[0], isBusy) = enterSegment(p);
  } else if (p["before"]) {
    Value keeps = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                        loadStart(p), p.begin);
    Value entersFirst = arith::AndIOp::create(b, isFirstSegment(p), keeps);
    skipUnneeded(p);
    carried = {loadSequenceState(p, entersFirst)};
  } else {
    p.begin = loadStart(p);
    skipUnnamed(p);
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
  KeptStates kept = readKeptStates(p);
  Value end = std::exchange(p.end, endOfLoop(p, kept));
  carried = forEachChunk(
      p, carried, [&](Value place, ValueRange carried) -> SmallVector<Value> {
        keepStateOfChunkT(p, kept, place,
                          [&] { return trueState(p, carried); });
        Value t = enterChunk(p, kept, place, end);
        if (!decayFree)
          return {writeStateStep(p, t, carried[0])};
        return writeDecayFreeStep(p, t, carried);
      });
  if (p.end != end) {
    // Where an interval ends within a block, chunks have ends of their own.
    carried.front().getDefiningOp()->setAttr(tile::kCutPastEndAttrName,
                                             b.getUnitAttr());
    p.end = end;
  }
  Value state = trueState(p, carried);
  keepLastStateT(p, kept, state);
  if (isOfSegments)
    storeSequenceState(p, state, isBusy);
  else
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
      Value keyKey = channelTiles(p, /*q=*/{}, k, G).keyKey;
      bm = solveBm(p, tile::CausalOp::create(b, keyKey, /*strict=*/true), beta);
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
  skipUnnamed(p);
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
