//===- Recurrent.cpp - The program of the forward token by token ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

using namespace mlir;
using namespace mlir::gdn;

/// What a token has in the array `name` at `head`, from channel `first` on.
static Value loadVector(Program &p, StringRef name, Value t, Value head,
                        Value first, int64_t size) {
  return p.b.load(p[name], tokenOffsets(p, t, head, first), {3}, {size});
}

Value gdn::loadKeyVector(Program &p, StringRef name, Value t) {
  p.b.step("load");
  return loadVector(p, name, t, p.keyHead, p.zero, p.facts.K);
}

Value gdn::normalizeKeyVector(Program &p, Value key) {
  TileBuilder &b = p.b;
  b.step("load");
  key = b.f32(key);
  if (!p.facts.l2norm)
    return key;
  b.step("norms");
  return b.mul(key, b.splat(inverseLength(p, b.mul(key, key)), p.facts.K));
}

Value gdn::loadChannelGate(Program &p, Value t) {
  p.b.step("gates");
  return loadVector(p, "gate", t, p.head, p.zero, p.facts.K);
}

/// The decay of one token: null, a number, or f32 [K].
static Value loadDecay(Program &p, Value t) {
  TileBuilder &b = p.b;
  p.loadGateParameters();
  switch (p.facts.decay) {
  case DecayKind::None:
    return {};
  case DecayKind::Scalar:
    return b.extract(b.exp2(loadLog2Gate(p, t)), {0});
  case DecayKind::Channel:
    return b.exp2(activateChannelGate(p, loadChannelGate(p, t)));
  }
  llvm_unreachable("all kinds of decay are named");
}

/// S^T before the first token. Who converts it waits for it, so that is no part
/// of a branch that loads it: other loads come between.
static Value loadFirstStateT(Program &p) {
  Value states = p["initial_state"];
  Value stored = loadStateT(p, "initial_state",
                            states ? getElementTypeOrSelf(states) : Type());
  Value state = p.b.f32(stored);
  if (state != stored)
    state.getDefiningOp()->setAttr(tile::kMadeHereAttrName, p.b.getUnitAttr());
  return state;
}

/// The recurrence of spec 1, in f32. A token is a chunk of one row, so what
/// belongs to it are vectors. Both products are with the state before the
/// token, so neither waits for the other one's sums:
///   q (g S + u k^T) = g (q S) + (q k) u.
/// Decays of channels come before the products: keys times them would be two
/// more vectors for registers.
void gdn::writeRecurrent(Program &p) {
  TileBuilder &b = p.b;
  int64_t channels = p.facts.vTileChannels;
  SmallVector<int64_t> shape = {channels, p.facts.K};
  auto writeToken = [&](Value t, ValueRange carried) -> SmallVector<Value> {
    Value k = normalizeKeyVector(p, loadKeyVector(p, "k", t));
    Value q = normalizeKeyVector(p, loadKeyVector(p, "q", t));
    b.step("load");
    Value v = b.f32(loadVector(p, "v", t, p.head, p.firstV, channels));
    Value beta = b.splat(b.extract(loadBeta(p, t), {0}), channels);
    Value decay = loadDecay(p, t);
    Value state = loadStepT(p, t, carried[0]);
    b.step("state");
    if (p.facts.decay == DecayKind::Channel)
      state = b.mulAxis(state, decay, 1);
    bool isScalar = p.facts.decay == DecayKind::Scalar;
    auto multiply = [&](Value key) -> Value {
      Value product = b.product("vk,k->v", state, key);
      return isScalar ? b.mul(product, b.splat(decay, channels)) : product;
    };
    Value known = multiply(k), read = multiply(q);
    Value both = b.extract(b.sum(b.mul(q, k), 0), {});
    Value u = b.mul(beta, b.sub(v, known));
    Value write = b.mul(b.broadcast(u, shape, 0), b.broadcast(k, shape, 1));
    if (isScalar)
      state = b.mul(state, b.splat(decay, shape));
    state = b.add(state, write);
    read = b.add(read, b.mul(u, b.splat(both, channels)));
    Value o = b.scaled(read, p.facts.scale);
    b.step("store");
    b.store(o, p["o"], tokenOffsets(p, t, p.head, p.firstV), {3});
    // Behind the output, which is computed as where nothing is kept.
    return {keepStepT(p, t, state)};
  };
  skipUnnamed(p);
  Value state = forEachChunk(p, loadFirstStateT(p), writeToken)[0];
  // Its tokens store states, even if these are those before them.
  if (p["step_indices"])
    state.getDefiningOp()->removeAttr(tile::kNeutralPastEndAttrName);
  // A pool that keeps the states after tokens has the last one.
  if (!p["step_indices"] || p["step_states"])
    storeStateT(p, state);
}
