//===- Kept.h - States that a backward keeps between segments ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_KEPT_H
#define GDN_LIB_CONVERSION_GDNTOTILE_KEPT_H

#include "Program.h"

namespace mlir::gdn {

/// Raises beta to what a backward in three kernels takes, so that a token's
/// write and the gradient of its value tell the gradient of a beta of zero.
void raiseBeta(Program &p);

/// The same for a program that stores what tokens write, with beta where it
/// loses nothing of them.
void prepareWrites(Program &p);

/// What the gradient of the state is of those that an adjoint carries and
/// keeps: the op's scale without its power of two. What queries read it by,
/// scale times the gradient of o, then has no rounding but that of the decay.
double stateGradientUnit(const Program &p);

/// Number of the segment of `length` tokens in which the chunk at token t lies,
/// among those of all sequences (gdn.stage.replay).
Value keptSegment(Program &p, Value t, int64_t length);

/// The same among those that a forward saves, whatever segments its sequences
/// are cut into.
Value savedSegment(Program &p, Value t, int64_t length);

/// Reports that the chunk at token t, and those behind it, are done, where a
/// block of gradients begins with it.
void reportChunk(Program &p, Value t);

/// The tokens of a work item that carries the state, from a kept one on.
struct TokenRange {
  Value first, end;
};
/// Part `part` of the `parts` of a sequence: whole intervals between kept
/// states, the same number in each part, and at least one.
TokenRange makeKeptRange(Program &p, Value part);

/// Masks a number below 2^32, so that roles keep it in one register, not in
/// two.
Value maskTo32Bits(Program &p, Value number);

/// The block of chunks that gradients of some heads compute in a turn, from the
/// end of the sequence on: an adjoint has reported that it is done with them.
TokenRange enterBlock(Program &p, Value firstHead, Value heads);

/// The turns of that stage: as many as the mean sequence has blocks, twice, but
/// no more than all have. `tokens` are those of all sequences; `divideUp`
/// divides two sizes and rounds up.
Value countBlockTurns(OpBuilder &b, Location loc, Value tokens, Value sequences,
                      function_ref<Value(Value, Value)> divideUp);

/// Number of the chunk at token t in its sequence.
Value chunkNumber(Program &p, Value t);

/// Stores S^T in the array `name` where the chunk at token t begins a segment,
/// or, with `ends`, ends one.
void keepState(Program &p, StringRef name, Value t, Value state,
               bool ends = false);

/// Stores r^T, what the tokens of the chunk at token t add to the state.
void storeWrites(Program &p, Value t, Value write);

/// Decays of a chunk with a gate a head, f32; null without a gate.
struct ChunkGates {
  /// The gate's sum since the chunk's start in log2 units, [C].
  Value G;
  /// What is left at a token of the state before the chunk, and at the chunk's
  /// end of what the token writes, [C].
  Value read, write;
  /// What is left at the chunk's end of the state before it: a scalar.
  Value whole;
};
ChunkGates loadChunkGates(Program &p, Value t);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_KEPT_H
