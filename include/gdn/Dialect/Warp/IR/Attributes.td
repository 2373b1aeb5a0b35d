//===- Attributes.td - Encodings of register tiles, tensor maps -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_ATTRIBUTES_TD
#define GDN_DIALECT_WARP_IR_ATTRIBUTES_TD

include "gdn/Dialect/Warp/IR/Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class Warp_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Warp_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// The encoding of a tile in the registers of one warpgroup or warp.
class Warp_Encoding<string name, string attrMnemonic>
    : Warp_Attr<name, attrMnemonic, [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]>;

def Warp_FragmentAttr : Warp_Encoding<"Fragment", "fragment"> {
  let summary = "A 64 x N tile in the accumulator layout of wgmma m64nN";
  let description = [{
    Element i of lane l of the warpgroup's warp w lies in row
    16 w + l / 4 + 8 ((i / 2) mod 2) and column 8 (i / 4) + 2 (l mod 4) + i mod 2
    (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"). Rounded to 16
    bits it is the left operand of a product without a move.

    Example: `tensor<64x32xf32, #gdn_warp.fragment>`
  }];
}

def Warp_ColumnsAttr : Warp_Encoding<"Columns", "columns"> {
  let summary = "A vector along the columns of a fragment";
  let description = [{
    Each thread holds the elements of the columns that it holds in a fragment:
    element 2 j + b is that of column 8 j + 2 (l mod 4) + b.

    Example: `tensor<32xf32, #gdn_warp.columns>`
  }];
}

def Warp_RowsAttr : Warp_Encoding<"Rows", "rows"> {
  let summary = "A vector along the rows of a fragment";
  let description = [{
    Each thread holds the elements of the two rows that it holds in a fragment:
    element h is that of row 16 w + l / 4 + 8 h.

    Example: `tensor<64xf32, #gdn_warp.rows>`
  }];
}

def Warp_LanesAttr : Warp_Encoding<"Lanes", "lanes"> {
  let summary = "A vector over the lanes of one warp";
  let description = [{
    Element i of lane l is that of place 32 i + l. A vector of fewer elements,
    which divide the lanes, is repeated: of 8 elements lane l holds that of place
    l mod 8. Unlike the
    other encodings it is a tile of one warp; every warp that runs an op on it
    has a vector of its own.

    Example: `tensor<32xf32, #gdn_warp.lanes>`
  }];
}

def Warp_SpreadAttr : Warp_Encoding<"Spread", "spread"> {
  let summary = "A tile spread over the lanes of some warps";
  let description = [{
    A thread holds patches of `rows` x `columns` elements. `lanes` lanes of a warp
    have patches next to each other in a row, the other lanes those below. Of
    `warps` warps `column_warps` go on along the row, the others below. Where the
    tile is larger, each thread has more patches: first those further along the
    row, then those below. So patch p of lane l of warp w, with C patches of a
    thread along a row, begins at
    row `rows` ((p / C) R + (w / column_warps) (32 / lanes) + l / lanes), where
    R = (32 / lanes) (warps / column_warps), and at
    column `columns` ((p mod C) lanes column_warps + (w mod column_warps) lanes + l mod lanes).
    Elements of a patch follow each other along dimension `axis` in registers, as
    they do in the array that is accessed: 16 bytes of a lane, and whole lines of
    memory of a warp.

    No product reads it. Sums along a row or a column are sums in a thread,
    shuffles, and, if it has several warps, sums through scratch memory. Nothing
    else of the tile goes through shared memory.

    Example: `tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "int64_t":$axis, "int64_t":$lanes,
    "int64_t":$warps, DefaultValuedParameter<"int64_t", "1">:$column_warps);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements along dimension `dim` of a patch, and of all lanes' patches that
    /// lie next to each other.
    int64_t getRunAlong(int64_t dim) const { return dim == 0 ? getRows() : getColumns(); }
    int64_t getBlock(int64_t dim) const;
    /// Warps that go on along dimension `dim`.
    int64_t getWarpsAlong(int64_t dim) const;
    /// Of element `i` of a thread's part of a tile of `size` columns the row
    /// (`dim` 0) or column: its patch along that dimension, and in the patch.
    std::pair<int64_t, int64_t> locate(int64_t size, int64_t dim, int64_t i) const;
  }];
}

def Warp_SliceAttr : Warp_Encoding<"Slice", "slice"> {
  let summary = "A vector along the rows or the columns of a spread tile";
  let description = [{
    Each thread holds, in order, the elements of the rows (`axis` = 0) or of the
    columns (`axis` = 1) that it holds of a tile spread as `of` says.

    Example: `tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>`
  }];
  let parameters = (ins "::mlir::gdn::warp::SpreadAttr":$of, "int64_t":$axis);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Warp_UniformAttr : Warp_Encoding<"Uniform", "uniform"> {
  let summary = "A vector that every thread holds whole";
  let description = [{
    Every thread holds all elements, in order: of a vector of one element or of a
    tensor of rank 0 a scalar.

    Example: `tensor<1xf32, #gdn_warp.uniform>`
  }];
}

def Warp_TensorMapAttr : Warp_Attr<"TensorMap", "tensor_map"> {
  let summary = "How the host encodes a tensor map argument of a kernel";
  let description = [{
    The map describes argument `argument` of the kernel, an array of
    `element_type`. Dimension i of the map, innermost first, steps along array
    dimension `dims[i]` by `steps[i]` elements; its size is `extents[i]`, or,
    where that is 0, the array's size divided by the step, rounded up. The box is
    `box`, the swizzle that of `swizzle` bytes (0 or 128).

    A map may end its rows anywhere: it has the dimension of the rows three
    times. Coordinate x of the first one, of size 2^30, is cut there; e, of the
    second one, moves the end; the third one has step -1, which stands for 2^34
    elements less one of the array's, and at coordinate 2^30 takes back 2^30 rows,
    since addresses are modulo 2^64. So x = 2^30 + row - e reads `row` of rows that
    end at e.
  }];
  let parameters = (ins "int64_t":$argument, "::mlir::Type":$element_type,
    "::mlir::DenseI64ArrayAttr":$dims, "::mlir::DenseI64ArrayAttr":$steps,
    "::mlir::DenseI64ArrayAttr":$extents, "::mlir::DenseI64ArrayAttr":$box, "int64_t":$swizzle);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The step of the dimension that takes back rows; the size of the
    /// dimension that is cut, and its coordinate; the size of the other two,
    /// which nothing reaches.
    static constexpr int64_t kStepBack = -1;
    static constexpr int64_t kCutRows = int64_t(1) << 30;
    static constexpr int64_t kUncut = 0x7fff0000;
    /// True if the rows end where a coordinate says.
    bool isCut() const { return getSteps().asArrayRef().back() == kStepBack; }
  }];
}

def Warp_LaunchAttr : Warp_Attr<"Launch", "launch"> {
  let summary = "What the host must know to launch a lowered kernel";
  let description = [{
    `arguments` are the types of the kernel's arguments as written. An array
    becomes a pointer, then each dynamic size and each dynamic stride (elements)
    as i64; a scalar stays. The tensor maps follow, 128 bytes each, by value.
    `resident_ctas`, if not 0, of a kernel whose CTAs take work in turn, are the
    CTAs that a multiprocessor runs at a time: more need not be launched. A kernel
    that `follows` waits itself for the one before it in the stream
    (`gdn_warp.grid_dependency_wait`), and may be launched before that has ended.
  }];
  let parameters = (ins "int64_t":$threads, "int64_t":$shared_bytes, "int64_t":$cluster,
    "int64_t":$resident_ctas, "bool":$follows,
    "::mlir::ArrayAttr":$arguments, "::mlir::ArrayAttr":$tensor_maps);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Warp_TargetAttr : Warp_Attr<"Target", "target"> {
  let summary = "The chip that a kernel is for";
  let description = [{
    Names a row of the table of chips (include/gdn/Dialect/Warp/IR/Arch.h). As
    the attribute `gdn_warp.target` it stands on a program, a kernel, the
    lowered kernel or a module and holds for everything inside; the innermost
    one counts. Without it the first chip of the table is meant.

    Example: `#gdn_warp.target<chip = "sm_90a">`
  }];
  let parameters = (ins StringRefParameter<>:$chip);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Name of the attribute on a program, kernel or module.
    static constexpr ::llvm::StringLiteral kName = "gdn_warp.target";
  }];
}

/// Enums print as plain words.
class Warp_Enum<string name, string text, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, text, cases> {
  let cppNamespace = "::mlir::gdn::warp";
}

def Warp_IdKind : Warp_Enum<"IdKind", "what a gdn_warp.id names", [
    I32EnumAttrCase<"Thread", 0, "thread">, I32EnumAttrCase<"Lane", 1, "lane">,
    I32EnumAttrCase<"Warp", 2, "warp">, I32EnumAttrCase<"CTA", 3, "cta">,
    I32EnumAttrCase<"CTACount", 4, "cta_count">,
    I32EnumAttrCase<"ClusterRank", 5, "cluster_rank">]>;

def Warp_SyncKind : Warp_Enum<"SyncKind", "the threads that wait for each other", [
    I32EnumAttrCase<"Warp", 0, "warp">, I32EnumAttrCase<"CTA", 1, "cta">,
    I32EnumAttrCase<"Cluster", 2, "cluster">]>;

def Warp_FenceKind : Warp_Enum<"FenceKind", "what a fence orders", [
    I32EnumAttrCase<"Async", 0, "async">, I32EnumAttrCase<"BarrierInit", 1, "barrier_init">]>;

def Warp_ShuffleKind : Warp_Enum<"ShuffleKind", "which lane a shuffle reads", [
    I32EnumAttrCase<"Up", 0, "up">, I32EnumAttrCase<"Down", 1, "down">,
    I32EnumAttrCase<"Xor", 2, "xor">, I32EnumAttrCase<"Index", 3, "index">]>;

#endif // GDN_DIALECT_WARP_IR_ATTRIBUTES_TD
