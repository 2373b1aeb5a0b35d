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

def Warp_PublishOp : Warp_Op<"publish"> {
  let summary = "Write fragments to shared memory for products of their own warpgroup";
  let description = [{
    The result is a view of the fragments, stacked row by row, that the products
    of this warpgroup may read. It holds until the op runs again. With `rows`
    [a, b], multiples of 16, rows a .. b of the last fragment alone are written.
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
      Arg<OptionalAttr<DenseI64ArrayAttr>, "The first row of the last tile that is written and the one behind the last; absent, all.">:$rows);
  let results = (outs
      Res<Warp_ViewType, "The tiles in shared memory.">:$result);
  let assemblyFormat = [{
    $fragments (`rows` $rows^)? attr-dict `:` type($fragments) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_WARPGROUPS_TD
