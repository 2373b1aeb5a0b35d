//===- Gradients.cpp - Gradients of tokens from the states around them ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spec 5.7 (c) in its form for gates of any strength: with true states at the
// ends of every chunk, gradients are those of causal linear attention.
//
//===----------------------------------------------------------------------===//

#include "Chain.h"
#include "Kept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// A gate that is the decay itself is raised to 2^-10 in log2 units. Its
/// gradient is that of its logarithm divided by it, and so holds at 0: what is
/// left of a token's error in f32, which no decay makes smaller, stays below
/// what 16 bits round, and so does what the raised gate lets through.
static constexpr double kLeastLog2Gate = -10.0;

namespace {
/// Tiles of some channels of V, or of K, each: products sum over those of what
/// they contract, and have a result for each of the others.
using Pieces = SmallVector<Value>;

/// What a chunk loads, in the operand type.
struct GradientTiles {
  /// Keys and queries [C, K].
  Pieces q, k;
  /// Gradients of o and v, and writes [C, V].
  Pieces dO, dV, writes;
  /// The state before the chunk and the gradient of that behind it [V, K], by
  /// pieces of K.
  SmallVector<Pieces> state, dState;
  Value beta;
  ChunkGates gates;
};

/// What the pairs of tokens of a chunk make.
struct PairTiles {
  /// d loss / d (q_i . k_j), lower, and minus d loss / d (k_i . k_j), strictly
  /// lower; in the operand type.
  Value queryKey, keyKey;
  Value dBeta;
};

/// Inner products of rows of q and k with their gradients, f32 [C], by pieces
/// of K: of queries and keys that read, less those of keys that are read later
/// in the chunk; and of keys that write to the state behind it. The gate's
/// gradient is made of them.
struct RowDots {
  Pieces reads, writes;
};

/// The gradients of the rows of q and k, summed over the value heads of a group
/// so far, f32 [C, K].
struct GroupSums {
  Pieces q, k;
};
} // namespace

/// Channels of a piece: a panel of shared memory, where that divides them.
static int64_t pieceChannels(int64_t channels) {
  constexpr int64_t kPanel = 64;
  return channels % kPanel == 0 ? kPanel : channels;
}

/// A tile for each piece of `channels`, of its first channel and their number.
static Pieces makePieces(int64_t channels,
                         function_ref<Value(int64_t, int64_t)> make) {
  Pieces pieces;
  int64_t size = pieceChannels(channels);
  for (int64_t first = 0; first < channels; first += size)
    pieces.push_back(make(first, size));
  return pieces;
}

/// Rows of the tokens from t on of the array `name`, with `channels` channels.
static Pieces loadRows(Program &p, StringRef name, StringRef step, Value t,
                       Value head, int64_t channels) {
  TileBuilder &b = p.b;
  return makePieces(channels, [&](int64_t first, int64_t size) {
    b.step(step);
    return b.round(b.load(p[name], tokenOffsets(p, t, head, b.index(first)),
                          {1, 3}, {p.facts.C, size}, p.end));
  });
}

static SmallVector<Pieces> loadState(Program &p, StringRef name, StringRef step,
                                     Value segment) {
  TileBuilder &b = p.b;
  SmallVector<Pieces> state;
  int64_t columns = pieceChannels(p.facts.K);
  for (int64_t firstK = 0; firstK < p.facts.K; firstK += columns)
    state.push_back(makePieces(p.facts.V, [&](int64_t first, int64_t size) {
      b.step(step);
      return b.round(b.load(p[name],
                            {segment, p.head, b.index(first), b.index(firstK)},
                            {2, 3}, {size, columns}));
    }));
  return state;
}

/// The sum over what is contracted of products of pieces.
static Value product(TileBuilder &b, StringRef spec, const Pieces &x,
                     const Pieces &y) {
  Value sum;
  for (auto [left, right] : llvm::zip(x, y))
    sum = b.product(spec, left, right, sum);
  return sum;
}

/// What is free first is loaded first: a step each for what lies in slots of
/// its own.
static GradientTiles loadTiles(Program &p, Value t) {
  GradientTiles in;
  int64_t K = p.facts.K, V = p.facts.V;
  in.dO = loadRows(p, "d_o", "load", t, p.head, V);
  in.dV = loadRows(p, "dv", "load", t, p.head, V);
  in.writes = loadRows(p, "writes", "load", t, p.head, V);
  int64_t length = p.facts.segmentLength;
  in.state = loadState(p, "states", "load_state", savedSegment(p, t, length));
  in.dState =
      loadState(p, "d_states", "load_gradient", keptSegment(p, t, length));
  in.q = loadRows(p, "q", "load_keys", t, p.keyHead, K);
  in.k = loadRows(p, "k", "load_keys", t, p.keyHead, K);
  in.beta = loadBeta(p, t);
  in.gates = loadChunkGates(p, t);
  return in;
}

/// Inner products of rows of x, in the operand type, and y.
static Value rowDots(TileBuilder &b, Value x, Value y) {
  return b.sum(b.mul(b.f32(x), y), 1);
}

static PairTiles makePairs(Program &p, const GradientTiles &in) {
  TileBuilder &b = p.b;
  PairTiles out;
  b.step("scores");
  Value decay = in.gates.G ? pairDecay(p, in.gates.G) : Value();
  auto decayed = [&](Value tile) { return decay ? b.mul(tile, decay) : tile; };
  auto inner = [&](const Pieces &x, const Pieces &y) {
    return product(b, "ic,jc->ij", x, y);
  };
  Value dKeyKey = decayed(inner(in.dV, in.writes));
  Value diagonal = tile::DiagonalOp::create(b, dKeyKey);
  out.dBeta = b.div(diagonal, b.mul(in.beta, in.beta));
  out.keyKey = tile::CausalOp::create(b, b.round(b.neg(dKeyKey)),
                                      /*strict=*/true);
  Value dQueryKey = decayed(b.scaled(inner(in.dO, in.writes), p.facts.scale));
  out.queryKey = tile::CausalOp::create(b, b.round(dQueryKey),
                                        /*strict=*/false);
  return out;
}

/// `tile` with rows times `factor`, null for 1.
static Value mulRows(TileBuilder &b, Value tile, Value factor) {
  return factor ? b.mulAxis(tile, factor, 0) : tile;
}

/// The step of a piece of K: it has warps of its own.
static StringRef pieceStep(size_t piece) {
  static constexpr StringLiteral kSteps[] = {"low_keys", "high_keys"};
  return kSteps[piece % std::size(kSteps)];
}

/// Adds a value head's part of a piece of dQ to `sum`. Returns its row dots.
static Value addQueryGradient(Program &p, const GradientTiles &in,
                              const PairTiles &pairs, Value factor,
                              size_t piece, Value &sum) {
  TileBuilder &b = p.b;
  Value dq = product(b, "iv,vk->ik", in.dO, in.state[piece]);
  dq = b.product("ij,jk->ik", pairs.queryKey, in.k[piece],
                 mulRows(b, dq, factor));
  sum = b.add(sum, dq);
  return in.gates.G ? rowDots(b, in.q[piece], dq) : Value();
}

/// The same of dK; `queries` are the row dots of dQ. What a key reads and how
/// it is read later share registers, and the row dots of the latter are a
/// difference: with the sums, more parts would not fit.
static void addKeyGradient(Program &p, const GradientTiles &in,
                           const PairTiles &pairs, size_t piece, Value &sum,
                           Value queries, RowDots &dots) {
  TileBuilder &b = p.b;
  Value k = in.k[piece];
  Value part = product(b, "iv,vk->ik", in.dV, in.state[piece]);
  part = b.neg(mulRows(b, part, in.gates.read));
  part = b.product("ij,jk->ik", pairs.keyKey, k, part);
  Value readers = in.gates.G ? rowDots(b, k, part) : Value();
  part = b.product("ij,ik->jk", pairs.queryKey, in.q[piece], part);
  part = b.product("ij,ik->jk", pairs.keyKey, k, part);
  sum = b.add(sum, part);
  if (in.gates.G) {
    Value pairDots = b.sub(rowDots(b, k, part), readers);
    dots.reads.push_back(b.sub(b.add(queries, readers), pairDots));
  }
  Value write = product(b, "iv,vk->ik", in.writes, in.dState[piece]);
  write = mulRows(b, write, in.gates.write);
  sum = b.add(sum, write);
  if (in.gates.G)
    dots.writes.push_back(rowDots(b, k, write));
}

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

/// Adds a value head's part of a piece of dQ and dK to the sums of its group,
/// which the first one begins and the last one stores.
static void writePiece(Program &p, Value t, const GradientTiles &in,
                       const PairTiles &pairs, Value factor, size_t piece,
                       Value isFirst, Value isLast, GroupSums &sums,
                       RowDots &dots) {
  TileBuilder &b = p.b;
  b.step(pieceStep(piece));
  auto begin = [&](Value sum) -> Value {
    return arith::SelectOp::create(b, isFirst, b.fill(0.0, shapeOf(sum)), sum);
  };
  Value &q = sums.q[piece], &k = sums.k[piece];
  q = begin(q);
  Value reads = addQueryGradient(p, in, pairs, factor, piece, q);
  storePiece(p, "dq", t, piece, isLast, q);
  k = begin(k);
  addKeyGradient(p, in, pairs, piece, k, reads, dots);
  storePiece(p, "dk", t, piece, isLast, k);
}

/// 1 for tokens that others of the chunk follow, and 0 for the others, [C].
static Value hasFollowers(Program &p, Value t) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Value left = arith::IndexCastOp::create(b, b.getI32Type(),
                                          arith::SubIOp::create(b, p.end, t));
  Value tokens = arith::MinSIOp::create(b, left, number(C));
  Value last = arith::SubIOp::create(b, tokens, number(1));
  Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         b.iota(C), b.splat(last, C));
  return b.select(isBefore, b.fill(1.0, C), 0.0);
}

/// Row dots of the state and its gradient, of which only the sum matters.
static Value stateDots(TileBuilder &b, const GradientTiles &in) {
  Value sum;
  for (auto [state, dState] : llvm::zip(in.state, in.dState))
    for (auto [rows, dRows] : llvm::zip(state, dState)) {
      Value dots = rowDots(b, rows, b.f32(dRows));
      sum = sum ? b.add(sum, dots) : dots;
    }
  return sum;
}

/// The gradient of the log gate (spec 5.4, robust form): what tokens from its
/// own on read, of the state before the chunk or of each other, what tokens
/// before it write to the state behind the chunk, and what is carried through.
/// What tokens of the chunk read of each other is in two sums over the same
/// numbers, of the readers and of those who are read.
static Value gateGradient(Program &p, Value t, const GradientTiles &in,
                          const RowDots &dots) {
  TileBuilder &b = p.b;
  b.step("sums");
  Value carried = stateDots(b, in);
  b.step("finish");
  auto scan = [&](Value values, bool reverse) -> Value {
    return tile::ScanOp::create(b, values, 0, reverse);
  };
  Value sum =
      b.extract(scan(carried, /*reverse=*/false), {shapeOf(carried)[0] - 1});
  Value whole = b.splat(b.mul(sum, in.gates.whole), p.facts.C);
  auto total = [&](const Pieces &pieces) {
    Value sum = pieces.front();
    for (Value piece : ArrayRef(pieces).drop_front())
      sum = b.add(sum, piece);
    return sum;
  };
  Value reads = total(dots.reads);
  // Where decay is strong the last write is much larger than the others.
  Value writes = b.mul(total(dots.writes), hasFollowers(p, t));
  Value before = b.sub(scan(writes, /*reverse=*/false), writes);
  return b.add(scan(reads, /*reverse=*/true), b.add(before, whole));
}

/// The gradient of the gate, which may be its logarithm or itself.
static Value toGateGradient(Program &p, Value t, Value dg) {
  TileBuilder &b = p.b;
  if (p.facts.gateDomain != GateDomain::Linear)
    return dg;
  Value gate = b.load(p["gate"], {p.batch, t, p.head}, {1}, {p.facts.C}, p.end);
  return b.div(dg, b.max(b.f32(gate), std::exp2(kLeastLog2Gate)));
}

/// A chunk of one value head, the `member`th of its group of `group`. Adds to
/// the sums over the group.
static void writeGradientChunk(Program &p, Value t, Value member, Value group,
                               GroupSums &sums) {
  TileBuilder &b = p.b;
  auto isEqual = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  };
  Value isFirst = isEqual(member, p.zero);
  Value isLast = isEqual(arith::AddIOp::create(b, member, b.index(1)), group);
  GradientTiles in = loadTiles(p, t);
  PairTiles pairs = makePairs(p, in);
  b.step("gates");
  Value factor = b.fill(p.facts.scale, p.facts.C);
  if (in.gates.read)
    factor = b.mul(in.gates.read, factor);
  RowDots dots;
  for (size_t piece = 0; piece < in.k.size(); ++piece)
    writePiece(p, t, in, pairs, factor, piece, isFirst, isLast, sums, dots);
  b.step("finish");
  b.store(pairs.dBeta, p["dbeta"], {p.batch, t, p.head}, {1}, p.end);
  if (!in.gates.G)
    return;
  Value dg = toGateGradient(p, t, gateGradient(p, t, in, dots));
  b.store(dg, p["dgate"], {p.batch, t, p.head}, {1}, p.end);
}

/// The value heads of a q/k head. A GPU has no division of 64 bits.
static Value headsOfGroup(Program &p) {
  TileBuilder &b = p.b;
  bool isKnown =
      !ShapedType::isDynamic(p.facts.H) && !ShapedType::isDynamic(p.facts.Hq);
  if (isKnown)
    return b.index(p.facts.H / p.facts.Hq);
  auto headsOf = [&](StringRef name) -> Value {
    Value heads = memref::DimOp::create(b, p[name], 2);
    return arith::IndexCastUIOp::create(b, b.getI32Type(), heads);
  };
  Value group = arith::DivUIOp::create(b, headsOf("beta"), headsOf("k"));
  return arith::IndexCastUIOp::create(b, b.getIndexType(), group);
}

void gdn::writeGradients(Program &p) {
  raiseBeta(p);
  if (p.facts.gateDomain == GateDomain::Linear)
    p.facts.leastLog2Gate = kLeastLog2Gate;
  TileBuilder &b = p.b;
  // The work item is of a q/k head. Its parts take the chunks in turn, each the
  // value heads of the group one after the other.
  p.keyHead = p.head;
  Value group = headsOfGroup(p);
  Value firstHead = arith::MulIOp::create(b, p.keyHead, group);
  Value offset = arith::MulIOp::create(b, p.tile, b.index(p.facts.C));
  Value first = arith::AddIOp::create(b, p.begin, offset);
  Value step = b.index(p.facts.C * p.facts.parts);
  Value left =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, p.end, first), p.zero);
  Value chunks = arith::CeilDivUIOp::create(b, left, step);
  Value upper = arith::MulIOp::create(b, chunks, group);
  Pieces none = makePieces(p.facts.K, [&](int64_t, int64_t size) {
    return b.fill(0.0, {p.facts.C, size});
  });
  Pieces carried(none);
  carried.append(none);
  auto loop = scf::ForOp::create(b, p.zero, upper, b.index(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value chunk = arith::DivUIOp::create(b, number, group);
  Value member = arith::RemUIOp::create(b, number, group);
  p.head = arith::AddIOp::create(b, firstHead, member);
  p.loadGateParameters();
  Value t =
      arith::AddIOp::create(b, first, arith::MulIOp::create(b, chunk, step));
  ValueRange args = loop.getRegionIterArgs();
  GroupSums sums = {Pieces(args.take_front(none.size())),
                    Pieces(args.drop_front(none.size()))};
  writeGradientChunk(p, t, member, group, sums);
  sums.q.append(sums.k);
  scf::YieldOp::create(b, sums.q);
}
