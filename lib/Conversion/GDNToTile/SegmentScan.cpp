//===- SegmentScan.cpp - The states between segments ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

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

namespace {
/// S as f16 takes it: columns times `inverse`, which are times `factor` then;
/// f32 [K, channels of the V tile], or null where nothing is rounded.
struct ColumnScale {
  Value inverse, factor;
};
} // namespace

/// Scales columns that are at most `bound` to where f16 has all its digits for
/// the entries of a column, and room for more than the bound.
static ColumnScale scaleColumns(Program &p, Value bound) {
  TileBuilder &b = p.b;
  constexpr double kLeast = 1e-30; // of a column of zeros
  constexpr double kTop = 256.0;
  bound = b.max(bound, kLeast);
  SmallVector<int64_t> shape = {p.facts.K, p.facts.vTileChannels};
  Value inverse = b.div(b.fill(kTop, shapeOf(bound)), bound);
  return {b.broadcast(inverse, shape, 1),
          b.broadcast(b.scaled(bound, 1.0 / kTop), shape, 1)};
}

/// The scale of the state behind a segment, from the state before it: none of
/// its columns is longer than in M S + B, where M makes no column longer but
/// the decay shorter. An entry of M S is at most the length of its column,
/// sqrt(K) times the largest one of S. So a GPU knows the scale before the
/// product.
static ColumnScale boundNext(Program &p, Value state, Value decay, Value own) {
  TileBuilder &b = p.b;
  // The sum of two maxima is at most twice the largest sum.
  double length = 2.0 * std::sqrt(static_cast<double>(p.facts.K));
  Value entries = b.mul(b.abs(state), b.fill(length, shapeOf(state)));
  if (decay)
    entries = b.mul(entries, b.splat(decay, shapeOf(state)));
  Value added = b.mul(b.abs(own), b.fill(2.0, shapeOf(own)));
  return scaleColumns(p, columnMaximum(p, b.add(entries, added)));
}

/// D S, or D^T S for gradients, in f16 over the scale's factor.
static Value mulMap(Program &p, Value state, const ColumnScale &scale,
                    Value map) {
  TileBuilder &b = p.b;
  StringRef spec = p.facts.reverse ? "jk,jv->kv" : "kj,jv->kv";
  if (!scale.inverse)
    return b.product(spec, b.f32(map), state);
  Type f16 = b.getF16Type();
  return b.product(spec, b.to(map, f16),
                   b.to(b.mul(state, scale.inverse), f16));
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

/// The state behind segment `s`, and its scale.
static SmallVector<Value> applySegment(Program &p, Value s, Value state,
                                       ColumnScale scale) {
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
  b.step("state");
  Value change = mulMap(p, state, scale, map);
  // While a GPU waits for the product: the entry state, and all of the next one
  // that needs no product. One fma an entry is left for behind it.
  Value kept = storeEntry(p, s, state);
  SmallVector<Value> next;
  if (scale.factor) {
    ColumnScale bound = boundNext(p, kept, decay, own);
    next = {bound.inverse, bound.factor};
  }
  if (p.facts.decay == DecayKind::Channel) {
    b.step("gates");
    Value decays = b.exp2(b.load(p["decay"], {s, p.head, p.zero}, {2}, {K}));
    b.step("state");
    kept = b.mulAxis(kept, decays, 0);
  }
  Value factor = scale.factor;
  if (decay) {
    Value spread = b.splat(decay, shapeOf(kept));
    kept = b.mul(kept, spread);
    factor = factor ? b.mul(factor, spread) : spread;
  }
  kept = b.add(kept, own);
  if (factor)
    change = b.mul(change, factor);
  next.insert(next.begin(), b.add(kept, change));
  return next;
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
  SmallVector<Value> carried = {state};
  if (!b.getOperandType().isF32()) {
    b.step("state");
    ColumnScale scale = scaleColumns(p, columnMaximum(p, b.abs(state)));
    carried.append({scale.inverse, scale.factor});
  }
  auto loop = scf::ForOp::create(b, p.begin, p.end, one, carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value s = loop.getInductionVar();
    if (p.facts.reverse) {
      Value last = arith::SubIOp::create(b, p.end, one);
      Value done = arith::SubIOp::create(b, s, p.begin);
      s = arith::SubIOp::create(b, last, done);
    }
    ValueRange now = loop.getRegionIterArgs();
    ColumnScale scale;
    if (now.size() > 1)
      scale = {now[1], now[2]};
    scf::YieldOp::create(b, applySegment(p, s, now[0], scale));
  }
  if (!p["final_state"])
    return;
  auto [place, axes] = scannedPlace(p, p.sequence, p.facts.stateLayout);
  b.step("state");
  b.store(loop.getResult(0), p["final_state"], place, axes);
}
