//===- Chain.h - The chain of a chunk and its decays ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHAIN_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHAIN_H

#include "Program.h"

namespace mlir::gdn {

/// What the chain of a chunk takes. Tiles without another note are in the
/// operand type; null tiles are absent factors. Of the chain of two products
/// (spec 3.5), `writeKeys` and `scores` hold X and R, which have the solve and
/// the write's decay in them; those are null then.
struct ChainOperands {
  /// S^T on entry as it is read, f32 [vTileChannels, K].
  Value state;
  /// S^T with the chunk's decay, f32; what the chunk's writes are added to. Or
  /// without its decay, f32, which is `stateDecay` then.
  Value decayedState, stateDecay;
  /// Keys and queries that read the state [C, K]; no queries, no output.
  Value readKeys, readQueries;
  /// Keys that write the state [C, K].
  Value writeKeys;
  /// v^T, f32 [vTileChannels, C]; null for zeros.
  Value values;
  /// Factors of V and of K S: beta, norms that the keys do not contain, and,
  /// for V, 1 / gam in the decay-free form; f32 [C], or null for 1.
  Value valueFactor, readFactor;
  /// Strictly lower (I + Diag(beta) Kk)^-1 - I = -Diag(beta) Bm [C, C], with
  /// lengths and norms in it where keys are not normalised (chainInverse); null
  /// for plain linear attention.
  Value solve;
  /// Norm of the keys that write if it is in neither them nor `solve`, and beta
  /// where that is behind the solve, f32 [C].
  Value writeNorm;
  /// Lower triangular scores, unscaled [C, C].
  Value scores;
  /// Factor of what queries read of the state, and decay of what a token writes
  /// until the end of the chunk, f32 [C] (the scalar gate of spec 3.3).
  Value queryFactor, writeDecay;
};

/// S^T on exit, f32 [vTileChannels, K], and o^T without scale, f32
/// [vTileChannels, C].
struct ChainResult {
  Value state, output;
  /// What the tokens add to the state, in f32.
  Value write;
};

/// The part of a chunk that is serial over chunks (spec 3.3 or 3.5,
/// transposed).
ChainResult writeChain(Program &p, const ChainOperands &in);

/// Turns the operands of the chain of three products, decays and all, into
/// those of the chain of two: X = (I + Y)^T Kr and R = P (I + Y) with Y =
/// `solve`. `scores` and `solve` are of the solve's type.
void foldSolve(Program &p, ChainOperands &in);

/// One chunk of the delta rule with whatever gate the stage has, its output
/// stored where the stage has one. Returns S^T on exit.
/// `bm` and the cumulated gate `G` may be given (by prepare).
Value writeStateStep(Program &p, Value t, Value state, Value bm = {},
                     Value G = {});

/// One chunk with a scalar gate, in the decay-free form while that is in range
/// (spec 3.7). Takes and returns S^ and G of the last reference point.
SmallVector<Value> writeDecayFreeStep(Program &p, Value t, ValueRange carried);

/// Stores o^T times `factor`, f32 [C], or times the op's scale if that is null;
/// nothing without an output.
void writeOutput(Program &p, Value t, Value output, Value factor);

/// x y^T for rows of two [C, K] tiles, f32 [C, C].
Value innerProducts(Program &p, Value x, Value y);

/// Products of rows x_i . y_j, [C, C], times the norms of the rows, each f32
/// [C] or null.
Value mulNorms(Program &p, Value products, Value xNorm, Value yNorm);

/// The product of two vectors, either of which may be null for 1.
Value mulVectors(Program &p, Value x, Value y);

/// The solve of spec 3.3: f32 [C, C] from strictly lower scores and beta.
Value solveBm(Program &p, Value scores, Value beta);

/// -Diag(beta) Bm, rounded: the matrix of the chain. A chain of two products
/// does not multiply by it: it keeps the solve's type there.
Value chainSolve(Program &p, Value bm, Value beta);

/// Scores as the chain takes them: rounded, of two products to the solve's
/// type.
Value roundScores(Program &p, Value scores);

/// chainSolve from M = Diag(beta) Kk, strictly lower, as `solveType` takes it,
/// or in f32 with columns that are to be times `columns` yet; with the rows of
/// the result times the norms of `keys` and the columns times their lengths.
/// All but M may be null.
Value chainInverse(Program &p, Value m, Value columns, const KeyRows &keys);

/// chainSolve from the decayed scores of keys [C, C], with beta a factor of
/// their rows (axis 0) or columns (axis 1).
Value invertKeyScores(Program &p, Value keyKey, Value beta, int64_t betaAxis);

/// `m` in the type that the solve takes: f16 where operands have 16 bits, since
/// its entries are in [-1, 1] (spec 3.4, 3.6).
Value roundForSolve(Program &p, Value m);

//===--- Scalar decay (spec 2, 4.1) ---------------------------------------===//

/// The log2 gate of the chunk at token t as it is summed, [C] or [C, K]. Of f32
/// programs it is f64: after a few full resets G is some -1000, differences of
/// it would keep 2^-14 in f32, and that is a relative error of the decays.
Value loadSummedGate(Program &p, Value t);

/// The same, summed over the chunk so far.
Value cumulatedGate(Program &p, Value t);

/// exp2(G_i - G_j) for i >= j, f32; above the diagonal the value is not defined
/// but finite. G is [C].
Value pairDecay(Program &p, Value G);
/// pairDecay for the factor of a tile of which the triangle is taken after it:
/// above the diagonal it may be anything.
Value pairDecayBelow(Program &p, Value G);

/// exp2(G_C - G_i), with G_C the last row: f32 of G's shape, [C] or [C, K].
Value decayToEnd(Program &p, Value G);

/// Last row of a cumulated gate: a scalar for [C], a vector for [C, K].
Value lastRow(Program &p, Value G);

//===--- Channel decay (spec 4.2, 4.3) ------------------------------------===//

/// A chunk with one gate a channel as the chain takes it (spec 2). Tiles of
/// keys and queries [C, K] are normalised if the op asks for it, and rounded.
struct ChannelTiles {
  /// What reads the state at the reference, and what writes it at the chunk's
  /// end.
  Value readKeys, readQueries, writeKeys;
  /// Decay of the state from the chunk's start to the reference, and from there
  /// to its end; f32 [K].
  Value toReference, toEnd;
  /// sum_c x_ic y_jc exp2(G_ic - G_jc), f32 [C, C]; only i >= j is defined.
  Value queryKey, keyKey;
};

/// The tiles of a chunk of cumulated log2 gates `G`: with one reference in its
/// middle while the gates allow it (spec 4.2), by halves otherwise (spec 4.3).
/// Of `q`, the tile may be null.
ChannelTiles channelTiles(Program &p, const KeyRows &q, const KeyRows &k,
                          Value G);

/// What a chunk with gates G, one a channel and summed over the chunk so far
/// [C, K], makes of the state before it, which may be a piece of K: its columns
/// are times `whole`, f32 [K], and keys [C, K] write to the state behind it as
/// `keys`, in the operand type.
struct ChannelWrites {
  Value keys, whole;
};
ChannelWrites channelWrites(Program &p, Value k, Value G);

/// One level of the decay by halves: pairs (i, j), i > j, that lie in the two
/// halves of a block of 2 `half` tokens. With the base at the boundary both
/// exponents are <= 0, so any gates are safe.
struct HalvesLevel {
  /// exp2(G - R) of the later half, exp2(R - G) of the earlier one; f32 [C, K].
  Value later, earlier;
  /// 1 for the pairs of this level, else 0; f32 [C, C].
  Value mask;
};
SmallVector<HalvesLevel> decayByHalves(Program &p, Value G);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHAIN_H
