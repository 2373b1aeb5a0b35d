//===- Adjoint.cpp - The two recurrences of a backward in three kernels ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chunk.h"
#include "Kept.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

void gdn::raiseBeta(Program &p) {
  // What f16 rounds a token's write by is as much.
  constexpr double kLeast = 0x1p-40, kLeastInF16 = 0x1p-12;
  p.facts.leastBeta = p.b.getOperandType().isF16() ? kLeastInF16 : kLeast;
}

void gdn::prepareWrites(Program &p) {
  raiseBeta(p);
  // A chain of two products has the solve in its keys.
  p.facts.betaBehindSolve = !p.facts.twoProductChain;
  // The gate's gradient has the error of the state, which is most of all that
  // of its writes. In f16 it is an eighth.
  p.facts.writesRest = p.b.getOperandType().isBF16();
}

double gdn::stateGradientUnit(const Program &p) {
  double scale = std::abs(p.facts.scale);
  if (p.b.getOperandType().isF32() || !std::isnormal(scale))
    return 1.0;
  return std::scalbn(scale, -std::ilogb(scale));
}

Value gdn::chunkNumber(Program &p, Value t) {
  Value since = arith::SubIOp::create(p.b, t, p.begin);
  return arith::DivUIOp::create(p.b, since, p.b.index(p.facts.C));
}

/// Number of the segment of the token t of a sequence that begins at `begin`
/// and comes behind `sequences` others.
static Value numberSegment(Program &p, Value t, Value begin, Value sequences,
                           int64_t length) {
  TileBuilder &b = p.b;
  Value size = b.index(length);
  auto segments = [&](Value tokens) -> Value {
    return arith::DivUIOp::create(b, tokens, size);
  };
  Value tokens = memref::DimOp::create(b, p["k"], 1);
  Value before = arith::MulIOp::create(b, p.batch, tokens);
  Value first = segments(arith::AddIOp::create(b, before, begin));
  first = arith::AddIOp::create(b, first, sequences);
  if (t == begin)
    return first;
  Value own = segments(arith::SubIOp::create(b, t, begin));
  return arith::AddIOp::create(b, first, own);
}

Value gdn::keptSegment(Program &p, Value t, int64_t length) {
  return numberSegment(p, t, p.begin, p.sequence, length);
}

Value gdn::savedSegment(Program &p, Value t, int64_t length) {
  if (!p.savedSequence)
    return keptSegment(p, t, length);
  // Segments begin at states. As b is the first token of a sequence and t - b a
  // multiple of the length, floor(b / L) + (t - b) / L is floor(t / L).
  return numberSegment(p, t, t, p.savedSequence, length);
}

ChunkGates gdn::loadChunkGates(Program &p, Value t) {
  if (p.facts.decay == DecayKind::None)
    return {};
  TileBuilder &b = p.b;
  ChunkGates gates;
  gates.G = cumulatedGate(p, t);
  gates.read = b.exp2(gates.G);
  gates.write = decayToEnd(p, gates.G);
  gates.whole = b.exp2(lastRow(p, gates.G));
  return gates;
}

/// Whether the chunk at token t begins a segment, or ends one; null if every
/// chunk does.
static Value beginsSegment(Program &p, Value t, bool ends) {
  TileBuilder &b = p.b;
  int64_t chunks = p.facts.segmentLength / p.facts.C;
  if (chunks == 1)
    return {};
  Value number = chunkNumber(p, t);
  if (ends)
    number = arith::AddIOp::create(b, number, b.index(1));
  Value rest = arith::RemUIOp::create(b, number, b.index(chunks));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, p.zero);
  if (!ends)
    return isFirst;
  Value next = arith::AddIOp::create(b, t, b.index(p.facts.C));
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, next, p.end);
  return arith::OrIOp::create(b, isFirst, isLast);
}

TokenRange gdn::makeKeptRange(Program &p, Value part) {
  TileBuilder &b = p.b;
  Value interval = b.index(p.facts.stateInterval);
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value count = arith::CeilDivUIOp::create(
      b, tokens, arith::MulIOp::create(b, interval, countParts(p)));
  Value length = arith::MulIOp::create(b, count, interval);
  Value from = arith::MulIOp::create(b, part, length);
  Value first =
      arith::MinSIOp::create(b, arith::AddIOp::create(b, p.begin, from), p.end);
  Value end =
      arith::MinSIOp::create(b, arith::AddIOp::create(b, first, length), p.end);
  return {first, end};
}

void gdn::keepState(Program &p, StringRef name, Value t, Value state,
                    bool ends) {
  TileBuilder &b = p.b;
  int64_t length = p.facts.segmentLength;
  Value isKept = beginsSegment(p, t, ends);
  b.step("keep");
  Value rounded = b.round(state);
  Value segment = ends ? keptSegment(p, t, length) : savedSegment(p, t, length);
  SmallVector<Value> offsets = {segment, p.head, p.firstV, p.zero};
  auto store = [&] {
    b.step("store_state");
    b.store(rounded, p[name], offsets, {2, 3});
  };
  if (!isKept)
    return store();
  auto choice = scf::IfOp::create(b, isKept, /*withElseRegion=*/false);
  choice->setAttr(tile::kEveryAttrName,
                  b.getI64IntegerAttr(length / p.facts.C));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  store();
}

void gdn::storeWrites(Program &p, Value t, Value write) {
  TileBuilder &b = p.b;
  Value rounded = b.round(write);
  b.step("store");
  b.store(rounded, p["writes"], tokenOffsets(p, t, p.head, p.firstV), {3, 1},
          p.end);
}

/// `state` decayed over a whole chunk.
static Value decayWhole(TileBuilder &b, const ChunkGates &gates, Value state) {
  return gates.whole ? b.mul(state, b.splat(gates.whole, shapeOf(state)))
                     : state;
}

//===----------------------------------------------------------------------===//
// The forward once more
//===----------------------------------------------------------------------===//

/// One chunk of the forward (spec 3.3). Returns S^T.
static Value replayChunk(Program &p, Value t, Value state) {
  TileBuilder &b = p.b;
  Chunk chunk = loadChunk(p, t);
  ChunkGates gates = loadChunkGates(p, t);
  keepState(p, "states", t, state);
  b.step("scores");
  Triangles triangles =
      decayTriangles(p, chunk, gates.G ? pairDecay(p, gates.G) : Value());
  ChainOperands in = chainOperands(p, chunk, state, triangles);
  b.step("gates");
  in.readFactor = mulVectors(p, in.readFactor, gates.read);
  in.writeDecay = gates.write;
  in.stateDecay = gates.whole;
  ChainResult out = writeChain(p, in);
  storeWrites(p, t, out.write);
  return out.state;
}

void gdn::writeReplay(Program &p) {
  prepareWrites(p);
  forEachChunk(p, loadStateT(p),
               [&](Value t, ValueRange carried) -> SmallVector<Value> {
                 Value state = carried[0];
                 if (p.facts.decay == DecayKind::Channel)
                   return {writeStateStep(p, t, state)};
                 return {replayChunk(p, t, state)};
               });
}

//===----------------------------------------------------------------------===//
// The gradient of the state
//===----------------------------------------------------------------------===//

/// The triangles of a chunk as the adjoint takes them: scale Q K^T and
/// (I + Diag(beta) Kk)^-1 - I, both with the decay of each pair.
static std::pair<Value, Value>
makeAdjointTriangles(Program &p, Value q, Value k, Value beta, Value G) {
  TileBuilder &b = p.b;
  b.step("scores");
  Value decay = G ? pairDecay(p, G) : Value();
  auto decayed = [&](Value tile) { return decay ? b.mul(tile, decay) : tile; };
  Value m = decayed(b.mulAxis(innerProducts(p, k, k), beta, 0));
  m = tile::CausalOp::create(b, roundForSolve(p, m), /*strict=*/true);
  Value scores = decayed(b.scaled(innerProducts(p, q, k), p.facts.scale));
  scores = tile::CausalOp::create(b, b.round(scores), /*strict=*/false);
  return {scores, chainInverse(p, m, /*columns=*/{}, /*keys=*/{})};
}

/// Stores dV^T, if the stage has it.
static void storeValueGradient(Program &p, Value t, Value gradient) {
  if (!p["dv"])
    return;
  TileBuilder &b = p.b;
  Value rounded = b.to(gradient, getElementTypeOrSelf(p["dv"].getType()));
  b.step("store");
  b.store(rounded, p["dv"], tokenOffsets(p, t, p.head, p.firstV), {3, 1},
          p.end);
  b.step("state");
}

/// The gradient of o^T [vTileChannels, C] in the operand type.
static Value loadOutputGradient(Program &p, Value t) {
  TileBuilder &b = p.b;
  b.step("load");
  return b.round(b.load(p["d_o"], tokenOffsets(p, t, p.head, p.firstV), {3, 1},
                        {p.facts.vTileChannels, p.facts.C}, p.end));
}

/// One chunk in reverse (spec 5.7 b, true states). Carries dS^T in its unit.
static Value writeAdjointChunk(Program &p, Value t, Value dState) {
  TileBuilder &b = p.b;
  Value q = loadKeys(p, "q", t), k = loadKeys(p, "k", t);
  Value dO = loadOutputGradient(p, t);
  Value beta = loadBeta(p, t);
  ChunkGates gates = loadChunkGates(p, t);
  double unit = stateGradientUnit(p);
  auto factor = [&](Value decay, double constant) {
    Value fill = b.fill(constant, p.facts.C);
    return decay ? b.mul(decay, fill) : fill;
  };
  Value outputFactor = factor(gates.read, p.facts.scale / unit);
  Value leftFactor = factor(gates.read, -1 / unit);
  Value writeFactor = unit == 1 ? gates.write : factor(gates.write, unit);
  if (p["d_states"])
    keepState(p, "d_states", t, dState, /*ends=*/true);
  auto [scores, solve] = makeAdjointTriangles(p, q, k, beta, gates.G);
  b.step("state");
  Value dWrite = b.product("vk,ck->vc", b.round(dState), k);
  if (writeFactor)
    dWrite = b.mulAxis(dWrite, writeFactor, 1);
  dWrite = b.add(b.product("vi,ij->vj", dO, scores), dWrite);
  // Beta behind the solve, whose rows have it: dV = b (I + Y)^T dU.
  Value dV = b.product("vi,ij->vj", b.round(dWrite), solve, dWrite);
  dV = b.mulAxis(dV, beta, 1);
  storeValueGradient(p, t, dV);
  Value read = b.round(b.mulAxis(b.f32(dO), outputFactor, 1));
  Value next = b.product("vc,ck->vk", read, q, decayWhole(b, gates, dState));
  Value left = b.mulAxis(dV, leftFactor, 1);
  next = b.product("vc,ck->vk", b.round(left), k, next);
  reportChunk(p, t);
  return next;
}

/// The same with a gate a channel. The decays are in keys and queries, and what
/// they are added to is the gradient of the state at the tiles' reference.
static Value writeChannelAdjointChunk(Program &p, Value t, Value dState) {
  TileBuilder &b = p.b;
  KeyRows q = loadKeyRows(p, "q", t), k = loadKeyRows(p, "k", t);
  Value dO = loadOutputGradient(p, t);
  Value beta = loadBeta(p, t);
  double unit = stateGradientUnit(p);
  if (p["d_states"])
    keepState(p, "d_states", t, dState, /*ends=*/true);
  ChannelTiles tiles = channelTiles(p, q, k, cumulatedGate(p, t));
  b.step("scores");
  Value scores = b.round(b.scaled(tiles.queryKey, p.facts.scale));
  scores = tile::CausalOp::create(b, scores, /*strict=*/false);
  Value solve = invertKeyScores(p, tiles.keyKey, beta, /*betaAxis=*/0);
  b.step("state");
  auto inUnit = [&](Value tile, double factor) {
    return factor == 1 ? tile : b.scaled(tile, factor);
  };
  Value dWrite = b.product("vk,ck->vc", b.round(dState), tiles.writeKeys);
  dWrite = b.product("vi,ij->vj", dO, scores, inUnit(dWrite, unit));
  Value dV = b.product("vi,ij->vj", b.round(dWrite), solve, dWrite);
  dV = b.mulAxis(dV, beta, 1);
  storeValueGradient(p, t, dV);
  Value next = b.mulAxis(dState, tiles.toEnd, 1);
  // A power of two, of which nothing is rounded.
  Value read = b.round(inUnit(b.f32(dO), p.facts.scale / unit));
  next = b.product("vc,ck->vk", read, tiles.readQueries, next);
  Value left = b.round(b.scaled(dV, -1 / unit));
  next = b.product("vc,ck->vk", left, tiles.readKeys, next);
  reportChunk(p, t);
  return b.mulAxis(next, tiles.toReference, 1);
}

void gdn::writeAdjoint(Program &p) {
  raiseBeta(p);
  TileBuilder &b = p.b;
  // Accesses end with the sequence, the loop where the stage says.
  Program range = p;
  range.end = loadEnd(p);
  double unit = stateGradientUnit(p);
  auto scaled = [&](Value state, double factor) {
    return unit == 1 ? state : b.scaled(state, factor);
  };
  Value dState = forEachChunk(
      range, scaled(loadStateT(p, "d_final_state"), 1 / unit),
      [&](Value t, ValueRange carried) -> SmallVector<Value> {
        return {p.facts.decay == DecayKind::Channel
                    ? writeChannelAdjointChunk(p, t, carried[0])
                    : writeAdjointChunk(p, t, carried[0])};
      },
      /*reversed=*/true)[0];
  // Zeros as keys, queries, gradients of o and log2 gates change nothing. Where
  // the loop ends before the sequence, what is loaded behind it is not zero.
  if (range.end == p.end)
    dState.getDefiningOp()->setAttr(tile::kNeutralBeforeFirstAttrName,
                                    b.getUnitAttr());
  storeStateT(p, scaled(dState, unit), "d_initial_state");
}
