//===- Ops.td - Kernel, roles, shared memory and barriers --*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_OPS_TD
#define GDN_DIALECT_WARP_IR_OPS_TD

include "gdn/Dialect/KnownAttributes.td"
include "gdn/Dialect/Warp/IR/Attributes.td"
include "gdn/Dialect/Warp/IR/Schedule.td"
include "gdn/Dialect/Warp/IR/ScheduleTemplate.td"
include "gdn/Dialect/Warp/IR/Types.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Warp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Warp_Dialect, mnemonic, !listconcat(traits, [OnlyKnownAttributes])>;

def Warp_KernelOp : Warp_Op<"kernel",
    [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel with its launch facts";
  let description = [{
    Runs on CTAs of `threads` threads with `shared` bytes of dynamic shared
    memory; `min_ctas` of them fit on a multiprocessor, `cluster` of them form a
    cluster. A `persistent` kernel does all its work with any number of CTAs, so
    that no more are launched than run at a time. Arguments are arrays in global memory (memrefs, any strides) and
    scalars. Arrays, tiles and scalars have elements of bf16, f16, f32, f64, i1, i8, i16, i32 or i64.
    Ops outside roles run in all threads.

    Example:

    ```mlir
    gdn_warp.kernel @scale(%x : memref<?x64xf32>, %s : f32) threads(128) shared(1024) {
      gdn_warp.role "all" warps(0, 4) {
        %c0 = arith.constant 0 : index
        %f = gdn_warp.array_load %x[%c0, %c0] axes [0, 1]
            : memref<?x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
        %b = tensor.splat %s : tensor<64x64xf32, #gdn_warp.fragment>
        %g = arith.mulf %f, %b : tensor<64x64xf32, #gdn_warp.fragment>
        gdn_warp.array_store %g, %x[%c0, %c0] axes [0, 1]
            : tensor<64x64xf32, #gdn_warp.fragment> -> memref<?x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<SymbolNameAttr, "The name, which launches refer to.">:$sym_name,
      Arg<I64Attr, "Threads of a CTA.">:$threads,
      Arg<I64Attr, "Bytes of dynamic shared memory of a CTA.">:$shared_bytes,
      Arg<DefaultValuedAttr<I64Attr, "1">, "CTAs that must fit on a multiprocessor at the same time.">:$min_ctas,
      Arg<DefaultValuedAttr<I64Attr, "1">, "CTAs of a cluster.">:$cluster,
      Arg<UnitAttr, "Whether any number of CTAs does all the work, each several work items.">:$persistent,
      Arg<OptionalAttr<StrArrayAttr>, "Names of the arguments, for messages and the host's tables.">:$arg_names);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments,
    "int64_t":$threads, "int64_t":$shared_bytes, CArg<"int64_t", "1">:$min_ctas,
    CArg<"int64_t", "1">:$cluster)>];
}

def Warp_RoleOp : Warp_Op<"role",
    [SingleBlock, NoTerminator, HasParent<"::mlir::gdn::warp::KernelOp">]> {
  let summary = "What a range of warps does";
  let description = [{
    Warps `first` .. `first` + `count` run the region. `registers` a thread are
    taken or given back (setmaxnreg) by the whole warpgroup: roles that share a
    warpgroup name the same number.

    Example:

    ```mlir
    gdn_warp.role "state" warps(4, 8) registers(168) {
    }
    ```
  }];
  let arguments = (ins
      Arg<StrAttr, "The name, for messages.">:$name,
      Arg<I64Attr, "The number of the first warp in the CTA.">:$first,
      Arg<I64Attr, "The number of warps.">:$count,
      Arg<OptionalAttr<I64Attr>, "Registers of a thread, a multiple of 8; absent, those of the launch.">:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` `(` $first `,` $count `)` (`registers` `(` $registers^ `)`)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// How many of the warps run a chunk together: all, unless they take turns.
    int64_t countTogether();
  }];
  let hasVerifier = 1;
}

def Warp_IdOp : Warp_Op<"id", [Pure]> {
  let summary = "Number of this thread, lane, warp or CTA";
  let description = [{
    `thread` and `warp` count in the CTA, `lane` in the warp, `cta` of
    `cta_count` in the grid, `cluster_rank` in the cluster. `warp` is known to be
    the same for all lanes.

    Example:

    ```mlir
    %w = gdn_warp.id warp
    ```
  }];
  let arguments = (ins
      Arg<Warp_IdKind, "What is numbered.">:$kind);
  let results = (outs
      Res<Index, "The number, from 0.">:$result);
  let assemblyFormat = "$kind attr-dict";
}

def Warp_SequenceByRankOp : Warp_Op<"sequence_by_rank"> {
  let summary = "Sequence of a rank by length, the longest first";
  let description = [{
    Of the sequences `bounds[n]` to `bounds[n + 1]` the number n of the one that
    `rank` others come before, and its boundaries: longer ones come before, and
    of the same length those before it. CTAs that take sequences in this order
    end together. Among more than 32 sequences (a lane has one) the order does
    not matter: then n is `rank`. Boundaries are below 2^31, as coordinates of
    copies are. All lanes of a warp run it. With `in_order` n is `rank`, whatever
    the lengths.

    Wrong boundaries make wrong sequences that lie inside the array and share no
    token. Of N sequences, sequence n begins at the largest `bounds[i]` of those
    i that are n without its lowest bits (n, n with the last bit cleared, with
    the last two, ..., 0), and ends at the smallest `bounds[j]` of those j that
    are such an i plus 2^(number of cleared bits), or N if that is less. Both are
    clamped to [0, `tokens`]. Of ascending boundaries these are `bounds[n]` and
    `bounds[n + 1]`. In general this is a binary search tree over boundaries: a
    token between the first and the last one is in the one sequence that the
    search finds. `begin` may be above `end`; the sequence has no token then.
    Any sequence costs one load of a warp, however many there are.

    Example:

    ```mlir
    %n, %begin, %end = gdn_warp.sequence_by_rank %cu_seqlens, %rank tokens(%T) : memref<?xi32>
    %m, %first, %last = gdn_warp.sequence_by_rank %cu_seqlens, %rank tokens(%T) in_order : memref<?xi32>
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[I32, I64], [1]>, "The boundaries of the packed sequences, one more than there are sequences.", [MemRead]>:$bounds,
      Arg<Index, "The rank by length; 0 is the longest.">:$rank,
      Arg<Index, "The number of tokens of all sequences, which no boundary exceeds.">:$tokens,
      Arg<UnitAttr, "Whether sequences are taken as they lie, not by length.">:$in_order);
  let results = (outs
      Res<Index, "The number of the sequence.">:$sequence,
      Res<Index, "The index of its first token.">:$begin,
      Res<Index, "The index behind its last token.">:$end);
  let assemblyFormat = "$bounds `,` $rank `tokens` `(` $tokens `)` (`in_order` $in_order^)? attr-dict `:` type($bounds)";
}

def Warp_ElectOp : Warp_Op<"elect"> {
  let summary = "True in one thread of the warp";
  let description = [{
    All lanes of the warp run it.

    Example:

    ```mlir
    %one = gdn_warp.elect
    ```
  }];
  let results = (outs
      Res<I1, "True in one thread of the warp.">:$result);
  let assemblyFormat = "attr-dict";
}

def Warp_ShuffleOp : Warp_Op<"shuffle", [AllTypesMatch<["value", "result"]>]> {
  let summary = "A value of another lane of the warp";
  let description = [{
    Lane l reads `value` of lane l - `lane` (`up`), l + `lane` (`down`), l xor
    `lane` or `lane` (`index`); out of the warp, its own. All lanes run it.

    Example:

    ```mlir
    %y = gdn_warp.shuffle up %x, %distance : f32
    ```
  }];
  let arguments = (ins
      Arg<Warp_ShuffleKind, "How `lane` names the other lane.">:$kind,
      Arg<AnyTypeOf<[F32, I32]>, "What this lane gives.">:$value,
      Arg<I32, "The other lane, as its number or relative to this lane, by `kind`.">:$lane);
  let results = (outs
      Res<AnyTypeOf<[F32, I32]>, "What the other lane gave.">:$result);
  let assemblyFormat = "$kind $value `,` $lane attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Warp_ViewOp : Warp_Op<"view", [Pure]> {
  let summary = "A vector or matrix at a byte offset of shared memory";
  let description = [{
    `offset` bytes from the start of the kernel's shared memory; a multiple of
    1024 if the view is swizzled and of 16 otherwise.

    Example:

    ```mlir
    %k = gdn_warp.view %offset : !gdn_warp.view<32x128xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
      Arg<Index, "Bytes from the beginning of shared memory.">:$offset);
  let results = (outs
      Res<Warp_ViewType, "The view.">:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Warp_SliceOp : Warp_Op<"slice", [Pure]> {
  let summary = "A rectangle of a matrix, or a run of a vector, in shared memory";
  let description = [{
    Rows from `row` and columns from `column`; `row` is 0 in a vector. In a swizzled view `row` is a
    multiple of 8 and the column's byte one of 32. With a `number` the part lies as many steps of so many rows and
    columns further, inside the view; the steps of a swizzled view are whole panels of columns.

    Example:

    ```mlir
    %p = gdn_warp.slice %tile[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128>
        -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
    %n = gdn_warp.slice %keys[0, 0] + %i * [0, 64] : !gdn_warp.view<32x128xbf16, swizzle = 128>
        -> !gdn_warp.view<32x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "The view to take a part of.">:$source,
      Arg<I64Attr, "The first row.">:$row,
      Arg<I64Attr, "The first column.">:$column,
      Arg<Optional<Index>, "How many steps further the part lies.">:$number,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The rows and columns of a step.">:$step);
  let results = (outs
      Res<Warp_ViewType, "The view of the part.">:$result);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` (`+` $number^ `*` $step)? attr-dict `:` type($source) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source, "int64_t":$row, "int64_t":$column), [{
    build($_builder, $_state, result, source, row, column, /*number=*/::mlir::Value(), /*step=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes between the begin of the view and that of a part `row` rows and `column` columns further.
    int64_t getDistance(int64_t row, int64_t column);
  }];
  let hasVerifier = 1;
}

def Warp_LoadOp : Warp_Op<"load"> {
  let summary = "This thread reads elements of shared memory";
  let description = [{
    One element, or a vector of elements of one row that lie in an aligned run
    of at most 16 bytes.

    Example:

    ```mlir
    %m = gdn_warp.load %view[%i, %j] : !gdn_warp.view<32x40xf16> -> vector<8xf16>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "The view to read.">:$view,
      Arg<Variadic<Index>, "The index of the element, one per dimension.">:$indices);
  let results = (outs
      Res<AnyType, "The element.">:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_StoreOp : Warp_Op<"store"> {
  let summary = "This thread writes elements of shared memory";
  let description = [{
    The counterpart of `gdn_warp.load`.

    Example:

    ```mlir
    gdn_warp.store %x, %view[%i] : f32 -> !gdn_warp.view<32xf32>
    ```
  }];
  let arguments = (ins
      Arg<AnyType, "The element.">:$value,
      Arg<Warp_ViewType, "The view to write.">:$view,
      Arg<Variadic<Index>, "The index of the element, one per dimension.">:$indices);
  let assemblyFormat = "$value `,` $view `[` $indices `]` attr-dict `:` type($value) `->` type($view)";
  let hasVerifier = 1;
}

include "gdn/Dialect/Warp/IR/Barriers.td"

//===----------------------------------------------------------------------===//
// Types of register tiles
//===----------------------------------------------------------------------===//

class Warp_Encoded<string encoding, string text>
    : Type<CPred<"::mlir::gdn::warp::isEncoded<::mlir::gdn::warp::" # encoding # ">($_self)">,
           text, "::mlir::RankedTensorType">;
def Warp_Fragment : Warp_Encoded<"FragmentAttr", "fragment">;
def Warp_Lanes : Warp_Encoded<"LanesAttr", "vector over lanes">;
def Warp_Rows : Warp_Encoded<"RowsAttr", "vector of rows">;
def Warp_Columns : Warp_Encoded<"ColumnsAttr", "vector of columns">;
def Warp_Vector : AnyTypeOf<[Warp_Columns, Warp_Rows, Warp_Lanes]>;
def Warp_Spread : Warp_Encoded<"SpreadAttr", "tile spread over lanes">;
def Warp_Slice : Warp_Encoded<"SliceAttr", "vector along a spread tile">;
def Warp_Uniform : Warp_Encoded<"UniformAttr", "vector that every thread holds">;
def Warp_InRegisters : AnyTypeOf<[Warp_Fragment, Warp_Columns, Warp_Rows, Warp_Lanes,
  Warp_Spread, Warp_Slice, Warp_Uniform]>;
def Warp_Tile : AnyTypeOf<[Warp_Fragment, Warp_Lanes]>;

def Warp_IotaOp : Warp_Op<"iota", [Pure]> {
  let summary = "Number of the row or column of every element";
  let description = [{
    result[i, j] = i with `dimension` 0 and j with 1; of a vector over lanes or
    along a spread tile, result[i] = i. With `arith.cmpi` and `arith.select` it makes masks, such as
    those of ragged ends.

    Example:

    ```mlir
    %row = gdn_warp.iota 0 : tensor<64x32xi32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<I64Attr, "The dimension whose index is the value.">:$dimension);
  let results = (outs
      Res<AnyTypeOf<[Warp_Fragment, Warp_Lanes, Warp_Slice]>, "The indices.">:$result);
  let assemblyFormat = "$dimension attr-dict `:` type($result)";
  let hasVerifier = 1;
}

include "gdn/Dialect/Warp/IR/Products.td"
include "gdn/Dialect/Warp/IR/Copies.td"
include "gdn/Dialect/Warp/IR/FragmentOps.td"
include "gdn/Dialect/Warp/IR/Warpgroups.td"
include "gdn/Dialect/Warp/IR/Channels.td"

include "gdn/Dialect/Warp/IR/TemplateOps.td"

#endif // GDN_DIALECT_WARP_IR_OPS_TD
