//===- Program.h - The program of one stage while it is written -*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_H

#include "TileBuilder.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::gdn {

/// Variant of the decay: none, one a token, or one a token and key channel.
enum class DecayKind { None, Scalar, Channel };

/// What a stage op says, as its program needs it.
struct StageFacts {
  /// Tokens a chunk; 1 in the token by token stage.
  int64_t C = 1;
  int64_t K = 0, V = 0, Hq = 0, H = 0;
  /// V channels of one work item.
  int64_t vTileChannels = 0;
  DecayKind decay = DecayKind::None;
  double scale = 1.0;
  bool l2norm = false;
  GateDomain gateDomain = GateDomain::Log;
  double lowerBound = 0.0;
  BetaDomain betaDomain = BetaDomain::Value;
  StateLayout stateLayout = StateLayout::KV;
  /// The same of the states of sequences that were cut, whose segments are the
  /// sequences here.
  StateLayout sequenceLayout = StateLayout::KV;
  /// The same of the states between segments.
  StateLayout segmentLayout = StateLayout::KV;
  /// Whether sequences are packed, not rows of a batch.
  bool isPacked = false;
  /// Arrays that a call may have or not: states, and which of them are there.
  SmallVector<StringRef, 2> optionalArrays;
  /// The chain of two products (spec 3.5) instead of that of three (spec 3.3).
  bool twoProductChain = false;
  /// How sequences are cut: segments of each, or tokens of a segment; else 0.
  int64_t segments = 0, segmentLength = 0;
  /// Segments of a sequence whose gates call for fewer than those.
  int64_t fewerSegments = 0;
  /// The heads of a sample that keep a state, at least and at most, where they
  /// call for the shorter of two lengths.
  std::pair<int64_t, int64_t> liveHeads = {0, 0};
  /// Segments of a sequence, where they are the sequences of a stage whose
  /// states are numbered by whole ones; else 0.
  int64_t sequenceSegments = 0;
  /// Tokens between the kept states that gradients read, `segmentLength` or a
  /// multiple of it.
  int64_t stateInterval = 0;
  /// Where the state is carried between them, the value heads of a group if
  /// their work items run at the same time, else 0.
  int64_t cluster = 0;
  /// Work items that share the chunks of a sequence and head, which do not
  /// depend on each other.
  int64_t parts = 1;
  /// Beta is raised to this; 0 in programs that take it as it is.
  double leastBeta = 0.0;
  /// Whether beta is in the columns of M, and its writes are times it behind
  /// the solve: so nothing of a row with a beta of almost 0 is rounded away.
  bool betaBehindSolve = false;
  /// Whether what tokens write is added to the state in two parts, what the
  /// operand type holds of it and what that of the rest.
  bool writesRest = false;
  /// Gates are raised to this, in log2 units: 2^-128 times any state is zero
  /// next to one token's write, and -inf would make differences of sums NaN.
  double leastLog2Gate = -128.0;
  /// What a segment may make of the state before it and be taken for zero.
  double tolerance = 0.0;
  /// The scan over segments: from the last to the first, for gradients.
  bool reverse = false;
  /// Of gradients whose query/key heads have one value head each.
  bool singleHeads = false;
};

/// The number of parts of each sequence that take its chunks in turn, where the
/// call says how many; a part is a work item's coordinate then.
inline constexpr StringLiteral kPartCount = "part_count";

/// Work items that cut a sequence into parts of segments.
inline constexpr int64_t kCuttingItems = 8;

/// One program: its arrays by name (`q`, `k`, `o`, ...) and its work item.
struct Program {
  Program(TileBuilder &b, const StageFacts &facts, tile::ProgramOp op);

  /// The array of that name, null if the stage has none.
  Value operator[](StringRef name) const { return arrays.lookup(name); }

  TileBuilder &b;
  StageFacts facts;
  llvm::StringMap<Value> arrays;
  /// Item: sequence, value head, its q/k head, first V channel of the tile.
  Value sequence, head, keyHead, firstV;
  /// First key channel of what is loaded of keys and of a gate a channel.
  Value firstK;
  /// The number of the V tile, or of the part of a sequence's chunks.
  Value tile;
  /// The turn in which the work item runs, or the part of a sequence's chunks
  /// that it has, where the call says how many there are; else null.
  Value turn;
  /// Tokens [begin, end) of batch index `batch`.
  Value batch, begin, end;
  /// Output of tokens before this one is not stored; null for none.
  Value firstStored;
  /// Of a segment, the sequence that saved states are numbered by; else null.
  Value savedSequence;
  /// The row of the states of sequences that has this one's: its number, or
  /// where states lie in a pool that of `state_indices`. There a sequence may
  /// have none; else `hasState` is null.
  Value stateRow, hasState;
  /// Of a stage with `state_indices`, whether its sequence has a state in the
  /// pool; else null.
  Value isNamed;
  Value zero;
  /// A_log and dt_bias of the head: a scalar, or f32 [K]; null without.
  Value logRate, bias;
  /// The step that loads a gate a channel.
  StringRef loadStep = "load";
  /// For bounded gates, and softplus gates a channel, -exp(A_log) in log2 units
  /// as a product of two finite numbers. The second is 1 but for an A_log for
  /// which f32 has no room; the bias is multiplied by it. Before softplus, what
  /// a large A_log has beyond the first is a term of the bias.
  Value rate, restOfRate;

  /// Sets the above. A chunk of one token loads them with its gate: what is
  /// made of them before the state is loaded would keep that waiting.
  void loadGateParameters();
  /// The same in two steps: loads them, and makes factors of them.
  void fetchGateParameters();
  void prepareGateParameters();

private:
  void readStateIndex();
  Value findKeyHead();
  Value loadGateParameter(StringRef name);
};

//===--- Inputs of the chunk that starts at token t (step "load", "gates") ===//

/// q or k [C, K] in the operand type, l2-normalised if the op asks for it.
Value loadKeys(Program &p, StringRef name, Value t);

/// q or k in the operand type.
struct KeyRows {
  Value tile;
  /// The rows as they lie in memory, null if they are normalised in `tile`.
  Value loaded = {};
  /// What the rows are still to be times, and its inverse; f32 [C] or null.
  Value norm = {}, length = {};
  /// In f16 the norm of keys that write, which is 0 for rows of zeros: their
  /// norm is 1000, and what is written times that could be infinite.
  Value writeNorm = {};
};
/// The same with the norm left to where the rows are used. In bf16 they would
/// be rounded again once normalised, and where keys are alike, or q and k
/// nearly orthogonal, results are small differences of what they enter.
KeyRows loadKeyRows(Program &p, StringRef name, Value t);
/// Sets norm and length of rows, if the op asks for it; `squares` of the
/// lengths are summed unless somebody has them.
void measureRows(Program &p, KeyRows &rows, Value squares = {});
/// 1 / |x| as a scalar, of the squares of the elements of x.
Value inverseLength(Program &p, Value squares);
/// v^T [vTileChannels, C] in f32; null where the stage has no values.
Value loadValuesT(Program &p, Value t);
/// beta [C] in f32, zero beyond the end.
Value loadBeta(Program &p, Value t);
/// The same of an array's `beta`; a chunk of one token needs no `t`.
Value activateBeta(Program &p, Value beta, Value t = {});
/// The gate [C] or [C, K] as it is in memory.
Value loadGate(Program &p, Value t);
/// The log2 gate of a loaded one in f32, or in f64 where chunks sum it in that
/// and it has the digits; zero beyond the end, never -inf.
Value toLog2Gate(Program &p, Value t, Value gate);
inline Value loadLog2Gate(Program &p, Value t) {
  return toLog2Gate(p, t, loadGate(p, t));
}
/// The log2 gates [K] of an array's `gate`, of a token and a gate per key
/// channel.
Value activateChannelGate(Program &p, Value gate);
/// q or k of a token in the array `name`, [K]; and in f32, l2-normalised if the
/// op asks for it.
Value loadKeyVector(Program &p, StringRef name, Value t);
Value normalizeKeyVector(Program &p, Value key);
/// The gate of a token in its array, [K], for a gate per key channel.
Value loadChannelGate(Program &p, Value t);
/// 1 for the chunk's tokens, 0 beyond the end, f32 [C].
Value tokenMask(Program &p, Value t);
/// Leaves out a sequence that has no state in the pool: its outputs are zeros.
void skipUnnamed(Program &p);
/// Whether the call has the optional state `name`, or the sequence one in the
/// pool; null for one that is there always.
Value isThere(Program &p, StringRef name);
/// A part of the states `name` in `element`, f32 by default; zero if the stage,
/// or the call, has none.
Value loadState(Program &p, StringRef name, ArrayRef<Value> offsets,
                ArrayRef<int64_t> axes, ArrayRef<int64_t> shape,
                Type element = {});
/// Stores a part of the states `name`, if the stage and the call have them.
void storeState(Program &p, Value state, StringRef name,
                ArrayRef<Value> offsets, ArrayRef<int64_t> axes);
/// S^T [vTileChannels, K] in `element`, f32 by default, of the work item's
/// state in the array `name`; zero where the stage has no such array.
Value loadStateT(Program &p, StringRef name = "initial_state",
                 Type element = {});
/// Stores S^T as the work item's state in the array `name`, if the stage has
/// it.
void storeStateT(Program &p, Value state, StringRef name = "final_state");
/// Of a stage that keeps the states after tokens, S^T before token t: what was
/// kept after the one that it follows, or `carried`; null but with `parents`.
/// And S^T after it, as it is kept, if it has a row.
Value loadStepT(Program &p, Value t, Value carried);
Value keepStepT(Program &p, Value t, Value state);
/// Which states in between a sequence keeps: `count` of them, one after each
/// `interval` tokens, for which a loop over chunks has whole `blocks`. Null
/// values in a stage that keeps none.
struct KeptStates {
  Value interval, blocks, count;
};
KeptStates readKeptStates(Program &p);
/// Where the loop over chunks of a sequence that keeps such states ends.
Value endOfLoop(Program &p, const KeptStates &kept);
/// The first token of the chunk at `place` of the loop, in a sequence up to
/// `end`. The work item's end becomes that of the chunk's tokens.
Value enterChunk(Program &p, const KeptStates &kept, Value place, Value end);
/// Stores S^T, which `read` gives, if it is kept as the state before the chunk
/// at `place` of the loop.
void keepStateOfChunkT(Program &p, const KeptStates &kept, Value place,
                       function_ref<Value()> read);
/// The same of the state behind the last token.
void keepLastStateT(Program &p, const KeptStates &kept, Value state);
/// Stores o^T [vTileChannels, C] of the chunk at token t.
void storeOutputT(Program &p, Value t, Value output);

/// Offsets of an array [B, T, head, channel] at this work item.
SmallVector<Value> tokenOffsets(Program &p, Value t, Value head, Value channel);

/// The token at which the work item begins: its first one, unless the stage has
/// `starts`.
Value loadStart(Program &p);
/// The number at `at` in the array `name` of i32.
Value loadNumber(Program &p, StringRef name, ValueRange at);
/// Of a stage with `before` and `closes`, whether the segment is the first one,
/// or the last one with tokens, of the sequence that was cut.
Value isFirstSegment(Program &p);
Value isLastSegment(Program &p);
/// The token before which it ends: its end, unless the stage has `ends`.
Value loadEnd(Program &p);

/// A token as `starts` and `ends` have it, i32 [1].
Value tokenNumber(Program &p, Value token);

/// A loop over the work item's chunks, in order or from the last to the first.
/// `body` gets the chunk's first token and the carried values and returns the
/// next ones. Returns the last values.
SmallVector<Value>
forEachChunk(Program &p, ValueRange carried,
             function_ref<SmallVector<Value>(Value t, ValueRange carried)> body,
             bool reversed = false);

/// The part of a sequence's chunks that the work item has, and how many parts
/// there are.
Value getPart(Program &p);
Value countParts(Program &p);

/// Values of `yes` where `condition` holds, else those of `no`. Each branch is
/// of one step: a kernel may give steps to different warps. `likely` is the
/// usual value of the condition, if there is one.
SmallVector<Value> choose(Program &p, Value condition,
                          function_ref<SmallVector<Value>()> yes,
                          function_ref<SmallVector<Value>()> no,
                          std::optional<bool> likely = {});

//===--- Programs, one a stage --------------------------------------------===//

void writeFused(Program &p);
void writePrepare(Program &p);
void writeRun(Program &p);
void writeRecurrent(Program &p);
void writeLinearAttention(Program &p);
void writeBackward(Program &p);
void writeReplay(Program &p);
void writeExpand(Program &p);
void writeAdjoint(Program &p);
void writeGradients(Program &p);
void writeGateBound(Program &p);
void writeSegmentBoundaries(Program &p);
/// Of a stage that knows heads with whole sequences (`kept`), whether the work
/// item's is one; null if the stage knows of none.
Value isLeftWhole(Program &p);
/// Whether a sample of the gates of a sequence of `tokens` calls for the
/// shorter of two lengths, of whose segments one has `length` tokens.
Value callsForShorter(Program &p, Value tokens, Value length);
void writeSegmentStarts(Program &p);
/// The same with a gate a channel.
void writeChannelStarts(Program &p);
void writeSegmentMap(Program &p);
void writeSegmentScan(Program &p);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_H
