//===- LoopPasses.td - Passes on numbers of loops --------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_TRANSFORMS_LOOPPASSES_TD
#define GDN_DIALECT_WARP_TRANSFORMS_LOOPPASSES_TD

include "mlir/Pass/PassBase.td"

def CarryQuotientsPass : Pass<"gdn-warp-carry-quotients", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Count the quotients of iterations instead of dividing";
  let description = [{
    In a loop of i32 that counts by ones, the number of an iteration since the first one may be divided by a number that the
    loop does not change. The loop then carries quotient and rest, and counts. So it does for iterations ahead of
    the current one, and for those before it in branches that only iterations take that have such. What an
    iteration makes of the quotient alone is carried, too, and made anew when the quotient changes; a branch that
    is not likely makes what it needs itself. The number may be that of an iteration's units, divided by
    how many an iteration has. Divisions by constants stay.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/carry-quotients.mlir --split-input-file
    scf.for %arg0 = %first to %n step ... : i32 {
      ... = arith.subi %arg0, %first : i32
      ... = arith.divui ..., %by : i32
      memref.store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/carry-quotients.mlir --split-input-file --gdn-warp-carry-quotients
    ...:2 = scf.for %arg0 = %first to %n step ... iter_args(%arg1 = ..., %arg2 = ...) -> (i32, i32) ... {
      memref.store %arg2, ...
      ... = arith.addi %arg1, ... : i32
      ... = arith.cmpi eq, ..., %by : i32
      ... = arith.select ... : i32
      ... = arith.select ..., %arg2 : i32
      scf.yield ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // GDN_DIALECT_WARP_TRANSFORMS_LOOPPASSES_TD
