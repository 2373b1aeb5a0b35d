//===- LinearGate.cpp - The gradient of a gate that is the decay itself ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dg / alpha, with dg of spec 5.4, has an error without bound where alpha nears
// 0, and no value at 0. The gradient of alpha_t is instead the sum of all that
// decays across token t, each without the factor alpha_t: what token j < t
// wrote (or the state on entry held) decays from j to t - 1, and from t to the
// token i >= t that reads it (or to the state on exit). Nothing is divided, and
// nothing cancels.
//
//===----------------------------------------------------------------------===//

#include "LinearGate.h"

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// One gate a token: the pairs are C x C matrices, so all tokens at once.
static Value scalarDecayGradient(Program &p, const DecayedTerms &in) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  SmallVector<int64_t> square = {C, C};
  auto rowDots = [&](Value x, Value y) { return b.sum(b.mul(x, y), 1); };
  Value pairs = b.add(b.mul(in.dQueryKey, innerProducts(p, in.q, in.k)),
                      b.mul(in.dKeyKey, innerProducts(p, in.k, in.k)));
  Value reads = b.sub(rowDots(in.q, in.dQueryState), //
                      rowDots(in.k, in.dKeyState));
  Value writes = rowDots(in.k, in.dWrite);
  Value carried = b.splat(b.extract(b.sum(in.carried, 0), {}), C);

  // fromToken[t, i] = decay of t+1 .. i; untilToken[t, j] = of j+1 .. t-1.
  // What is outside of the triangles is cut before the exponential as well:
  // it could be inf there.
  Value i = b.broadcast(b.iota(C), square, 1);
  Value t = b.broadcast(b.iota(C), square, 0);
  Value later = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, i, t);
  Value since =
      b.sub(b.broadcast(in.G, square, 1), b.broadcast(in.G, square, 0));
  Value fromToken = b.exp2(b.select(later, since, 0.0));
  Value before = b.sub(in.G, in.gate);
  Value untilToken = b.exp2(tile::CausalOp::create(
      b, b.sub(b.broadcast(before, square, 0), b.broadcast(in.G, square, 1)),
      /*strict=*/true));
  untilToken = tile::CausalOp::create(b, untilToken, /*strict=*/true);
  Value entry = b.exp2(before);

  // What decays across t to a reader i >= t. Rows i < t drop out: their pairs
  // are with j < i only.
  Value toReaders = b.add(
      b.product("tj,ij->ti", untilToken, pairs),
      b.mul(b.broadcast(entry, square, 0), b.broadcast(reads, square, 1)));
  Value read = b.sum(b.select(later, b.mul(fromToken, toReaders), 0.0), 1);
  Value toExit =
      b.add(b.sum(b.mul(untilToken, b.broadcast(writes, square, 1)), //
                  1),
            b.mul(carried, entry));
  return b.add(read, b.mul(decayToEnd(p, in.G), toExit));
}

/// 1 in the rows whose index compares so with `t`, else 0; f32 [C].
static Value rowMask(Program &p, arith::CmpIPredicate predicate, Value t) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  Value index = arith::IndexCastOp::create(b, b.getI32Type(), t);
  Value rows =
      arith::CmpIOp::create(b, predicate, b.iota(C), b.splat(index, C));
  return b.select(rows, b.fill(1.0, C), 0.0);
}

/// The gradient of token t's decays, one a channel: f32 [K].
static Value channelDecayGradientAt(Program &p, const DecayedTerms &in,
                                    Value t) {
  TileBuilder &b = p.b;
  Type sumType = getElementTypeOrSelf(in.G.getType());
  Value only = b.to(rowMask(p, arith::CmpIPredicate::eq, t), sumType);
  auto rowAt = [&](Value tile) { return b.sum(b.mulAxis(tile, only, 0), 0); };
  auto spread = [&](Value row) { return b.broadcast(row, shapeOf(in.G), 1); };
  // The other rows' exponents are cut too: exp2 of them could be inf.
  auto decayOf = [&](Value exponent, arith::CmpIPredicate rows) {
    Value mask = rowMask(p, rows, t);
    Value cut = b.mulAxis(exponent, b.to(mask, sumType), 0);
    return b.mulAxis(b.exp2(cut), mask, 0);
  };
  Value here = rowAt(in.G), before = rowAt(b.sub(in.G, in.gate));
  Value later = decayOf(b.sub(in.G, spread(here)), arith::CmpIPredicate::sge);
  Value earlier =
      decayOf(b.sub(spread(before), in.G), arith::CmpIPredicate::slt);
  Value entry = b.exp2(before);

  Value written = b.mul(in.k, earlier);
  auto readBy = [&](Value dPairs, Value dState, double sign) {
    return b.product("ij,jk->ik", dPairs, written,
                     b.scaled(b.mul(dState, spread(entry)), sign));
  };
  Value toReaders = b.add(b.mul(in.q, readBy(in.dQueryKey, in.dQueryState, 1)),
                          b.mul(in.k, readBy(in.dKeyKey, in.dKeyState, -1)));
  Value read = b.sum(b.mul(later, toReaders), 0);
  Value toExit =
      b.add(b.sum(b.mul(written, in.dWrite), 0), b.mul(in.carried, entry));
  Value rest = b.exp2(b.sub(lastRow(p, in.G), here));
  return b.add(read, b.mul(rest, toExit));
}

Value gdn::decayGradient(Program &p, const DecayedTerms &in) {
  TileBuilder &b = p.b;
  b.step("gates");
  if (p.facts.decay == DecayKind::Scalar)
    return scalarDecayGradient(p, in);
  // One gate a channel: a pair decays in K ways, so a token at a time.
  SmallVector<int64_t> shape = {p.facts.C, p.facts.K};
  auto loop = scf::ForOp::create(b, p.zero, b.index(p.facts.C), b.index(1),
                                 ValueRange{b.fill(0.0, shape)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  Value row = b.broadcast(channelDecayGradientAt(p, in, t), shape, 1);
  Value placed = b.mulAxis(row, rowMask(p, arith::CmpIPredicate::eq, t), 0);
  scf::YieldOp::create(b, ValueRange{b.add(loop.getRegionIterArg(0), placed)});
  return loop.getResult(0);
}
