//===- GateBound.cpp - Whether the gates of a call break a bound ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory binds: a work item has the loads of a block of tokens under way, all
// channels of each. What all work items find is one number, so one that begins
// late reads no gate that needs no look.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

/// The largest exp(A_log): the sum of eight softplus(x) has an error of 2^-20,
/// which this makes 2^-10, and the bound has as much room.
static constexpr double kMostRate = 1024.0;

namespace {
/// The sizes of the log gates of a block, summed token by token, f32 [K].
class BlockSize {
public:
  explicit BlockSize(Program &p) : p(p), b(p.b) {}

  /// Adds the gates of a token in their array, if it is in the sequence.
  void add(Value gate, Value isInside) {
    if (p.facts.gateDomain == GateDomain::Log)
      return addTo(sum, b.abs(ifInside(isInside, b.f32(gate), 0.0)));
    if (p.facts.gateDomain == GateDomain::Softplus)
      return addSoftplus(gate, isInside);
    llvm_unreachable("expected a form that may promise a bound");
  }

  Value get(Value rate) {
    if (!product)
      return sum;
    Value log = b.scaled(math::Log2Op::create(b, product), M_LN2);
    return b.mul(b.add(sum, log), b.splat(rate, p.facts.K));
  }

private:
  void addSoftplus(Value gate, Value isInside) {
    Value x = b.f32(gate);
    if (p.bias)
      x = b.add(x, isa<RankedTensorType>(p.bias.getType())
                       ? p.bias
                       : b.splat(p.bias, p.facts.K));
    // softplus(x) = max(x, 0) + log(1 + exp(-|x|)), the logarithm for all.
    x = ifInside(isInside, x, -std::numeric_limits<double>::infinity());
    Value tail = b.exp(b.neg(b.abs(x)));
    product = product ? b.add(product, b.mul(product, tail))
                      : b.add(b.fill(1.0, p.facts.K), tail);
    addTo(sum, b.max(x, 0.0));
  }
  Value ifInside(Value isInside, Value gate, double otherwise) {
    return arith::SelectOp::create(b, isInside, gate,
                                   b.fill(otherwise, p.facts.K));
  }
  void addTo(Value &sum, Value size) { sum = sum ? b.add(sum, size) : size; }

  Program &p;
  TileBuilder &b;
  Value sum, product;
};
} // namespace

/// The tokens of the work item: whole blocks, as many for all that share a
/// sequence.
static std::pair<Value, Value> shareTokens(Program &p) {
  TileBuilder &b = p.b;
  Value block = b.index(support::boundTokens);
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value blocks = arith::CeilDivUIOp::create(b, tokens, block);
  Value own = b.toIndex(
      arith::CeilDivUIOp::create(b, b.toI32(blocks), b.toI32(countParts(p))));
  Value length = arith::MulIOp::create(b, own, block);
  auto behind = [&](Value from, Value count) -> Value {
    return arith::MinUIOp::create(b, arith::AddIOp::create(b, from, count),
                                  p.end);
  };
  Value first = behind(p.begin, arith::MulIOp::create(b, getPart(p), length));
  return {first, behind(first, length)};
}

/// Whether an entry of `size`, f32 [K], is above `most`, or no number.
static Value isAnyAbove(Program &p, Value size, Value most) {
  TileBuilder &b = p.b;
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, size,
                                        b.splat(most, p.facts.K));
  Value largest = b.maximum(b.select(isAbove, b.fill(1.0, p.facts.K), 0.0));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, largest,
                               b.scalar(0.0));
}

/// The size of the block at token `t`, of which tokens from `end` on have none.
static Value measureBlock(Program &p, Value t, Value end, Value rate) {
  TileBuilder &b = p.b;
  Value last = arith::SubIOp::create(b, end, b.index(1));
  SmallVector<Value> tokens, gates;
  for (int64_t number = 0; number < support::boundTokens; ++number) {
    Value token = arith::AddIOp::create(b, t, b.index(number));
    tokens.push_back(token);
    gates.push_back(loadChannelGate(p, arith::MinUIOp::create(b, token, last)));
  }
  b.step("gates");
  BlockSize size(p);
  for (auto [token, gate] : llvm::zip(tokens, gates))
    size.add(gate,
             arith::CmpIOp::create(b, arith::CmpIPredicate::ult, token, end));
  return size.get(rate);
}

/// Whether some work item has found a strong block.
static Value isFound(Program &p) {
  TileBuilder &b = p.b;
  auto found =
      memref::LoadOp::create(b, p["found"], SmallVector<Value>(3, p.zero));
  found->setAttr(tile::kWatchedAttrName, b.getUnitAttr());
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, found,
                               b.scalar(0.0));
}

void gdn::writeGateBound(Program &p) {
  TileBuilder &b = p.b;
  tile::LeaveOp::create(b, isFound(p), ValueRange());
  auto [first, end] = shareTokens(p);
  p.fetchGateParameters();
  b.step("gates");
  Value most = b.scalar(-support::boundTokens * p.facts.lowerBound), rate;
  if (p.logRate) {
    rate = b.exp(p.logRate);
    Value isExact = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, rate,
                                          b.scalar(kMostRate));
    // Below every size.
    most = arith::SelectOp::create(b, isExact, most, b.scalar(-1.0));
  }
  auto loop = scf::ForOp::create(b, first, end, b.index(support::boundTokens));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value size = measureBlock(p, loop.getInductionVar(), end, rate);
  auto enterIf = [&](Value condition) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  enterIf(isAnyAbove(p, size, most));
  // All of them would wait for the place that they store in.
  enterIf(b.isNot(isFound(p)));
  b.store(b.fill(1.0, 1), p["strong"], {p.zero, p.zero, p.zero}, {2});
}
