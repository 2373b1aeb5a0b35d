//===- Passes.td - Tile programs for a GPU -----------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_GPU_PASSES_TD
#define GDN_DIALECT_TILE_TRANSFORMS_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def TransposeTilesPass : Pass<"gdn-tile-transpose-tiles", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "Tiles whose columns fill fragments are computed as their transposes";
  let description = [{
    A fragment has 64 rows, a chunk 32: half of a warpgroup would hold a tile of
    32 x 128. This pass computes such a tile as 128 x 32, which all warps hold, if
    elementwise ops, scans and broadcasts make it for a product. The product reads
    the tile from shared memory, and takes it transposed as fast.

    Values that elementwise ops, branches and loops connect are transposed together.
    They are transposed if their columns are a multiple of `rows` and their rows
    fewer, if a product reads one of them, and if nothing else takes them but
    reductions and slices of a row. A value from elsewhere, such as a load, gets a
    `linalg.transpose`, which becomes a load in the other order. Numerics are
    unchanged, but for the order of the sums of a reduction over rows.

    ```mlir
    %G = gdn_tile.scan %g axis 0 : tensor<32x128xf32>
    %x = arith.mulf %k, %G : tensor<32x128xf32>
    ```
    becomes
    ```mlir
    %gt = linalg.transpose ins(%g : tensor<32x128xf32>) outs(%e : tensor<128x32xf32>) permutation = [1, 0]
    %G = gdn_tile.scan %gt axis 1 : tensor<128x32xf32>
    %x = arith.mulf %kt, %G : tensor<128x32xf32>
    ```
  }];
  let options = [Option<"rows", "rows", "int64_t", "64", "Rows of a fragment">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def GuardLaunchesPass : Pass<"gdn-tile-guard-launches", "::mlir::ModuleOp"> {
  let summary = "Branches of a function become conditions of its launches";
  let description = [{
    The host of a GPU does not wait for what kernels find out. So both sides of
    an `scf.if` are launched, and work items of the side that is not taken leave
    at once: their programs read what the condition follows from. A result of both
    sides is one array, which the launches of either side write.

    ```mlir
    %y = scf.if %isLarge -> (tensor<?x4xf32>) {
      %0 = gdn_tile.launch @f[...] ins(%x : ...) outs(%e : ...) ...
      scf.yield %0
    } else {
      %1 = gdn_tile.launch @g[...] ins(%x : ...) outs(%e : ...) ...
      scf.yield %1
    }
    // becomes
    %0 = gdn_tile.launch @f[...] ins(%x, %size : ...) outs(%e : ...) ...
    %y = gdn_tile.launch @g[...] ins(%x, %size : ...) outs(%0 : ...) ...
    gdn_tile.program @f(..., %size : memref<?xf32>) ... {
      %isLarge = ... // of elements of %size
      gdn_tile.leave %isSmall
    ```

    A condition that compares two sizes by `eq` is the host's own: launches of
    the side that is not taken have no work items.

    Conditions are made of elements and sizes of arrays by ops without effects.
    Each result of a branch is one of a launch on both sides, or a view of it.
    If both launches update the same array, those of the second side read and
    write it as the first side leaves it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"];
}

def StackProductsPass : Pass<"gdn-tile-stack-products", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "Products with a common right operand become one of more rows";
  let description = [{
    a B and c B become [a; c] B while the rows fit in `rows`, those of a tensor
    core's product; the stacked tile is made where its parts are loaded, so that
    one copy of it serves all. Of a stack of computed tiles that fills its rows, products of other steps
    take their part, too: it lies in shared memory for them once. A branch that hands the parts on to
    such products hands on the stack, on both sides. Numerics unchanged.

    K K^T and Q K^T of a chunk of 32 tokens are one product of 64 rows.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/GPU/stack-products.mlir --split-input-file
    ... = linalg.contract ... ins(%0, %0 : tensor<32x128xbf16>, tensor<32x128xbf16>) ...
    ... = linalg.contract ... ins(%1, %0 : tensor<32x128xbf16>, tensor<32x128xbf16>) ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/GPU/stack-products.mlir --split-input-file --gdn-tile-stack-products
    %concat = tensor.concat dim(0) %0, %1 ...
    ... = linalg.contract ... ins(%concat, ... : tensor<64x128xbf16>, tensor<32x128xbf16>) ...
    ... = tensor.extract_slice ...[0, 0] [32, 32] [1, 1] ...
    ... = tensor.extract_slice ...[32, 0] [32, 32] [1, 1] ...
    ```
  }];
  let options = [Option<"rows", "rows", "int64_t", "64", "Rows of a product, 1 to 1024">];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def ExpandMatrixVectorPass : Pass<"gdn-tile-expand-matrix-vector", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "A product of a tile and a vector becomes a multiply and a sum";
  let description = [{
    A tensor core has no product with a vector: one column of it would be used. A
    `linalg.contract` of a tile and a vector becomes a multiplication of elements
    in the result's type and a `linalg.reduce` along the vector.

    ```mlir
    %u = linalg.contract indexing_maps = [(m,k)->(m,k), (m,k)->(k), (m,k)->(m)]
        ins(%a, %x : tensor<64x128xbf16>, tensor<128xbf16>) outs(%z : tensor<64xf32>)
    ```
    becomes
    ```mlir
    %xf = arith.extf %x : tensor<128xbf16> to tensor<128xf32>
    %af = arith.extf %a : tensor<64x128xbf16> to tensor<64x128xf32>
    %xs = linalg.broadcast ins(%xf : tensor<128xf32>) outs(%e : tensor<64x128xf32>) dimensions = [0]
    %t = arith.mulf %af, %xs : tensor<64x128xf32>
    %u = linalg.reduce { arith.addf } ins(%t : tensor<64x128xf32>) outs(%z : tensor<64xf32>) dimensions = [1]
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def SplitRowsPass : Pass<"gdn-tile-split-rows", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "A tile of more rows than a fragment becomes several tiles";
  let description = [{
    A warpgroup holds 64 rows of a tile in its registers. A tile of more than
    `rows` rows becomes pieces of `rows` rows, and a last one of those that are
    left: loads, stores, elementwise ops, broadcasts, reductions, scans, slices
    of rows, products (by the rows of the result), and what loops and branches
    carry. A reduction over rows goes on from piece to piece; a scan over rows
    adds the last row of the piece before. A tile that products alone read, from
    shared memory, stays whole. Only the order of these two sums changes.
    ```mlir
    %a = gdn_tile.load %x[%i, %j] axes [0, 1] : memref<?x64xf32> -> tensor<128x64xf32>
    %b = arith.addf %a, %a : tensor<128x64xf32>
    ```
    becomes
    ```mlir
    %a0 = gdn_tile.load %x[%i, %j] axes [0, 1] : memref<?x64xf32> -> tensor<64x64xf32>
    %next = arith.addi %i, %c64 : index
    %a1 = gdn_tile.load %x[%next, %j] axes [0, 1] : memref<?x64xf32> -> tensor<64x64xf32>
    %b0 = arith.addf %a0, %a0 : tensor<64x64xf32>  // %b1 likewise
    ```
  }];
  let options = [Option<"rows", "rows", "int64_t", "64", "Rows of a fragment">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif // GDN_DIALECT_TILE_TRANSFORMS_GPU_PASSES_TD
