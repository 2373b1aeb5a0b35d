//===- Channels.td - Values between roles ------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_CHANNELS_TD
#define GDN_DIALECT_WARP_IR_CHANNELS_TD

// Included by Ops.td, which is the one file that is compiled.

def Warp_ChannelType : Warp_Type<"Channel", "channel"> {
  let summary = "Slots that hold values on their way between roles";
  let description = [{
    One slot has room for a value of each field. A field is the type of the value
    until layouts are known, then the view of its place in a slot.

    Example: `!gdn_warp.channel<tensor<32x128xbf16>, f32>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$fields);
  let assemblyFormat = "`<` $fields `>`";
}

def Warp_ChannelOp : Warp_Op<"channel", [HasParent<"KernelOp">]> {
  let summary = "Slots between roles";
  let description = [{
    `depth` slots. `gdn-warp-allocate-shared` gives them their place: `offset`
    bytes into shared memory, the slots one behind the other, each with its
    fields at `places` in `slot_bytes`; at `barriers` the full barriers of the
    slots, behind them the empty ones. With `chunks` the fields are those of so
    many chunks, of the same types for each, one chunk behind the other.

    With `turn` the CTAs of a cluster fill the slots for each other: `turn` iterations
    in a row are those of one CTA, the next ones of the next. It waits for the
    takers of all CTAs, fills its own slot and copies it to the others
    (`gdn_warp.copy_to_cluster`); `depth` is a multiple of the iterations that all CTAs fill in
    turn, so that a slot is always filled by the same one.

    Example:

    ```mlir
    %qkv = gdn_warp.channel "qkv" depth(3) : !gdn_warp.channel<tensor<64x128xbf16>, f32>
    %b = gdn_warp.channel "triangles" depth(4) turn(1) : !gdn_warp.channel<tensor<32x32xbf16>>
    ```
  }];
  let arguments = (ins
      Arg<StrAttr, "The name, for messages and the schedule.">:$name,
      Arg<I64Attr, "The number of slots.">:$depth,
      Arg<DefaultValuedAttr<I64Attr, "1">, "Chunks that a slot holds.">:$chunks,
      Arg<OptionalAttr<I64Attr>, "Slots that one CTA of a cluster fills in its turn; absent, each CTA fills its own.">:$turn,
      Arg<OptionalAttr<I64Attr>, "Bytes from the beginning of shared memory to the first slot.">:$offset,
      Arg<OptionalAttr<I64Attr>, "Bytes from the beginning of shared memory to the first barrier.">:$barriers,
      Arg<OptionalAttr<DenseI64ArrayAttr>, "Bytes from the beginning of a slot to each of its fields.">:$places,
      Arg<OptionalAttr<I64Attr>, "Bytes of a slot.">:$slot_bytes);
  let results = (outs
      Res<Warp_ChannelType, "The channel.">:$result);
  let assemblyFormat = [{
    $name `depth` `(` $depth `)` (`chunks` `(` $chunks^ `)`)? (`turn` `(` $turn^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

class Warp_FieldOp<string mnemonic, list<Trait> traits = []> : Warp_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Warp_PutOp : Warp_FieldOp<"put", [AttrSizedOperandSegments]> {
  let summary = "Hand a value to other roles";
  let description = [{
    To field `field` (+ `v_tile`) of the slot of iteration `iteration`, or to the field of
    `chunk` that is as `field` of the first.

    Example:

    ```mlir
    gdn_warp.put %k, %qkv[0] at %iteration : tensor<64x128xbf16>, !gdn_warp.channel<tensor<64x128xbf16>>
    ```
  }];
  let arguments = (ins
      Arg<AnyType, "The value.">:$value,
      Arg<Warp_ChannelType, "The channel.">:$channel,
      Arg<I64Attr, "Which value of a slot it is.">:$field,
      Arg<Index, "The number of the iteration, or of the chunk, which selects the slot.">:$iteration,
      Arg<Optional<Index>, "The V tile, if a field has one value for each.">:$v_tile,
      Arg<Optional<Index>, "The chunk of the iteration, if a slot holds several.">:$chunk);
  let assemblyFormat = [{
    $value `,` $channel `[` $field (`+` $v_tile^)? `]` (`chunk` $chunk^)? `at` $iteration attr-dict
    `:` type($value) `,` type($channel)
  }];
}

def Warp_GetOp : Warp_FieldOp<"get", [AttrSizedOperandSegments]> {
  let summary = "Take a value of another role";
  let description = [{
    From field `field` (+ `v_tile`) of the slot of iteration `iteration`, or from the field
    of `chunk` that is as `field` of the first.

    Example:

    ```mlir
    %k = gdn_warp.get %qkv[0] at %iteration : !gdn_warp.channel<tensor<64x128xbf16>> -> tensor<64x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ChannelType, "The channel.">:$channel,
      Arg<I64Attr, "Which value of a slot it is.">:$field,
      Arg<Index, "The number of the iteration, or of the chunk, which selects the slot.">:$iteration,
      Arg<Optional<Index>, "The V tile, if a field has one value for each.">:$v_tile,
      Arg<Optional<Index>, "The chunk of the iteration, if a slot holds several.">:$chunk);
  let results = (outs
      Res<AnyType, "The value.">:$result);
  let assemblyFormat = [{
    $channel `[` $field (`+` $v_tile^)? `]` (`chunk` $chunk^)? `at` $iteration attr-dict `:` type($channel) `->` type($result)
  }];
}

def Warp_SlotDirection : Warp_Enum<"SlotDirection", "whether a role fills or reads a slot", [
    I32EnumAttrCase<"Put", 0, "put">, I32EnumAttrCase<"Get", 1, "get">]>;

def Warp_SlotOp : Warp_FieldOp<"slot", [Pure, AttrSizedOperandSegments]> {
  let summary = "The place of a field in the slot of an iteration";
  let description = [{
    `put`: to be filled by this role, `get`: filled by another. A block's first
    `put` of a channel waits until the slot is empty, its last one's uses tell
    the takers that it is full; `get` likewise (`gdn-warp-lower-channels`). A loop
    with `gdn_warp.chunks` does so for each of its chunks.

    Example:

    ```mlir
    %k = gdn_warp.slot get %qkv[0] at %iteration
        : !gdn_warp.channel<!gdn_warp.view<64x128xbf16, swizzle = 128>>
        -> !gdn_warp.view<64x128xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
      Arg<Warp_SlotDirection, "Whether this role fills the slot or reads it.">:$direction,
      Arg<Warp_ChannelType, "The channel.">:$channel,
      Arg<I64Attr, "Which value of a slot it is.">:$field,
      Arg<Index, "The number of the iteration, or of the chunk, which selects the slot.">:$iteration,
      Arg<Optional<Index>, "The V tile, if a field has one value for each.">:$v_tile,
      Arg<Optional<Index>, "The chunk of the iteration, if a slot holds several.">:$chunk);
  let results = (outs
      Res<Warp_ViewType, "The view of the value in the slot.">:$result);
  let assemblyFormat = [{
    $direction $channel `[` $field (`+` $v_tile^)? `]` (`chunk` $chunk^)? `at` $iteration attr-dict
    `:` type($channel) `->` type($result)
  }];
}

def Warp_ReleaseUnusedOp : Warp_Op<"release_unused"> {
  let summary = "Let a slot pass from which this role takes nothing";
  let description = [{
    For an iteration that another CTA of the cluster takes: waits until the slot of
    `iteration` is full and tells who fills it that this role needs it no more, as the
    uses of a `get` slot do.

    Example:

    ```mlir
    gdn_warp.release_unused %qkv at %iteration : !gdn_warp.channel<tensor<64x128xbf16>>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ChannelType, "The channel.">:$channel,
      Arg<Index, "The number of the iteration, or of the chunk, whose slot is let pass.">:$iteration);
  let assemblyFormat = "$channel `at` $iteration attr-dict `:` type($channel)";
}

def Warp_CopyToClusterOp : Warp_Op<"copy_to_cluster"> {
  let summary = "Copy a slot to the other CTAs of the cluster";
  let description = [{
    One warp does it, of the CTA that fills the slot of `iteration` (`turn` of
    `gdn_warp.channel`): it waits until the slot is full. The same slots of the
    other CTAs are full when the copy is there.

    Example:

    ```mlir
    gdn_warp.copy_to_cluster %triangles at %iteration : !gdn_warp.channel<tensor<32x32xbf16>>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ChannelType, "The channel.">:$channel,
      Arg<Index, "The number of the iteration, or of the chunk, whose slot is copied.">:$iteration);
  let assemblyFormat = "$channel `at` $iteration attr-dict `:` type($channel)";
}

def Warp_TmaLoadOp : Warp_Op<"tma_load", [AttrSizedOperandSegments]> {
  let summary = "Copy a tile of an array into a slot";
  let description = [{
    As `gdn_warp.bulk_tensor_load`, by one thread of the warp; the slot is full when the
    tile has arrived. `view` is a `put` slot or a slice of one. Rows at or beyond
    `end` of dimension `dim` are zero.

    Example:

    ```mlir
    gdn_warp.tma_load %K[%b, %t, %h, %c0] axes [1, 3] until(%end, dim = 1), %view
        : memref<1x?x2x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
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
}

def Warp_TmaStoreOp : Warp_Op<"tma_store", [AttrSizedOperandSegments]> {
  let summary = "Copy a slot to a tile of an array";
  let description = [{
    As `gdn_warp.bulk_tensor_store`, by one thread of the warp; the slot is empty when it
    has been read. Rows at or beyond `end` of dimension `dim` are not written.

    Example:

    ```mlir
    gdn_warp.tma_store %view, %O[%b, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
        : !gdn_warp.view<32x64xbf16, swizzle = 128> -> memref<1x?x4x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<Warp_ViewType, "The tile in a slot.">:$view,
      Arg<AnyMemRef, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The index of the tile's first element, one per dimension of the array.">:$offsets,
      Arg<DenseI64ArrayAttr, "The dimensions of the array along which the tile lies, one per dimension of the tile.">:$axes,
      Arg<Optional<Index>, "The first index along `dim` that lies outside; absent, the array's own extent.">:$end,
      Arg<OptionalAttr<I64Attr>, "The dimension of the array that `end` limits.">:$dim);
  let assemblyFormat = [{
    $view `,` $array `[` $offsets `]` `axes` $axes (`until` `(` $end^ `,` `dim` `=` $dim `)`)?
    attr-dict `:` type($view) `->` type($array)
  }];
}

#endif // GDN_DIALECT_WARP_IR_CHANNELS_TD
