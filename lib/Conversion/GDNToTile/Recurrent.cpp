//===- Recurrent.cpp - The program of the forward token by token ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace mlir;
using namespace mlir::gdn;

/// What a token has in the array `name` at `head`, from channel `first` on.
static Value loadVector(Program &p, StringRef name, Value t, Value head,
                        Value first, int64_t size) {
  p.b.step("load");
  return p.b.f32(
      p.b.load(p[name], tokenOffsets(p, t, head, first), {3}, {size}));
}

/// q or k of a token, [K] in f32, l2-normalised if the op asks for it.
static Value loadKey(Program &p, StringRef name, Value t) {
  TileBuilder &b = p.b;
  Value key = loadVector(p, name, t, p.keyHead, p.zero, p.facts.K);
  if (!p.facts.l2norm)
    return key;
  b.step("norms");
  return b.mul(key, b.splat(inverseLength(p, b.mul(key, key)), p.facts.K));
}

namespace {
/// The decay of one token: nothing, a number, or f32 [K].
struct TokenDecay {
  DecayKind kind;
  Value factor;

  /// What a product of the decayed state with `key` has for `key`.
  Value ofKey(TileBuilder &b, Value key) const {
    return kind == DecayKind::Channel ? b.mul(key, factor) : key;
  }
  /// A product of the decayed state, from that of the state itself.
  Value ofProduct(TileBuilder &b, Value product, int64_t channels) const {
    return kind == DecayKind::Scalar ? b.mul(product, b.splat(factor, channels))
                                     : product;
  }
  Value ofState(TileBuilder &b, Value state, ArrayRef<int64_t> shape) const {
    if (kind == DecayKind::None)
      return state;
    return b.mul(state, kind == DecayKind::Scalar
                            ? b.splat(factor, shape)
                            : b.broadcast(factor, shape, 1));
  }
};
} // namespace

static TokenDecay loadDecay(Program &p, Value t) {
  TileBuilder &b = p.b;
  p.loadGateParameters();
  switch (p.facts.decay) {
  case DecayKind::None:
    return {DecayKind::None, Value()};
  case DecayKind::Scalar:
    return {DecayKind::Scalar, b.extract(b.exp2(loadLog2Gate(p, t)), {0})};
  case DecayKind::Channel:
    return {DecayKind::Channel, b.exp2(loadChannelLog2Gate(p, t))};
  }
  llvm_unreachable("all kinds of decay are named");
}

/// The recurrence of spec 1, in f32. A token is a chunk of one row, so what
/// belongs to it are vectors. Both products are with the state before the
/// token, so neither waits for the other one's sums:
///   q (g S + u k^T) = g (q S) + (q k) u.
void gdn::writeRecurrent(Program &p) {
  TileBuilder &b = p.b;
  int64_t channels = p.facts.vTileChannels;
  SmallVector<int64_t> shape = {channels, p.facts.K};
  auto writeToken = [&](Value t, ValueRange carried) -> SmallVector<Value> {
    Value k = loadKey(p, "k", t), q = loadKey(p, "q", t);
    Value v = loadVector(p, "v", t, p.head, p.firstV, channels);
    Value beta = b.splat(b.extract(loadBeta(p, t), {0}), channels);
    TokenDecay decay = loadDecay(p, t);
    b.step("state");
    auto multiply = [&](Value key) {
      Value product = b.product("vk,k->v", carried[0], decay.ofKey(b, key));
      return decay.ofProduct(b, product, channels);
    };
    Value known = multiply(k), read = multiply(q);
    Value both = b.extract(b.sum(b.mul(q, k), 0), {});
    Value u = b.mul(beta, b.sub(v, known));
    Value write = b.mul(b.broadcast(u, shape, 0), b.broadcast(k, shape, 1));
    Value state = b.add(decay.ofState(b, carried[0], shape), write);
    read = b.add(read, b.mul(u, b.splat(both, channels)));
    Value o = b.scaled(read, p.facts.scale);
    b.step("store");
    b.store(o, p["o"], tokenOffsets(p, t, p.head, p.firstV), {3});
    return {state};
  };
  skipUnnamed(p);
  Value state = forEachChunk(p, loadStateT(p), writeToken)[0];
  storeStateT(p, state);
}
