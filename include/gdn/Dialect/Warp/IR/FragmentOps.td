//===- FragmentOps.td - Register tiles, products and copies -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_FRAGMENTOPS_TD
#define GDN_DIALECT_WARP_IR_FRAGMENTOPS_TD

// Included by Ops.td, which is the one file that is compiled.

class Warp_Encoded<string encoding, string text>
    : Type<CPred<"::mlir::gdn::warp::isEncoded<::mlir::gdn::warp::" # encoding # ">($_self)">,
           text, "::mlir::RankedTensorType">;
def Warp_Fragment : Warp_Encoded<"FragmentAttr", "fragment">;
def Warp_Lanes : Warp_Encoded<"LanesAttr", "vector over lanes">;
def Warp_Rows : Warp_Encoded<"RowsAttr", "vector of rows">;
def Warp_Vector : AnyTypeOf<[Warp_Encoded<"ColumnsAttr", "vector of columns">, Warp_Rows, Warp_Lanes]>;
def Warp_Tile : AnyTypeOf<[Warp_Fragment, Warp_Lanes]>;

def Warp_IotaOp : Warp_Op<"iota", [Pure]> {
  let summary = "Number of the row or column of every element";
  let description = [{
    result[i, j] = i with `dimension` 0 and j with 1; of a vector over lanes,
    result[i] = i. With `arith.cmpi` and `arith.select` it makes masks, such as
    those of ragged ends.

    Example:

    ```mlir
    %row = gdn_warp.iota 0 : tensor<64x32xi32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins I64Attr:$dimension);
  let results = (outs Warp_Tile:$result);
  let assemblyFormat = "$dimension attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Warp_WgmmaFenceOp : Warp_Op<"wgmma_fence"> {
  let summary = "Order register accesses before the products that follow";
  let description = [{
    Stands before the first product of a group if accumulators or left operands
    were written since the last one (wgmma.fence).

    Example:

    ```mlir
    gdn_warp.wgmma_fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_WgmmaOp : Warp_Op<"wgmma"> {
  let summary = "A product of a warpgroup, begun";
  let description = [{
    result[64, N] = a[64, K] b[K, N] (+ accumulator), f32, by K / 16 wgmma. `a` is
    a 16-bit fragment or a swizzled view [64, K], or, with `transpose_a`, a view
    [K, 64]; `b` a swizzled view [K, N], or, with `transpose_b`, [N, K]. The
    result may not be read before a `gdn_warp.wgmma_wait`, except as the accumulator
    of another product; nor may `a` be overwritten. With `negate` it is -a b
    (+ accumulator), for those who subtract it.

    Example:

    ```mlir
    %d = gdn_warp.wgmma %a, %b transpose_b into(%c : tensor<64x32xf32, #gdn_warp.fragment>)
        : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128>
        -> tensor<64x32xf32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Warp_ViewType, Warp_Fragment]>:$a, Warp_ViewType:$b,
    Optional<Warp_Fragment>:$accumulator, UnitAttr:$transpose_a, UnitAttr:$transpose_b,
    UnitAttr:$negate);
  let results = (outs Warp_Fragment:$result);
  let assemblyFormat = [{
    (`negate` $negate^)? $a (`transpose_a` $transpose_a^)? `,` $b (`transpose_b` $transpose_b^)?
    (`into` `(` $accumulator^ `:` type($accumulator) `)`)? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Warp_WgmmaCommitOp : Warp_Op<"wgmma_commit"> {
  let summary = "The products since the last commit form a group";
  let description = [{
    Example:

    ```mlir
    gdn_warp.wgmma_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_WgmmaWaitOp : Warp_Op<"wgmma_wait", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Wait for groups of products";
  let description = [{
    Returns when at most `pending` groups are unfinished. The accumulators that
    are read behind it pass through it, so that no later pass can move a reader
    to before the wait.

    Example:

    ```mlir
    %d = gdn_warp.wgmma_wait 0 of %c : tensor<64x32xf32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins I64Attr:$pending, Variadic<Warp_Fragment>:$accumulators);
  let results = (outs Variadic<Warp_Fragment>:$results);
  let assemblyFormat = "$pending (`of` $accumulators^ `:` type($accumulators))? attr-dict";
}

def Warp_TriInverseOp : Warp_Op<"tri_inverse", [AttrSizedOperandSegments]> {
  let summary = "Inverse of a unit lower triangular matrix, by one warp";
  let description = [{
    `x` receives the transpose of (I + M)^-1 - I for a strictly lower M [C, C], C of
    16, 32 or 64. `m` holds M transposed too, in f16, zero on and above the diagonal of M, so that a
    step of the substitution reads a run of a column; rows of an odd number of
    16 bytes keep the banks apart. It is overwritten. `x` is written whole. The
    lanes hold columns, which they write in runs of 16 bytes; blocks of 16 by
    substitution in pairs of f16, then merges X21 = -X22 (M21 X11). All lanes run it; the accesses of one warp are
    ordered inside it, not with those that come after.

    With `rows` and `columns`, views of C elements of f32, the result is
    Diag(rows) ((I + M)^-1 - I) Diag(columns): multiplied in f32 before it is
    rounded, so that these factors need not fit f16. With `scale`, one more such
    view, `m` is f32 and M its product with Diag(scale), which is rounded.

    Example:

    ```mlir
    gdn_warp.tri_inverse %m, %x : !gdn_warp.view<32x32xf16, stride = 80>,
        !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
    gdn_warp.tri_inverse %m, %x times %norms, %lengths : !gdn_warp.view<32x32xf16, stride = 80>,
        !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>,
        !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
    gdn_warp.tri_inverse %m by(%norms : !gdn_warp.view<32xf32>), %x times %norms, %lengths
        : !gdn_warp.view<32x32xf32, stride = 144>,
        !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>,
        !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
    ```
  }];
  let arguments = (ins Warp_ViewType:$m, Optional<Warp_ViewType>:$scale, Warp_ViewType:$x,
                   Optional<Warp_ViewType>:$rows, Optional<Warp_ViewType>:$columns);
  let assemblyFormat = [{
    $m (`by` `(` $scale^ `:` type($scale) `)`)? `,` $x (`times` $rows^ `,` $columns)?
        attr-dict `:` type($m) `,` type($x) (`,` type($rows)^ `,` type($columns))?
  }];
  let hasVerifier = 1;
}

def Warp_DiagonalOp : Warp_Op<"diagonal", [Pure]> {
  let summary = "A diagonal of a fragment, as a vector of its rows";
  let description = [{
    result[first + i] = source[first + i, i] for the N columns of `source`, of
    which `first`, a multiple of 16, is the row of the first: N rows of a
    fragment from there on are a square. Other elements of the result are some of
    the fragment's. Each warp makes those of its own rows.

    Example:

    ```mlir
    %squares = gdn_warp.diagonal %kk from 0 : tensor<64x32xf32, #gdn_warp.fragment>
        -> tensor<64xf32, #gdn_warp.rows>
    ```
  }];
  let arguments = (ins Warp_Fragment:$source, I64Attr:$first);
  let results = (outs Warp_Rows:$result);
  let assemblyFormat = "$source `from` $first attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_CausalOp : Warp_Op<"causal", [Pure, SameOperandsAndResultType]> {
  let summary = "Lower triangles of a fragment";
  let description = [{
    Keeps elements [i, j] with i mod N >= j (> with `strict`) of a fragment of N
    columns, so of each square of N rows the lower triangle; the others are zero
    whatever they were. N is 16, 32 or 64. One instruction cuts a register,
    which is two elements of 16 bits.

    Example:

    ```mlir
    %m = gdn_warp.causal strict %kk : tensor<64x32xf16, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins Warp_Fragment:$source, UnitAttr:$strict);
  let results = (outs Warp_Fragment:$result);
  let assemblyFormat = "(`strict` $strict^)? $source attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Warp_RowDotsOp : Warp_Op<"row_dots"> {
  let summary = "Inner products of the rows of two tiles";
  let description = [{
    result[i] = sum over k of a[i, k] b[i, k] in f32, for 16-bit views [R, K]: by
    one warp, as a vector over its lanes, or by a warpgroup for its 64 rows, of
    which each warp needs those of its own fragments only. Four lanes share a
    row, and loads of 16 bytes meet all banks once where the views are swizzled.
    (On the diagonal of a b^T by mma.sync there are a fifth of the instructions,
    but each of them waits for the tensor core, which the products of the state
    keep busy.) Both views may be the same: a lane sums its squares of bf16 in
    pairs of bf16, and these sums are f32, which makes an error of 5e-4 rms in a
    norm.

    Example:

    ```mlir
    %squares = gdn_warp.row_dots %k, %k : !gdn_warp.view<32x128xbf16, swizzle = 128>,
        !gdn_warp.view<32x128xbf16, swizzle = 128> -> tensor<32xf32, #gdn_warp.lanes>
    %all = gdn_warp.row_dots %kq, %kq : !gdn_warp.view<64x128xbf16, swizzle = 128>,
        !gdn_warp.view<64x128xbf16, swizzle = 128> -> tensor<64xf32, #gdn_warp.rows>
    ```
  }];
  let arguments = (ins Warp_ViewType:$a, Warp_ViewType:$b);
  let results = (outs AnyTypeOf<[Warp_Lanes, Warp_Rows]>:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Copies between global and shared memory
//===----------------------------------------------------------------------===//

def Warp_BulkTensorLoadOp : Warp_Op<"bulk_tensor_load", [AttrSizedOperandSegments]> {
  let summary = "Begin to copy a tile of an array to shared memory";
  let description = [{
    A tensor-map copy by one thread; its bytes arrive at `barrier`. Row i and
    column j of the view run along array dimensions `axes[0]` and `axes[1]` from
    `offsets`; the column dimension has stride 1, and its offset is a multiple of
    the 128-byte panel if the view is swizzled. Elements outside the array are
    zero, and so are rows at or beyond `end` of dimension `dim`, which is
    `axes[0]`, without being touched in memory. The map of each (array, box)
    becomes an argument of the kernel; with an `end`, there is a second one for
    tiles that cross it, of two dimensions more (see `#gdn_warp.tensor_map`).

    Example:

    ```mlir
    gdn_warp.bulk_tensor_load %K[%b, %t, %h, %c0] axes [1, 3], %view signal %full
        : memref<1x?x2x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
    gdn_warp.bulk_tensor_load %K[%b, %t, %h, %c0] axes [1, 3] until(%end, dim = 1), %view signal %full
        : memref<1x?x2x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins AnyMemRef:$array, Variadic<Index>:$offsets, DenseI64ArrayAttr:$axes,
    Optional<Index>:$end, OptionalAttr<I64Attr>:$dim, Warp_ViewType:$view,
    Warp_BarrierType:$barrier);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    `,` $view `signal` $barrier attr-dict `:` type($array) `->` type($view)
  }];
  let hasVerifier = 1;
}

def Warp_BulkTensorStoreOp : Warp_Op<"bulk_tensor_store", [AttrSizedOperandSegments]> {
  let summary = "Begin to copy a tile of shared memory to an array";
  let description = [{
    The counterpart of `gdn_warp.bulk_tensor_load`, in the current group of copies.
    Elements outside the array and rows at or beyond `end` are not written.

    Example:

    ```mlir
    gdn_warp.bulk_tensor_store %view, %O[%b, %t, %h, %c0] axes [1, 3]
        : !gdn_warp.view<32x128xbf16, swizzle = 128> -> memref<1x?x4x128xbf16>
    ```
  }];
  let arguments = (ins Warp_ViewType:$view, AnyMemRef:$array, Variadic<Index>:$offsets,
    DenseI64ArrayAttr:$axes, Optional<Index>:$end, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = [{
    $view `,` $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($view) `->` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_BulkCopyToCtaOp : Warp_Op<"bulk_copy_to_cta"> {
  let summary = "Begin to copy shared memory to another CTA of the cluster";
  let description = [{
    The bytes of `view`, a vector, go to the same place of CTA `rank` of the
    cluster and arrive at its barrier at the place of `barrier`. One thread does
    it; what others stored is fenced (`gdn_warp.fence async`) before.

    Example:

    ```mlir
    gdn_warp.bulk_copy_to_cta %slot, %full rank(%peer) : !gdn_warp.view<2048xf32>
    ```
  }];
  let arguments = (ins Warp_ViewType:$view, Warp_BarrierType:$barrier, I32:$rank);
  let assemblyFormat = "$view `,` $barrier `rank` `(` $rank `)` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Warp_BulkCommitOp : Warp_Op<"bulk_commit"> {
  let summary = "This thread's copies out since the last commit form a group";
  let description = [{
    Example:

    ```mlir
    gdn_warp.bulk_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_BulkWaitOp : Warp_Op<"bulk_wait"> {
  let summary = "Wait for this thread's groups of copies out";
  let description = [{
    Returns when at most `pending` groups are unfinished; with `read` it is
    enough that they have read shared memory.

    Example:

    ```mlir
    gdn_warp.bulk_wait 0 read
    ```
  }];
  let arguments = (ins I64Attr:$pending, UnitAttr:$read);
  let assemblyFormat = "$pending (`read` $read^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Register tiles to and from memory
//===----------------------------------------------------------------------===//

def Warp_FragmentLoadOp : Warp_Op<"fragment_load"> {
  let summary = "Read a fragment from shared memory";
  let description = [{
    From a view [64, N], or [N, 64] with `transpose`; 16-bit elements by
    ldmatrix, f32 by plain loads (not transposed).

    Example:

    ```mlir
    %v = gdn_warp.fragment_load %view transpose
        : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins Warp_ViewType:$view, UnitAttr:$transpose);
  let results = (outs Warp_Fragment:$result);
  let assemblyFormat = "$view (`transpose` $transpose^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_FragmentStoreOp : Warp_Op<"fragment_store"> {
  let summary = "Write a fragment to shared memory";
  let description = [{
    To a view [64, N], or [N, 64] with `transpose`; 16-bit elements by stmatrix,
    f32 by plain stores. With `rows` [a, b], multiples
    of 16, the warps that hold rows a .. b write them, to a view of as many; with
    `guarded` no other warp runs the op.

    Example:

    ```mlir
    gdn_warp.fragment_store %p, %view rows [32, 64]
        : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xbf16>
    ```
  }];
  let arguments = (ins Warp_Fragment:$fragment, Warp_ViewType:$view, UnitAttr:$transpose,
    OptionalAttr<DenseI64ArrayAttr>:$rows, UnitAttr:$guarded);
  let assemblyFormat = [{
    $fragment `,` $view (`transpose` $transpose^)? (`rows` $rows^ (`guarded` $guarded^)?)? attr-dict
    `:` type($fragment) `->` type($view)
  }];
  let hasVerifier = 1;
}

def Warp_VectorLoadOp : Warp_Op<"vector_load"> {
  let summary = "Read a vector of rows, columns or lanes from shared memory";
  let description = [{
    result[i] = view[i mod n] of a view of n elements: a shorter view repeats
    along rows (n a multiple of 16) and columns (of 8). So one vector serves
    two tiles that are stacked in a fragment.

    Example:

    ```mlir
    %b = gdn_warp.vector_load %view : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
    ```
  }];
  let arguments = (ins Warp_ViewType:$view);
  let results = (outs Warp_Vector:$result);
  let assemblyFormat = "$view attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_VectorStoreOp : Warp_Op<"vector_store"> {
  let summary = "Write a vector of rows, columns or lanes to shared memory";
  let description = [{
    Each element is written once, by one of the threads that hold it (of one
    over lanes: by each warp that runs the op). With `rows` [a, b], multiples of
    16, the warps that hold elements a .. b of a vector of rows write them, to a
    view of as many.

    Example:

    ```mlir
    gdn_warp.vector_store %b, %view : tensor<32xf32, #gdn_warp.columns> -> !gdn_warp.view<32xf32>
    gdn_warp.vector_store %n, %view rows [32, 64]
        : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
    ```
  }];
  let arguments = (ins Warp_Vector:$vector, Warp_ViewType:$view,
    OptionalAttr<DenseI64ArrayAttr>:$rows);
  let assemblyFormat = [{
    $vector `,` $view (`rows` $rows^)? attr-dict `:` type($vector) `->` type($view)
  }];
  let hasVerifier = 1;
}

def Warp_ArrayLoadOp : Warp_Op<"array_load", [AttrSizedOperandSegments]> {
  let summary = "Read a fragment or a vector over lanes from an array";
  let description = [{
    Row i and column j of the fragment run along array dimensions `axes[0]` and
    `axes[1]` from `offsets`, the elements of a vector along `axes[0]`. Elements
    at or beyond `end` of dimension `dim` are zero and are not touched in memory.

    Example:

    ```mlir
    %s = gdn_warp.array_load %S[%n, %h, %v, %c0] axes [2, 3]
        : memref<?x4x128x128xf32> -> tensor<64x128xf32, #gdn_warp.fragment>
    %g = gdn_warp.array_load %G[%n, %t, %h] axes [1] until(%end, dim = 1)
        : memref<1x?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
    ```
  }];
  let arguments = (ins AnyMemRef:$array, Variadic<Index>:$offsets, DenseI64ArrayAttr:$axes,
    Optional<Index>:$end, OptionalAttr<I64Attr>:$dim);
  let results = (outs Warp_Tile:$result);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)? attr-dict
    `:` type($array) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Warp_PrefetchOp : Warp_Op<"prefetch", [MemoryEffects<[MemWrite]>]> {
  let summary = "Bring a tile of an array into the L2 cache";
  let description = [{
    Row i and column j of the tile of `sizes` run along array dimensions `axes[0]`
    and `axes[1]`, one of which is the last, from `offsets`. The lanes of a warp
    ask for its cache lines together and wait for nothing: for what is soon
    loaded by whoever comes next. The tile lies inside the array.

    Example:

    ```mlir
    gdn_warp.prefetch %S[%n, %h, %c0, %v] axes [3, 2] sizes [64, 128]
        : memref<?x4x128x128xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$array, Variadic<Index>:$offsets, DenseI64ArrayAttr:$axes,
    DenseI64ArrayAttr:$sizes);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes `sizes` $sizes attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_ArrayStoreOp : Warp_Op<"array_store", [AttrSizedOperandSegments]> {
  let summary = "Write a fragment or a vector over lanes to an array";
  let description = [{
    The counterpart of `gdn_warp.array_load`: elements at or beyond `end` are not
    written.

    Example:

    ```mlir
    gdn_warp.array_store %s, %S[%n, %h, %v, %c0] axes [2, 3]
        : tensor<64x128xf32, #gdn_warp.fragment> -> memref<?x4x128x128xf32>
    ```
  }];
  let arguments = (ins Warp_Tile:$tile, AnyMemRef:$array, Variadic<Index>:$offsets,
    DenseI64ArrayAttr:$axes, Optional<Index>:$end, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = [{
    $tile `,` $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($tile) `->` type($array)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_FRAGMENTOPS_TD
