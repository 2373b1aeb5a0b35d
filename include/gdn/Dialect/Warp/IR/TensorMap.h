//===- TensorMap.h - Dimensions of tensor maps ------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_TENSORMAP_H
#define GDN_DIALECT_WARP_IR_TENSORMAP_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::gdn::warp {

/// The dimensions of an array besides the axes of a tile, in a map that ends
/// the tile's rows anywhere.
struct CutDims {
  /// Those with a dimension of the map.
  SmallVector<int64_t> mapped;
  /// Those whose strides are multiples of the rows', in a dense array: a step
  /// along one is so many rows more.
  SmallVector<int64_t> rows;
};

/// Such a map has one dimension for them.
CutDims getCutDims(MemRefType array, ArrayRef<int64_t> axes);

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_IR_TENSORMAP_H
