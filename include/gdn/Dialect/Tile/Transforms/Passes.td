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

#endif // GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
