//===- ChannelStarts.cpp - Where segments forget, with a gate a channel ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of 128 channels one is slow in almost every token, so the slowest ones say
// little of what is left of a state. Two bounds of what the tokens from t on
// make of it are kept, from the end of the segment on (spec 6.3):
//
//   the slowest channels      prod_t max_c exp(g_tc)
//   columns, from y = 1 on    y <- exp(g_t) o |I - b k k^T| y
//
// y_j is at least the sum of column j of |M|, so the norm of M is at most that
// of y. It needs a sum over channels a token.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// Tokens that are walked back over, at most: a longer walk takes longer than
/// the map that it might save.
static constexpr int64_t kMostTokens = 96;
/// Tokens after which a bound must have come as large a part of its way as
/// these are of all: most heads that keep a state keep all of some channel, and
/// all others wait for the walk.
static constexpr int64_t kPaceTokens = 32;
/// Tokens that are loaded at a time: where the last ones forget, no others are.
/// Fewer where a warp of a GPU has no registers for their channels.
static constexpr int64_t kGroupTokens = 8, kGroupChannels = 1024;

namespace {
/// What is known of the tokens walked over.
struct Walk {
  /// f32 [K]; f32 [1], the product of the slowest channels' decays; i32 [1],
  /// the first token of the chunk before which nothing is kept.
  Value columns, slowest, place;

  SmallVector<Value> values() const { return {columns, slowest, place}; }
};
} // namespace

/// Whether either bound is met, or `part` of the way to it. One that is no
/// number is not.
static Value isForgotten(Program &p, const Walk &walk, double part = 1.0) {
  TileBuilder &b = p.b;
  auto isAtMost = [&](Value bound, double most) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, bound,
                                 b.scalar(most));
  };
  double tolerance = p.facts.tolerance, all = static_cast<double>(p.facts.K);
  Value squares = b.sum(b.mul(walk.columns, walk.columns), 0);
  return arith::OrIOp::create(
      b,
      isAtMost(b.extract(squares, {}),
               all * std::pow(tolerance * tolerance / all, part)),
      isAtMost(b.extract(walk.slowest, {0}), std::pow(tolerance, part)));
}

/// Whether no more tokens need to be walked over behind `walked` ones.
static Value isDone(Program &p, const Walk &walk, Value walked) {
  TileBuilder &b = p.b;
  Value isFar = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, walked,
                                      b.index(kPaceTokens));
  Value isSlow = b.isNot(
      isForgotten(p, walk, static_cast<double>(kPaceTokens) / kMostTokens));
  return arith::OrIOp::create(b, isForgotten(p, walk),
                              arith::AndIOp::create(b, isFar, isSlow));
}

namespace {
/// A token as it lies in memory, and the first token of its chunk.
struct Token {
  Value k, beta, gate, chunk;
};
} // namespace

/// Walks over a token, in a program of chunks of one.
static Walk walkOver(Program &p, const Token &token, const Walk &walk) {
  TileBuilder &b = p.b;
  int64_t K = p.facts.K;
  Value k = b.abs(normalizeKeyVector(p, token.k));
  Value beta = b.abs(b.extract(activateBeta(p, token.beta), {0}));
  Value decay = b.exp2(activateChannelGate(p, token.gate));
  b.step("state");
  Value written = b.mul(k, b.splat(beta, K)), read = b.mul(k, walk.columns);
  Value all = b.splat(b.extract(b.sum(read, 0), {}), K);
  Value own = b.abs(b.sub(b.fill(1.0, K), b.mul(written, k)));
  Walk next;
  next.columns = b.mul(
      decay, b.add(b.mul(own, walk.columns), b.mul(written, b.sub(all, read))));
  next.slowest = b.mul(walk.slowest, b.splat(b.maximum(decay), 1));
  // The first one that is found is the last one in the segment.
  Value place =
      arith::MaxSIOp::create(b, walk.place, tokenNumber(p, token.chunk));
  next.place =
      arith::SelectOp::create(b, isForgotten(p, next), place, walk.place);
  return next;
}

/// Loads `count` tokens, back from the one `walked` before the end. In place of
/// those in front of the segment it takes its first one again: that changes
/// nothing, for there is no other place.
static SmallVector<Token> loadTokens(Program &p, Value walked, int64_t count,
                                     Value chunkSize) {
  TileBuilder &b = p.b;
  Value length = arith::SubIOp::create(b, p.end, p.begin);
  SmallVector<Token> tokens;
  for (int64_t number = 1; number <= count; ++number) {
    Value back = arith::AddIOp::create(b, walked, b.index(number));
    Value at = arith::SubIOp::create(b, length,
                                     arith::MinUIOp::create(b, back, length));
    Value inChunks = arith::MulIOp::create(
        b, arith::DivUIOp::create(b, at, chunkSize), chunkSize);
    Value t = arith::AddIOp::create(b, p.begin, at);
    Token token;
    token.k = loadKeyVector(p, "k", t);
    token.gate = loadChannelGate(p, t);
    token.beta = b.load(p["beta"], {p.batch, t, p.head}, {1}, {1});
    token.chunk = arith::AddIOp::create(b, p.begin, inChunks);
    tokens.push_back(token);
  }
  return tokens;
}

/// Notes that the head keeps a state in a segment, where its place is not
/// behind the first token, if others of its sequence follow: all of these would
/// wait for it.
static void noteWhole(Program &p, Value place) {
  if (!p["whole_heads"])
    return;
  TileBuilder &b = p.b;
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Value begin = arith::IndexCastOp::create(b, b.getI32Type(), p.begin);
  b.step("state");
  Value keeps = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                      b.extract(place, {0}), begin);
  // Behind the last one with tokens there are others without.
  Value isFollowed = arith::AndIOp::create(
      b, isBelow(p.begin, p.end),
      isBelow(loadNumber(p, "whole_begins", {p.sequence}), p.zero));
  auto branch =
      scf::IfOp::create(b, arith::AndIOp::create(b, keeps, isFollowed),
                        /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  b.store(tokenNumber(p, b.index(1)), p["whole_heads"], {p.head}, {0});
}

void gdn::writeChannelStarts(Program &p) {
  TileBuilder &b = p.b;
  int64_t group =
      std::clamp<int64_t>(kGroupChannels / p.facts.K, 1, kGroupTokens);
  Value tokens = arith::MinUIOp::create(
      b, arith::SubIOp::create(b, p.end, p.begin), b.index(kMostTokens));
  Value chunkSize = b.index(p.facts.C);
  Program single = p;
  single.facts.C = 1;
  b.step("state");
  Walk first = {b.fill(1.0, p.facts.K), b.fill(1.0, 1),
                tokenNumber(p, p.begin)};
  auto loop =
      scf::ForOp::create(b, p.zero, tokens, b.index(group), first.values());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto args = loop.getRegionIterArgs();
    Walk walk = {args[0], args[1], args[2]};
    auto walkOverGroup = [&] {
      Walk next = walk;
      for (const Token &token :
           loadTokens(single, loop.getInductionVar(), group, chunkSize))
        next = walkOver(single, token, next);
      return next.values();
    };
    scf::YieldOp::create(b, choose(
                                p, isDone(p, walk, loop.getInductionVar()),
                                [&] { return walk.values(); }, walkOverGroup));
  }
  b.store(loop.getResult(2), p["starts"], {p.sequence, p.head}, {1});
  noteWhole(p, loop.getResult(2));
}
