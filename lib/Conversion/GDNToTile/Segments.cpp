//===- Segments.cpp - Programs that split sequences into segments ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Boundaries
//===----------------------------------------------------------------------===//

/// Stores an index as entry `at` of the array `name`.
static void storeIndex(Program &p, StringRef name, Value at, Value index) {
  TileBuilder &b = p.b;
  Value array = p[name];
  Type element = cast<MemRefType>(array.getType()).getElementType();
  Value number = arith::IndexCastOp::create(b, element, index);
  b.step("store");
  tile::StoreOp::create(b, b.splat(number, 1), array, ValueRange{at},
                        b.getDenseI64ArrayAttr({0}), Value(), IntegerAttr());
}

void gdn::writeSegmentBoundaries(Program &p) {
  TileBuilder &b = p.b;
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto times = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  // Boundaries count through all batch rows. Packed sequences are in row 0.
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value before = times(p.batch, tokens);
  Value begin = add(p.begin, before), end = add(p.end, before);
  Value length, first, next;
  if (p.facts.segments) {
    Value count = b.index(p.facts.segments), chunk = b.index(p.facts.C);
    Value chunks = arith::CeilDivUIOp::create(b, tokens, chunk);
    length = times(arith::CeilDivUIOp::create(b, chunks, count), chunk);
    first = times(p.sequence, count);
    next = add(first, count);
  } else {
    // floor(x / L) + floor(y / L) + 1 segments are enough for x + y tokens, so
    // no sequence needs to know how many the others have.
    length = b.index(p.facts.segmentLength);
    first = add(arith::DivUIOp::create(b, begin, length), p.sequence);
    next = add(add(arith::DivUIOp::create(b, end, length), p.sequence),
               b.index(1));
  }
  storeIndex(p, "first_segments", p.sequence, first);
  Value none = b.index(std::numeric_limits<int32_t>::max());
  auto loop = scf::ForOp::create(b, first, next, b.index(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value segment = loop.getInductionVar();
    Value from = times(arith::SubIOp::create(b, segment, first), length);
    Value at = arith::MinUIOp::create(b, add(begin, from), end);
    storeIndex(p, "boundaries", segment, at);
    if (p["before"]) {
      Value isFirst =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, segment, first);
      Value previous = arith::MinUIOp::create(
          b, arith::SubIOp::create(b, add(begin, from), length), end);
      storeIndex(p, "before", segment,
                 arith::SelectOp::create(b, isFirst, none, previous));
    }
  }
  // The last sequence ends what it has the last entry of.
  Value behind = add(p.sequence, b.index(1));
  Value entries = memref::DimOp::create(b, p["first_segments"], 0);
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       add(behind, b.index(1)), entries);
  auto last = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.thenBlock());
  storeIndex(p, "first_segments", behind, next);
  storeIndex(p, "boundaries", next, end);
  if (p["before"])
    storeIndex(p, "before", next, none);
}

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

/// A token's number, i32 [1].
static Value tokenNumber(Program &p, Value token) {
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

/// The work item's rows of the identity, f32 [vTileChannels, K].
static Value identityRows(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.vTileChannels, p.facts.K};
  Value first = arith::IndexCastOp::create(b, b.getI32Type(), p.firstV);
  Value row = arith::AddIOp::create(b, b.broadcast(b.iota(shape[0]), shape, 0),
                                    b.splat(first, shape));
  Value column = b.broadcast(b.iota(shape[1]), shape, 1);
  Value isDiagonal =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, row, column);
  return b.select(isDiagonal, b.fill(1.0, shape), 0.0);
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
  if (p.facts.decay == DecayKind::Channel) {
    b.step("gates");
    Value factor = b.exp2(decay);
    b.step("state");
    own = b.mulAxis(identity, factor, 1);
  }
  b.step("state");
  b.store(b.sub(state, own), p["map"], {p.sequence, p.head, p.zero, p.firstV},
          {3, 2});
  // Each V tile stores the same decay.
  b.step("gates");
  if (p.facts.decay == DecayKind::Scalar)
    b.store(b.splat(b.f32(decay), 1), p["decay"], {p.sequence, p.head}, {1});
  if (p.facts.decay == DecayKind::Channel)
    b.store(b.f32(decay), p["decay"], {p.sequence, p.head, p.zero}, {2});
}

/// A segment that begins behind its first token, where nothing is left of the
/// state before it, has no chunk that counts.
static void skipForgotten(Program &p) {
  if (!p["starts"])
    return;
  TileBuilder &b = p.b;
  Value isForgotten = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt,
                                            loadStart(p), p.begin);
  p.begin = arith::SelectOp::create(b, isForgotten, p.end, p.begin);
  tile::LeaveOp::create(b, isForgotten, p["map"]);
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
  b.step("gates");
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
        b.step("gates");
        if (G)
          next.push_back(b.add(carried[1], lastRow(p, G)));
        return next;
      });
  storeMap(p, carried[0], identity, carried.size() > 1 ? carried[1] : Value());
}

//===----------------------------------------------------------------------===//
// The scan over segments
//===----------------------------------------------------------------------===//

/// Where the state [K, channels of the V tile] of sequence or segment `number`
/// lies in an array of the layout.
static std::pair<SmallVector<Value>, SmallVector<int64_t>>
scannedPlace(Program &p, Value number, StateLayout layout) {
  if (layout == StateLayout::KV)
    return {{number, p.head, p.zero, p.firstV}, {2, 3}};
  return {{number, p.head, p.firstV, p.zero}, {3, 2}};
}

/// The largest entry of each column, f32 [channels of the V tile]. Entries of
/// its halves first: a GPU hands to other warps what is left of a fragment.
static Value columnMaximum(Program &p, Value tile) {
  TileBuilder &b = p.b;
  constexpr int64_t kFragmentRows = 64;
  for (int64_t rows = shapeOf(tile)[0]; rows > kFragmentRows && rows % 2 == 0;
       rows /= 2)
    tile = arith::MaximumFOp::create(b, b.rows(tile, 0, rows / 2),
                                     b.rows(tile, rows / 2, rows / 2));
  return b.maximum(tile, 0);
}

/// D S, or D^T S for gradients, over the factor of each column, which may be
/// null. In 16 bits the columns of S are divided by their largest entry, so
/// that f16 holds them with all its digits.
static std::pair<Value, Value> mulMap(Program &p, Value state, Value map) {
  TileBuilder &b = p.b;
  StringRef spec = p.facts.reverse ? "jk,jv->kv" : "kj,jv->kv";
  if (b.getOperandType().isF32())
    return {b.product(spec, b.f32(map), state), Value()};
  constexpr double kLeast = 1e-30; // of a column of zeros
  Value largest = b.max(columnMaximum(p, b.abs(state)), kLeast);
  Value inverse = b.div(b.fill(1.0, shapeOf(largest)), largest);
  Type f16 = b.getF16Type();
  Value rounded = b.to(b.mulAxis(state, inverse, 1), f16);
  return {b.product(spec, b.to(map, f16), rounded), largest};
}

/// Stores the state before segment `s`. Returns the state for what does not
/// need the product: on a GPU the state that the loop carries is in registers
/// of the last product, which nothing reads while the next one runs.
static Value storeEntry(Program &p, Value s, Value state) {
  TileBuilder &b = p.b;
  // A sum, which is made by those who carry the state; what is carried itself
  // would be carried by those who store it too.
  Value entry = b.add(state, b.fill(0.0, shapeOf(state)));
  auto [place, axes] = scannedPlace(p, s, p.facts.segmentLayout);
  b.step("store");
  b.store(entry, p["entry_states"], place, axes);
  b.step("state");
  return entry;
}

/// The state behind segment `s`.
static Value applySegment(Program &p, Value s, Value state) {
  TileBuilder &b = p.b;
  int64_t K = p.facts.K;
  auto [place, axes] = scannedPlace(p, s, p.facts.segmentLayout);
  b.step("load");
  Value map = b.load(p["map"], {s, p.head, p.zero, p.zero}, {2, 3}, {K, K});
  Value own = b.load(p["states"], place, axes, shapeOf(state));
  Value decay;
  b.step("gates");
  if (p.facts.decay == DecayKind::Scalar)
    decay = b.extract(b.exp2(b.load(p["decay"], {s, p.head}, {1}, {1})), {0});
  if (p.facts.decay == DecayKind::Channel)
    decay = b.exp2(b.load(p["decay"], {s, p.head, p.zero}, {2}, {K}));
  b.step("state");
  auto [change, columns] = mulMap(p, state, map);
  // While a GPU waits for the product: the entry state, and all of the next one
  // that needs no product. One fma an entry is left for behind it.
  Value kept = storeEntry(p, s, state);
  if (p.facts.decay == DecayKind::Channel)
    kept = b.mulAxis(kept, decay, 0);
  if (p.facts.decay == DecayKind::Scalar) {
    kept = b.mul(kept, b.splat(decay, shapeOf(kept)));
    if (columns)
      columns = b.mul(columns, b.splat(decay, shapeOf(columns)));
    else
      change = b.mul(change, b.splat(decay, shapeOf(change)));
  }
  kept = b.add(kept, own);
  if (columns)
    change = b.mulAxis(change, columns, 1);
  return b.add(kept, change);
}

/// The state as the scan takes it.
static Value loadScanned(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.K, p.facts.vTileChannels};
  if (!p["initial_state"])
    return b.fill(0.0, shape);
  auto [place, axes] = scannedPlace(p, p.sequence, p.facts.stateLayout);
  b.step("state");
  return b.f32(b.load(p["initial_state"], place, axes, shape));
}

void gdn::writeSegmentScan(Program &p) {
  TileBuilder &b = p.b;
  Value state = loadScanned(p), one = b.index(1);
  auto loop = scf::ForOp::create(b, p.begin, p.end, one, state);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value s = loop.getInductionVar();
    if (p.facts.reverse) {
      Value last = arith::SubIOp::create(b, p.end, one);
      Value done = arith::SubIOp::create(b, s, p.begin);
      s = arith::SubIOp::create(b, last, done);
    }
    Value next = applySegment(p, s, loop.getRegionIterArg(0));
    scf::YieldOp::create(b, next);
  }
  if (p["final_state"]) {
    auto [place, axes] = scannedPlace(p, p.sequence, p.facts.stateLayout);
    b.step("state");
    b.store(loop.getResult(0), p["final_state"], place, axes);
  }
  if (p["before"])
    tile::CountDownOp::create(b, p["before"]);
}
