//===- Ops.td - Ops of the gdn_tile dialect ----------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_OPS_TD
#define GDN_DIALECT_TILE_IR_OPS_TD

include "gdn/Dialect/KnownAttributes.td"
include "gdn/Dialect/Tile/IR/Dialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, !listconcat(traits, [OnlyKnownAttributes])>;

/// A tile: a tensor of static, positive extents and of elements that programs
/// may have (ElementTypes.h).
class Tile_TileIf<string condition, string elements>
    : Type<And<[CPred<"::mlir::gdn::isTileOf($_self, ::mlir::gdn::ElementLevel::Tile)">, CPred<condition>]>,
           "tile of static, positive extents and of " # elements, "::mlir::RankedTensorType">;
def Tile_Tile : Tile_TileIf<"true", "elements that programs have">;
def Tile_FloatTile : Tile_TileIf<
    "::mlir::isa<::mlir::FloatType>(::mlir::getElementTypeOrSelf($_self))", "bf16, f16, f32 or f64">;
def Tile_SquareF32 : Tile_TileIf<"::mlir::getElementTypeOrSelf($_self).isF32()", "f32">;

def Tile_ProgramOp : Tile_Op<"program",
    [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator,
     HasParent<"::mlir::ModuleOp">,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "The program of one work item of a grid";
  let description = [{
    A function-like op: its first block arguments are whole arrays in memory
    (inputs, then `outs`). Behind them are the coordinates of the work item in the
    grid: the sequence, the value head, the V tile, and any number of further
    ones. The last three arguments say where the work item's tokens lie: the index
    in the batch dimension, the first token and the one past the last. Work items
    are independent of each other and may run in any order.

    Arrays are memrefs with strides; an input may be a scalar, too. The tensors of a
    program are tiles: their extents are static and positive, and a tile has at most
    2^20 elements. Arrays, scalars and tiles have elements of bf16, f16, f32, f64, i1, i8, i16,
    i32, i64 or index, whatever op makes them.

    Example:

    ```mlir
    gdn_tile.program @copy(%x : memref<1x?x4x128xf32>)
        outs(%y : memref<1x?x4x128xf32>)
        work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      scf.for %t = %begin to %end step %c32 {
        %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
            : memref<1x?x4x128xf32> -> tensor<32x128xf32>
        gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
            : tensor<32x128xf32> -> memref<1x?x4x128xf32>
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<SymbolNameAttr, "The name, which launches refer to.">:$sym_name,
      Arg<I64Attr, "The number of arrays that are read; the others are written.">:$num_inputs,
      Arg<OptionalAttr<StrArrayAttr>, "Names of the arguments, for messages.">:$arg_names,
      Arg<DefaultValuedAttr<I64Attr, "3">, "The number of a work item's coordinates.">:$grid_rank);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$inputs,
    "::mlir::TypeRange":$outputs, "::llvm::ArrayRef<::llvm::StringRef>":$argNames,
    CArg<"int64_t", "kMinGridRank">:$gridRank)>];
  let extraClassDeclaration = [{
    /// Behind the arrays there are the coordinates of the work item in the
    /// grid, at least so many, and where its tokens lie.
    static constexpr unsigned kMinGridRank = 3, kNumTokenArguments = 3;

    unsigned getNumWorkItemArguments() { return getGridRank() + kNumTokenArguments; }
    ::mlir::Block::BlockArgListType getArrays() {
      return getBody().getArguments().drop_back(getNumWorkItemArguments());
    }
    ::mlir::Block::BlockArgListType getInputs() { return getArrays().take_front(getNumInputs()); }
    ::mlir::Block::BlockArgListType getOutputs() { return getArrays().drop_front(getNumInputs()); }
    ::mlir::Block::BlockArgListType getWorkItemArguments() {
      return getBody().getArguments().take_back(getNumWorkItemArguments());
    }
    ::mlir::Block::BlockArgListType getCoordinates() {
      return getWorkItemArguments().take_front(getGridRank());
    }
    ::mlir::Block::BlockArgListType getTokenArguments() {
      return getWorkItemArguments().take_back(kNumTokenArguments);
    }
    ::mlir::Value getSequence() { return getWorkItemArguments()[0]; }
    ::mlir::Value getHead() { return getWorkItemArguments()[1]; }
    ::mlir::Value getVTile() { return getWorkItemArguments()[2]; }
    ::mlir::Value getBatch() { return getTokenArguments()[0]; }
    ::mlir::Value getBegin() { return getTokenArguments()[1]; }
    ::mlir::Value getEnd() { return getTokenArguments()[2]; }
  }];
}

def Tile_LaunchOp : Tile_Op<"launch",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Run a program over its whole grid";
  let description = [{
    Stands in a function, not in a program. Runs `program` for every work item of
    `grid`, whose sizes are the numbers of
    sequences, value heads and V tiles, and of what further coordinates the
    program has. Sequence n has tokens
    0 .. `tokens` of batch n, or, with `cu_seqlens` [N + 1], tokens
    cu_seqlens[n] .. cu_seqlens[n + 1] of batch 0. On tensors the results are
    `outs` after the run; on memrefs `outs` are written in place.

    If `cu_seqlens` does not ascend from 0 to `tokens`, the sequences still lie
    inside [0, `tokens`], and no token is in two of them. A token t between the
    first and the last boundary is in the sequence that a binary search finds:
    with 2^L >= N, begin with n = 0, and for each level l = L - 1, ..., 0 add 2^l
    to n if n + 2^l < N and cu_seqlens[n + 2^l] <= t. Other tokens are in none.
  }];
  let arguments = (ins
      Arg<FlatSymbolRefAttr, "The program.">:$program,
      Arg<Variadic<Index>, "The numbers of sequences, value heads and V tiles.">:$grid,
      Arg<Index, "Tokens of a sequence, or of all packed sequences together.">:$tokens,
      Arg<Optional<AnyTypeOf<[TensorRankOf<[I32, I64], [1]>, MemRefRankOf<[I32, I64], [1]>]>>, "The boundaries of packed sequences; absent, sequences have one length.">:$cu_seqlens,
      Arg<Variadic<AnyType>, "The arrays that the program reads.">:$inputs,
      Arg<Variadic<AnyShaped>, "The arrays that it writes.">:$outputs);
  let results = (outs
      Res<Variadic<AnyRankedTensor>, "The written arrays, in the tensor form.">:$results);
  let assemblyFormat = [{
    $program `grid` `(` $grid `)` `tokens` `(` $tokens `)`
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
  }];
}

def Tile_LoadOp : Tile_Op<"load",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Read a tile of an array";
  let description = [{
    Tile axis i runs along array dimension `axes[i]` from `offsets`; so
    `axes [3, 1]` reads a transposed tile. Elements at or beyond `end` of
    dimension `dim` read as zero; the program sees to it that `end` lies in the array.
    Along the tile's other dimensions, code for a CPU and copies of a GPU, by a tensor map
    or by `gdn_warp.strided_load`, cut the tile where the array ends: elements beyond read as
    zero. A CPU takes an offset that is no constant to be a multiple of the tile's size
    where tiles of that size fill the dimension. Other accesses of a GPU do not look.

    Example:

    ```mlir
    %k = gdn_tile.load %K[%batch, %t, %hq, %c0] axes [1, 3] until(%end, dim = 1)
        : memref<1x?x2x128xbf16> -> tensor<32x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array.">:$source,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, none does.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim);
  let results = (outs
      Res<Tile_Tile, "The tile; elements outside are zero.">:$result);
  let assemblyFormat = [{
    $source `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Write a tile of an array";
  let description = [{
    The counterpart of `gdn_tile.load`: elements that it reads as zero are not
    written.

    Example:

    ```mlir
    gdn_tile.store %o, %O[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
        : tensor<32x128xbf16> -> memref<1x?x4x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<Tile_Tile, "The tile; elements outside are not written.">:$tile,
      Arg<AnyMemRef, "The array.">:$target,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, none does.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim);
  let assemblyFormat = [{
    $tile `,` $target `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($tile) `->` type($target)
  }];
  let hasVerifier = 1;
}

include "gdn/Dialect/Tile/IR/EntryOps.td"

def Tile_ScanOp : Tile_Op<"scan", [Pure, SameOperandsAndResultType]> {
  let summary = "Inclusive sum along one axis of a tile";
  let description = [{
    out[i] = sum over j <= i of in[j] along `axis`; over j >= i with `reverse`.

    Example:

    ```mlir
    %G = gdn_tile.scan %g axis 0 : tensor<32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The tile.">:$source,
      Arg<I64Attr, "The dimension along which is summed.">:$axis,
      Arg<UnitAttr, "Whether sums run from the last element to the first.">:$reverse);
  let results = (outs
      Res<Tile_FloatTile, "The sums up to each element, itself included.">:$result);
  let assemblyFormat = "$source `axis` $axis (`reverse` $reverse^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

include "gdn/Dialect/Tile/IR/BlockOps.td"

def Tile_ClusterSumOp : Tile_Op<"cluster_sum"> {
  let summary = "Sum over the work items of a cluster, each of which keeps some columns";
  let description = [{
    `items` work items next to each other in the last coordinate of the grid run
    at the same time, as a cluster. Work item r of them gets columns
    [r n, (r + 1) n) of the sum of their tiles, where n is the columns of the
    result. Each adds the tiles of the others to its own in a fixed order. All of
    them run the op equally often; `number` counts its runs in a work item from
    0. A CPU, which runs work items one after the other, has no such programs.

    Example:

    ```mlir
    %columns = gdn_tile.cluster_sum %part number %n of 2 : tensor<64x64xf32> -> tensor<64x32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The tile of this work item.">:$source,
      Arg<Index, "How often this work item has run the op before.">:$number,
      Arg<I64Attr, "Work items of the cluster: 2, 4 or 8.">:$items);
  let results = (outs
      Res<Tile_FloatTile, "The sum's columns that belong to this work item.">:$result);
  let assemblyFormat = [{
    $source `number` $number `of` $items attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kMostItems = 8;
  }];
}

def Tile_CausalOp : Tile_Op<"causal", [Pure, SameOperandsAndResultType]> {
  let summary = "Lower triangle of a square tile";
  let description = [{
    Keeps elements with row >= column (row > column with `strict`), the others
    are zero whatever they were, NaN included.

    Example:

    ```mlir
    %p = gdn_tile.causal %qk : tensor<32x32xf32>
    %kk = gdn_tile.causal strict %kkt : tensor<32x32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The tile.">:$source,
      Arg<UnitAttr, "Whether the diagonal becomes zero as well.">:$strict);
  let results = (outs
      Res<Tile_FloatTile, "The lower triangle of the tile.">:$result);
  let assemblyFormat = "(`strict` $strict^)? $source attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_DiagonalOp : Tile_Op<"diagonal", [Pure]> {
  let summary = "Diagonal of a square tile";
  let description = [{
    out[i] = in[i, i]. Of the products of rows with each other it is the squares
    of their lengths.

    Example:

    ```mlir
    %squares = gdn_tile.diagonal %kkt : tensor<32x32xf32> -> tensor<32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The square tile.">:$source);
  let results = (outs
      Res<Tile_FloatTile, "The elements on its diagonal.">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$source)>];
  let hasVerifier = 1;
}

def Tile_SolveOp : Tile_Op<"solve", [Pure, AllTypesMatch<["scores", "result"]>]> {
  let summary = "Bm of the unit lower triangular system of a chunk";
  let description = [{
    The solution of (I + Kk Diag(beta)) Bm = Kk (spec 3.3) with `scores` = Kk
    [C, C] strictly lower and `beta` [C]. Blocks of 16 by substitution in f32,
    then pairwise merges B21 = (I - B22 b2) Kk21 (I - b1 B11) whose products
    take operands of `merge_type` and accumulate in f32 (spec 3.6). A macro:
    each target has one expansion.

    Example:

    ```mlir
    %bm = gdn_tile.solve %kk, %b merge f16 : tensor<32x32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_SquareF32, "Kk of a chunk, strictly lower triangular.">:$scores,
      Arg<Tile_SquareF32, "The write strengths.">:$beta,
      Arg<TypeAttr, "The type to which operands of the merges are rounded.">:$merge_type);
  let results = (outs
      Res<Tile_SquareF32, "Bm of spec 3.3.">:$result);
  let assemblyFormat = "$scores `,` $beta `merge` $merge_type attr-dict `:` type($scores) `,` type($beta)";
  let hasVerifier = 1;
}

def Tile_TriInverseOp : Tile_Op<"tri_inverse", [Pure]> {
  let summary = "Inverse of a unit lower triangular tile, less the identity";
  let description = [{
    X = (I + M)^-1 - I of a strictly lower M [C, C]; with M = Diag(beta) Kk it is
    -Diag(beta) Bm, all that a forward needs of the solve (spec 3.3, 3.7). M is
    f32 or of `merge_type`; blocks and merges are those of `gdn_tile.solve`. A
    macro: each target has one expansion.

    Example:

    ```mlir
    %x = gdn_tile.tri_inverse %m merge f16 : tensor<32x32xf16> -> tensor<32x32xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "M, strictly lower triangular.">:$source,
      Arg<TypeAttr, "The type to which operands of the merges are rounded.">:$merge_type);
  let results = (outs
      Res<Tile_SquareF32, "(I + M)^-1 - I.">:$result);
  let assemblyFormat = "$source `merge` $merge_type attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_TILE_IR_OPS_TD
