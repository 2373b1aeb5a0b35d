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
  // The order is that in which a GPU begins the products: what the chain waits
  // for first, and the output's products behind it.
  Value state = b.round(in.state);
  Value carried = in.decayedState, stateDecay = in.stateDecay;
  if (stateDecay)
    stateDecay = b.splat(stateDecay, shapeOf(carried));
  Value read;
  if (in.readKeys)
    read = b.product("vk,ck->vc", state, in.readKeys);
  // What a factor is multiplied into must be there before the product that adds
  // to it begins, so it begins early; so it is for the state.
  auto readOutput = [&] {
    return b.product("vk,ck->vc", state, in.readQueries);
  };
  Value output;
  if (in.readQueries && in.queryFactor)
    output = readOutput();
  Value write = in.values;
  if (write && in.valueFactor)
    write = b.mulAxis(write, in.valueFactor, 1);
  if (stateDecay)
    carried = b.mul(carried, stateDecay);
  if (read) {
    if (in.readFactor)
      read = b.mulAxis(read, in.readFactor, 1);
    write = write ? b.sub(write, read) : b.neg(read);
  }
  // With beta in W, b e = W - b Bm W: the identity part stays in f32, and no
  // factor stands between this product and the next.
  Value rows;
  if (in.solve)
    rows = b.product("vj,ij->vi", b.round(write), in.solve, write);
  if (output)
    output = b.mulAxis(output, in.queryFactor, 1);
  else if (in.readQueries)
    output = readOutput();
  if (rows)
    write = rows;
  if (in.writeNorm)
    write = b.mulAxis(write, in.writeNorm, 1);
  Value rounded = b.round(write);
  ChainResult result;
  result.write = write;
  if (output)
    result.output = b.product("vj,ij->vi", rounded, in.scores, output);
  if (in.writeDecay) {
    write = b.mulAxis(write, in.writeDecay, 1);
    rounded = b.round(write);
  }
  result.state = b.product("vc,ck->vk", rounded, in.writeKeys, carried);
  if (p.facts.writesRest) {
    Value rest = b.round(b.sub(write, b.f32(rounded)));
    result.state = b.product("vc,ck->vk", rest, in.writeKeys, result.state);
  }
  return result;
}

Value gdn::innerProducts(Program &p, Value x, Value y) {
  return p.b.product("ik,jk->ij", x, y);
}

Value gdn::mulNorms(Program &p, Value products, Value xNorm, Value yNorm) {
  if (xNorm)
    products = p.b.mulAxis(products, xNorm, 0);
  return yNorm ? p.b.mulAxis(products, yNorm, 1) : products;
}

Value gdn::mulVectors(Program &p, Value x, Value y) {
  return x && y ? p.b.mul(x, y) : x ? x : y;
}

/// Type of the solve's merges, and of what it takes (spec 3.4, 3.6).
static Type solveType(Program &p) {
  return p.b.getOperandType().getWidth() == 16 ? Type(p.b.getF16Type())
                                               : Type(p.b.getF32Type());
}

/// A C x C matrix as the chain takes it, which multiplies by it if the chain is
/// of three products.
static Value roundMatrix(Program &p, Value matrix) {
  return p.facts.twoProductChain ? p.b.to(matrix, solveType(p))
                                 : p.b.round(matrix);
}

void gdn::foldSolve(Program &p, ChainOperands &in) {
  TileBuilder &b = p.b;
  b.step("solve");
  // Operands of the solve's type: where keys are alike, these products cancel,
  // and bf16 would lose what the form gains. The identity's part stays in f32.
  auto fold = [&](StringRef spec, Value lhs, Value rhs, Value identity) {
    Type type = solveType(p);
    return b.round(b.product(spec, b.to(lhs, type), b.to(rhs, type), identity));
  };
  Value keys = b.f32(in.writeKeys);
  if (in.writeDecay)
    keys = b.mulAxis(keys, in.writeDecay, 0);
  in.writeKeys = fold("ij,ik->jk", in.solve, keys, keys);
  if (in.scores) {
    Value scores = b.f32(in.scores);
    in.scores = fold("ij,jk->ik", scores, in.solve, scores);
  }
  in.solve = in.writeDecay = Value();
}

Value gdn::roundScores(Program &p, Value scores) {
  return roundMatrix(p, scores);
}

Value gdn::solveBm(Program &p, Value scores, Value beta) {
  TileBuilder &b = p.b;
  b.step("solve");
  return tile::SolveOp::create(b, scores, beta, solveType(p));
}

Value gdn::chainSolve(Program &p, Value bm, Value beta) {
  TileBuilder &b = p.b;
  b.step("solve");
  return roundMatrix(p, b.mulAxis(bm, b.neg(beta), 0));
}

Value gdn::roundForSolve(Program &p, Value m) {
  return p.b.to(m, solveType(p));
}

Value gdn::chainInverse(Program &p, Value m, Value columns,
                        const KeyRows &keys) {
  TileBuilder &b = p.b;
  b.step("solve");
  if (columns)
    m = roundForSolve(p, b.mulAxis(m, columns, 1));
  RankedTensorType type = b.tileType(shapeOf(m));
  Value inverse = tile::TriInverseOp::create(b, type, m, solveType(p));
  return roundMatrix(p, mulNorms(p, inverse, keys.norm, keys.length));
}

Value gdn::invertKeyScores(Program &p, Value keyKey, Value beta,
                           int64_t betaAxis) {
  Value m = roundForSolve(p, p.b.mulAxis(keyKey, beta, betaAxis));
  m = tile::CausalOp::create(p.b, m, /*strict=*/true);
  return chainInverse(p, m, /*columns=*/{}, KeyRows());
}

Value gdn::loadSummedGate(Program &p, Value t) {
  Value gate = loadLog2Gate(p, t);
  return p.b.getOperandType().isF32() ? p.b.to(gate, p.b.getF64Type()) : gate;
}

Value gdn::cumulatedGate(Program &p, Value t) {
  return tile::ScanOp::create(p.b, loadSummedGate(p, t), 0, /*reverse=*/false);
}

static Value pairDifference(Program &p, Value G) {
  SmallVector<int64_t> shape = {p.facts.C, p.facts.C};
  return p.b.sub(p.b.broadcast(G, shape, 0), p.b.broadcast(G, shape, 1));
}

Value gdn::pairDecay(Program &p, Value G) {
  TileBuilder &b = p.b;
  Value difference = pairDifference(p, G);
  // The triangle is taken before the exponential: above it exp2 could be inf.
  return b.exp2(tile::CausalOp::create(b, difference, /*strict=*/false));
}

Value gdn::pairDecayBelow(Program &p, Value G) {
  return p.b.exp2(pairDifference(p, G));
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
