//===- ScheduleTemplate.td - Schedules to be fitted --------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_SCHEDULETEMPLATE_TD
#define GDN_DIALECT_WARP_IR_SCHEDULETEMPLATE_TD

include "gdn/Dialect/Warp/IR/Attributes.td"

def Warp_AmountUnit : Warp_Enum<"AmountUnit", "what an amount is counted in", [
    I32EnumAttrCase<"Chunks", 0, "chunks">, I32EnumAttrCase<"Iterations", 1, "iterations">,
    I32EnumAttrCase<"Fill", 2, "fill">, I32EnumAttrCase<"Channel", 3, "as">]>;

def Warp_AmountAttr : Warp_Attr<"Amount", "amount"> {
  let summary = "A depth or a delay of a schedule template";
  let description = [{
    The fit turns an amount into slots of a channel or into iterations of a role:

    - `<4 chunks>`: 4 chunks, in slots for one iteration rounded up.
    - `<2 iterations>`: 2 iterations.
    - `<fill 4 to 8 chunks>`: as many chunks as fit into the shared memory that
      the other channels leave, at least 4 and at most 8. Only a depth may be so.
    - `<as "tokens" plus 1>`: the iterations that channel `tokens` holds, rounded
      up, and 1 more. `minus 1` is 1 less; neither is as many.

    Example: `#gdn_warp.amount<fill 4 to 8 chunks>`
  }];
  let parameters = (ins "::mlir::gdn::warp::AmountUnit":$unit, "int64_t":$value,
    "int64_t":$most, StringRefParameter<>:$channel);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Warp_RoleTemplateAttr : Warp_Attr<"RoleTemplate", "role_template"> {
  let summary = "A role of a schedule template";
  let description = [{
    A `#gdn_warp.role_spec` of which some numbers are left to the fit. `registers`
    is fixed; without it the role's warpgroups get at least `min_registers` and a
    part, by `register_weight`, of what the other roles leave of the registers
    that the CTA has at launch. Roles that share a warpgroup get one number.
    `delay` and `prefetch_distance` are amounts.

    Example:
    `#gdn_warp.role_template<name = "move", warps = 1, registers = 104, steps = ["load"], delayed_steps = ["store"], delay = <as "tokens" minus 1>>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$warps,
    DefaultValuedParameter<"int64_t", "0">:$registers,
    DefaultValuedParameter<"int64_t", "0">:$min_registers,
    DefaultValuedParameter<"int64_t", "1">:$register_weight,
    "::mlir::ArrayAttr":$steps, OptionalParameter<"::mlir::ArrayAttr">:$delayed_steps,
    OptionalParameter<"::mlir::gdn::warp::AmountAttr">:$delay,
    OptionalParameter<"::mlir::gdn::warp::AmountAttr">:$prefetch_distance,
    DefaultValuedParameter<"bool", "false">:$round_robin,
    DefaultValuedParameter<"int64_t", "1">:$warps_per_turn,
    DefaultValuedParameter<"bool", "false">:$warpgroup_per_v_tile,
    DefaultValuedParameter<"bool", "false">:$loop_chunks,
    DefaultValuedParameter<"bool", "false">:$alternate_ctas,
    DefaultValuedParameter<"bool", "false">:$interleave_chunks,
    DefaultValuedParameter<"bool", "false">:$share_code,
    DefaultValuedParameter<"bool", "false">:$late_addresses,
    DefaultValuedParameter<"bool", "false">:$loop_pieces,
    DefaultValuedParameter<"bool", "false">:$hand_on_early,
    DefaultValuedParameter<"int64_t", "0">:$lanes_per_row);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Warp_ChannelTemplateAttr : Warp_Attr<"ChannelTemplate", "channel_template"> {
  let summary = "A channel of a schedule template";
  let description = [{
    A `#gdn_warp.channel_spec` whose `depth` is an amount.

    Example:
    `#gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::gdn::warp::AmountAttr":$depth,
    "::mlir::ArrayAttr":$from, "::mlir::ArrayAttr":$to,
    DefaultValuedParameter<"bool", "false">:$slot_per_chunk);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Warp_ConditionAttr : Warp_Attr<"Condition", "condition"> {
  let summary = "The programs that a schedule template is for";
  let description = [{
    All must hold: the program has all of `steps` and none of `no_steps`; its
    launch has `min_v_tiles` to `max_v_tiles` tiles of V; with `initial_state` it
    loads a tile before its loop; its loop carries no tile of more than
    `max_state_columns` columns, or of more than `max_state_entries` entries,
    loads at most `max_vectors` vectors of more than one element and no tile of
    more than `max_tile_bytes` bytes, and takes at least `min_chunk_tokens`
    tokens a chunk; before the loop it loads a tile, and none whose elements have
    more than `max_state_bits` bits. 0 is no limit.

    Example: `#gdn_warp.condition<steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>`
  }];
  let parameters = (ins OptionalParameter<"::mlir::ArrayAttr">:$steps,
    OptionalParameter<"::mlir::ArrayAttr">:$no_steps,
    DefaultValuedParameter<"int64_t", "0">:$min_v_tiles,
    DefaultValuedParameter<"int64_t", "0">:$max_v_tiles,
    DefaultValuedParameter<"bool", "false">:$initial_state,
    DefaultValuedParameter<"int64_t", "0">:$max_state_columns,
    DefaultValuedParameter<"int64_t", "0">:$max_state_entries,
    DefaultValuedParameter<"int64_t", "0">:$max_vectors,
    DefaultValuedParameter<"int64_t", "0">:$max_tile_bytes,
    DefaultValuedParameter<"int64_t", "0">:$min_chunk_tokens,
    DefaultValuedParameter<"int64_t", "0">:$max_state_bits);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // GDN_DIALECT_WARP_IR_SCHEDULETEMPLATE_TD
