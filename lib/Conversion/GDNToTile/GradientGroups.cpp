//===- GradientGroups.cpp - Gradients of a group of heads -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientGroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Stores a piece of a gradient behind the last value head of a group.
static void storePiece(Program &p, StringRef name, Value t, size_t piece,
                       Value isLast, Value tile) {
  TileBuilder &b = p.b;
  auto choice = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  Value first = b.index(piece * shapeOf(tile)[1]);
  b.store(tile, p[name], tokenOffsets(p, t, p.keyHead, first), {1, 3}, p.end);
}

bool gdn::addsInMemory(Program &p, const Group &group) {
  return p.facts.decay == DecayKind::Channel &&
         (group.known == 1 || p["sums"] ||
          getElementTypeOrSelf(p["dq"].getType()).isF32());
}

/// Adds the gradients of a piece of a value head to those that the heads before
/// it left in memory.
static void addPieceInMemory(Program &p, GradientChunk &chunk, size_t piece,
                             const Member &member) {
  TileBuilder &b = p.b;
  b.step(pieceStep(p, piece));
  ArrayRef<int64_t> shape = shapeOf(chunk.in.k[piece]);
  Value channel = b.index(piece * shape[1]), sums = p["sums"];
  auto add = [&](StringRef name, int64_t row, Value tile) {
    SmallVector<Value> offsets = tokenOffsets(p, chunk.t, p.keyHead, channel);
    auto loadFrom = [&](Value array, ValueRange place) {
      return b.load(array, place, {1, 3}, shape, p.end);
    };
    auto storeIf = [&](Value condition, function_ref<void()> yes,
                       function_ref<void()> no) {
      auto choice = scf::IfOp::create(b, condition, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      yes();
      b.setInsertionPointToStart(choice.elseBlock());
      no();
    };
    auto store = [&](Value sum, Value array, ValueRange place) {
      b.store(sum, array, place, {1, 3}, p.end);
    };
    if (!sums || member.isAlone) {
      Value array = p[name];
      if (member.isAlone)
        return store(tile, array, offsets);
      // The first one, which often is the only one, adds nothing.
      return storeIf(
          member.isFirst, [&] { store(tile, array, offsets); },
          [&] {
            store(b.add(tile, loadFrom(array, offsets)), array, offsets);
          });
    }
    // Sums lie in the rows of the group's first two heads.
    Value first = arith::SubIOp::create(b, p.head, member.number);
    SmallVector<Value> place = tokenOffsets(
        p, chunk.t, arith::AddIOp::create(b, first, b.index(row)), channel);
    auto addThoseBefore = [&]() -> SmallVector<Value> {
      return {b.add(tile, loadFrom(sums, place))};
    };
    tile = choose(
               p, member.isFirst,
               [&]() -> SmallVector<Value> { return {tile}; }, addThoseBefore)
               .front();
    storeIf(
        member.isLast, [&] { store(tile, p[name], offsets); },
        [&] { store(tile, sums, place); });
  };
  Value dq, dk;
  addChannelGradients(
      p, chunk, piece, dq, [&] { add("dq", 0, dq); }, dk,
      [&] { add("dk", 1, dk); });
}

void gdn::writePiece(Program &p, GradientChunk &chunk, size_t piece,
                     const Member &member, GroupSums &sums) {
  if (sums.q.empty())
    return addPieceInMemory(p, chunk, piece, member);
  TileBuilder &b = p.b;
  b.step(pieceStep(p, piece));
  auto begin = [&](Value sum) -> Value {
    return arith::SelectOp::create(b, member.isFirst, b.fill(0.0, shapeOf(sum)),
                                   sum);
  };
  auto addTo = [&](Value &sum) {
    return [&](Value part) { sum = b.add(sum, part); };
  };
  Value &q = sums.q[piece], &k = sums.k[piece];
  if (p.facts.decay == DecayKind::Channel) {
    q = begin(q);
    k = begin(k);
    auto storeQueries = [&] {
      storePiece(p, "dq", chunk.t, piece, member.isLast, q);
    };
    auto storeKeys = [&] {
      storePiece(p, "dk", chunk.t, piece, member.isLast, k);
    };
    return addChannelGradients(p, chunk, piece, q, storeQueries, k, storeKeys);
  }
  auto addWrites = [&] { addWriteKeyGradient(p, chunk, piece, addTo(k)); };
  // What makes states waits for the writes and gradients of the next chunk.
  bool writesFirst = chunk.in.source == StateSource::ChunkBefore;
  if (writesFirst) {
    k = begin(k);
    addWrites();
  }
  q = begin(q);
  Value reads = addQueryGradient(p, chunk, piece, addTo(q));
  storePiece(p, "dq", chunk.t, piece, member.isLast, q);
  if (writesFirst)
    addStateDots(p, chunk, piece);
  else
    k = begin(k);
  addReadKeyGradient(p, chunk, piece, reads, addTo(k));
  if (!writesFirst)
    addWrites();
  storePiece(p, "dk", chunk.t, piece, member.isLast, k);
}

Group gdn::makeGroup(Program &p) {
  TileBuilder &b = p.b;
  p.keyHead = p.head;
  Group group;
  bool areKnown =
      !ShapedType::isDynamic(p.facts.H) && !ShapedType::isDynamic(p.facts.Hq);
  if (areKnown)
    group.known = p.facts.H / p.facts.Hq;
  else if (p.facts.singleHeads)
    group.known = 1;
  if (!ShapedType::isDynamic(group.known)) {
    group.size = b.index(group.known);
  } else {
    auto headsOf = [&](StringRef name) -> Value {
      return b.toI32(memref::DimOp::create(b, p[name], 2));
    };
    Value size = arith::DivUIOp::create(b, headsOf("beta"), headsOf("k"));
    group.size = b.toIndex(size);
  }
  group.firstHead = arith::MulIOp::create(b, p.keyHead, group.size);
  return group;
}

Member gdn::enterMember(Program &p, const Group &group, Value number) {
  TileBuilder &b = p.b;
  auto isEqual = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  };
  p.head = arith::AddIOp::create(b, group.firstHead, number);
  p.loadGateParameters();
  return {number, isEqual(number, p.zero),
          isEqual(arith::AddIOp::create(b, number, b.index(1)), group.size),
          group.known == 1};
}

void gdn::forEachMember(
    Program &p, const Group &group, Value first, Value end, Value step,
    function_ref<void(Value t, const Member &member, GroupSums &sums)> body) {
  TileBuilder &b = p.b;
  Value left =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, end, first), p.zero);
  // The call may choose the step: a division of 64 bits would be a function.
  Value chunks =
      b.toIndex(arith::CeilDivUIOp::create(b, b.toI32(left), b.toI32(step)));
  Value upper = arith::MulIOp::create(b, chunks, group.size);
  Pieces none;
  if (!addsInMemory(p, group))
    none =
        makePieces(p.facts.K, keyPieceChannels(p), [&](int64_t, int64_t size) {
          return b.fill(0.0, {p.facts.C, size});
        });
  Pieces carried(none);
  carried.append(none);
  auto loop = scf::ForOp::create(b, p.zero, upper, b.index(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value chunk = arith::DivUIOp::create(b, number, group.size);
  Member member =
      enterMember(p, group, arith::RemUIOp::create(b, number, group.size));
  Value t =
      arith::AddIOp::create(b, first, arith::MulIOp::create(b, chunk, step));
  ValueRange args = loop.getRegionIterArgs();
  GroupSums sums = {Pieces(args.take_front(none.size())),
                    Pieces(args.drop_front(none.size()))};
  body(t, member, sums);
  if (carried.empty())
    return;
  sums.q.append(sums.k);
  scf::YieldOp::create(b, sums.q);
}
