//===- Dialect.td - The gdn_warp dialect -------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_DIALECT_TD
#define GDN_DIALECT_WARP_IR_DIALECT_TD

include "mlir/IR/DialectBase.td"

def Warp_Dialect : Dialect {
  let name = "gdn_warp";
  let cppNamespace = "::mlir::gdn::warp";
  let summary = "A kernel of roles: warps, tensor-core products, copies, barriers";
  let description = [{
    The explicit form of a GPU kernel. Tiles in registers are builtin tensors
    with an encoding that says which thread holds what; `arith`, `math`,
    `linalg.broadcast`, `linalg.reduce` and `tensor.splat` work on them directly,
    `gdn_tile.scan` on fragments and vectors over lanes, `tensor.extract` on the latter, and `scf` loops carry them. All
    threads of a warp run an op on tiles together. Tiles in shared memory are views. Products, copies and barriers
    are explicit and mechanical: an op here is a handful of instructions.

    The lowering makes n bodies of the body of a loop (`scf.for`) with the
    attribute `gdn_warp.unroll` = n. A loop that loads ahead of the use carries
    the values through as many iterations as it has bodies: then they need no
    moves, of which each would wait for its load. A loop with `gdn_warp.chunks` =
    n takes the n chunks of an iteration one after the other. `gdn_warp.likely` on an
    `scf.if` says whether its condition usually holds.
    `gdn_warp.rows` = [a, b] on a sum over the rows of a fragment (`linalg.reduce`,
    `gdn_tile.scan`) says which rows it is over, and `gdn_warp.scratch_bytes` how much shared memory
    its warps need to leave their parts of it for each other; `gdn_warp.scratch` =
    [begin, distance], which `gdn-warp-allocate-shared` writes, where that is.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Attribute of a loop (`scf.for`), an integer: see the description.
    static constexpr ::llvm::StringLiteral getUnrollAttrName() { return "gdn_warp.unroll"; }

    /// Attribute of a loop (`scf.for`), an integer: see the description.
    static constexpr ::llvm::StringLiteral getChunksAttrName() { return "gdn_warp.chunks"; }

    /// Attribute of a function around launches, a dictionary: for a stage the schedule of its programs, which goes before
    /// the option of `gdn-warp-choose-schedule`.
    static constexpr ::llvm::StringLiteral getSchedulesAttrName() { return "gdn_warp.schedules"; }

    /// Attribute of a lowered kernel (`llvm.func`): a #gdn_warp.launch.
    static constexpr ::llvm::StringLiteral getLaunchAttrName() { return "gdn_warp.launch"; }

    /// Attribute of a kernel and of a lowered one (`llvm.func`), a string: the stage that it computes. It is part of the
    /// kernel's name in an image that several objects may have.
    static constexpr ::llvm::StringLiteral getStageAttrName() { return "gdn_warp.stage"; }

    /// Unit attribute of a role of which the CTAs of a cluster take the iterations in turn.
    static constexpr ::llvm::StringLiteral getAlternateCtasAttrName() { return "gdn_warp.alternate_ctas"; }
    /// Attribute of an scf.if: whether its condition usually holds (a boolean). All
    /// threads of a role agree on it.
    static constexpr ::llvm::StringLiteral getLikelyAttrName() { return "gdn_warp.likely"; }
    /// Attribute of a role whose warps take the chunks in turn: how many of them take one together (i64), or a unit for
    /// one.
    static constexpr ::llvm::StringLiteral getRoundRobinAttrName() { return "gdn_warp.round_robin"; }

    /// Unit attribute of a role that shares its code with the roles beside it.
    static constexpr ::llvm::StringLiteral getShareCodeAttrName() { return "gdn_warp.share_code"; }

    /// Unit attribute of a role whose loops make addresses in shared memory where they use
    /// them, of such an address, and of a branch whose integers are computed inside of it.
    static constexpr ::llvm::StringLiteral getLateAddressesAttrName() { return "gdn_warp.late_addresses"; }

    /// Unit attribute of a role that makes the pieces of its tiles in a loop.
    static constexpr ::llvm::StringLiteral getLoopPiecesAttrName() { return "gdn_warp.loop_pieces"; }
    /// Unit attribute of a role whose slots go to their takers before its own products have read them.
    static constexpr ::llvm::StringLiteral getHandOnEarlyAttrName() { return "gdn_warp.hand_on_early"; }
    /// Attribute of a loop over the pieces of tiles: how many there are.
    static constexpr ::llvm::StringLiteral getPiecesAttrName() { return "gdn_warp.pieces"; }

    /// Attribute of an op over the rows of a fragment: bytes of the scratch memory of its
    /// warpgroup in which the warps leave their parts of it.
    static constexpr ::llvm::StringLiteral getScratchBytesAttrName() { return "gdn_warp.scratch_bytes"; }
    /// Attribute of an op over the rows of a fragment: where the scratch memory of its
    /// warpgroup begins and how far those of two warpgroups of the CTA lie apart, in bytes.
    static constexpr ::llvm::StringLiteral getScratchAttrName() { return "gdn_warp.scratch"; }
    /// Unit attribute of a reduction of a spread tile: no other op has its scratch memory, and
    /// its warps wait in another reduction of the block before they write it again.
    static constexpr ::llvm::StringLiteral getScratchApartAttrName() { return "gdn_warp.scratch_apart"; }
    /// Attribute of an op over the rows of a fragment: [a, b], the rows that it is about.
    static constexpr ::llvm::StringLiteral getRowsAttrName() { return "gdn_warp.rows"; }

    /// The chip of that name: one of the table in Arch.h or of those that
    /// `addArch` added to this context; null if there is none.
    const Arch *findArch(::llvm::StringRef chip) const;
    void addArch(const Arch &arch) { archs.push_back(&arch); }
    /// The names of all chips, for messages.
    std::string listArchs() const;

    /// Adds the types; their storage is complete in one file only.
    void registerTypes();

  private:
    ::llvm::SmallVector<const Arch *> archs;
  }];
}

#endif // GDN_DIALECT_WARP_IR_DIALECT_TD
