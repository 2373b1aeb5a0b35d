//===- ChannelRows.h - Gradients where decays stay in range -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHANNELROWS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHANNELROWS_H

#include "ChannelPairs.h"

namespace mlir::gdn {

/// A piece of K of a chunk whose decays all stay in range. Keys come before
/// queries: what keys write has sums over tokens, which take the most
/// registers.
class DecayedPiece {
public:
  DecayedPiece(Program &p, const GradientChunk &chunk, size_t number);

  /// Adds the gradients of keys, f32 [C, K piece].
  void addKeys(Value &dk);
  /// Those of queries, behind those of keys.
  void addQueries(Value &dq);
  /// Behind both, the gradient of the log2 gates. `all` is the state before the
  /// chunk times the gradient of that behind it, summed over V.
  Value sumGates(Value all);

  /// The decay of the chunk, f32 [K piece].
  Value whole() { return factors.whole; }

  /// The inner products of keys, and of queries, with the gradients that the
  /// above have added, f32 [C], where `notesDots` says so before.
  bool notesDots = false;
  Value keyDots, queryDots;
  /// Keys and queries without a decay, in f32.
  Value plainKeys() { return b.mul(keys(), until()); }
  Value plainQueries() { return b.mul(queries(), until()); }

private:
  /// sum_{j<i} M_ij k_j of earlier tokens and what rows read of the state, over
  /// the decay since the reference of row i.
  Value sumRead(Value m, const Pieces &rows, double factor);
  /// sum_{i>j} M_ij x_i of the readers of both kinds and what rows write to the
  /// state, over the decay until the reference of row j.
  Value sumWritten(Value writes, double factor);
  /// What all tokens write to the gradient of the state, which is the sum over
  /// V of writes times that, summed over them.
  Value sumWrites(Value writes);

  /// Rows times their decay, in f32.
  Value queries() { return read(q); }
  Value keys() { return read(k); }
  /// Keys over their decay, in f32.
  Value written() { return read(earlier); }
  /// The decay of each token since the reference of its block, and back.
  Value since() { return b.exp2(exponents()); }
  Value until() { return b.exp2(b.neg(exponents())); }
  /// `rows` times what gates do not decay between a query and its own key.
  /// There are no registers for that beside row dots.
  Value own(Value rows) {
    Value factor = b.broadcast(chunk.pairs.own, shapeOf(rows), 0);
    return b.mul(rows, notesDots ? again(factor) : factor);
  }

  /// The decay from the reference of the block before token `first` to that of
  /// its own.
  Value stepTo(int64_t first) { return factors.steps[first / kBlock - 1]; }
  /// Those of the reference of each token's block.
  Value references();
  /// Gates summed since there.
  Value exponents() { return again(b.sub(G, references())); }
  /// `made`, which is made where it is used.
  Value again(Value made);
  Value read(Value rows);
  Value decayed(Value rows, Value decay);
  Value carryRows(Value sum, Value factor, int64_t row, bool before);

  Program &p;
  TileBuilder &b;
  const GradientChunk &chunk;
  const ChannelFactors &factors;
  size_t number;
  /// Gates summed over the chunk so far. A kernel has no registers for what is
  /// made of them, so each use makes it anew of what lies in shared memory.
  Value G;
  /// Queries and keys times their decay, and keys over it.
  Value q, k, earlier;
  /// Inner products of each row and channel with what its gradient has of
  /// others, less those of keys that are read.
  Value dots;
  int64_t uses = 0;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHANNELROWS_H
