//===- Blocks.cpp - Gradients that follow an adjoint ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An adjoint goes through the chunks of a sequence from the last to the first.
// The gradients of a block of chunks need no chunk before it, so they can be
// computed while the adjoint goes on. A few long sequences leave
// multiprocessors free for that. Blocks are turns of the gradients' grid, the
// last block of a sequence first: CTAs begin in the order in which blocks are
// ready.
//
//===----------------------------------------------------------------------===//

#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Tokens of the smallest block. A CTA's way in and out takes as long as a
/// chunk, and a report as long as a copy to memory.
static constexpr int64_t kBlockTokens = 512;
/// Turns: few enough that those without a block cost little, enough that a
/// block of the longest sequence is no long one.
static constexpr int64_t kLeastTurns = 8, kMostTurns = 64;

static Value divideUp(TileBuilder &b, Value x, Value y) {
  return b.toIndex(arith::CeilDivUIOp::create(b, b.toI32(x), b.toI32(y)));
}

Value gdn::countBlockTurns(OpBuilder &b, Location loc, Value tokens,
                           Value sequences,
                           function_ref<Value(Value, Value)> divideUp) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value blocks = arith::DivUIOp::create(b, loc, tokens, index(kBlockTokens));
  Value least = arith::MaxUIOp::create(b, loc, sequences, index(1));
  Value twice = arith::MulIOp::create(b, loc, blocks, index(2));
  Value turns = arith::MinUIOp::create(b, loc, blocks, divideUp(twice, least));
  turns = arith::MaxUIOp::create(b, loc, turns, index(kLeastTurns));
  return arith::MinUIOp::create(b, loc, turns, index(kMostTurns));
}

void gdn::reportChunk(Program &p, Value t) {
  if (!p["progress"])
    return;
  TileBuilder &b = p.b;
  Value rest = arith::RemUIOp::create(b, chunkNumber(p, t),
                                      b.index(kBlockTokens / p.facts.C));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, p.zero);
  Value done = arith::SubIOp::create(b, p.end, t);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  b.step("store");
  tile::ReportOp::create(b, done, p["progress"],
                         ValueRange{p.sequence, p.head, p.tile});
  b.step("state");
}

Value gdn::maskTo32Bits(Program &p, Value number) {
  Value mask = p.b.index(std::numeric_limits<uint32_t>::max());
  return arith::AndIOp::create(p.b, number, mask);
}

TokenRange gdn::enterBlock(Program &p, Value firstHead, Value heads) {
  TileBuilder &b = p.b;
  Value unit = b.index(kBlockTokens);
  auto dim = [&](StringRef name, int64_t number) -> Value {
    return memref::DimOp::create(b, p[name], number);
  };
  auto divide = [&](Value x, Value y) { return divideUp(b, x, y); };
  Value turns =
      countBlockTurns(b, b.getLoc(), dim("k", 1), dim("progress", 0), divide);
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value units = divide(tokens, unit);
  Value length = arith::MaxUIOp::create(b, divide(units, turns), b.index(1));
  Value blocks = divide(units, length);
  Value isIdle =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, p.turn, blocks);
  tile::LeaveOp::create(b, isIdle, ValueRange());
  // From the last one on. In 32 bits, so that roles keep one register of each.
  Value behind = arith::AddIOp::create(b, p.turn, b.index(1));
  Value number = arith::SubIOp::create(b, b.toI32(blocks), b.toI32(behind));
  length = b.toI32(arith::MulIOp::create(b, length, unit));
  Value first = arith::AddIOp::create(b, b.toI32(p.begin),
                                      arith::MulIOp::create(b, number, length));
  Value last = b.toI32(p.end);
  Value end =
      arith::MinUIOp::create(b, arith::AddIOp::create(b, first, length), last);
  first = b.toIndex(arith::SelectOp::create(b, isIdle, last, first));
  end = b.toIndex(arith::SelectOp::create(b, isIdle, last, end));
  tile::AwaitReportOp::create(b, p["progress"],
                              ValueRange{p.sequence, firstHead}, heads,
                              arith::SubIOp::create(b, p.end, first));
  // A block is a multiple of the tokens between states: their numbers from
  // its begin on are those of the sequence, moved on.
  p.begin = first;
  return {first, end};
}
