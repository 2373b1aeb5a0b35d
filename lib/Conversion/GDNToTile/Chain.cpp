//===- Chain.cpp - The chain of a chunk and its scalar decays -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;

ChainResult gdn::writeChain(Program &p, const ChainOperands &in) {
  TileBuilder &b = p.b;
  b.step("state");
  Value state = b.round(in.state);
  Value write = in.values;
  if (in.solve) {
    Value read = b.product("vk,ck->vc", state, in.readKeys);
    if (in.readDecay)
      read = b.mulAxis(read, in.readDecay, 1);
    Value w = b.sub(in.values, read);
    // e = W - Bm (b W): the identity part stays in f32.
    Value e = b.product("vj,ij->vi", b.round(w), in.solve, w);
    write = b.mulAxis(e, in.beta, 1);
  }
  Value rounded = b.round(write);
  ChainResult result;
  if (in.readQueries) {
    Value read = b.product("vk,ck->vc", state, in.readQueries);
    if (in.readDecay)
      read = b.mulAxis(read, in.readDecay, 1);
    result.output = b.product("vj,ij->vi", rounded, in.scores, read);
  }
  if (in.writeDecay)
    rounded = b.round(b.mulAxis(write, in.writeDecay, 1));
  result.state = b.product("vc,ck->vk", rounded, in.writeKeys, in.decayedState);
  return result;
}

Value gdn::innerProducts(Program &p, Value x, Value y) {
  return p.b.product("ik,jk->ij", x, y);
}

Value gdn::solveBm(Program &p, Value scores, Value beta) {
  TileBuilder &b = p.b;
  b.step("solve");
  // fp16 merges for 16-bit operands: entries are in [-1, 1] (spec 3.4, 3.6).
  Type merge = b.getOperandType().getWidth() == 16 ? Type(b.getF16Type())
                                                   : Type(b.getF32Type());
  return tile::SolveOp::create(b, scores, beta, merge);
}

Value gdn::chainSolve(Program &p, Value bm, Value beta) {
  TileBuilder &b = p.b;
  b.step("solve");
  return b.round(b.mulAxis(bm, b.neg(beta), 1));
}

Value gdn::pairDecay(Program &p, Value G) {
  TileBuilder &b = p.b;
  SmallVector<int64_t> shape = {p.facts.C, p.facts.C};
  Value difference = b.sub(b.broadcast(G, shape, 0), b.broadcast(G, shape, 1));
  // The triangle is taken before the exponential: above it exp2 could be inf.
  return b.exp2(tile::CausalOp::create(b, difference, /*strict=*/false));
}

Value gdn::lastRow(Program &p, Value G) {
  int64_t last = p.facts.C - 1;
  return shapeOf(G).size() == 1 ? p.b.extract(G, {last}) : p.b.row(G, last);
}

Value gdn::decayToEnd(Program &p, Value G) {
  TileBuilder &b = p.b;
  Value last = lastRow(p, G);
  Value spread = shapeOf(G).size() == 1 ? b.splat(last, shapeOf(G))
                                        : b.broadcast(last, shapeOf(G), 1);
  return b.exp2(b.sub(spread, G));
}
