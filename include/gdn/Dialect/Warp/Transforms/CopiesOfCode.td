//===- CopiesOfCode.td - One copy of code that is alike ----*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_TRANSFORMS_COPIESOFCODE_TD
#define GDN_DIALECT_WARP_TRANSFORMS_COPIESOFCODE_TD

// Included by Passes.td, which is the one file that is compiled.

def MergeRolesPass : Pass<"gdn-warp-merge-roles", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Make one role of roles whose code differs in numbers alone";
  let description = [{
    Roles with `gdn_warp.share_code` that follow each other become one role of all their
    warps, if they have as many warps, whole warpgroups, the same registers, and the same
    ops. Where they take other numbers, such as places of shared memory or columns of an
    array, each warp selects its own at the beginning of the role: of constants the distance
    from the first role's, since places of one kind lie as far apart in each role, and one
    register then serves all of them. So the kernel has their code once, and the instruction
    cache holds more of the rest. What depends on a thread's number does so within the
    warpgroup, so nothing else changes. Roles that differ in anything but integers and floats
    from outside of them stay as they are, and so does an op whose attributes differ.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-roles.mlir --split-input-file
    gdn_warp.role "low" warps(4, 4) registers(176) attributes {gdn_warp.share_code} {
      ... = gdn_warp.view %c0 : ...
    gdn_warp.role "high" warps(8, 4) registers(176) attributes {gdn_warp.share_code} {
      ... = gdn_warp.view %c1024 : ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-roles.mlir --split-input-file --gdn-warp-merge-roles
    gdn_warp.role "low_high" warps(4, 8) registers(176) {
      ... = gdn_warp.id warp
      ... = arith.cmpi uge, ...
      ... = arith.select ... : index
      ... = arith.addi ..., %c0 : index
      ... = gdn_warp.view ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LoopPiecesPass : Pass<"gdn-warp-loop-pieces", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Make a loop of the pieces of tiles that are made alike";
  let description = [{
    A tile of more than 64 rows is several fragments, its pieces, and so is all that they are made of: a role has the
    code of each piece. In a role with `gdn_warp.loop_pieces` what it stores of pieces to parts of one view, and
    publishes, is made in a loop, a piece an iteration, where the code of the pieces differs in the parts of views alone
    that it reads and stores. Vectors and scalars from outside of the block that differ are selected by the number of the
    piece. The loop stands where the last of the stores stood. Roles of which a piece is used in another way stay
    as they are.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/loop-pieces.mlir --split-input-file
    gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.loop_pieces} {
      ... = gdn_warp.slice %...[0, 0] : ...
      gdn_warp.fragment_store ...
      ... = gdn_warp.slice %...[0, 64] : ...
      gdn_warp.fragment_store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/loop-pieces.mlir --split-input-file --gdn-warp-loop-pieces
    gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.loop_pieces} {
      scf.for ... {
        ... = gdn_warp.slice %...[0, 0] + %... * [0, 64] : ...
        gdn_warp.fragment_store ...
      } {gdn_warp.pieces = 2 : i64}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // GDN_DIALECT_WARP_TRANSFORMS_COPIESOFCODE_TD
