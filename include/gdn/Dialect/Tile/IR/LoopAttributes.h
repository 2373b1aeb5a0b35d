//===- LoopAttributes.h - What is known of a program's loops ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_LOOPATTRIBUTES_H
#define GDN_DIALECT_TILE_IR_LOOPATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::gdn::tile {

/// Unit attribute of an `scf.for`: an iteration whose loads are all past their
/// ends, so that they read zeros, yields what it takes.
inline constexpr llvm::StringLiteral kNeutralPastEndAttrName =
    "gdn_tile.neutral_past_end";

/// Unit attribute of an `scf.for`: the ends of its loads cut those of chunks
/// past its last one; before it is unrolled, of all accesses that have ends.
inline constexpr llvm::StringLiteral kCutPastEndAttrName =
    "gdn_tile.cut_past_end";

/// Unit attribute of an `scf.for`: the same of iterations before its first one.
inline constexpr llvm::StringLiteral kNeutralBeforeFirstAttrName =
    "gdn_tile.neutral_before_first";

/// Integer attribute n of an `scf.if` without results in a loop over chunks:
/// its condition holds in every n-th iteration, the first one of them, and in
/// no other. A loop with `neutral_before_first` counts from its last iteration,
/// which is one before one in which it holds.
inline constexpr llvm::StringLiteral kEveryAttrName = "gdn_tile.every";

/// Integer attribute of an `arith.extf` or another elementwise op, or of a
/// `gdn_tile.rebase`, another one for each op: a kernel reads the tile from
/// shared memory once more, so that it holds no registers between the uses. Of
/// a `linalg.broadcast` of numbers: they are made anew.
inline constexpr llvm::StringLiteral kRereadAttrName = "gdn_tile.reread";

/// Unit attribute of an elementwise op: a kernel makes the tile where the op
/// stands. Behind a branch or a wait, where LLVM might make it, registers would
/// hold all that it is made of until there.
inline constexpr llvm::StringLiteral kMadeHereAttrName = "gdn_tile.made_here";

/// Unit attribute of an `arith.truncf` to the operand type: all that takes the
/// tile reads it from shared memory, where it lies in the place of a tile of a
/// slot that it is made of if nobody reads that one any more.
inline constexpr llvm::StringLiteral kSharedAttrName = "gdn_tile.shared";

/// Unit attribute of a load of 16 bits to registers that a loop repeats: words
/// of 32 bits are worth the code that tests whether the array allows them.
inline constexpr llvm::StringLiteral kWordsAttrName = "gdn_tile.words";

/// Unit attribute of a `gdn_tile.store` of a row of an array: no other work
/// item accesses it, or the rows that loads of the same step and shape take. So
/// a thread finds what it stored, whichever row that is.
inline constexpr llvm::StringLiteral kOwnRowsAttrName = "gdn_tile.own_rows";

/// Unit attribute of an op outside of loops that makes a number of what it
/// loads: a role that takes the number in a loop makes it before that, so that
/// no iteration waits for the load.
inline constexpr llvm::StringLiteral kBeforeLoopsAttrName =
    "gdn_tile.before_loops";

/// Unit attribute of a `gdn_tile.store` or an `scf.if` that few iterations of a
/// loop run. A kernel makes the store's addresses, and the integers of the
/// branch, where it runs them, so that they hold no registers over the loop.
inline constexpr llvm::StringLiteral kSeldomAttrName = "gdn_tile.seldom";

/// Unit attribute of a `memref.load`: other work items may store the element
/// meanwhile, and the load looks for that.
inline constexpr llvm::StringLiteral kWatchedAttrName = "gdn_tile.watched";

} // namespace mlir::gdn::tile

#endif // GDN_DIALECT_TILE_IR_LOOPATTRIBUTES_H
