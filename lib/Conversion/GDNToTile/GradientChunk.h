//===- GradientChunk.h - Gradients of the tokens of a chunk -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTCHUNK_H
#define GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTCHUNK_H

#include "Chain.h"
#include "Kept.h"

namespace mlir::gdn {

/// Tiles of some channels of V, or of K, each: products sum over those of what
/// they contract, and have a result for each of the others.
using Pieces = SmallVector<Value>;

/// Channels of a piece: a panel of shared memory, where that divides them.
int64_t pieceChannels(int64_t channels);

/// The same of K. With a gate a channel that nothing keeps in range it is half
/// of that: beside its two ways, registers do not hold more.
int64_t keyPieceChannels(const Program &p);

/// A tile for each piece of `size` channels, of its first channel and `size`.
Pieces makePieces(int64_t channels, int64_t size,
                  function_ref<Value(int64_t, int64_t)> make);
/// The same of pieces of pieceChannels().
Pieces makePieces(int64_t channels, function_ref<Value(int64_t, int64_t)> make);

/// Where the state before a chunk comes from: it is kept; it is made of a kept
/// one, which may be that before the chunk before; the program carries it.
enum class StateSource { Kept, ChunkBefore, Carried };

/// Decays of each channel of a piece of K, f32 [K piece], where the tokens of a
/// chunk have a reference a block: from the start of the chunk to the first
/// reference, from each one to the next, from the last one to the end of the
/// chunk, and over all of it.
struct ChannelFactors {
  Value start;
  Pieces steps;
  Value end, whole;
};

/// What a chunk loads, in the operand type.
struct GradientTiles {
  StateSource source = StateSource::Kept;
  /// Keys and queries [C, K].
  Pieces q, k;
  /// Gradients of o and v [C, V].
  Pieces dO, dV;
  /// Writes [C, V], or [V, C] where the state is carried, which takes them so.
  Pieces writes;
  /// The state before the chunk and the gradient of that behind it [V, K], by
  /// pieces of K. A carried state is not loaded.
  SmallVector<Pieces> state, dState;
  Value beta;
  ChunkGates gates;
  /// A gate a channel, summed over the chunk so far, [C, K], by pieces of K;
  /// else empty.
  Pieces channelGates;
  /// By pieces of K; empty where some chunks have no such references.
  SmallVector<ChannelFactors> factors;
};

/// What the pairs of tokens of a chunk make.
struct PairTiles {
  /// d loss / d (q_i . k_j), and minus d loss / d (k_i . k_j), strictly lower;
  /// in the operand type.
  Value queryKey, keyKey;
  /// d loss / d (q_i . k_i), f32 [C]; null if no gate keeps it apart. Where
  /// states are kept, also as a tile of the operand type that is 0 elsewhere:
  /// its product takes no registers, of which other orders of work need too
  /// many there.
  Value own, ownTile;
  Value dBeta;
};

/// Inner products of rows of q and k with their gradients, f32 [C], by pieces
/// of K: of queries and keys that read, less those of keys that are read later
/// in the chunk; and of keys that write to the state behind it. The gate's
/// gradient is made of them.
struct RowDots {
  Pieces reads, writes;
  /// Of a carried state and the gradient of that behind the chunk, f32 [V], of
  /// which only the sum matters.
  Pieces carried;
};

/// A chunk whose gradients are made.
struct GradientChunk {
  Value t;
  GradientTiles in;
  PairTiles pairs;
  /// The factor of what queries read of the state, f32 [C].
  Value queryFactor;
  /// With a gate a channel 1 for tokens that others of the chunk follow, 0 for
  /// the others, f32 [C].
  Value followed;
  /// The same for all tokens of the sequence.
  Value tokens;
  /// The reciprocal lengths that rows of q and k had before their norm, f32
  /// [C]; null where gradients are those of the rows behind it.
  Value queryNorm, keyNorm;
  RowDots dots;
};

/// Loads the chunk at token t, and its states unless they are carried, and
/// makes what its pairs of tokens need.
GradientChunk beginGradientChunk(Program &p, Value t, StateSource source);

/// The tokens between a kept state and the chunk that takes it, as far as there
/// are any.
struct TokensBetween {
  /// The token of the state.
  Value first;
  /// Writes [V, C] and keys [C, K], by pieces.
  Pieces writes, keys;
  ChunkGates gates;
  Pieces channelGates;
};
/// Loads them for the chunk at token t.
TokensBetween loadBetween(Program &p, Value t);

/// Makes the state before a chunk of the kept one.
void makeState(Program &p, const TokensBetween &between, GradientTiles &in);

/// Inner products of rows of x, in the operand type, and y. With `use` x is
/// read for them alone.
Value rowDots(TileBuilder &b, Value x, Value y,
              std::optional<int64_t> use = {});

/// Rows of the tokens from t on of the array `name`, with `channels` channels;
/// turned, a row for each channel.
Pieces loadRows(Program &p, StringRef name, StringRef step, Value t, Value head,
                int64_t channels, bool isTurned = false);

/// Pieces of K as loaded, in pieces of keyPieceChannels().
Pieces cutKeyPieces(Program &p, const Pieces &loaded);

/// The step of a piece of K: each half of K has warps of its own.
StringRef pieceStep(const Program &p, size_t piece);

/// The step of the row dots of its queries, which other pieces take: the same
/// warps', behind what these have of keys.
StringRef queryStep(const Program &p, size_t piece);

/// The step of its pairs of tokens where gates are too strong for a reference a
/// block: the same warps', by which kernels with such a way are known.
StringRef pairStep(const Program &p, size_t piece);

/// The step that makes a piece of the state.
StringRef stateStep(size_t piece);

/// Hands the terms of a piece of dQ of this value head, f32 [C, K piece], to
/// `add`. Returns their row dots; null without a gate.
Value addQueryGradient(Program &p, GradientChunk &chunk, size_t piece,
                       function_ref<void(Value)> add);

/// The same of dK, what keys read and how they are read; `queries` are the row
/// dots of dQ. `meanwhile` may write what is to be done under the first
/// product.
void addReadKeyGradient(Program &p, GradientChunk &chunk, size_t piece,
                        Value queries, function_ref<void(Value)> add,
                        function_ref<void()> meanwhile = {});

/// The same of dK, what keys write.
void addWriteKeyGradient(Program &p, GradientChunk &chunk, size_t piece,
                         function_ref<void(Value)> add);

/// Takes the row dots of a piece of the state and its gradient.
void addStateDots(Program &p, GradientChunk &chunk, size_t piece);

/// Of a carried piece of the state, f32 [V, K piece], takes the row dots and
/// returns what it is behind the chunk.
Pieces carryState(Program &p, GradientChunk &chunk, size_t piece,
                  const Pieces &state);

/// Loads a gate a channel, summed over the chunk so far, [C, K], by pieces of
/// K.
Pieces loadChannelGates(Program &p, Value t);

/// The factors of these pieces.
SmallVector<ChannelFactors> makeChannelFactors(Program &p, const Pieces &gates);

/// Adds the terms of a piece of dQ and dK of this value head, f32 [C, K piece],
/// with a gate a channel, and stores the gradient of that. `storeQueries` and
/// `storeKeys` run behind the last terms.
void addChannelGradients(Program &p, GradientChunk &chunk, size_t piece,
                         Value &dq, function_ref<void()> storeQueries,
                         Value &dk, function_ref<void()> storeKeys);

/// The state before the chunk times the gradient of that behind it, summed over
/// V: f32 [K piece].
Value sumStates(Program &p, const GradientTiles &in, size_t piece);

/// Stores the gradient of a piece of the gate, given that of its log2.
void storeGateGradient(Program &p, Value t, size_t piece, Value dg);

/// The gradient of the gate, which may be its logarithm or itself, of that of
/// its logarithm; `gate` is what the array holds.
Value toGateGradient(Program &p, Value gate, Value dg);

/// The sum over what is contracted of products of pieces.
Value product(TileBuilder &b, StringRef spec, const Pieces &x, const Pieces &y);

/// Stores the gradients of beta and of the gate.
void storeScalarGradients(Program &p, GradientChunk &chunk);

/// A gate that is the decay itself is raised, for its gradient.
void raiseLinearGate(Program &p);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTCHUNK_H
