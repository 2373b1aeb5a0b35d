//===- LoopAttributes.h - What is known of a role's loops -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_LOOPATTRIBUTES_H
#define GDN_DIALECT_WARP_IR_LOOPATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::gdn::warp {

/// Unit attribute of a role's loop over iterations: the ends of its loads cut
/// those of iterations past its last one.
inline constexpr llvm::StringLiteral kCutPastEndAttrName =
    "gdn_warp.cut_past_end";

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_IR_LOOPATTRIBUTES_H
