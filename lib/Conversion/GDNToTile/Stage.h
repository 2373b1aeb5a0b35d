//===- Stage.h - A stage op as its program needs it -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGE_H

#include "Program.h"

namespace mlir::gdn {

/// What a dimension of a result counts.
enum class Axis {
  Batch,
  Token,
  Head,
  KeyHead,
  Sequence,
  Segment,
  CutSequence,
  SequenceBoundary,
  SegmentBoundary,
  SampledHead,
  VTile,
  One
};

/// What a function says of the argument or the result that an array is.
struct ArrayNotes {
  bool isOptional = false, isStrided = false;
};

/// An array that a program takes or makes: its name there and, outside, the
/// tensor (inputs) or its type (outputs).
struct NamedInput {
  StringRef name;
  Value tensor;
  ArrayNotes notes = {};
};
struct NamedOutput {
  StringRef name;
  RankedTensorType type;
  /// What its first dimensions are; the others are static.
  ArrayRef<Axis> dims;
  /// The array that it updates in place, or null for a new one.
  Value updated = {};
  ArrayNotes notes = {};
};

/// A stage op as its program and launch need it.
struct Stage {
  Operation *op = nullptr;
  StageFacts facts;
  SmallVector<NamedInput> inputs;
  SmallVector<NamedOutput> outputs;
  /// Sequence boundaries, or null.
  Value cuSeqlens;
  /// Whether the V channels of a head may be split over work items: every row
  /// of S^T is on its own, but not the sums over V that the backward needs.
  bool splitsV = false;
  /// Whether a work item is of a q/k head, not of a value head.
  bool groupsHeads = false;
  /// Whether work items share the tokens of a sequence and head, as many as
  /// these make.
  bool sharesTokens = false;
  /// Whether each work item runs in one of several turns, the first of which
  /// wait less for a stage that runs at the same time, or not at all.
  bool hasTurns = false;
  /// Whether the chunks of a sequence need nothing of each other, and as many
  /// work items as a call says share them.
  bool sharesChunks = false;
  /// Whether operands of products are rounded to the operand type.
  bool rounds = false;
  /// Writes the program's body.
  void (*write)(Program &) = nullptr;

  /// The input of that name, null if there is none.
  Value operator[](StringRef name) const;
  /// Keys: the input that every stage has but the scan over segments.
  Value keys() const { return (*this)["k"]; }
  /// An input [B, T, H] or [B, T, H, ...] with the value heads, null if there
  /// is none.
  Value perHead() const;
  /// The input whose element type is that of operands of products, and the
  /// dimension of it that the tokens of a sequence run along: keys, or the
  /// maps, since the scan's tokens are the segments.
  Value rows() const { return keys() ? keys() : (*this)["map"]; }
  int64_t tokenDim() const { return keys() ? 1 : 0; }
};

/// Reads `op`; empty if it is not a stage op.
std::optional<Stage> readStage(Operation *op);
/// Attributes, head counts and channels of a stage; all stages name them alike.
StageFacts readFacts(const Stage &stage);
/// Reads what the function says of the stage's arrays, or fails if it says what
/// the stage cannot do.
LogicalResult readNotes(Stage &stage);
/// Fails if a function says something of an array that others than stages and
/// launches take or make, which would know nothing of it.
LogicalResult verifyNotes(FunctionOpInterface function);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGE_H
