//===- Segments.cpp - Programs that split sequences into segments ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Starts
//===----------------------------------------------------------------------===//

/// The type in which gates are summed.
static Type sumType(Program &p) {
  TileBuilder &b = p.b;
  return b.getOperandType().isF32() ? Type(b.getF64Type())
                                    : Type(b.getF32Type());
}

/// A sum of gates that is known.
static Value sumOfGates(Program &p, double value) {
  TileBuilder &b = p.b;
  return arith::ConstantOp::create(b, b.getFloatAttr(sumType(p), value));
}

Value gdn::tokenNumber(Program &p, Value token) {
  TileBuilder &b = p.b;
  return b.splat(arith::IndexCastOp::create(b, b.getI32Type(), token), 1);
}

/// Tokens whose gates a warp of a GPU sums at a time.
static constexpr int64_t kSummedTokens = 256;

/// Sums of the gates of `group`, whose first token is `t`: from each chunk's
/// first token to the group's end, or from its beginning to each chunk's last
/// token.
static SmallVector<Value> sumChunks(Program &group, Value t, int64_t chunk) {
  TileBuilder &b = group.b;
  b.step("gates");
  bool isReverse = group.facts.reverse;
  Value sums = tile::ScanOp::create(b, loadSummedGate(group, t), /*axis=*/0,
                                    /*reverse=*/!isReverse);
  SmallVector<Value> ofChunks;
  for (int64_t first = 0; first < group.facts.C; first += chunk)
    ofChunks.push_back(
        b.extract(sums, {isReverse ? first + chunk - 1 : first}));
  return ofChunks;
}

/// Walks back over groups of chunks: as long as the gates behind a chunk do not
/// decay to `tolerance`, the segment begins with that chunk or before it. For
/// gradients the same forward, to where it ends. Sums of groups need nothing of
/// each other, so on a GPU other warps make them than the one that walks.
void gdn::writeSegmentStarts(Program &p) {
  if (p.facts.decay == DecayKind::Channel)
    return writeChannelStarts(p);
  TileBuilder &b = p.b;
  bool isReverse = p.facts.reverse;
  int64_t chunk = p.facts.C, chunks = kSummedTokens / chunk;
  b.step("state");
  Value bound = b.splat(sumOfGates(p, std::log2(p.facts.tolerance)), 1);
  auto isAlive = [&](Value sum) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sum, bound);
  };
  SmallVector<Value> carried = {b.splat(sumOfGates(p, 0.0), 1),
                                tokenNumber(p, isReverse ? p.begin : p.end)};
  Program group = p;
  group.facts.C = kSummedTokens;
  carried = forEachChunk(
      group, carried,
      [&](Value t, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> sums = sumChunks(group, t, chunk);
        b.step("state");
        // What a chunk past the end says, the last one says again behind it.
        Value place = carried[1], sum = carried[0];
        for (int64_t walked = 0; walked < chunks; ++walked) {
          int64_t number = isReverse ? walked : chunks - 1 - walked;
          Value at = arith::AddIOp::create(b, t, b.index(number * chunk));
          if (isReverse)
            at = arith::MinUIOp::create(
                b, arith::AddIOp::create(b, at, b.index(chunk)), p.end);
          place = arith::SelectOp::create(b, isAlive(sum), tokenNumber(p, at),
                                          place);
          sum = b.add(carried[0], b.splat(sums[number], 1));
        }
        return {sum, place};
      },
      /*reversed=*/!isReverse);
  SmallVector<Value> at = {p.sequence, p.head};
  b.store(carried[1], p[isReverse ? "ends" : "starts"], at, {1});
  if (!isReverse)
    b.store(b.f32(carried[0]), p["decay"], at, {1});
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// The work item's entries of the diagonal, i1 [vTileChannels, K]; `again` to
/// make them anew, since a loop has no registers for them.
static Value isDiagonal(Program &p, bool again) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.vTileChannels, p.facts.K};
  auto numbers = [&](int64_t axis) {
    Value spread = b.broadcast(b.iota(shape[axis]), shape, axis);
    if (again)
      spread.getDefiningOp()->setAttr(tile::kRereadAttrName,
                                      b.getI64IntegerAttr(axis));
    return spread;
  };
  Value first = arith::IndexCastOp::create(b, b.getI32Type(), p.firstV);
  Value row = arith::AddIOp::create(b, numbers(0), b.splat(first, shape));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, row, numbers(1));
}

/// The work item's rows of the identity, f32 [vTileChannels, K].
static Value identityRows(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.vTileChannels, p.facts.K};
  return b.select(isDiagonal(p, /*again=*/false), b.fill(1.0, shape), 0.0);
}

/// The step that makes gates.
static StringRef gateStep(Program &p) {
  return p.facts.decay == DecayKind::Channel ? "decay" : "gates";
}

/// Zero as a sum of gates: a scalar, or [K].
static Value zeroDecay(Program &p) {
  if (p.facts.decay == DecayKind::Channel)
    return p.b.fill(0.0, p.facts.K, sumType(p));
  return sumOfGates(p, 0.0);
}

/// Stores what the identity has become, less the decay of the identity itself.
static void storeMap(Program &p, Value state, Value identity, Value decay) {
  TileBuilder &b = p.b;
  Value own = identity;
  // The step that makes the gates of channels adds them up, too.
  StringRef step = gateStep(p);
  if (p.facts.decay == DecayKind::Channel) {
    b.step(step);
    Value factor = b.exp2(decay);
    b.step("state");
    own = b.select(isDiagonal(p, /*again=*/true),
                   b.broadcast(factor, shapeOf(identity), 1), 0.0);
  }
  b.step("state");
  b.store(b.sub(state, own), p["map"], {p.sequence, p.head, p.zero, p.firstV},
          {3, 2});
  // Each V tile stores the same decay.
  b.step(step);
  if (p.facts.decay == DecayKind::Scalar)
    b.store(b.splat(b.f32(decay), 1), p["decay"], {p.sequence, p.head}, {1});
  if (p.facts.decay == DecayKind::Channel)
    b.store(b.f32(decay), p["decay"], {p.sequence, p.head, p.zero}, {2});
}

/// A segment that begins behind its first token, where nothing is left of the
/// state before it, has no chunk that counts. Nobody reads the map of one that
/// begins or ends a sequence if `closes` tells which they are; nor then that of
/// one that forgets, of which the scan knows, or has no token, nor those of a
/// head that is left whole.
static void skipForgotten(Program &p) {
  if (!p["starts"])
    return;
  TileBuilder &b = p.b;
  auto skip = [&](Value condition, ValueRange cleared) {
    p.begin = arith::SelectOp::create(b, condition, p.end, p.begin);
    tile::LeaveOp::create(b, condition, cleared);
  };
  auto orElse = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, x, y);
  };
  Value isForgotten = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt,
                                            loadStart(p), p.begin);
  if (!p["closes"])
    return skip(isForgotten, p["map"]);
  Value isAtEnd = orElse(isFirstSegment(p), isLastSegment(p));
  Value isEmpty =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, p.begin, p.end);
  Value isUnread = orElse(orElse(isAtEnd, isForgotten), isEmpty);
  if (Value isWhole = isLeftWhole(p))
    isUnread = orElse(isUnread, isWhole);
  skip(isUnread, {});
}

void gdn::writeSegmentMap(Program &p) {
  TileBuilder &b = p.b;
  skipForgotten(p);
  // Of a gate a head, M is the decay times what the ungated rule makes.
  Program rule = p;
  if (p.facts.decay == DecayKind::Scalar)
    rule.facts.decay = DecayKind::None;
  b.step("state");
  Value identity = identityRows(p);
  SmallVector<Value> carried = {identity};
  b.step(gateStep(p));
  if (p.facts.decay != DecayKind::None)
    carried.push_back(zeroDecay(p));
  carried = forEachChunk(
      p, carried, [&](Value t, ValueRange carried) -> SmallVector<Value> {
        Value G;
        SmallVector<Value> next;
        if (p.facts.decay != DecayKind::None)
          G = cumulatedGate(p, t);
        bool gated = rule.facts.decay != DecayKind::None;
        next.push_back(writeStateStep(rule, t, carried[0], /*bm=*/{},
                                      gated ? G : Value()));
        b.step(gateStep(p));
        if (G)
          next.push_back(b.add(carried[1], lastRow(p, G)));
        return next;
      });
  storeMap(p, carried[0], identity, carried.size() > 1 ? carried[1] : Value());
}
