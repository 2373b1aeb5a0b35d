//===- Recurrent.cpp - The program of the forward token by token ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// A tile of one row or one column as a vector, f32.
static Value asVector(TileBuilder &b, Value tile) {
  int64_t size = ShapedType::getNumElements(shapeOf(tile));
  SmallVector<ReassociationIndices> all = {{0, 1}};
  return tensor::CollapseShapeOp::create(b, b.tileType(size), b.f32(tile), all);
}

/// The decay of one token over S^T [vTileChannels, K].
static Value tokenDecay(Program &p, Value t, ArrayRef<int64_t> shape) {
  TileBuilder &b = p.b;
  Value decay = b.exp2(loadLog2Gate(p, t));
  if (p.facts.decay == DecayKind::Scalar)
    return b.splat(b.extract(decay, {0}), shape);
  return b.broadcast(asVector(b, decay), shape, 1);
}

/// The recurrence of spec 1, in f32: a chunk is one token.
void gdn::writeRecurrent(Program &p) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.vTileChannels, p.facts.K};
  auto writeToken = [&](Value t, ValueRange carried) -> SmallVector<Value> {
    Value k = asVector(b, loadKeys(p, "k", t));
    Value q = asVector(b, loadKeys(p, "q", t));
    Value v = asVector(b, loadValuesT(p, t));
    Value beta = b.splat(b.extract(loadBeta(p, t), {0}), p.facts.vTileChannels);
    Value state = carried[0];
    if (p.facts.decay != DecayKind::None)
      state = b.mul(state, tokenDecay(p, t, shape));
    b.step("state");
    Value e = b.sub(v, b.product("vk,k->v", state, k));
    Value u = b.mul(beta, e);
    Value write = b.mul(b.broadcast(u, shape, 0), b.broadcast(k, shape, 1));
    state = b.add(state, write);
    Value o = b.scaled(b.product("vk,k->v", state, q), p.facts.scale);
    SmallVector<ReassociationIndices> all = {{0, 1}};
    storeOutputT(p, t,
                 tensor::ExpandShapeOp::create(
                     b, b.tileType({p.facts.vTileChannels, 1}), o, all));
    return {state};
  };
  Value state = forEachChunk(p, loadStateT(p), writeToken)[0];
  storeStateT(p, state);
}
