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
    If a loop of i32 with step 1 divides the number of an iteration, counted from the first one, by a number that
    the loop does not change, the loop carries quotient and rest and counts. The iteration may also be one ahead of
    the current one, or one before it if the division is in a branch that runs only if there is such an iteration.
    What an iteration computes from the quotient alone is carried, too, and computed again when the quotient
    changes; unlikely branches compute what they need themselves. The number of an iteration may come from an index
    of smaller units, divided by the units of an iteration. Divisions by constants stay.

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
