//===- BranchResults.h - Arrays of both sides of a branch -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_BRANCHRESULTS_H
#define GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_BRANCHRESULTS_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::gdn::tile {

/// One array for both values of a result of `choice`. The launches of one side
/// have no effect. If both update an array, those of the second side find it as
/// the first one left it.
LogicalResult joinResults(scf::IfOp choice, Value first, Value second,
                          ArrayRef<LaunchOp> secondLaunches);

/// One array for what stays inside of each side: only one of them needs it.
void shareTemporaries(ArrayRef<LaunchOp> first, ArrayRef<LaunchOp> second,
                      ValueRange results);

} // namespace mlir::gdn::tile

#endif // GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_BRANCHRESULTS_H
