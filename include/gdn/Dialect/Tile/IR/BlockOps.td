//===- BlockOps.td - Elements of blocks along an axis ------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_BLOCKOPS_TD
#define GDN_DIALECT_TILE_IR_BLOCKOPS_TD

// Included by Ops.td, which is the one file that is compiled.

def Tile_RebaseOp : Tile_Op<"rebase", [Pure, SameOperandsAndResultType]> {
  let summary = "Differences from one element of each block along an axis";
  let description = [{
    out[i] = in[i] - in[i - i mod block + at] along `axis`. Of a cumulated sum
    these are the sums since element `at` of the block, which are negated in
    front of it.

    Example:

    ```mlir
    %E = gdn_tile.rebase %G axis 0 block 32 at 15 : tensor<32x128xf32>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The tile.">:$source,
      Arg<I64Attr, "The dimension along which blocks follow each other.">:$axis,
      Arg<I64Attr, "Elements of a block along `axis`, which divides the dimension.">:$block,
      Arg<I64Attr, "The element of a block whose result is zero.">:$at);
  let results = (outs
      Res<Tile_FloatTile, "The differences.">:$result);
  let assemblyFormat = "$source `axis` $axis `block` $block `at` $at attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_RepeatOp : Tile_Op<"repeat", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "One element of each block along an axis, for all of its block";
  let description = [{
    out[i] = in[i - i mod block + at] along `axis`, where `at` is in
    [0, block). It is known when the program runs, so a loop may go over the
    elements of a block.

    Example:

    ```mlir
    %k_n = gdn_tile.repeat %k axis 0 block 16 at %n : tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins
      Arg<Tile_FloatTile, "The tile.">:$source,
      Arg<I64Attr, "The dimension along which blocks follow each other.">:$axis,
      Arg<I64Attr, "Elements of a block along `axis`, which divides the dimension.">:$block,
      Arg<Index, "The element of a block that all of it gets.">:$at);
  let results = (outs
      Res<Tile_FloatTile, "The elements.">:$result);
  let assemblyFormat = "$source `axis` $axis `block` $block `at` $at attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_TILE_IR_BLOCKOPS_TD
