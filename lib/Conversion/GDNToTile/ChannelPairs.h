//===- ChannelPairs.h - Pairs of tokens, a gate a channel -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHANNELPAIRS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHANNELPAIRS_H

#include "GradientChunk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::gdn {

/// Queries and keys that read the writes of other tokens, and keys that they
/// read.
enum class Part { Queries, Keys, ReadKeys };

/// Tokens with one reference, the last one of their first half. A warp of a
/// kernel has their rows.
inline constexpr int64_t kBlock = support::referenceTokens,
                         kReference = kBlock / 2 - 1;

/// A piece of K of a chunk. A kernel has no registers for rows, gates and
/// decays between their uses, so each use makes them anew of what lies in
/// shared memory.
class Piece {
public:
  Piece(Program &p, const GradientChunk &chunk, size_t piece)
      : pairs(chunk.pairs), q(chunk.in.q[piece]), k(chunk.in.k[piece]),
        number(piece), b(p.b), G(chunk.in.channelGates[piece]),
        last(p.facts.C - 1) {}

  /// Rows in f32.
  Value read(Value rows) {
    Value wide = b.f32(rows);
    return wide == rows ? rows : reread(wide);
  }
  /// Rows times a factor, in the operand type.
  Value decayed(Value rows, Value factor) {
    return b.round(b.mul(read(rows), factor));
  }
  /// The decay from each token to the end of the chunk.
  Value untilEnd() {
    Value end = b.broadcast(b.row(G, last), shapeOf(G), 1);
    return b.exp2(reread(b.sub(end, G)));
  }
  /// That from the reference of a token's block to the token, and back.
  Value later() { return b.exp2(sinceReference()); }
  Value earlier() { return b.exp2(b.neg(sinceReference())); }
  /// Keys as tokens read them, over the reference of their block.
  Value written() {
    if (!keys || keys.getParentBlock() != b.getInsertionBlock())
      keys = decayed(k, earlier());
    return keys;
  }
  /// That of each channel between two tokens, from the start of the chunk, and
  /// over all of it.
  Value between(int64_t from, int64_t to) {
    return b.exp2(reread(b.sub(b.row(G, to), b.row(G, from))));
  }
  Value until(int64_t token) { return b.exp2(b.row(G, token)); }
  Value whole() { return until(last); }
  /// The gradients of pairs, and the rows that read.
  std::pair<Value, Value> readers(Part part) const {
    if (part == Part::Queries)
      return {pairs.queryKey, q};
    return {pairs.keyKey, k};
  }
  /// That from the first token of a token's block, and until its last one.
  Value sinceFirst() { return b.exp2(since(0)); }
  Value untilLast() { return b.exp2(b.neg(since(kBlock - 1))); }
  /// That from token `n` of a token's block, and until there; 1 for tokens on
  /// the other side of it.
  Value sinceToken(Value n) { return decayBefore(b.sub(G, gateOf(n))); }
  Value untilToken(Value n) { return decayBefore(b.sub(gateOf(n), G)); }
  /// Row `n` of a token's block, in f32.
  Value rowOf(Value rows, Value n) {
    return b.f32(b.repeatRow(rows, kBlock, n));
  }
  /// Element i, n of a tile with a row and a column a token for each i, where n
  /// is a token of its block; f32 [C].
  Value elementOf(Value m, Value n);
  /// The sizes of the exponents of later() and earlier(), in f32.
  Value exponents() { return b.f32(b.abs(sinceReference())); }

  const PairTiles &pairs;
  /// In the operand type.
  const Value q, k;
  const size_t number;

private:
  Value since(int64_t token) {
    return reread(tile::RebaseOp::create(b, G, /*axis=*/0, kBlock, token));
  }
  Value sinceReference() { return since(kReference); }
  Value gateOf(Value n) { return b.repeatRow(G, kBlock, n); }
  Value decayBefore(Value difference) {
    return b.exp2(b.min(reread(difference), 0.0));
  }
  Value reread(Value made);

  TileBuilder &b;
  /// Gates summed over the chunk so far.
  Value G;
  /// written() of the block in which it was made.
  Value keys;
  int64_t last, uses = 0;
};

/// The gradients of the rows of q or k, and the inner products of rows with
/// theirs that the gate's gradient is made of; f32 [C, K piece]. To these, what
/// tokens of the chunk read of each other's writes adds those of queries and of
/// keys that read, less those of keys that are read. Between tokens on one side
/// of a gate they cancel, if rounded rows take part on both sides.
struct RowSums {
  Value gradient, dots;
};

/// `sum`, which is in registers from here on.
Value keepHere(Value sum);

/// The same of `sum` and a tile, which is all of it so far if it is null.
Value addHere(TileBuilder &b, Value sum, Value tile);

/// How the numbers of rows compare with `row`, i1 of `shape`.
Value compareRows(Program &p, arith::CmpIPredicate predicate, int64_t row,
                  ArrayRef<int64_t> shape);

/// Whether every factor of a block of tokens stays in range; null where all do,
/// whatever the gates.
Value isInRange(Program &p, Piece &in);

/// Whether every factor of a block of tokens stays in range whatever the gates.
bool areBlocksInRange(const Program &p);

/// Adds what tokens of the chunk read of each other, and of the state before
/// it, `state`, which is not decayed yet; null for keys that are read. With a
/// reference a block where `inRange` holds or is null; otherwise for any gates.
RowSums addPairs(Program &p, Piece &in, Value inRange, Part part, Value state,
                 RowSums sums);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHANNELPAIRS_H
