//===- Intervals.cpp - States after every so many tokens ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kept state is that before a chunk. So that code which keeps one is not in
// every chunk of an unrolled loop, chunks before which states are kept are the
// first ones of blocks of the loop. An interval that is no multiple of a block
// ends within one: its last chunks are cut, or empty, and the next interval
// begins with the next block.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "States.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::gdn;

/// Tokens of a block of the loop over chunks.
static constexpr int64_t kLoopTokens = support::savedStateMultiple;

/// What intervals are multiples of.
static int64_t unitOf(const Program &p) {
  return p.facts.decay == DecayKind::Channel ? support::channelStateMultiple
                                             : kLoopTokens;
}

/// Whether intervals may end within blocks.
static bool endsInBlocks(const Program &p) {
  return unitOf(p) % kLoopTokens != 0;
}

static Value constant(Program &p, int64_t value) {
  return arith::ConstantIntOp::create(p.b, value, 32);
}

static Value compare(Program &p, arith::CmpIPredicate predicate, Value x,
                     Value y) {
  return arith::CmpIOp::create(p.b, predicate, x, y);
}

static Value both(Program &p, Value x, Value y) {
  return arith::AndIOp::create(p.b, x, y);
}

/// Entry `number` of step_starts; 0 in a call without it.
static Value readStart(Program &p, Value number) {
  return readIfThere(p, "step_starts", p.zero,
                     [&] { return loadNumber(p, "step_starts", {number}); });
}

/// Whether the rows of states follow each other, in some call.
static bool mayFollow(Program &p) {
  return p["step_starts"] &&
         (!p["step_indices"] || isOptional(p, "step_indices"));
}

/// How many rows the sequence has for states.
static Value countRows(Program &p) {
  TileBuilder &b = p.b;
  if (!mayFollow(p))
    return countSteps(p);
  Value next = arith::AddIOp::create(b, p.sequence, b.index(1));
  Value rows = memref::DimOp::create(b, p["step_states"], 0);
  Value end = arith::MinSIOp::create(b, readStart(p, next), rows);
  Value count = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, end, readStart(p, p.sequence)), p.zero);
  if (!p["step_indices"])
    return count;
  Value named = memref::DimOp::create(b, p["step_indices"], 0);
  Value isNamed = compare(p, arith::CmpIPredicate::ne, named, p.zero);
  return arith::SelectOp::create(b, isNamed, countSteps(p), count);
}

/// `number`, which roles make before their loops.
static Value once(Value number) {
  if (Operation *maker = number.getDefiningOp())
    maker->setAttr(tile::kBeforeLoopsAttrName,
                   UnitAttr::get(number.getContext()));
  return number;
}

KeptStates gdn::readKeptStates(Program &p) {
  if (!p["step_intervals"])
    return {};
  TileBuilder &b = p.b;
  KeptStates kept;
  int64_t unit = unitOf(p);
  Value given = loadNumber(p, "step_intervals", {p.sequence});
  Value rest = arith::AndIOp::create(b, given, b.index(unit - 1));
  Value isSome =
      both(p, compare(p, arith::CmpIPredicate::sgt, given, p.zero),
           both(p,
                compare(p, arith::CmpIPredicate::sle, given,
                        b.index(std::numeric_limits<int32_t>::max())),
                compare(p, arith::CmpIPredicate::eq, rest, p.zero)));
  // 32 bits: a division of 64 is a call.
  kept.interval =
      once(b.toI32(arith::SelectOp::create(b, isSome, given, b.index(unit))));
  Value up = kept.interval;
  if (endsInBlocks(p))
    up = arith::AddIOp::create(b, up, constant(p, kLoopTokens - 1));
  kept.blocks = once(arith::DivUIOp::create(b, up, constant(p, kLoopTokens)));
  // A row of a pool decides about it.
  once(p.begin);
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value rows = arith::MinSIOp::create(b, countRows(p), tokens);
  kept.count = once(arith::MinUIOp::create(
      b, b.toI32(arith::SelectOp::create(b, isSome, rows, p.zero)),
      arith::DivUIOp::create(b, b.toI32(tokens), kept.interval)));
  return kept;
}

/// The row of a state of the sequence, whose `number` counts from 1; below zero
/// for none.
static Value readRow(Program &p, Value number) {
  TileBuilder &b = p.b;
  Value place = b.toIndex(arith::SubIOp::create(b, number, constant(p, 1)));
  Value none = b.index(-1), row = none;
  if (mayFollow(p))
    row = arith::AddIOp::create(b, readStart(p, p.sequence), place);
  if (!p["step_indices"])
    return row;
  return readIfThere(p, "step_indices", row, [&]() -> Value {
    Value named = loadNumber(p, "step_indices", {p.sequence, place});
    Value count = memref::DimOp::create(b, stepArray(p), 0);
    return arith::SelectOp::create(b, isRow(p, named, count), named, none);
  });
}

/// Stores S^T, which `read` gives, as the state of that number, if an interval
/// ends with it and it has a row.
static void keepNumber(Program &p, const KeptStates &kept, Value number,
                       Value isEnd, function_ref<Value()> read) {
  TileBuilder &b = p.b;
  OpBuilder::InsertionGuard guard(b);
  auto enter = [&](Value condition) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    // Most iterations keep nothing.
    branch->setAttr(tile::TileDialect::getLikelyAttrName(),
                    b.getBoolAttr(false));
    branch->setAttr(tile::kSeldomAttrName, b.getUnitAttr());
    b.setInsertionPointToStart(branch.thenBlock());
  };
  // Asked in each iteration, so this goes first, alone.
  enter(isEnd);
  enter(both(p, compare(p, arith::CmpIPredicate::ne, number, constant(p, 0)),
             compare(p, arith::CmpIPredicate::ule, number, kept.count)));
  Value row = readRow(p, number);
  enter(compare(p, arith::CmpIPredicate::sge, row, p.zero));
  Value state = read();
  auto [offsets, axes] = stateAccess(p, row);
  b.step("state");
  tile::StoreOp store = b.store(state, stepArray(p), offsets, axes);
  store->setAttr(tile::kSeldomAttrName, b.getUnitAttr());
  // Rows that sequences name are those of nobody else, in a pool, too.
  if (p["step_indices"])
    store->setAttr(tile::kOwnRowsAttrName, b.getUnitAttr());
}

namespace {
/// A place in the loop: the intervals before it, and whether they end there.
struct Place {
  Value intervals, isEnd;
};
} // namespace

/// Kernels count quotient and rest of blocks from one to the next
/// (gdn-warp-carry-quotients).
static Place findPlace(Program &p, const KeptStates &kept, Value place) {
  TileBuilder &b = p.b;
  Value blocks = b.toI32(arith::DivUIOp::create(
      b, arith::SubIOp::create(b, place, p.begin), b.index(kLoopTokens)));
  Value rest = arith::RemUIOp::create(b, blocks, kept.blocks);
  return {arith::DivUIOp::create(b, blocks, kept.blocks),
          compare(p, arith::CmpIPredicate::eq, rest, constant(p, 0))};
}

void gdn::keepStateOfChunkT(Program &p, const KeptStates &kept, Value place,
                            function_ref<Value()> read) {
  if (!kept.interval)
    return;
  TileBuilder &b = p.b;
  int64_t chunks = kLoopTokens / p.facts.C;
  OpBuilder::InsertionGuard guard(b);
  if (chunks > 1) {
    Value rest = arith::RemUIOp::create(
        b, arith::SubIOp::create(b, place, p.begin), b.index(kLoopTokens));
    auto branch =
        scf::IfOp::create(b, compare(p, arith::CmpIPredicate::eq, rest, p.zero),
                          /*withElseRegion=*/false);
    branch->setAttr(tile::kEveryAttrName, b.getI64IntegerAttr(chunks));
    b.setInsertionPointToStart(branch.thenBlock());
  }
  auto [number, isEnd] = findPlace(p, kept, place);
  keepNumber(p, kept, number, isEnd, read);
}

void gdn::keepLastStateT(Program &p, const KeptStates &kept, Value state) {
  if (!kept.interval)
    return;
  Value tokens = p.b.toI32(arith::SubIOp::create(p.b, p.end, p.begin));
  Value number = arith::DivUIOp::create(p.b, tokens, kept.interval);
  Value back = arith::MulIOp::create(p.b, number, kept.interval);
  keepNumber(p, kept, number,
             compare(p, arith::CmpIPredicate::eq, back, tokens),
             [&] { return state; });
}

/// Tokens of the loop that an interval has and the sequence has not.
static Value gapOf(Program &p, const KeptStates &kept) {
  Value inLoop =
      arith::MulIOp::create(p.b, kept.blocks, constant(p, kLoopTokens));
  return arith::SubIOp::create(p.b, inLoop, kept.interval);
}

Value gdn::endOfLoop(Program &p, const KeptStates &kept) {
  if (!kept.interval || !endsInBlocks(p))
    return p.end;
  Value gaps = arith::MulIOp::create(p.b, kept.count, gapOf(p, kept));
  return arith::AddIOp::create(p.b, p.end, p.b.toIndex(gaps));
}

Value gdn::enterChunk(Program &p, const KeptStates &kept, Value place,
                      Value end) {
  p.end = end;
  if (!kept.interval || !endsInBlocks(p))
    return place;
  TileBuilder &b = p.b;
  Value number = arith::MinUIOp::create(b, findPlace(p, kept, place).intervals,
                                        kept.count);
  Value next = arith::AddIOp::create(b, number, constant(p, 1));
  Value tokens = b.toIndex(arith::MulIOp::create(b, next, kept.interval));
  Value cut = arith::SelectOp::create(
      b, compare(p, arith::CmpIPredicate::ult, number, kept.count),
      arith::AddIOp::create(b, p.begin, tokens), end);
  // Never behind the sequence: so the form says, too.
  p.end = arith::MinSIOp::create(b, end, cut);
  Value gaps = arith::MulIOp::create(b, number, gapOf(p, kept));
  return arith::SubIOp::create(b, place, b.toIndex(gaps));
}
