//===- ChannelDecay.cpp - Decayed products with one gate a channel --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// Tokens of a sub-block (spec 4.2).
static constexpr int64_t kSubBlock = 16;

/// Largest exponent of a factor, in log2 units: products with it must stay far
/// from the largest number of the operand type (spec 4.3 for bf16 and f32).
static double maxExponent(FloatType operandType) {
  return operandType.isF16() ? 8.0 : 60.0 * M_LOG2E;
}

/// x_i exp2(G_i - R) for the rows of `x`, rounded; R [K] is the base.
static Value rebase(TileBuilder &b, Value x, Value G, Value base,
                    bool inverse) {
  Value spread = b.broadcast(base, shapeOf(G), 1);
  Value exponent = inverse ? b.sub(spread, G) : b.sub(G, spread);
  return b.round(b.mul(b.f32(x), b.exp2(exponent)));
}

/// Puts `block` at (row, column) of `tile`.
static Value insert(TileBuilder &b, Value block, Value tile, int64_t row,
                    int64_t column) {
  ArrayRef<int64_t> shape = shapeOf(block);
  auto at = [&](int64_t x, int64_t y) {
    return SmallVector<OpFoldResult>{b.getIndexAttr(x), b.getIndexAttr(y)};
  };
  return tensor::InsertSliceOp::create(b, block, tile, at(row, column),
                                       at(shape[0], shape[1]), at(1, 1));
}

/// Scores by sub-blocks. Off the diagonal the base is the token before the
/// block of rows: both exponents are <= 0. On it, the block's middle token.
static ChannelScores scoresByBlocks(Program &p, Value q, Value k, Value G) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  ChannelScores result;
  result.keyKey = b.fill(0.0, {C, C});
  result.queryKey = q ? b.fill(0.0, {C, C}) : Value();
  auto addBlock = [&](int64_t row, int64_t column, int64_t columns,
                      Value base) {
    Value rowG = b.rows(G, row, kSubBlock);
    Value y = rebase(b, b.rows(k, column, columns), b.rows(G, column, columns),
                     base, /*inverse=*/true);
    auto add = [&](Value from, Value &into) {
      Value x = rebase(b, b.rows(from, row, kSubBlock), rowG, base, false);
      into = insert(b, innerProducts(p, x, y), into, row, column);
    };
    add(k, result.keyKey);
    if (q)
      add(q, result.queryKey);
  };
  for (int64_t row = 0; row < C; row += kSubBlock) {
    if (row > 0)
      addBlock(row, 0, row, b.row(G, row - 1));
    addBlock(row, row, kSubBlock, b.row(G, row + kSubBlock / 2));
  }
  return result;
}

/// Whether every factor of the diagonal sub-blocks stays in range: gates are
/// <= 0, so the first and last token of a block bound its exponents.
static Value blocksInRange(Program &p, Value G) {
  TileBuilder &b = p.b;
  Value largest;
  for (int64_t row = 0; row < p.facts.C; row += kSubBlock) {
    Value middle = b.row(G, row + kSubBlock / 2);
    for (Value exponent : {b.sub(b.row(G, row), middle),
                           b.sub(middle, b.row(G, row + kSubBlock - 1))}) {
      Value bound = b.maximum(b.f32(exponent));
      largest = largest ? arith::MaximumFOp::create(b, largest, bound) : bound;
    }
  }
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, largest,
                               b.scalar(maxExponent(b.getOperandType())));
}

/// 1 in the rows whose number has `bit` at the place of `power`, a power of
/// two, else 0; f32 [C].
static Value rowsWithBit(Program &p, int64_t power, int64_t bit) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  auto splat = [&](int64_t value) {
    return b.splat(arith::ConstantIntOp::create(b, value, 32), C);
  };
  Value masked = arith::AndIOp::create(b, b.iota(C), splat(power));
  Value has = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, masked,
                                    splat(bit * power));
  return b.select(has, b.fill(1.0, C), 0.0);
}

SmallVector<HalvesLevel> gdn::decayByHalves(Program &p, Value G) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C, K = p.facts.K;
  SmallVector<int64_t> square = {C, C};
  Type element = getElementTypeOrSelf(G.getType());
  Value i = b.broadcast(b.iota(C), square, 0);
  Value j = b.broadcast(b.iota(C), square, 1);
  Value differing = arith::XOrIOp::create(b, i, j);
  SmallVector<HalvesLevel> levels;
  for (int64_t half = C / 2; half >= 1; half /= 2) {
    int64_t blocks = C / (2 * half);
    // The last token of every earlier half, spread over its block.
    SmallVector<ReassociationIndices> byBlock = {{0, 1}, {2}};
    Value inBlocks = tensor::ExpandShapeOp::create(
        b, b.tileType({blocks, 2 * half, K}, element), G, byBlock);
    SmallVector<OpFoldResult> offsets = {
        b.getIndexAttr(0), b.getIndexAttr(half - 1), b.getIndexAttr(0)};
    SmallVector<OpFoldResult> sizes = {b.getIndexAttr(blocks),
                                       b.getIndexAttr(1), b.getIndexAttr(K)};
    SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
    Value boundary = tensor::ExtractSliceOp::create(
        b, b.tileType({blocks, K}, element), inBlocks, offsets, sizes, strides);
    Value init = tensor::EmptyOp::create(
        b, ArrayRef<int64_t>{blocks, 2 * half, K}, element);
    Value spread =
        linalg::BroadcastOp::create(b, boundary, init, ArrayRef<int64_t>{1})
            ->getResult(0);
    Value base = tensor::CollapseShapeOp::create(b, b.tileType({C, K}, element),
                                                 spread, byBlock);
    Value exponent = b.sub(G, base);
    // i > j of this level: their highest differing bit is `half`, set in i.
    auto splat = [&](int64_t value) {
      return b.splat(arith::ConstantIntOp::create(b, value, 32), square);
    };
    Value top =
        arith::ShRUIOp::create(b, differing, splat(llvm::Log2_64(half)));
    Value sameBlock =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, top, splat(1));
    Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, i, j);
    Value pairs = arith::AndIOp::create(b, sameBlock, below);
    // A row is of one of the halves: in the other one its exponent, which could
    // be too large, is made 0.
    auto decayOf = [&](Value exponent, int64_t bit) {
      Value mask = b.to(rowsWithBit(p, half, bit), element);
      return b.exp2(b.mulAxis(exponent, mask, 0));
    };
    levels.push_back({decayOf(exponent, 1), decayOf(b.neg(exponent), 0),
                      b.select(pairs, b.fill(1.0, square), 0.0)});
  }
  return levels;
}

/// Scores by halves, and the diagonal, which has no decay, by row dots.
static ChannelScores scoresByHalves(Program &p, Value q, Value k, Value G) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  ChannelScores result;
  result.keyKey = b.fill(0.0, {C, C});
  Value qf = q ? b.f32(q) : Value(), kf = b.f32(k);
  if (q) {
    Value i = b.broadcast(b.iota(C), {C, C}, 0);
    Value j = b.broadcast(b.iota(C), {C, C}, 1);
    Value diagonal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i, j);
    Value dots = b.broadcast(b.sum(b.mul(qf, kf), 1), {C, C}, 0);
    result.queryKey = b.select(diagonal, dots, 0.0);
  }
  for (HalvesLevel &level : decayByHalves(p, G)) {
    Value y = b.round(b.mul(kf, level.earlier));
    auto add = [&](Value x, Value &into) {
      Value rows = b.round(b.mul(x, level.later));
      into = b.add(into, b.mul(level.mask, innerProducts(p, rows, y)));
    };
    add(kf, result.keyKey);
    if (q)
      add(qf, result.queryKey);
  }
  return result;
}

ChannelScores gdn::channelScores(Program &p, Value q, Value k, Value G) {
  TileBuilder &b = p.b;
  b.step("scores");
  Value inRange = blocksInRange(p, G);
  SmallVector<Type> types(q ? 2 : 1, b.tileType({p.facts.C, p.facts.C}));
  auto choice = scf::IfOp::create(b, types, inRange, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (auto [block, write] : {std::pair(choice.thenBlock(), &scoresByBlocks),
                              std::pair(choice.elseBlock(), &scoresByHalves)}) {
    b.setInsertionPointToStart(block);
    ChannelScores result = write(p, q, k, G);
    SmallVector<Value> values = {result.keyKey};
    if (q)
      values.push_back(result.queryKey);
    scf::YieldOp::create(b, values);
  }
  return {q ? Value(choice.getResult(1)) : Value(), choice.getResult(0)};
}

Value gdn::solveChannels(Program &p, const ChannelScores &scores, KeyRows k,
                         Value beta) {
  Value keyKey = tile::CausalOp::create(p.b, scores.keyKey, /*strict=*/true);
  return solveBm(p, mulNorms(p, keyKey, k.norm, k.norm), beta);
}
