//===- ExpandRows.h - Open sizes of tensor.expand_shape ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_EXPANDROWS_H
#define GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_EXPANDROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::gdn::tile {

/// Splits dimensions that tensor.expand_shape makes several of open size of by
/// copies, row by row: the lowering of these ops to memrefs takes one open size
/// a group.
void copyExpandedRows(func::FuncOp function);

} // namespace mlir::gdn::tile

#endif // GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_EXPANDROWS_H
