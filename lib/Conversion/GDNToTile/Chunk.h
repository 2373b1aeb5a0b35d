//===- Chunk.h - What a chunk's preparation leaves for the chain -*- C++ -*-==//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_GDNTOTILE_CHUNK_H
#define GDN_CONVERSION_GDNTOTILE_CHUNK_H

#include "Chain.h"

namespace mlir::gdn {

/// What a chunk's preparation leaves for the chain.
struct Chunk {
  Value t, valuesT, beta;
  KeyRows q, k;
  /// Factors of V and of K S, f32 [C].
  Value valueFactor, readFactor;
  /// Lower triangle of the scores and M = Diag(beta) Kk, strictly lower; f32
  /// [C, C] without any decay. Null without an output, or with `bm`.
  Value queryKey, m;
  /// Factors that the solve multiplies into the columns of `m`, f32 [C]: norms.
  /// Null without.
  Value columnsOfM;
  /// Whether the solve's result contains norms.
  bool scalesSolve() const { return columnsOfM && !normsScores(); }
  /// Whether `queryKey` contains the norms of queries, but not of keys.
  bool normsScores() const { return static_cast<bool>(k.writeNorm); }
  /// The norms of queries that are left for the output.
  Value outputNorm() const { return normsScores() ? Value() : q.norm; }
  /// Bm with the chunk's decay, where prepare has made it.
  Value bm;
  /// Cumulated log2 gate of the chunk, [C].
  Value G;
};

/// M and the scores as the solve and the chain take them; null without.
struct Triangles {
  Value m, scores;
};

/// Loads the chunk at token t; multiplies queries with keys if there is an
/// output, and keys with keys unless Bm is given.
Chunk loadChunk(Program &p, Value t, Value bm = {});

/// The chunk's triangles: what `decay` makes of each tile [C, C], rounded by
/// the function `round`. They are cut last: of rounded elements one instruction
/// cuts two.
Triangles makeTriangles(
    Program &p, const Chunk &chunk,
    function_ref<Value(Value tile, function_ref<Value(Value)> round)> decay);

/// The chunk's triangles times `decay` [C, C] if given.
Triangles decayTriangles(Program &p, const Chunk &chunk, Value decay);

/// The chain's operands that all forms share. `writeDecay`, f32 [C] or null, is
/// what a chain of two products has in its operands.
ChainOperands chainOperands(Program &p, const Chunk &chunk, Value state,
                            const Triangles &triangles, Value writeDecay = {});

/// The op's scale times a decay and the queries' norm, f32 [C], each null for
/// 1; null if both are. With a norm the step is "query_norms" afterwards.
Value outputFactor(Program &p, Value decay, Value norm);

/// o^T times `factor` [C], or times the op's scale if that is null, in the type
/// of o; null without an output.
Value scaleOutput(Program &p, Value output, Value factor);

/// o^T in the type of o; null without an output.
Value roundOutput(Program &p, Value output);

/// Stores the output if there is one.
void storeOutput(Program &p, Value t, Value output);

/// One chunk with a gate per channel (spec 4.2). `bm` and `G` may be given (by
/// prepare); both are null in the fused program. Returns S^T.
Value writeChannelGate(Program &p, Value t, Value state, Value bm, Value G);

} // namespace mlir::gdn

#endif // GDN_CONVERSION_GDNTOTILE_CHUNK_H
