//===- Dialect.td - The gdn_tile dialect -------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_DIALECT_TD
#define GDN_DIALECT_TILE_IR_DIALECT_TD

include "mlir/IR/DialectBase.td"

def Tile_Dialect : Dialect {
  let name = "gdn_tile";
  let cppNamespace = "::mlir::gdn::tile";
  let summary = "One block's program over static tiles, sequential, without threads";
  let description = [{
    A program computes one work item of a grid (a sequence, a head, a tile of the
    value channels). A tile is a static `tensor` with value semantics; products
    are `linalg.contract`, elementwise work is `arith` and `math` on tensors,
    loops are `scf`. The ops here are those that upstream lacks. Roundings to
    16 bits are explicit (`arith.truncf`), so a program rounds at the same places
    on every target; only the order of f32 sums is the target's.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Discardable attribute that names the part of the mathematics an op
    /// belongs to; the schedule maps steps to roles.
    static constexpr ::llvm::StringLiteral getStepAttrName() { return "gdn_tile.step"; }

    /// Discardable attribute of a program, a string: the stage op that it comes
    /// from. Schedule templates name the stages that they are for.
    static constexpr ::llvm::StringLiteral getStageAttrName() { return "gdn_tile.stage"; }
    /// Of two launches, one behind the other, that may run side by side: the
    /// first one, and the second one, which needs nothing of the first but what
    /// it waits for itself.
    static constexpr ::llvm::StringLiteral getFirstOfTwoAttrName() { return "gdn_tile.first_of_two"; }
    static constexpr ::llvm::StringLiteral getBesideAttrName() { return "gdn_tile.beside"; }
    /// Of a launch whose packed sequences are of about one length: they are taken
    /// as they lie, not the longest first.
    static constexpr ::llvm::StringLiteral getInOrderAttrName() { return "gdn_tile.in_order"; }
    /// Of a launch whose last coordinate counts turns: all work items of one come
    /// before those of the next.
    static constexpr ::llvm::StringLiteral getInTurnsAttrName() { return "gdn_tile.in_turns"; }

    /// Usual value (bool) of the condition of an `scf.if`.
    static constexpr ::llvm::StringLiteral getLikelyAttrName() { return "gdn_tile.likely"; }

    /// Number of an op's chunk in its iteration through an unrolled loop.
    static constexpr ::llvm::StringLiteral getChunkAttrName() { return "gdn_tile.chunk"; }

    /// The steps there are, in the order of a chunk.
    static ::llvm::ArrayRef<::llvm::StringLiteral> getSteps();
    /// Whether `op` has a step: every op on tiles has, but for constants, which
    /// any role may make, and control flow, whose parts have steps. Index and
    /// scalar arithmetic has none.
    static bool needsStep(::mlir::Operation *op);
    /// Discardable attribute of a function that a program became on the way to
    /// a CPU.
    static constexpr ::llvm::StringLiteral getProgramAttrName() {
      return "gdn_tile.program";
    }
  }];
}

#endif // GDN_DIALECT_TILE_IR_DIALECT_TD
