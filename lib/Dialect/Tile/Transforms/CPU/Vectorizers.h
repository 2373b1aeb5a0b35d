//===- Vectorizers.h - Linalg in memory as loops of vectors -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_VECTORIZERS_H
#define GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_VECTORIZERS_H

#include "gdn/Dialect/Tile/Transforms/CPU/CPUArch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::gdn::tile {

/// Replaces a product of f32 tiles in memory by loops of fused multiply-adds
/// whose accumulators stay in registers. Declines, changing nothing, where the
/// operands are not in the form that gdn-tile-pack-products gives them.
LogicalResult vectorizeProduct(RewriterBase &rewriter,
                               linalg::ContractOp product, const CPUArch &arch);

/// Replaces elementwise work and reductions on static tiles in memory by loops
/// of vectors along one dimension, in which every operand is contiguous or
/// constant. Declines, changing nothing, where there is no such dimension.
LogicalResult vectorizeGeneric(RewriterBase &rewriter, linalg::LinalgOp op,
                               const CPUArch &arch);

/// Replaces the transpose of a matrix in memory by one of square blocks in
/// registers. Declines, changing nothing, where there are no such blocks.
LogicalResult vectorizeTranspose(RewriterBase &rewriter, linalg::TransposeOp op,
                                 const CPUArch &arch);

/// Replaces a product of bf16 pairs in memory, as gdn-tile-pack-products makes
/// them with `bf16-dot`, by loops of AVX512_BF16's dot product; or of products
/// of tile registers, where the sizes fill `leastTileDepth` elements of their
/// rows; 0 for none. Declines, changing nothing, any other form.
LogicalResult vectorizePairProduct(RewriterBase &rewriter,
                                   linalg::ContractOp product,
                                   const CPUArch &arch, int64_t leastTileDepth);

/// The least depth of tiles that the products of a function may have: LLVM
/// gives a tile register one shape in a function, and whole tiles beside half
/// ones may ask for more than there are.
int64_t getLeastTileDepth(ArrayRef<linalg::ContractOp> products);

/// Replaces a transpose that brings bf16 tiles into pairs by loops of vectors.
/// Declines, changing nothing, any other transpose.
LogicalResult vectorizePacking(RewriterBase &rewriter, linalg::TransposeOp op,
                               const CPUArch &arch);

/// Transposes a square of n rows of n elements in registers.
void transposeRows(OpBuilder &builder, Location loc,
                   SmallVectorImpl<Value> &rows);

/// True if the last dimension of a memref is contiguous.
bool isContiguous(Value memref);

/// The largest power of two that divides `size` and is at most `limit`.
int64_t getPowerDivisor(int64_t size, int64_t limit);

} // namespace mlir::gdn::tile

#endif // GDN_LIB_DIALECT_TILE_TRANSFORMS_CPU_VECTORIZERS_H
