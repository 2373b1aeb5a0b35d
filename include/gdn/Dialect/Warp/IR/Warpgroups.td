//===- Warpgroups.td - What warps hand to each other -------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_WARPGROUPS_TD
#define GDN_DIALECT_WARP_IR_WARPGROUPS_TD

// Included by Ops.td, which is the one file that is compiled.

def Warp_RowOp : Warp_Op<"row", [Pure]> {
  let summary = "A row of a fragment, for all threads of its warpgroup";
  let description = [{
    result[j] = source[row, j], as a vector of columns. The warp that holds the
    row writes it to the scratch memory of its warpgroup (attribute
    `gdn_warp.scratch`, see `gdn-warp-allocate-shared`), from where all read it.
    The four warps run it together.

    Example:

    ```mlir
    %last = gdn_warp.row %g[63] : tensor<64x128xf32, #gdn_warp.fragment>
        -> tensor<128xf32, #gdn_warp.columns>
    ```
  }];
  let arguments = (ins
      Arg<Warp_Fragment, "The tile in registers.">:$source,
      Arg<I64Attr, "The row.">:$row);
  let results = (outs
      Res<Warp_Columns, "The row, along the columns of a fragment.">:$result);
  let assemblyFormat = "$source `[` $row `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_ColumnOp : Warp_Op<"column", [Pure]> {
  let summary = "A column of a fragment, for all threads of its rows";
  let description = [{
    result[i] = source[i, column], as a vector of rows. The lane of each quad
    that holds the column gives it to the others.

    Example:

    ```mlir
    %last = gdn_warp.column %g[31] : tensor<64x32xf32, #gdn_warp.fragment>
        -> tensor<64xf32, #gdn_warp.rows>
    ```
  }];
  let arguments = (ins
      Arg<Warp_Fragment, "The tile in registers.">:$source,
      Arg<I64Attr, "The column.">:$column);
  let results = (outs
      Res<Warp_Rows, "The column, along the rows of a fragment.">:$result);
  let assemblyFormat = "$source `[` $column `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_JoinOp : Warp_Op<"join", [Pure]> {
  let summary = "Fragments side by side as one of more columns";
  let description = [{
    The columns of the result are those of the fragments, one after the other. It
    moves nothing: a thread holds some of every eight columns.

    Example:

    ```mlir
    %kq = gdn_warp.join %k, %q : tensor<64x32xbf16, #gdn_warp.fragment>, tensor<64x32xbf16, #gdn_warp.fragment>
        -> tensor<64x64xbf16, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<Variadic<Warp_Fragment>, "The tiles, from the first columns on.">:$sources);
  let results = (outs
      Res<Warp_Fragment, "The tiles side by side.">:$result);
  let assemblyFormat = "$sources attr-dict `:` type($sources) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_PublishOp : Warp_Op<"publish"> {
  let summary = "Write fragments to shared memory for products of their own warpgroup";
  let description = [{
    The result is a view of the fragments, stacked row by row, that the products
    of this warpgroup may read. It holds until the op runs again, or until its
    last reader where a branch follows that `gdn_warp.likely` says is rare, or
    where another one is `in_turn`: that one waits for all products before it, and
    may lie where nobody reads any more. With `rows` [a, b], multiples of 16,
    rows a .. b of the last fragment alone are written. With `transpose` the view
    is of the transposed tile. Without fragments it is a place alone: `gdn_warp.share` hands to products
    what stores behind the op have left there.
    `gdn-warp-lower-publish` writes it as: the warps wait for each other, since
    products of the last time may still read; a store; a fence; and they wait
    for each other again.

    Example:

    ```mlir
    %b = gdn_warp.publish %m : tensor<64x128xbf16, #gdn_warp.fragment>
        -> !gdn_warp.view<64x128xbf16, swizzle = 128>
    %u = gdn_warp.wgmma %a, %b transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>,
        !gdn_warp.view<64x128xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<Variadic<Warp_Fragment>, "The tiles in registers, from the first rows on.">:$fragments,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row of the last tile that is written and the one behind the last; absent, all.">:$rows,
      Arg<UnitAttr, "Whether rows of the tiles are columns of the view.">:$transpose,
      Arg<UnitAttr, "Whether it may lie where other views of its role lay.">:$in_turn);
  let results = (outs
      Res<Warp_ViewType, "The tiles in shared memory.">:$result);
  let assemblyFormat = [{
    $fragments (`rows` $rows^)? (`transpose` $transpose^)? (`in_turn` $in_turn^)? attr-dict
    `:` custom<TypesToArrow>(type($fragments)) type($result)
  }];
  let extraClassDeclaration = [{
    /// Writes stores of the fragments to `view`, which is as large as the result.
    void storeTo(::mlir::OpBuilder &b, ::mlir::Value view);
  }];
  let hasVerifier = 1;
}

def Warp_ShareOp : Warp_Op<"share", [AllTypesMatch<["view", "result"]>]> {
  let summary = "Let products of a warpgroup read the slot that it fills";
  let description = [{
    The result is the view of a slot, or of the place of a `gdn_warp.publish`, that this warpgroup stores to.
    Its products behind the op read what all its warps have stored in front of it. So a tile that is handed to another role and is an operand
    here lies in shared memory once; `gdn_warp.publish` would store it a second time. So does a tile that
    overwrites, in a slot that this role takes, what it is made of.
    The slot goes to its takers, or back, when these products are over.
    `gdn-warp-lower-publish` writes the op as a fence, and the warps wait for each other.

    Example:

    ```mlir
    gdn_warp.fragment_store %k, %slot : tensor<64x64xbf16, #gdn_warp.fragment> -> <64x64xbf16, swizzle = 128>
    %b = gdn_warp.share %slot : <64x64xbf16, swizzle = 128>
    %m = gdn_warp.wgmma %k, %b transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>,
        <64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "A slot or place that this role stores to.">:$view);
  let results = (outs
      Res<Warp_ViewType, "The same view.">:$result);
  let assemblyFormat = "$view attr-dict `:` type($view)";
  let hasVerifier = 1;
}

/// Where the two halves of a sum over a cluster meet.
class Warp_ClusterHalfOp<string mnemonic, string number, dag ownArguments = (ins)> : Warp_Op<mnemonic> {
  let arguments = !con((ins
      Arg<Warp_Fragment, "The tile of this CTA, or its columns of it, of f32.">:$source,
      Arg<Index, number>:$number), ownArguments, (ins
      Arg<OptionalAttr<DenseI64ArrayAttr>, "Byte of the columns, byte of the barriers, the number of the sum, and the sums of the role.">:$place));
  let results = (outs
      Res<Warp_Fragment, "The columns of this CTA.">:$result);
  let hasVerifier = 1;
}

def Warp_ClusterSendOp : Warp_ClusterHalfOp<"cluster_send", "How often this CTA has run the op before."> {
  let summary = "Send columns of a fragment to the CTAs of a cluster that add them up";
  let description = [{
    CTA r of the cluster gets columns [r n, (r + 1) n) of the fragments of all
    CTAs, where n is the columns of the result, and adds them to its own, which
    are the result, with `gdn_warp.cluster_add`. The role has one warpgroup. Each
    of its threads writes the columns of another CTA to the shared memory of that
    (`st.async`), where the same thread reads them. Two barriers, in each CTA, say
    that the columns of the others are there, and that the others have read what
    this one wrote before.

    `number` counts the runs of the op in this CTA from 0. `place`, which
    `gdn-warp-allocate-shared` writes, is where the columns of the others lie,
    where the barriers lie, and that this is sum i of n of its role, which take
    turns there.

    Example:

    ```mlir
    %own = gdn_warp.cluster_send %part number %n place [0, 8192, 0, 2]
        : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
    ```
  }];
  let assemblyFormat = [{
    $source `number` $number (`place` $place^)? attr-dict
    `:` type($source) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The CTAs that take part.
    int64_t getItems();
    /// Bytes of the columns that one of them sends to another.
    int64_t getSliceBytes();
  }];
}

def Warp_ClusterAddOp : Warp_ClusterHalfOp<"cluster_add", "The number of the send.",
    (ins Arg<I64Attr, "The CTAs that take part.">:$items)> {
  let summary = "Add what the other CTAs of a cluster sent";
  let description = [{
    Waits for the columns that the other CTAs sent (`gdn_warp.cluster_send`), adds
    them to `source` in a fixed order, those of the nearest CTA in front last, and
    tells the others that they have been read. What stands between the send and
    the addition hides the way. The sends and additions of a role alternate.

    Example:

    ```mlir
    %sum = gdn_warp.cluster_add %own number %n of 2 place [0, 8192, 0, 2]
        : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
    ```
  }];
  let assemblyFormat = [{
    $source `number` $number `of` $items (`place` $place^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

#endif // GDN_DIALECT_WARP_IR_WARPGROUPS_TD
