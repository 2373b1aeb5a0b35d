//===- FragmentOps.td - Register tiles, to and from memory -*- tablegen -*-===//
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

def Warp_FragmentLoadOp : Warp_Op<"fragment_load"> {
  let summary = "Read a fragment from shared memory";
  let description = [{
    From a view [64, N], or [N, 64] with `transpose`; 16-bit elements by
    ldmatrix, f32 by plain loads. With `rows` [a, b], multiples
    of 16, the view has b - a rows, which become rows a .. b of the fragment; the
    other rows are zero. With `row` = n each of the 16 rows of a warp is row n of
    them in the view, which lies as the fragment.

    Example:

    ```mlir
    %v = gdn_warp.fragment_load %view transpose
        : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
    %k = gdn_warp.fragment_load %short rows [0, 32]
        : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
    %k_n = gdn_warp.fragment_load %view row(%n)
        : !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "The tile in shared memory.">:$view,
      Arg<UnitAttr, "Whether the view holds the tile transposed.">:$transpose,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row of the fragment that the tile has and the one behind its last; absent, all.">:$rows,
      Arg<Optional<Index>, "The row of those of a warp, in [0, 16), that all of them are; absent, each is its own.">:$row);
  let results = (outs
      Res<Warp_Fragment, "The tile in registers.">:$result);
  let assemblyFormat = [{
    $view (`transpose` $transpose^)? (`rows` $rows^)? (`row` `(` $row^ `)`)? attr-dict
    `:` type($view) `->` type($result)
  }];
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
  let arguments = (ins
      Arg<Warp_Fragment, "The tile in registers.">:$fragment,
      Arg<Warp_ViewType, "Where it goes.">:$view,
      Arg<UnitAttr, "Whether the view holds the tile transposed.">:$transpose,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row that is stored and the one behind the last; absent, all.">:$rows,
      Arg<UnitAttr, "Whether only the warps that hold `rows` run the op.">:$guarded);
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
    two tiles that are stacked in a fragment. With `row` = r the view is a
    matrix, and the vector its row r; with `column` = c its column c.

    Example:

    ```mlir
    %b = gdn_warp.vector_load %view : !gdn_warp.view<32xf32> -> tensor<32xf32, #gdn_warp.columns>
    %last = gdn_warp.vector_load %tile row(63)
        : !gdn_warp.view<64x128xbf16, swizzle = 128> -> tensor<128xbf16, #gdn_warp.columns>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "The vector, or a matrix that holds it, in shared memory.">:$view,
      Arg<OptionalAttr<I64Attr>, "The row of the view that is the vector.">:$row,
      Arg<OptionalAttr<I64Attr>, "The column of the view that is the vector.">:$column);
  let results = (outs
      Res<Warp_Vector, "The vector in registers.">:$result);
  let assemblyFormat = [{
    $view (`row` `(` $row^ `)`)? (`column` `(` $column^ `)`)? attr-dict `:` type($view) `->` type($result)
  }];
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
  let arguments = (ins
      Arg<Warp_Vector, "The vector in registers.">:$vector,
      Arg<Warp_ViewType, "Where it goes.">:$view,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first element that is stored and the one behind the last; absent, all.">:$rows);
  let assemblyFormat = [{
    $vector `,` $view (`rows` $rows^)? attr-dict `:` type($vector) `->` type($view)
  }];
  let hasVerifier = 1;
}

def Warp_ArrayLoadOp : Warp_Op<"array_load", [AttrSizedOperandSegments]> {
  let summary = "Read a fragment or a vector from an array";
  let description = [{
    Row i and column j of the fragment run along array dimensions `axes[0]` and
    `axes[1]` from `offsets`, the elements of a vector along `axes[0]`. Elements
    at or beyond `end` of dimension `dim` are zero and are not touched in memory.
    With `rows` [a, b], multiples of 16, a fragment or a vector of rows begins at
    row a: the rows outside a .. b are zero and not touched.

    Example:

    ```mlir
    %s = gdn_warp.array_load %S[%n, %h, %v, %c0] axes [2, 3]
        : memref<?x4x128x128xf32> -> tensor<64x128xf32, #gdn_warp.fragment>
    %g = gdn_warp.array_load %G[%n, %t, %h] axes [1] until(%end, dim = 1)
        : memref<1x?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row of the fragment that the tile has and the one behind its last; absent, all.">:$rows);
  let results = (outs
      Res<Warp_InRegisters, "The tile in registers; elements outside are zero.">:$result);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    (`rows` $rows^)? attr-dict `:` type($array) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Warp_PrefetchOp : Warp_Op<"prefetch", [MemoryEffects<[MemWrite]>]> {
  let summary = "Bring a tile of an array into the L2 cache";
  let description = [{
    Row i and column j of the tile of `sizes` run along array dimensions `axes[0]`
    and `axes[1]`, one of which is the last, from `offsets`. Its cache lines lie
    along the last one or, of an array of any strides, along the contiguous one.
    The lanes of a warp ask for these lines together and wait for nothing. A later
    load finds the tile in the cache. The tile lies inside the array.

    Example:

    ```mlir
    gdn_warp.prefetch %S[%n, %h, %c0, %v] axes [3, 2] sizes [64, 128]
        : memref<?x4x128x128xf32>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<DenseI64ArrayAttr, "The extents of the tile.">:$sizes);
  let assemblyFormat = [{
    $array `[` $offsets `]` `axes` $axes `sizes` $sizes attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_ArrayStoreOp : Warp_Op<"array_store", [AttrSizedOperandSegments]> {
  let summary = "Write a fragment or a vector to an array";
  let description = [{
    The counterpart of `gdn_warp.array_load`: elements at or beyond `end` and
    rows outside `rows` are not written. One of the threads that hold an element
    of a vector of rows or columns writes it. With `sum_end` the array adds up
    fragments of f32: those of what it holds before `sum_end` are kept and added
    to, a few at a time, for which no other tile has to be in registers.

    Example:

    ```mlir
    gdn_warp.array_store %s, %S[%n, %h, %v, %c0] axes [2, 3]
        : tensor<64x128xf32, #gdn_warp.fragment> -> memref<?x4x128x128xf32>
    gdn_warp.array_store %dk, %dK[%c0, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) sum(%summed)
        : tensor<64x64xf32, #gdn_warp.fragment> -> memref<1x?x4x128xf32>
    ```
  }];
  let arguments = (ins
      Arg<Warp_InRegisters, "The tile in registers; elements outside are not written.">:$tile,
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim,
      Arg<Optional<Index>, "The first index along `dim` whose elements are replaced; absent, all are.">:$sum_end,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row of the fragment that the tile has and the one behind its last; absent, all.">:$rows);
  let assemblyFormat = [{
    $tile `,` $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    (`sum` `(` $sum_end^ `)`)? (`rows` $rows^)? attr-dict `:` type($tile) `->` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_ArrayClearOp : Warp_Op<"array_clear", [MemoryEffects<[MemWrite]>]> {
  let summary = "Write zeros to rows of an array";
  let description = [{
    The rows begin at `offsets`, have `columns` elements along the last dimension
    and indices from `offsets[dim]` to `end` along `dim`; none, if `end` is not
    above. All threads of the CTA run it, a warp a row.

    Example:

    ```mlir
    gdn_warp.array_clear %o[%c0, %end, %h, %c0] until(%tokens, dim = 1) columns 128
        : memref<1x?x4x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the first element, one per dimension of the array.">:$offsets,
      Arg<Index, "The first index along `dim` that is not cleared.">:$end,
      Arg<I64Attr, "The dimension of the array along which rows follow each other.">:$dim,
      Arg<I64Attr, "The elements of a row, along the array's last dimension.">:$columns);
  let assemblyFormat = [{
    $array `[` $offsets `]` `until` `(` $end `,` `dim` `=` $dim `)` `columns` $columns attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_FRAGMENTOPS_TD
