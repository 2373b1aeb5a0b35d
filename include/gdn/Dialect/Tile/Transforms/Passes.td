//===- Passes.td - Passes of the gdn_tile dialect ----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyTileFormPass : Pass<"gdn-tile-verify-form", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at the tile level";
  let description = [{
    Fails where a program holds an op, a type or a step label that the tile
    level does not allow (docs/Dialects/Tile.md), or where a layer or stage op is
    left outside. Changes nothing.
  }];
}

def LaunchToParallelPass : Pass<"gdn-tile-launch-to-parallel", "::mlir::ModuleOp"> {
  let summary = "Run the items of launches in a parallel loop";
  let description = [{
    A launch on memrefs becomes an `scf.parallel` over its grid that calls the
    function that its program became (`convert-gdn-tile-to-linalg`). Boundaries
    of sequences are clamped to 0 <= begin <= end <= tokens, so that wrong ones
    touch no memory outside the arrays. Numerics unchanged.

    ```mlir
    gdn_tile.launch @f grid(%n, %h, %p) tokens(%t) ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
    ```
    becomes
    ```mlir
    scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%n, %h, %p) step (%c1, %c1, %c1) {
      func.call @f(%x, %y, %i, %j, %k, %i, %c0, %t) : (...) -> ()
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PrepareBufferizationPass : Pass<"gdn-tile-prepare-bufferization", "::mlir::ModuleOp"> {
  let summary = "State what one-shot bufferization cannot know";
  let description = [{
    Arguments of public functions belong to the caller and are marked read-only;
    public functions get a C interface. In the functions that programs became,
    every tile that a loop carries stays in one buffer: what the loop yields is
    written into the buffer of its argument, which is no copy where it is there
    already. Numerics unchanged.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def ExpandCopiesPass : Pass<"gdn-tile-expand-copies"> {
  let summary = "Copies between strided buffers become linalg";
  let description = [{
    A `memref.copy` whose sides are not both dense becomes `linalg.copy`, which
    vectorises; upstream lowers it to a call of its runtime library, element by
    element. Numerics unchanged.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

#endif // GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
