//===- Support.h - What the compiler supports -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_SUPPORT_H
#define GDN_DIALECT_GDN_IR_SUPPORT_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::gdn::support {

/// Chunk lengths C that a tile program can be made for.
inline constexpr int64_t chunkSizes[] = {16, 32, 64};

/// Largest number of key or value channels of a head (K, V).
inline constexpr int64_t maxHeadDim = 256;

/// K and V of chunked ops are multiples of this: the side of the smallest
/// block that a chunk is solved and multiplied in.
inline constexpr int64_t headDimMultiple = 16;

/// Tokens between saved states are a multiple of this, the largest chunk: so
/// they lie between chunks, whatever their length.
inline constexpr int64_t savedStateMultiple = 64;

/// With a gate a channel a forward keeps states after multiples of these many
/// tokens (step_intervals), else after those of savedStateMultiple.
inline constexpr int64_t channelStateMultiple = 16;

/// Heads of a sequence whose gates a stage looks at to choose between two
/// lengths of segments.
inline constexpr int64_t sampledHeads = 8;

/// Tokens of a block, of whose gates a lower bound is one of the mean: it holds
/// for those of a sequence from each multiple of this on. Chunks and references
/// inside of them lie between blocks.
inline constexpr int64_t boundTokens = 8;

/// Tokens that share a reference in gradients with a gate a channel.
inline constexpr int64_t referenceTokens = 16;

/// Names of the targets: the CPU, by LLVM, and Hopper GPUs, by PTX.
inline constexpr llvm::StringLiteral cpuTarget = "cpu";
inline constexpr llvm::StringLiteral gpuTarget = "sm_90a";

/// Whether q, k, v and o may have this element type.
bool isDataType(Type type);

/// Element type of a gate's sum beside keys of `dataType`: f64 beside f32,
/// since differences of sums over strong gates would cost more than f32
/// programs may err; f32 beside all others.
FloatType cumulatedGateType(Type dataType);

/// Largest exponent of a factor, in log2 units, that products with it stand far
/// from the largest number of the type of their operands (spec 4.3).
double maxExponent(Type operandType);

/// The same if each block of `referenceTokens` has a reference of its own: a
/// sum's step from one to the next, over half of each block, then is not zero
/// in f32.
double maxBlockExponent(Type operandType);

/// Whether log gates of at least `lowerBound`, which is 0 for none, keep
/// exponents of `half` tokens on either side of a reference at or below `most`.
bool isAlwaysInRange(double lowerBound, int64_t half, double most);

/// Whether they keep those of a block of `referenceTokens` in range.
bool areBlocksInRange(double lowerBound, Type operandType);

/// Whether gate, beta, states and gate parameters may have this element type.
bool isParameterType(Type type);

/// Whether sequence boundaries may have this element type.
bool isBoundaryType(Type type);

/// Whether a chunk may have this many tokens.
bool isChunkSize(int64_t size);

} // namespace mlir::gdn::support

#endif // GDN_DIALECT_GDN_IR_SUPPORT_H
