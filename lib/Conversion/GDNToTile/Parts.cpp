//===- Parts.cpp - Parts of a sequence that are computed side by side -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients need no chunk before their own, so the chunks of a sequence are
// shared by work items. How many is best follows from the call: a device
// computes so many work items at a time, and each takes as long as some chunks
// to begin and to end.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Numbers around launches: what the steps of a call can compute.
class Numbers {
public:
  explicit Numbers(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value get(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value mul(Value x, Value y) { return make<arith::MulIOp>(x, y); }
  Value add(Value x, Value y) { return make<arith::AddIOp>(x, y); }
  Value divide(Value x, Value y) { return make<arith::DivUIOp>(x, y); }
  Value divideUp(Value x, Value y) { return make<arith::CeilDivUIOp>(x, y); }
  Value min(Value x, Value y) { return make<arith::MinUIOp>(x, y); }
  Value max(Value x, Value y) { return make<arith::MaxUIOp>(x, y); }

private:
  OpBuilder &b;
  Location loc;
};
} // namespace

Value gdn::chooseParts(OpBuilder &b, const Stage &stage, int64_t workItems) {
  // As many parts as fill the device once, twice and so on.
  constexpr int64_t kMostRounds = 4;
  // Half chunks that a work item takes besides its own: its start and its end,
  // measured on an H200 (docs/experiments/kda.md).
  constexpr int64_t kHalfChunks = 3;
  // A place for the parts behind their cost, and the most of them.
  constexpr int64_t kPlace = 1 << 16;
  Location loc = stage.op->getLoc();
  Numbers n(b, loc);
  auto index = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  Value one = n.get(1), all = n.get(workItems);
  auto count = [&](Axis axis) { return index(countDim(b, stage, axis)); };
  Value sequences = n.max(count(Axis::Sequence), one);
  Value heads = count(Axis::KeyHead), tokens = count(Axis::Token);
  // Of packed sequences, of which only the device knows the lengths, the mean.
  Value length = stage.facts.isPacked ? n.divideUp(tokens, sequences) : tokens;
  Value chunks = n.max(n.divideUp(length, n.get(stage.facts.C)), one);
  Value each = n.max(n.mul(sequences, heads), one);
  // Where some are longer than others, no work item has all of one.
  Value least = n.add(n.min(n.make<arith::SubIOp>(sequences, one), one), one);
  Value best;
  for (int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    Value parts = n.divide(n.get(rounds * workItems), each);
    parts = n.min(n.min(n.max(parts, least), chunks), n.get(kPlace - 1));
    Value taken = n.divideUp(n.mul(each, parts), all);
    Value halves =
        n.add(n.mul(n.divideUp(chunks, parts), n.get(2)), n.get(kHalfChunks));
    Value cost = n.add(n.mul(n.mul(taken, halves), n.get(kPlace)), parts);
    best = best ? n.min(best, cost) : cost;
  }
  return n.make<arith::RemUIOp>(best, n.get(kPlace));
}

Value gdn::countShortParts(OpBuilder &b, const Stage &stage) {
  // Few enough that work items that begin late have all to spare, enough that
  // to begin takes little of their time.
  constexpr int64_t kPartTokens = 64;
  Numbers n(b, stage.op->getLoc());
  auto count = [&](Axis axis) {
    return getValueOrCreateConstantIndexOp(b, stage.op->getLoc(),
                                           countDim(b, stage, axis));
  };
  // Of a sequence of mean length.
  Value sequences =
      stage.facts.isPacked ? n.max(count(Axis::Sequence), n.get(1)) : n.get(1);
  Value each = n.mul(sequences, n.get(kPartTokens));
  return n.max(n.divideUp(count(Axis::Token), each), n.get(1));
}
