//===- Products.td - Products and what they need -----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_PRODUCTS_TD
#define GDN_DIALECT_WARP_IR_PRODUCTS_TD

// Included by Ops.td, which is the one file that is compiled.

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
    (+ accumulator), for those who subtract it. A product that is `alone` begins, commits
    and awaits a group of its own: its result may be read behind it.

    Example:

    ```mlir
    %d = gdn_warp.wgmma %a, %b transpose_b into(%c : tensor<64x32xf32, #gdn_warp.fragment>)
        : tensor<64x128xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128>
        -> tensor<64x32xf32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<AnyTypeOf<[Warp_ViewType, Warp_Fragment]>, "The left operand: a fragment or a view.">:$a,
      Arg<Warp_ViewType, "The right operand: a view.">:$b,
      Arg<Optional<Warp_Fragment>, "What is added to the product.">:$accumulator,
      Arg<UnitAttr, "Whether the view `a` holds A transposed.">:$transpose_a,
      Arg<UnitAttr, "Whether the view `b` holds B transposed.">:$transpose_b,
      Arg<UnitAttr, "Whether the product is subtracted.">:$negate,
      Arg<UnitAttr, "Whether the product is a group of its own, which is awaited.">:$alone);
  let results = (outs
      Res<Warp_Fragment, "The sum, valid behind the next `wgmma_wait` that covers it.">:$result);
  let assemblyFormat = [{
    (`alone` $alone^)? (`negate` $negate^)? $a (`transpose_a` $transpose_a^)? `,` $b (`transpose_b` $transpose_b^)?
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
  // What wgmma.wait_group takes (PTX ISA).
  defvar maxPending = 7;
  let arguments = (ins
      Arg<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<maxPending>]>,
        "Groups that may still be in flight afterwards.">:$pending,
      Arg<Variadic<Warp_Fragment>, "The accumulators whose readers come behind the wait.">:$accumulators);
  let results = (outs
      Res<Variadic<Warp_Fragment>, "The same accumulators, complete.">:$results);
  let assemblyFormat = "$pending (`of` $accumulators^ `:` type($accumulators))? attr-dict";
  let extraClassDeclaration =
      "/// The most groups that a wait can leave unfinished.\n"
      "static constexpr int64_t maxPending = " # maxPending # ";";
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
  let arguments = (ins
      Arg<Warp_ViewType, "M, strictly lower triangular, transposed in memory; it is overwritten.">:$m,
      Arg<Optional<Warp_ViewType>, "Factors of the columns of M; absent, M is f16 and needs none.">:$scale,
      Arg<Warp_ViewType, "Where the result goes, without its unit diagonal.">:$x,
      Arg<Optional<Warp_ViewType>, "Factors of the result's rows; absent with `columns`.">:$rows,
      Arg<Optional<Warp_ViewType>, "Factors of the result's columns; absent with `rows`.">:$columns);
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
  let arguments = (ins
      Arg<Warp_Fragment, "The tile.">:$source,
      Arg<I64Attr, "The row in which the square of the diagonal begins, a multiple of 16.">:$first);
  let results = (outs
      Res<Warp_Rows, "The elements on the diagonal.">:$result);
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
  let arguments = (ins
      Arg<Warp_Fragment, "The tile.">:$source,
      Arg<UnitAttr, "Whether the diagonal becomes zero as well.">:$strict);
  let results = (outs
      Res<Warp_Fragment, "The lower triangle of the tile.">:$result);
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
  let arguments = (ins
      Arg<Warp_ViewType, "The first view.">:$a,
      Arg<Warp_ViewType, "The second view; the same as `a` gives squares of lengths.">:$b);
  let results = (outs
      Res<AnyTypeOf<[Warp_Lanes, Warp_Rows]>, "The product of each row of `a` with that of `b`.">:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_PRODUCTS_TD
