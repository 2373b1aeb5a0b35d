//===- Copies.td - Copies between global and shared memory -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_COPIES_TD
#define GDN_DIALECT_WARP_IR_COPIES_TD

// Included by Ops.td, which is the one file that is compiled.

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
  let arguments = (ins
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim,
      Arg<Warp_ViewType, "Where the tile goes.">:$view,
      Arg<Warp_BarrierType, "The barrier that counts the bytes.">:$barrier);
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
  let arguments = (ins
      Arg<Warp_ViewType, "The tile in shared memory.">:$view,
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim);
  let assemblyFormat = [{
    $view `,` $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($view) `->` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_StridedLoadOp : Warp_Op<"strided_load", [AttrSizedOperandSegments]> {
  let summary = "Copy a tile of an array of any strides to shared memory";
  let description = [{
    For tiles that no tensor map can copy: row i and column j of the view become
    the element at `offsets` plus i along array dimension `axes[0]` and j along
    `axes[1]`, whatever the strides of the two are. The lanes of one warp do it,
    by loads of single elements. Lanes next to each other load elements next to
    each other: along the dimension of stride 1 if the array's type has one among
    the axes, else along columns. So a tile whose rows have stride 1 is transposed
    on its way. The view is swizzled, in whole panels, and its slot is full when
    the warp has arrived.

    Elements have 16 or 32 bits. Those behind the array's last one along an axis are
    zero and are not touched in memory. Rows and columns at or beyond `end` of
    dimension `dim` are zero too. Offsets are at least 0.

    Example:

    ```mlir
    gdn_warp.strided_load %X[%b, %h, %c, %t] axes [3, 2], %view
        : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim,
      Arg<Warp_ViewType, "Where the tile goes.">:$view);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)? `,` $view
    attr-dict `:` type($array) `->` type($view)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether lanes next to each other load rows next to each other.
    bool isByRows();
  }];
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
  let arguments = (ins
      Arg<Warp_ViewType, "The tile, at the same address in both CTAs.">:$view,
      Arg<Warp_BarrierType, "The barrier in the other CTA that counts the bytes.">:$barrier,
      Arg<I32, "The other CTA of the cluster.">:$rank);
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
  let arguments = (ins
      Arg<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<0x7fffffff>]>,
        "Groups that may still be in flight afterwards.">:$pending,
      Arg<UnitAttr, "Whether it suffices that the sources were read.">:$read);
  let assemblyFormat = "$pending (`read` $read^)? attr-dict";
}

#endif // GDN_DIALECT_WARP_IR_COPIES_TD
