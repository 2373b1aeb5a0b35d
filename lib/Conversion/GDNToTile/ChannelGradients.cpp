//===- ChannelGradients.cpp - Gradients of a chunk, a gate a channel ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tokens read of the state before the chunk, and write to that behind it,
// takes a decay that is at most 1; what they read of each other is in
// ChannelPairs.cpp.
//
//===----------------------------------------------------------------------===//

#include "ChannelRows.h"

using namespace mlir;
using namespace mlir::gdn;

Pieces gdn::loadChannelGates(Program &p, Value t) {
  // Those who sum them up load them: they have no slots in a kernel.
  bool isRaw =
      formOf(p.facts.gateDomain).needsBound() && (p["a_log"] || p["dt_bias"]);
  SmallVector<Program, 2> parts;
  for (int64_t first = 0, size = keyPieceChannels(p); first < p.facts.K;
       first += size) {
    Program &part = parts.emplace_back(p);
    part.facts.K = size;
    part.firstK = p.b.index(first);
    // Kernels of bounded gates with parameters share out their registers
    // otherwise.
    part.loadStep = isRaw ? "raw_gates" : "decay";
  }
  Pieces gates;
  auto makeAll = [&](auto make) {
    for (Program &part : parts) {
      part.loadGateParameters();
      gates.push_back(make(part));
    }
  };
  if (!areBlocksInRange(p)) {
    makeAll([&](Program &part) { return cumulatedGate(part, t); });
    return gates;
  }
  // A kernel has registers for all gates before sums take any, but logarithms
  // of raw ones take more than these.
  makeAll([&](Program &part) {
    return isRaw ? loadGate(part, t) : loadLog2Gate(part, t);
  });
  for (auto [part, gate] : llvm::zip(parts, gates))
    gate = tile::ScanOp::create(p.b, isRaw ? toLog2Gate(part, t, gate) : gate,
                                /*axis=*/0,
                                /*reverse=*/false);
  return gates;
}

SmallVector<ChannelFactors> gdn::makeChannelFactors(Program &p,
                                                    const Pieces &gates) {
  SmallVector<ChannelFactors> factors;
  if (!areBlocksInRange(p))
    return factors;
  TileBuilder &b = p.b;
  b.step("factors");
  int64_t last = p.facts.C - 1;
  for (Value G : gates) {
    ChannelFactors &own = factors.emplace_back();
    auto row = [&](int64_t token) { return b.row(G, token); };
    auto between = [&](int64_t from, int64_t to) {
      return b.exp2(b.sub(row(to), row(from)));
    };
    int64_t reference = kReference;
    own.start = b.exp2(row(reference));
    for (; reference + kBlock <= last; reference += kBlock)
      own.steps.push_back(between(reference, reference + kBlock));
    own.end = between(reference, last);
    own.whole = b.exp2(row(last));
  }
  return factors;
}

//===----------------------------------------------------------------------===//
// A piece of K
//===----------------------------------------------------------------------===//

/// Kept states are no tiles of who adds up the gradients.
Value gdn::sumStates(Program &p, const GradientTiles &in, size_t piece) {
  TileBuilder &b = p.b;
  Value dots;
  bool isKept = in.source == StateSource::Kept;
  b.step(isKept ? StringRef("sums") : pieceStep(p, piece));
  for (auto [state, dState] : llvm::zip(in.state[piece], in.dState[piece])) {
    Value own = b.mul(b.f32(state), b.f32(dState));
    dots = keepHere(dots ? b.add(dots, own) : own);
  }
  Value sum = b.sum(dots, 0);
  if (double unit = stateGradientUnit(p); unit != 1)
    sum = b.scaled(sum, unit);
  b.step(pieceStep(p, piece));
  return sum;
}

void gdn::storeGateGradient(Program &p, Value t, size_t piece, Value dg) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(dg);
  SmallVector<Value> offsets =
      tokenOffsets(p, t, p.head, b.index(piece * shape[1]));
  if (p.facts.gateDomain == GateDomain::Linear)
    dg =
        toGateGradient(p, b.load(p["gate"], offsets, {1, 3}, shape, p.end), dg);
  b.store(dg, p["dgate"], offsets, {1, 3}, p.end);
}

/// Adds what a token reads of its own write, which no gate decays: `rows` are
/// the others of its pair.
static void addOwn(Program &p, Piece &in, Value rows, RowSums &sums) {
  TileBuilder &b = p.b;
  Value own = b.mulAxis(in.read(rows), in.pairs.own, 0);
  sums.gradient = keepHere(b.add(sums.gradient, own));
}

/// Adds what keys write to the gradient of the state behind the chunk, whose
/// inner products with it the gate's gradient has of tokens before its own, and
/// what is carried through, which all tokens have. These inner products are
/// taken off, and their sum is added to those of the last token: of all sums
/// from there on, those of tokens before a token are left. Without that of the
/// last token, which may be much larger than all others where decay is strong,
/// they have the digits for it.
static void addWrites(Program &p, const GradientChunk &chunk, size_t piece,
                      Piece &own, RowSums &sums) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  bool isTurned = in.source == StateSource::Carried;
  Value write = product(b, isTurned ? "vi,vk->ik" : "iv,vk->ik", in.writes,
                        in.dState[piece]);
  write = b.mul(write, own.untilEnd());
  Value states = sumStates(p, in, piece);
  if (double unit = stateGradientUnit(p); unit != 1)
    write = b.scaled(write, unit);
  sums.gradient = keepHere(b.add(sums.gradient, write));
  Value dots = b.mulAxis(b.mul(own.read(own.k), write), chunk.followed, 0);
  Value all = b.add(b.mul(states, own.whole()), b.sum(dots, 0));
  dots = b.sub(sums.dots, dots);
  ArrayRef<int64_t> shape = shapeOf(dots);
  Value isLast = compareRows(p, arith::CmpIPredicate::eq, p.facts.C - 1, shape);
  sums.dots = keepHere(arith::SelectOp::create(
      b, isLast, b.add(dots, b.broadcast(all, shape, 1)), dots));
}

/// Queries come first, then keys: so few sums are kept at a time.
void gdn::addChannelGradients(Program &p, GradientChunk &chunk, size_t piece,
                              Value &dq, function_ref<void()> storeQueries,
                              Value &dk, function_ref<void()> storeKeys) {
  TileBuilder &b = p.b;
  const GradientTiles &in = chunk.in;
  if (areBlocksInRange(p)) {
    DecayedPiece own(p, chunk, piece);
    own.addKeys(dk);
    storeKeys();
    own.addQueries(dq);
    Value all = b.mul(sumStates(p, in, piece), own.whole());
    storeQueries();
    return storeGateGradient(p, chunk.t, piece, own.sumGates(all));
  }
  Piece own(p, chunk, piece);
  Value inRange = isInRange(p, own);
  auto readState = [&](const Pieces &rows, double factor) {
    return b.scaled(product(b, "iv,vk->ik", rows, in.state[piece]), factor);
  };
  RowSums sums = {dq, Value()};
  sums = addPairs(p, own, inRange, Part::Queries,
                  readState(in.dO, p.facts.scale), sums);
  addOwn(p, own, own.k, sums);
  dq = sums.gradient;
  storeQueries();
  sums.gradient = dk;
  sums = addPairs(p, own, inRange, Part::Keys, readState(in.dV, -1.0), sums);
  addWrites(p, chunk, piece, own, sums);
  sums = addPairs(p, own, inRange, Part::ReadKeys, /*state=*/{}, sums);
  addOwn(p, own, own.q, sums);
  dk = sums.gradient;
  storeGateGradient(p, chunk.t, piece,
                    tile::ScanOp::create(b, sums.dots, 0, /*reverse=*/true));
  storeKeys();
}
