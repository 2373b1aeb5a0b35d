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

def ExpandF64MathPass
    : Pass<"gdn-tile-expand-f64-math", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "Exponentials and logarithms of f64 become arithmetic";
  let description = [{
    A program computes in f64 if its result is to be rounded once, to f32 or
    fewer bits. A GPU has no instructions for `math.exp`, `math.log` and
    `math.log1p` of f64, and code for a CPU has no library. This pass expands
    them, on tiles and scalars, to polynomials whose relative error is 2^-32.
    An exponential below e^-708 is 0, and above e^709 infinite. Subnormal numbers
    have the logarithm of 2^-1023. The new ops have the step of the old one.

    ```mlir
    %y = math.exp %x {gdn_tile.step = "gates"} : tensor<32xf64>
    ```
    becomes
    ```mlir
    %shifted = math.fma %x, %log2e, %shift {gdn_tile.step = "gates"} : tensor<32xf64>
    %n = arith.subf %shifted, %shift {gdn_tile.step = "gates"} : tensor<32xf64>
    %r = math.fma %n, %minus_ln2, %x {gdn_tile.step = "gates"} : tensor<32xf64>
    // e^r by a polynomial, times 2^n
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def VerifyTileFormPass : Pass<"gdn-tile-verify-form", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at the tile level";
  let description = [{
    Fails where a program holds an op, a type or a step label that the tile
    level does not allow (docs/Dialects/Tile.md), or where a layer or stage op is
    left outside. Changes nothing.
  }];
}

#endif // GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
