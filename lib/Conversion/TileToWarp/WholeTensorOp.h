//===- WholeTensorOp.h - An op on whole tensors as a program ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSOROP_H
#define GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSOROP_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::gdn {

/// An op on arrays [B, T, H] or [B, T, H, K] as a work item sees it, which is a
/// batch row and a head, and walks over the tokens.
struct WholeTensorOp {
  /// What an input is to a work item.
  enum class InputKind {
    /// As the output, or as the rows that it has the sums of.
    Whole,
    /// A number a token, of an output with columns.
    PerToken,
    /// A number a head: [H].
    PerHead,
    /// A number a head and column: [H, K].
    PerChannel,
    /// [B, T, H, G, K], summed over G.
    Grouped
  };
  struct Input {
    InputKind kind;
    /// The array; of a grouped input the one with all heads, [B, T, H G, K].
    Value array;
  };
  /// Sums over K, over G, or over B and T.
  enum class Reduction { None, Columns, Group, Tokens };

  linalg::GenericOp op;
  tensor::EmptyOp out;
  Reduction reduction = Reduction::None;
  /// G.
  int64_t group = 1;
  /// Whether a sum over tokens has a number a column, [H, K], and is not over
  /// these, too.
  bool hasChannels = false;
  /// K, or 0 where a chunk is a vector.
  int64_t columns = 0;
  /// In the order of the op's inputs.
  SmallVector<Input> inputs;
  /// What the body makes of an element of each input; sums are of these.
  Value element;
  /// What others read: the op's result, or that of the op that only rounds a
  /// sum over tokens.
  Value result;
};

/// Reads `op`, or says what it has that no program does.
FailureOr<WholeTensorOp> readWholeTensorOp(linalg::GenericOp op);

/// The op that only rounds a sum over tokens, or null.
linalg::GenericOp findRounding(Value sum);

/// Whether a launch between two ops of a block writes over `array`.
bool isOverwritten(Value array, Operation *first, Operation *second);

/// Ops that one program computes: each but the first shares an array with one
/// before it, reads its result or, of vectors, has its sizes.
struct WholeTensorGroup {
  /// Lanes that share a row.
  static constexpr int64_t kLanesPerRow = 16;

  SmallVector<WholeTensorOp> ops;

  /// Columns of the program's tiles, 0 where they are vectors.
  int64_t columns() const { return ops.front().columns; }
  /// Whether an op of the group has `value` as its result.
  bool makes(Value value) const;
  /// Whether a program stores the result: somebody else reads it.
  bool isRead(const WholeTensorOp &op) const;
  /// Whether an op is a sum over tokens.
  bool sumsTokens() const {
    return llvm::any_of(ops, [](const WholeTensorOp &op) {
      return op.reduction == WholeTensorOp::Reduction::Tokens;
    });
  }
  /// Heads of a work item: a warp has the vectors of that many side by side.
  int64_t heads() const { return columns() ? 1 : 32; }
  /// Tokens of a chunk. A thread has 8 elements of a tile, or 16 if these are
  /// few registers: then many CTAs load side by side.
  int64_t tokens() const;
  /// Whether a thread has registers for the arrays of a second chunk, which it
  /// loads while it computes the first.
  bool loadsAhead() const;
  /// CTAs of a program that a multiprocessor has registers for.
  int64_t ctas() const;

private:
  /// Whether each lane of a warp of vectors is known to have a head: then no
  /// load has a guard.
  bool fillsLanes() const;
  /// Registers in which a thread has what it loads of `tokens` tokens.
  int64_t countLoaded(int64_t tokens) const;
};

/// Groups of ops of one block, in the order of their last ops.
SmallVector<WholeTensorGroup> groupOps(ArrayRef<WholeTensorOp> ops);

/// Replaces the ops by a launch of their program.
void outline(const WholeTensorGroup &group, SymbolTable &symbols);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSOROP_H
