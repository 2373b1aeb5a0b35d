//===- Gradients.cpp - Gradients of tokens from the states around them ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spec 5.7 (c) in its form for gates of any strength: with true states at the
// ends of every chunk, gradients are those of causal linear attention. States
// between those that are there are made again on the way: what tokens write is
// known, so that takes no solve.
//
//===----------------------------------------------------------------------===//

#include "GradientGroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// States that are kept, or one chunk from one
//===----------------------------------------------------------------------===//

/// Parts of a sequence take the chunks in turn, or turns a block of them each.
static void writeChunksInTurn(Program &p) {
  TileBuilder &b = p.b;
  StateSource source = p.facts.stateInterval == p.facts.segmentLength
                           ? StateSource::Kept
                           : StateSource::ChunkBefore;
  Group group = makeGroup(p);
  TokenRange range;
  if (p["progress"]) {
    group.firstHead = maskTo32Bits(p, group.firstHead);
    range = enterBlock(p, group.firstHead, group.size);
  } else {
    Value offset = arith::MulIOp::create(b, getPart(p), b.index(p.facts.C));
    // Addresses of sums in memory leave few registers for what the loop keeps.
    if (addsInMemory(p, group) && group.known != 1) {
      group.firstHead = maskTo32Bits(p, group.firstHead);
      p.begin = maskTo32Bits(p, p.begin);
    }
    range = {arith::AddIOp::create(b, p.begin, offset), p.end};
  }
  // A block is a range of its own.
  Value step = b.index(p.facts.C);
  if (!p["progress"])
    step = arith::MulIOp::create(b, countParts(p), step);
  forEachMember(p, group, range.first, range.end, step,
                [&](Value t, const Member &member, GroupSums &sums) {
                  GradientChunk chunk = beginGradientChunk(p, t, source);
                  if (chunk.keyNorm) {
                    writeNormedPieces(p, chunk);
                    return storeScalarGradients(p, chunk);
                  }
                  for (size_t piece = 0; piece < chunk.in.k.size(); ++piece)
                    writePiece(p, chunk, piece, member, sums);
                  storeScalarGradients(p, chunk);
                });
}

//===----------------------------------------------------------------------===//
// States that are carried from one that is kept
//===----------------------------------------------------------------------===//

/// The kept state before token t of the work item's head, f32, by pieces of K
/// and then of V. A range without tokens reads that of its sequence.
static SmallVector<Pieces> loadKeptState(Program &p, const TokenRange &range) {
  TileBuilder &b = p.b;
  Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        range.first, range.end);
  Value t = arith::SelectOp::create(b, isEmpty, p.begin, range.first);
  Value segment = savedSegment(p, t, p.facts.stateInterval);
  SmallVector<Pieces> state;
  int64_t columns = keyPieceChannels(p);
  for (int64_t piece = 0; piece * columns < p.facts.K; ++piece)
    state.push_back(makePieces(p.facts.V, [&](int64_t first, int64_t size) {
      b.step(pieceStep(p, piece));
      return b.f32(
          b.load(p["states"],
                 {segment, p.head, b.index(first), b.index(piece * columns)},
                 {2, 3}, {size, columns}));
    }));
  return state;
}

/// Rounds a carried piece of the state for the products of its chunk.
static void setState(Program &p, GradientChunk &chunk, size_t piece,
                     const Pieces &state) {
  chunk.in.state.resize(piece + 1);
  for (Value rows : state)
    chunk.in.state[piece].push_back(p.b.round(rows));
}

/// The columns of a piece that this work item of the cluster keeps of its sum.
static Value sumSlice(Program &p, Value number, Value tile) {
  if (p.facts.cluster == 1)
    return tile;
  TileBuilder &b = p.b;
  int64_t columns = shapeOf(tile)[1] / p.facts.cluster;
  return tile::ClusterSumOp::create(b, b.tileType({shapeOf(tile)[0], columns}),
                                    tile, number, p.facts.cluster);
}

/// Stores these columns, of which `column` is the first one of its piece.
static void storeSlice(Program &p, StringRef name, const GradientChunk &chunk,
                       size_t piece, Value column, Value tile) {
  TileBuilder &b = p.b;
  Value first = b.index(piece * keyPieceChannels(p));
  if (p.facts.cluster > 1)
    first = arith::AddIOp::create(b, first, column);
  b.store(tile, p[name], tokenOffsets(p, chunk.t, p.keyHead, first), {1, 3},
          p.end);
}

/// The gradients of a piece of K, of which each work item of the cluster adds
/// up a part, and the piece of the state behind the chunk.
static Pieces writePieceInCluster(Program &p, GradientChunk &chunk,
                                  size_t piece, Value column, Value number,
                                  const Pieces &state) {
  TileBuilder &b = p.b;
  b.step(pieceStep(p, piece));
  setState(p, chunk, piece, state);
  Value dq, dk;
  auto addTo = [&](Value &sum) {
    return [&](Value part) { sum = sum ? b.add(sum, part) : part; };
  };
  auto storeQueries = [&] { storeSlice(p, "dq", chunk, piece, column, dq); };
  auto storeKeys = [&] { storeSlice(p, "dk", chunk, piece, column, dk); };
  if (p.facts.decay == DecayKind::Channel) {
    dq = dk = b.fill(0.0, shapeOf(chunk.in.k[piece]));
    auto storeSum = [&] {
      dq = sumSlice(p, number, dq);
      storeQueries();
    };
    addChannelGradients(p, chunk, piece, dq, storeSum, dk, [&] {
      dk = sumSlice(p, number, dk);
      storeKeys();
    });
    return carryState(p, chunk, piece, state);
  }
  Value reads = addQueryGradient(p, chunk, piece, addTo(dq));
  dq = sumSlice(p, number, dq);
  // What goes to the others is on its way under the products that follow. A
  // whole piece has no room there.
  bool isAlone = p.facts.cluster == 1;
  if (isAlone)
    storeQueries();
  addReadKeyGradient(p, chunk, piece, reads, addTo(dk),
                     isAlone ? function_ref<void()>() : storeQueries);
  addWriteKeyGradient(p, chunk, piece, addTo(dk));
  dk = sumSlice(p, number, dk);
  if (isAlone)
    storeKeys();
  Pieces next = carryState(p, chunk, piece, state);
  if (!isAlone)
    storeKeys();
  return next;
}

/// The work items of a cluster are the value heads of a group, and take the
/// same tokens.
static void writeInCluster(Program &p) {
  TileBuilder &b = p.b;
  Group group = makeGroup(p);
  Value member = p.zero, part = getPart(p);
  if (p.facts.cluster > 1) {
    member = arith::RemUIOp::create(b, p.tile, b.index(p.facts.cluster));
    if (part == p.tile)
      part = arith::DivUIOp::create(b, p.tile, b.index(p.facts.cluster));
  }
  enterMember(p, group, member);
  // Outside of the loop: so stores of pieces are known to be disjoint.
  Value columns = b.index(keyPieceChannels(p) / p.facts.cluster);
  Value column = arith::MulIOp::create(b, member, columns);
  TokenRange range = makeKeptRange(p, part);
  SmallVector<Value> carried;
  for (const Pieces &piece : loadKeptState(p, range))
    carried.append(piece);
  Value step = b.index(p.facts.C);
  auto loop = scf::ForOp::create(b, range.first, range.end, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  Value since = arith::SubIOp::create(b, t, range.first);
  Value number = arith::DivUIOp::create(b, since, step);
  GradientChunk chunk = beginGradientChunk(p, t, StateSource::Carried);
  ValueRange args = loop.getRegionIterArgs();
  size_t pieces = chunk.in.k.size(), rows = args.size() / pieces;
  SmallVector<Value> next;
  for (size_t piece = 0; piece < pieces; ++piece)
    next.append(writePieceInCluster(p, chunk, piece, column, number,
                                    Pieces(args.slice(piece * rows, rows))));
  storeScalarGradients(p, chunk);
  scf::YieldOp::create(b, next);
}

//===----------------------------------------------------------------------===//
// The same where work items do not run at the same time
//===----------------------------------------------------------------------===//

/// Where a piece of a value head's state lies in memory of the work item.
static SmallVector<Value> scratchOffsets(Program &p, const Member &member,
                                         size_t piece, size_t row) {
  TileBuilder &b = p.b;
  return {member.number, b.index(row * pieceChannels(p.facts.V)),
          b.index(piece * keyPieceChannels(p))};
}

/// Copies the kept state of each value head to memory of the work item.
static void loadGroupStates(Program &p, const Group &group,
                            const TokenRange &range, Value states) {
  TileBuilder &b = p.b;
  auto loop = scf::ForOp::create(b, p.zero, group.size, b.index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Member member = enterMember(p, group, loop.getInductionVar());
  for (auto [piece, rows] : llvm::enumerate(loadKeptState(p, range)))
    for (auto [row, tile] : llvm::enumerate(rows))
      b.store(tile, states, scratchOffsets(p, member, piece, row), {1, 2});
}

static void writeGroupInTurn(Program &p) {
  TileBuilder &b = p.b;
  Group group = makeGroup(p);
  TokenRange range = makeKeptRange(p, getPart(p));
  bool isKnown = !ShapedType::isDynamic(group.known);
  Value states = memref::AllocOp::create(
      b, MemRefType::get({group.known, p.facts.V, p.facts.K}, b.getF32Type()),
      isKnown ? ValueRange() : ValueRange(group.size));
  loadGroupStates(p, group, range, states);
  forEachMember(
      p, group, range.first, range.end, b.index(p.facts.C),
      [&](Value t, const Member &member, GroupSums &sums) {
        GradientChunk chunk = beginGradientChunk(p, t, StateSource::Carried);
        for (size_t piece = 0; piece < chunk.in.k.size(); ++piece) {
          b.step(pieceStep(p, piece));
          Pieces state =
              makePieces(p.facts.V, [&](int64_t first, int64_t size) {
                return b.load(states,
                              scratchOffsets(p, member, piece, first / size),
                              {1, 2}, {size, keyPieceChannels(p)});
              });
          setState(p, chunk, piece, state);
          writePiece(p, chunk, piece, member, sums);
          Pieces next = carryState(p, chunk, piece, state);
          for (auto [row, tile] : llvm::enumerate(next))
            b.store(tile, states, scratchOffsets(p, member, piece, row),
                    {1, 2});
        }
        storeScalarGradients(p, chunk);
      });
  memref::DeallocOp::create(b, states);
}

void gdn::writeGradients(Program &p) {
  raiseBeta(p);
  raiseLinearGate(p);
  // A state before every second chunk costs no more than one before each.
  if (p.facts.stateInterval <= 2 * p.facts.segmentLength)
    return writeChunksInTurn(p);
  if (p.facts.cluster != 0)
    return writeInCluster(p);
  writeGroupInTurn(p);
}
