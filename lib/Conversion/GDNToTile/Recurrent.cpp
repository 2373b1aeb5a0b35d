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

/// The decay of one token over S^T [vTileChannels, K].
static Value tokenDecay(Program &p, Value t, ArrayRef<int64_t> shape) {
  TileBuilder &b = p.b;
  p.loadGateParameters();
  if (p.facts.decay == DecayKind::Scalar)
    return b.splat(b.extract(b.exp2(loadLog2Gate(p, t)), {0}), shape);
  return b.broadcast(b.exp2(loadChannelLog2Gate(p, t)), shape, 1);
}

/// The recurrence of spec 1, in f32. A token is a chunk of one row, so what
/// belongs to it are vectors.
void gdn::writeRecurrent(Program &p) {
  TileBuilder &b = p.b;
  int64_t channels = p.facts.vTileChannels;
  SmallVector<int64_t> shape = {channels, p.facts.K};
  auto writeToken = [&](Value t, ValueRange carried) -> SmallVector<Value> {
    Value k = loadKey(p, "k", t), q = loadKey(p, "q", t);
    Value v = loadVector(p, "v", t, p.head, p.firstV, channels);
    Value beta = b.splat(b.extract(loadBeta(p, t), {0}), channels);
    Value state = carried[0];
    if (p.facts.decay != DecayKind::None)
      state = b.mul(state, tokenDecay(p, t, shape));
    b.step("state");
    Value e = b.sub(v, b.product("vk,k->v", state, k));
    Value u = b.mul(beta, e);
    Value write = b.mul(b.broadcast(u, shape, 0), b.broadcast(k, shape, 1));
    state = b.add(state, write);
    Value o = b.scaled(b.product("vk,k->v", state, q), p.facts.scale);
    b.step("store");
    b.store(o, p["o"], tokenOffsets(p, t, p.head, p.firstV), {3});
    return {state};
  };
  Value state = forEachChunk(p, loadStateT(p), writeToken)[0];
  storeStateT(p, state);
}
