//===- SegmentBoundaries.cpp - Where sequences are cut into segments ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::gdn;

/// Stores an index as entry `at` of the array `name`.
static void storeIndex(Program &p, StringRef name, Value at, Value index) {
  TileBuilder &b = p.b;
  Value array = p[name];
  Type element = cast<MemRefType>(array.getType()).getElementType();
  Value number = arith::IndexCastOp::create(b, element, index);
  b.step("store");
  tile::StoreOp::create(b, b.splat(number, 1), array, ValueRange{at},
                        b.getDenseI64ArrayAttr({0}), Value(), IntegerAttr());
}

namespace {
/// The segments of a sequence, or their parts: the tokens of one, the number of
/// the first one, that behind the last one, and that of the first part of the
/// segment with which the sequence ends: the last one with tokens, or the first
/// of none. The last sequence also has those up to `upto`, which no sequence
/// needs. Where heads that keep a state have whole sequences, what segments
/// that end one are told, and what the others are.
struct Cuts {
  Value length, first, next, upto, closing, wholeBegin, others;
};
} // namespace

/// Stores where the segment before one in its sequence begins, and whether the
/// sequence ends with it. `from` is where the segment would begin if the
/// sequence did not end.
static void storeNeighbours(Program &p, const Cuts &cuts, Value segment,
                            Value from, Value end) {
  TileBuilder &b = p.b;
  Value none = b.index(-1);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, segment, cuts.first);
  Value previous = arith::MinUIOp::create(
      b, arith::SubIOp::create(b, from, cuts.length), end);
  Value own = arith::SubIOp::create(b, none, p.sequence);
  storeIndex(p, "before", segment,
             arith::SelectOp::create(b, isFirst, own, previous));
  Value closes =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                            arith::SubIOp::create(b, segment, cuts.closing),
                            p["parts"] ? p["parts"] : Value(b.index(1)));
  storeIndex(p, "closes", segment,
             arith::SelectOp::create(b, closes, p.sequence, none));
  if (cuts.wholeBegin)
    storeIndex(
        p, "whole_begins", segment,
        arith::SelectOp::create(b, closes, cuts.wholeBegin, cuts.others));
}

/// The number of the first part of the segment with which a sequence ends.
static Value findClosing(Program &p, const Cuts &cuts, Value tokens) {
  TileBuilder &b = p.b;
  Value one = b.index(1), parts = p["parts"];
  // A sequence without tokens may be cut into segments of none.
  Value length = arith::MaxUIOp::create(b, cuts.length, one);
  if (parts)
    length = arith::MulIOp::create(b, length, parts);
  Value used = arith::CeilDivUIOp::create(b, tokens, length);
  Value others =
      arith::SubIOp::create(b, arith::MaxUIOp::create(b, used, one), one);
  if (parts)
    others = arith::MulIOp::create(b, others, parts);
  return arith::AddIOp::create(b, cuts.first, others);
}

/// Cuts a sequence of `tokens` into as many segments as the stage says, or as
/// its gates choose.
static Cuts cutByNumber(Program &p, Value tokens) {
  TileBuilder &b = p.b;
  Value count = b.index(p.facts.segments), chunk = b.index(p.facts.C);
  Value chunks = arith::CeilDivUIOp::create(b, tokens, chunk);
  auto cutInto = [&](Value segments) -> Value {
    return arith::MulIOp::create(
        b, arith::CeilDivUIOp::create(b, chunks, segments), chunk);
  };
  Cuts cuts;
  cuts.length = cutInto(count);
  if (p.facts.fewerSegments && !p["whole_heads"])
    cuts.length = arith::SelectOp::create(
        b, callsForShorter(p, tokens, cuts.length), cuts.length,
        cutInto(b.index(p.facts.fewerSegments)));
  cuts.first = arith::MulIOp::create(b, p.sequence, count);
  cuts.upto = cuts.next = arith::AddIOp::create(b, cuts.first, count);
  return cuts;
}

/// Whether the sequence is the last one.
static Value isLastSequence(Program &p) {
  TileBuilder &b = p.b;
  Value after = arith::AddIOp::create(b, p.sequence, b.index(2));
  Value entries = memref::DimOp::create(b, p["first_segments"], 0);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, after, entries);
}

/// The tokens of a part of which a sequence has as many as of `longest`, in
/// whole chunks: a call waits for its longest segment.
static Value makeEqual(Program &p, Value tokens, Value longest) {
  TileBuilder &b = p.b;
  auto times = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  // Parts of so many tokens, at least one. In 32 bits, which a GPU divides and
  // which hold the tokens of a sequence: more in a part are as good as all.
  auto count = [&](Value length) -> Value {
    auto narrow = [&](Value index) -> Value {
      return arith::IndexCastOp::create(
          b, b.getI32Type(), arith::MaxUIOp::create(b, index, b.index(1)));
    };
    Value parts = arith::CeilDivUIOp::create(
        b, narrow(tokens), narrow(arith::MinUIOp::create(b, length, tokens)));
    return arith::IndexCastUIOp::create(b, b.getIndexType(), parts);
  };
  Value parts = p["parts"], chunk = b.index(p.facts.C);
  Value pieces = count(times(longest, parts));
  return times(count(times(times(pieces, parts), chunk)), chunk);
}

/// The tokens of a segment, or of its parts: of two lengths the one that a
/// sample of the gates calls for. There is room for as many segments as the
/// shorter one makes, so a `longer_length` below `length` counts as `length`.
static Value chooseLength(Program &p, Value tokens) {
  TileBuilder &b = p.b;
  Value length =
      p["length"] ? p["length"] : Value(b.index(p.facts.segmentLength));
  if (!p["longer_length"] || p["whole_heads"])
    return length;
  Value segment = arith::MulIOp::create(b, length, p["parts"]);
  Value longest = arith::SelectOp::create(
      b, callsForShorter(p, tokens, segment), length,
      arith::MaxUIOp::create(b, p["longer_length"], length));
  return makeEqual(p, tokens, longest);
}

/// Cuts a sequence every so many tokens. max(ceil(x / L), 1) segments before
/// token x, and one more for each sequence but the first, are enough, so no
/// packed sequence needs to know how many the others have. Batch rows all have
/// as many.
static Cuts cutByLength(Program &p, Value tokens) {
  TileBuilder &b = p.b;
  Value parts = p["parts"], one = b.index(1);
  Value length =
      p["length"] ? p["length"] : Value(b.index(p.facts.segmentLength));
  if (parts)
    length = arith::MulIOp::create(b, length, parts);
  auto piecesOf = [&](Value count) -> Value {
    return arith::MaxUIOp::create(
        b, arith::CeilDivUIOp::create(b, count, length), one);
  };
  auto partsOf = [&](Value segments) -> Value {
    return parts ? Value(arith::MulIOp::create(b, segments, parts)) : segments;
  };
  Cuts cuts;
  cuts.length = chooseLength(p, tokens);
  if (!p.facts.isPacked) {
    Value pieces = partsOf(piecesOf(p.end));
    cuts.first = arith::MulIOp::create(b, p.sequence, pieces);
    cuts.upto = cuts.next = arith::AddIOp::create(b, cuts.first, pieces);
    return cuts;
  }
  Value others = arith::SubIOp::create(b, p.sequence, one);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, p.sequence, p.zero);
  Value first = arith::SelectOp::create(
      b, isFirst, p.zero, arith::AddIOp::create(b, piecesOf(p.begin), others));
  cuts.first = partsOf(first);
  cuts.next = partsOf(arith::AddIOp::create(b, piecesOf(p.end), p.sequence));
  // Behind the last sequence there may be tokens, and so segments.
  Value all = arith::SubIOp::create(
      b, memref::DimOp::create(b, p["boundaries"], 0), one);
  cuts.upto = arith::SelectOp::create(b, isLastSequence(p), all, cuts.next);
  return cuts;
}

/// Whether heads that keep a state have whole sequences in this call: where the
/// longer of two lengths has room for any.
static Value mayLeaveWhole(Program &p) {
  TileBuilder &b = p.b;
  if (!p["longer_length"])
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value longest = arith::MulIOp::create(b, p["longer_length"], p["parts"]);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, longest,
                               memref::DimOp::create(b, p["k"], 1));
}

/// So far no head keeps a state. The first sequence says so, whose work items
/// share the heads.
static void clearWholeHeads(Program &p, int64_t items) {
  TileBuilder &b = p.b;
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, p.sequence, p.zero);
  Value heads = arith::SelectOp::create(
      b, isFirst, memref::DimOp::create(b, p["whole_heads"], 0), p.zero);
  auto loop =
      scf::ForOp::create(b, items > 1 ? p.tile : p.zero, heads, b.index(items));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  storeIndex(p, "whole_heads", loop.getInductionVar(), p.zero);
}

/// The last sequence ends what it has the last entry of.
static void storeEnds(Program &p, const Cuts &cuts, Value end) {
  TileBuilder &b = p.b;
  Value behind = arith::AddIOp::create(b, p.sequence, b.index(1));
  auto last = scf::IfOp::create(b, isLastSequence(p), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(last.thenBlock());
  storeIndex(p, "first_segments", behind, cuts.next);
  storeIndex(p, "boundaries", cuts.upto, end);
  if (p["before"])
    storeIndex(p, "before", cuts.upto,
               b.index(std::numeric_limits<int32_t>::max()));
}

void gdn::writeSegmentBoundaries(Program &p) {
  TileBuilder &b = p.b;
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  // Boundaries count through all batch rows. Packed sequences are in row 0.
  Value tokens = arith::SubIOp::create(b, p.end, p.begin);
  Value before = arith::MulIOp::create(b, p.batch, tokens);
  Value begin = add(p.begin, before), end = add(p.end, before);
  Cuts cuts =
      p.facts.segments ? cutByNumber(p, tokens) : cutByLength(p, tokens);
  if (p["before"])
    cuts.closing = findClosing(p, cuts, tokens);
  storeIndex(p, "first_segments", p.sequence, cuts.first);
  if (p["last_segments"])
    storeIndex(p, "last_segments", p.sequence, cuts.closing);
  Value own = cuts.first;
  int64_t items = p["parts"] ? kCuttingItems : 1;
  if (items > 1)
    own = add(own, p.tile);
  if (p["whole_heads"]) {
    clearWholeHeads(p, items);
    // Zeros say that sequences are cut anyway.
    Value mayBeWhole = mayLeaveWhole(p);
    cuts.wholeBegin = arith::SelectOp::create(b, mayBeWhole, begin, p.zero);
    cuts.others = arith::SelectOp::create(b, mayBeWhole, b.index(-1), p.zero);
  }
  auto loop = scf::ForOp::create(b, own, cuts.upto, b.index(items));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value segment = loop.getInductionVar();
    Value from = arith::MulIOp::create(
        b, arith::SubIOp::create(b, segment, cuts.first), cuts.length);
    Value at = arith::MinUIOp::create(b, add(begin, from), end);
    storeIndex(p, "boundaries", segment, at);
    if (p["sequence_numbers"])
      storeIndex(p, "sequence_numbers", segment, p.sequence);
    if (p["before"])
      storeNeighbours(p, cuts, segment, add(begin, from), end);
  }
  storeEnds(p, cuts, end);
}
