//===- GradientGroups.h - Gradients of a group of heads ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTGROUPS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTGROUPS_H

#include "GradientChunk.h"

namespace mlir::gdn {

/// The gradients of the rows of q and k, summed over the value heads of a group
/// so far, f32 [C, K]; empty where the arrays of the gradients hold them.
struct GroupSums {
  Pieces q, k;
};
/// The value heads of a q/k head, one after the other for a chunk.
struct Group {
  Value size, firstHead;
  /// Their number where it is known.
  int64_t known = ShapedType::kDynamic;
};
/// A value head of a group, and whether it is the first, the last or the only
/// one.
struct Member {
  Value number, isFirst, isLast;
  bool isAlone;
};

/// Whether the gradients of q and k of a group are added up where they are
/// stored. With a gate a channel a GPU has no registers for a sum from one
/// value head to the next.
bool addsInMemory(Program &p, const Group &group);

/// Adds a value head's part of a piece of dQ and dK to the sums of its group,
/// which the first one begins and the last one stores; without sums to those in
/// memory.
void writePiece(Program &p, GradientChunk &chunk, size_t piece,
                const Member &member, GroupSums &sums);

/// The gradients of a chunk of a value head that is alone in its group, with a
/// gate a channel that a bound keeps in range: of rows in front of their norm.
void writeNormedPieces(Program &p, GradientChunk &chunk);

/// The value heads of a q/k head. A GPU has no division of 64 bits.
Group makeGroup(Program &p);

/// Sets the value head of the work item. Returns which one of its group it is.
Member enterMember(Program &p, const Group &group, Value number);

/// A loop over the value heads of a group, for each chunk of the work item: its
/// tokens are `first`, `step` tokens behind it, and so on up to `end`.
void forEachMember(
    Program &p, const Group &group, Value first, Value end, Value step,
    function_ref<void(Value t, const Member &member, GroupSums &sums)> body);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_GRADIENTGROUPS_H
