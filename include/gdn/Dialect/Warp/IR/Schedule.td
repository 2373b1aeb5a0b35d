//===- Schedule.td - Who does what in a kernel -------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_SCHEDULE_TD
#define GDN_DIALECT_WARP_IR_SCHEDULE_TD

include "gdn/Dialect/Warp/IR/Attributes.td"

def Warp_RoleSpecAttr : Warp_Attr<"RoleSpec", "role_spec"> {
  let summary = "A set of warps and the steps that it runs";
  let description = [{
    `warps` warps with `registers` registers a thread run the ops labelled with
    one of `steps`. Ops of the steps in `delayed_steps` run `delay` iterations later, so
    that a role may take what comes of its own work in an earlier iteration. Vectors
    are loaded from arrays `prefetch_distance` iterations before they are used. With `round_robin` the
    warps take the chunks in turn, each alone, or with `warps_per_turn = 4` each warpgroup; with
    `warpgroup_per_v_tile` each warpgroup takes one V tile. With `loop_chunks` the chunks of an iteration are a loop rather
    than copies: a role that others wait for less gives its place in the
    instruction cache to them. With `alternate_ctas` the CTAs of a cluster take the iterations
    in turn, and what one of them makes goes to all; those that take turns there divide the
    chunks of an iteration. With `interleave_chunks` ops of the
    chunks of an iteration follow each other by turns, so that a warp that is alone with
    chains of short ops waits for each of them less. With `lanes_per_row` the role's tiles
    are spread over lanes (`#gdn_warp.spread`), so many to a row; without, they are fragments.
    Roles with `share_code` that stand next to each other become one (`gdn-warp-merge-roles`) if
    their code differs in numbers alone; they have whole warpgroups. With `late_addresses` a loop
    makes addresses in shared memory where it first uses them: a role with many tiles there has
    no registers to hold all of them. With `loop_pieces` the pieces of 64 rows of tiles that the role
    only stores are a loop, where their code differs in places alone (`gdn-warp-loop-pieces`). With `hand_on_early`
    a slot that the same warps fill the next time goes to its takers before the role's own products have read it.

    Example:
    `#gdn_warp.role_spec<name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$warps, "int64_t":$registers,
    "::mlir::ArrayAttr":$steps, OptionalParameter<"::mlir::ArrayAttr">:$delayed_steps,
    DefaultValuedParameter<"int64_t", "0">:$delay,
    DefaultValuedParameter<"int64_t", "0">:$prefetch_distance,
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
  let extraClassDeclaration = [{
    /// Whether ops of `step` run in this role, and whether `delay` iterations later.
    bool runs(::mlir::StringAttr step) const;
    bool runsLate(::mlir::StringAttr step) const;
    /// How many warps, or warpgroups, take the chunks in turn; 1 where all warps take each.
    int64_t countTurns() const { return getRoundRobin() ? getWarps() / getWarpsPerTurn() : 1; }
  }];
}

def Warp_ChannelSpecAttr : Warp_Attr<"ChannelSpec", "channel_spec"> {
  let summary = "Slots for the values that some steps hand to some roles";
  let description = [{
    Values made by a step in `from` and used by roles in `to` share slots of
    shared memory, `depth` of them: the producers may run that many iterations ahead.
    With `slot_per_chunk` a slot is for one chunk of an iteration, not for all of them: it is
    free again as soon as that chunk is done.

    Example:
    `#gdn_warp.channel_spec<name = "qkv", depth = 3, from = ["load", "gates"], to = ["scores", "state"]>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$depth, "::mlir::ArrayAttr":$from,
    "::mlir::ArrayAttr":$to, DefaultValuedParameter<"bool", "false">:$slot_per_chunk);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Warp_ScheduleAttr : Warp_Attr<"Schedule", "schedule"> {
  let summary = "How the warps of a CTA divide a program's work";
  let description = [{
    One iteration of a role's loop takes `chunks_per_iteration` chunks. `v_tiles` tiles of the V
    channels are folded into one CTA; with `cluster` so many V tiles have a CTA
    each, which form a cluster. A step stands in one role. With
    `persistent` a CTA takes items in turn, and its roles run ahead of each
    other from one work item into the next: so what begins and ends a work item costs
    less than a CTA that begins and ends.
    A multiprocessor has at least `min_ctas` CTAs at a time, which share its registers. With
    `in_order` packed sequences are taken as they lie, not the longest first.
  }];
  let parameters = (ins "int64_t":$chunks_per_iteration, "int64_t":$v_tiles,
    DefaultValuedParameter<"int64_t", "1">:$cluster, DefaultValuedParameter<"bool", "false">:$persistent,
    DefaultValuedParameter<"int64_t", "1">:$min_ctas,
    DefaultValuedParameter<"bool", "false">:$in_order,
    ArrayRefParameter<"RoleSpecAttr">:$roles, ArrayRefParameter<"ChannelSpecAttr">:$channels);
  let assemblyFormat = [{
    `<` `chunks_per_iteration` `=` $chunks_per_iteration `,` `v_tiles` `=` $v_tiles `,` (`cluster` `=` $cluster^ `,`)? (`persistent` `=` $persistent^ `,`)?
    (`min_ctas` `=` $min_ctas^ `,`)?
    (`in_order` `=` $in_order^ `,`)? `roles` `=` custom<SpecList>($roles) `,`
    `channels` `=` custom<SpecList>($channels) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Name of the attribute on a program or kernel.
    static constexpr ::llvm::StringLiteral kName = "gdn_warp.schedule";
    /// Threads of a CTA.
    int64_t getThreads() const;
    /// Whether the chip has what the schedule asks for; else an error at `op`,
    /// which has the schedule.
    ::llvm::LogicalResult verifyFor(::mlir::Operation *op, const Arch &arch) const;
  }];
}

#endif // GDN_DIALECT_WARP_IR_SCHEDULE_TD
