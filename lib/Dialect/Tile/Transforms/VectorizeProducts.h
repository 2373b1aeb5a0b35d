//===- VectorizeProducts.h - Products as loops of FMAs ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_TILE_TRANSFORMS_VECTORIZEPRODUCTS_H
#define GDN_LIB_DIALECT_TILE_TRANSFORMS_VECTORIZEPRODUCTS_H

#include "gdn/Dialect/Tile/Transforms/CPUArch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::gdn::tile {

/// Replaces a product of f32 tiles in memory by loops of fused multiply-adds
/// whose accumulators stay in registers. Declines, changing nothing, where the
/// operands are not in the form that gdn-tile-pack-products gives them.
LogicalResult vectorizeProduct(RewriterBase &rewriter,
                               linalg::ContractOp product,
                               const CPUArch &arch);

} // namespace mlir::gdn::tile

#endif // GDN_LIB_DIALECT_TILE_TRANSFORMS_VECTORIZEPRODUCTS_H
