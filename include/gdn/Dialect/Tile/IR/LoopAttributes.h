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

/// Unit attribute of an unrolled `scf.for`: the ends of its loads cut those of
/// chunks past its last one.
inline constexpr llvm::StringLiteral kCutPastEndAttrName =
    "gdn_tile.cut_past_end";

} // namespace mlir::gdn::tile

#endif // GDN_DIALECT_TILE_IR_LOOPATTRIBUTES_H
