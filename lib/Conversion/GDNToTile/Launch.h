//===- Launch.h - Launches of the programs of stage ops ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H
#define GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H

#include "Stage.h"

namespace mlir::gdn {

/// Creates the empty program of `op` in `module`, before the function that
/// holds the op and named after both. The op's name is its stage.
tile::ProgramOp createProgram(Operation *op, ModuleOp module,
                              SymbolTable &symbols, TypeRange inputs,
                              TypeRange outputs, ArrayRef<StringRef> names,
                              int64_t gridRank);

/// The size of a dimension of a stage's arrays.
OpFoldResult countDim(OpBuilder &b, const Stage &stage, Axis dim);

/// The number of parts of each sequence whose gradients are computed side by
/// side on a device that computes `workItems` work items at a time: about as
/// many as fill it, with few work items of few chunks. An index in front of the
/// launch.
Value chooseParts(OpBuilder &b, const Stage &stage, int64_t workItems);

/// The same of a stage whose parts are to have some tokens each, whatever the
/// device.
Value countShortParts(OpBuilder &b, const Stage &stage);

/// Replaces the stage by a launch of its program.
void replaceByLaunch(const Stage &stage, tile::ProgramOp program);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_LAUNCH_H
