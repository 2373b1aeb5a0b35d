//===- Dialect.td - The gdn dialect ------------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_DIALECT_TD
#define GDN_DIALECT_GDN_IR_DIALECT_TD

include "mlir/IR/DialectBase.td"

def GDN_Dialect : Dialect {
  let name = "gdn";
  let cppNamespace = "::mlir::gdn";
  let summary = "Gated delta rule layers: what is computed";
  let description = [{
    The layers of the gated delta rule family on whole tensors: Gated DeltaNet
    (one gate a token and head), Kimi Delta Attention (one gate a token, head
    and channel) and DeltaNet (no gate). An op says *what* is computed; the
    stage ops of the same dialect say which kernels compute it. No chunk loop,
    tile or thread appears here.

    Shapes are named as in the specification: batch `B`, tokens `T`, query/key
    heads `Hq`, value heads `H` (a multiple of `Hq`), key channels `K`, value
    channels `V`, sequences `N`, chunk length `C`.

    What a caller may do with an array is noted on the argument or the result of
    a function:

    - `gdn.optional`: the array, of a dynamic first extent, may be absent in a
      call; that extent is 0 then. A state that would be read is zero, one that
      would be written is not stored. Only states of sequences may be absent,
      those that stages alone take, and those that a stage makes and that are
      returned and read by nothing; and `has_initial_state`.
    - `gdn.strided`: the array may have any strides. Without this note its last
      dimension is contiguous. So one function serves states [N, H, K, V] and,
      as views of them, states that lie as [N, H, V, K].
    - `gdn.cut`: by the argument, an index, each call chooses how `gdn-cp-split`
      cuts the sequences of the function; each word stands on one argument at
      most. `"segment_length"`: the tokens of a segment, a positive multiple of
      those of a chunk and, with them, of the parts. Where states are saved or
      read, it is a multiple of the tokens between these. A backward has this
      word alone; its chunks are those of its gradients, 64 tokens in three
      stages. `"segment_parts"`: the parts of a segment whose maps are made; with
      it segments that forget what is before them run it themselves.
      `"longer_segment_length"`: the tokens of a segment where a sample of the
      gates says that shorter ones do not pay; at least `"segment_length"`, as
      which a smaller number counts.
    - `gdn.name`, `gdn.dims`: names, from `gdn-name-arguments`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Notes on arguments and results of functions: the array may be absent, or
    /// have any strides.
    static constexpr ::llvm::StringLiteral getOptionalAttrName() { return "gdn.optional"; }
    static constexpr ::llvm::StringLiteral getStridedAttrName() { return "gdn.strided"; }
    /// Note on an argument, one of the words below: how a call cuts sequences.
    static constexpr ::llvm::StringLiteral getCutAttrName() { return "gdn.cut"; }
    static constexpr ::llvm::StringLiteral kSegmentLength = "segment_length";
    static constexpr ::llvm::StringLiteral kSegmentParts = "segment_parts";
    static constexpr ::llvm::StringLiteral kLongerSegmentLength = "longer_segment_length";
    /// Unit attribute of a function whose calls say parts: the forward of its segments is launched when their maps are
    /// done, not beside them.
    static constexpr ::llvm::StringLiteral getLateForwardAttrName() { return "gdn.late_forward"; }
    /// f64 attribute of a function: if the gates a channel of a call keep this bound, kernels for bounded gates run
    /// (`gdn-bound-gates`). Bits of a sequence then depend on the gates of others.
    static constexpr ::llvm::StringLiteral getGateBoundAttrName() { return "gdn.gate_bound"; }
    /// Attribute of a function, a dictionary: what its layer op computes, from `gdn-name-arguments`.
    static constexpr ::llvm::StringLiteral getSourceAttrName() { return "gdn.source"; }
    /// Attribute of a function, an array of dictionaries: its variants (`gdn-plan-calls`).
    static constexpr ::llvm::StringLiteral getVariantsAttrName() { return "gdn.variants"; }
    /// Names of an argument or a result and of its dimensions.
    static constexpr ::llvm::StringLiteral getNameAttrName() { return "gdn.name"; }
    static constexpr ::llvm::StringLiteral getDimsAttrName() { return "gdn.dims"; }
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

#endif // GDN_DIALECT_GDN_IR_DIALECT_TD
