//===- CheckLaunch.h - Does a launch go with its program? -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_CHECKLAUNCH_H
#define GDN_LIB_CONVERSION_TILETOWARP_CHECKLAUNCH_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::gdn {

/// The launch that a program's kernel is made for: its only one.
FailureOr<tile::LaunchOp> findLaunch(ModuleOp module, tile::ProgramOp program);

/// Fails where sequences that are not packed end elsewhere than their arrays:
/// copies end with the arrays.
LogicalResult checkTokens(tile::ProgramOp program, tile::LaunchOp launch);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_CHECKLAUNCH_H
