//===- SegmentScan.cpp - The program of the scan over segments ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

/// Whether segment `s` keeps nothing of the state before it.
static Value isForgetful(Program &p, Value s) {
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::sgt,
                               loadNumber(p, "starts", {s, p.head}),
                               loadNumber(p, "boundaries", {s}));
}

/// What segment `s` keeps of the state before it, f32 [1] or [K]. Beside starts
/// it is -1 where that is nothing: nobody has made the map then, nor perhaps
/// the state before it, and neither need be a number.
static Value segmentDecay(Program &p, Value s) {
  TileBuilder &b = p.b;
  Value log2 = p.facts.decay == DecayKind::Scalar
                   ? b.load(p["decay"], {s, p.head}, {1}, {1})
                   : b.load(p["decay"], {s, p.head, p.zero}, {2}, {p.facts.K});
  Value factor = b.exp2(log2);
  if (!p["starts"])
    return factor;
  return arith::SelectOp::create(b, isForgetful(p, s),
                                 b.fill(-1.0, shapeOf(factor)), factor);
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
    decay = b.extract(segmentDecay(p, s), {0});
  if (p.facts.decay == DecayKind::Channel)
    decay = segmentDecay(p, s);
  b.step("state");
  auto [change, columns] = mulMap(p, state, map);
  // While a GPU waits for the product: the entry state, and all of the next one
  // that needs no product. One fma an entry is left for behind it.
  Value kept = storeEntry(p, s, state);
  auto unlessForgotten = [&](Value tile) -> Value {
    if (!p["starts"])
      return tile;
    ArrayRef<int64_t> shape = shapeOf(tile);
    Value zero = b.scalar(0.0), mark = decay;
    if (p.facts.decay == DecayKind::Channel) {
      zero = b.fill(0.0, shape);
      mark = b.broadcast(decay, shape, 0);
    }
    Value forgets =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, mark, zero);
    return arith::SelectOp::create(b, forgets, b.fill(0.0, shape), tile);
  };
  if (p.facts.decay == DecayKind::Channel)
    kept = b.mulAxis(kept, decay, 0);
  if (p.facts.decay == DecayKind::Scalar) {
    kept = b.mul(kept, b.splat(decay, shapeOf(kept)));
    if (columns)
      columns = b.mul(columns, b.splat(decay, shapeOf(columns)));
    else
      change = b.mul(change, b.splat(decay, shapeOf(change)));
  }
  kept = b.add(unlessForgotten(kept), own);
  if (columns)
    change = b.mulAxis(change, columns, 1);
  return b.add(kept, unlessForgotten(change));
}

/// The state as the scan takes it.
static Value loadScanned(Program &p) {
  auto [place, axes] = scannedPlace(p, p.stateRow, p.facts.stateLayout);
  return loadState(p, "initial_state", place, axes,
                   {p.facts.K, p.facts.vTileChannels});
}

/// Whether any of the segments up to `last` keeps of the state before it.
static Value keepStates(Program &p, Value last) {
  TileBuilder &b = p.b;
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  auto loop = scf::ForOp::create(b, p.begin, last, b.index(1), no);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value keeps = b.isNot(isForgetful(p, loop.getInductionVar()));
  // An empty one behind the last with tokens keeps all, for nobody.
  Value next = arith::AddIOp::create(b, loop.getInductionVar(), b.index(1));
  Value isFollowed = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           loadNumber(p, "boundaries", next),
                                           loadNumber(p, "boundaries", p.end));
  keeps = arith::AndIOp::create(b, keeps, isFollowed);
  scf::YieldOp::create(
      b, ValueRange{arith::OrIOp::create(b, keeps, loop.getRegionIterArg(0))});
  return loop.getResult(0);
}

/// Holds back the forward where a sequence of segments [p.begin, p.end), of
/// which `last` is the last one with tokens, has been cut by the longer of two
/// lengths. Its forwards all find a multiprocessor at once, and those that need
/// not wait would only slow B and the maps. By the shorter length at least
/// three quarters of the segments have tokens.
static void holdBackLonger(Program &p, Value last) {
  TileBuilder &b = p.b;
  auto multiply = [&](Value x, int64_t factor) -> Value {
    return arith::MulIOp::create(b, x, b.index(factor));
  };
  Value others = arith::SubIOp::create(b, last, p.begin),
        used = arith::AddIOp::create(b, others, b.index(2)),
        all = arith::SubIOp::create(b, p.end, p.begin);
  tile::HoldBackOp::create(
      b, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, multiply(used, 4),
                               multiply(all, 3)));
}

/// The scan beside the forward: from the state behind the first segment to the
/// one before the last. The program's tokens become the segments between. Where
/// all but the last forget what is before them, nobody needs any state, nor of
/// a head that is left whole.
static Value enterScan(Program &p) {
  TileBuilder &b = p.b;
  Value one = b.index(1);
  Value last = p["last_segments"]
                   ? loadNumber(p, "last_segments", {p.sequence})
                   : Value(arith::SubIOp::create(
                         b, arith::MaxUIOp::create(b, p.end, one), one));
  Value isIdle = b.isNot(keepStates(p, last));
  if (Value isWhole = isLeftWhole(p))
    isIdle = arith::OrIOp::create(b, isIdle, isWhole);
  tile::LeaveOp::create(b, isIdle, ValueRange(), /*early=*/true);
  if (p["last_segments"])
    holdBackLonger(p, last);
  Value most =
      arith::SubIOp::create(b, memref::DimOp::create(b, p["states"], 0), one);
  auto [place, axes] = scannedPlace(p, arith::MinUIOp::create(b, p.begin, most),
                                    p.facts.segmentLayout);
  b.step("state");
  Value state =
      b.load(p["states"], place, axes, {p.facts.K, p.facts.vTileChannels});
  p.begin = arith::AddIOp::create(b, p.begin, one);
  p.end = last;
  return state;
}

/// Stores the state before the last segment, if that is not the first one.
static void leaveScan(Program &p, Value state) {
  TileBuilder &b = p.b;
  Value hasSome =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, p.begin, p.end);
  auto branch = scf::IfOp::create(b, hasSome, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    auto [place, axes] = scannedPlace(p, p.end, p.facts.segmentLayout);
    b.step("state");
    b.store(state, p["entry_states"], place, axes);
  }
  tile::CountDownOp::create(b, p["before"]);
}

void gdn::writeSegmentScan(Program &p) {
  TileBuilder &b = p.b;
  Value state = p["before"] ? enterScan(p) : loadScanned(p), one = b.index(1);
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
  auto [place, axes] = scannedPlace(p, p.stateRow, p.facts.stateLayout);
  storeState(p, loop.getResult(0), "final_state", place, axes);
  if (p["before"])
    leaveScan(p, loop.getResult(0));
}
