//===- Schedule.td - Who does what in a kernel -------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_SCHEDULE_TD
#define GDN_DIALECT_WARP_IR_SCHEDULE_TD

include "gdn/Dialect/Warp/IR/Attributes.td"

def Warp_RolePlanAttr : Warp_Attr<"RolePlan", "role_plan"> {
  let summary = "A set of warps and the steps that it runs";
  let description = [{
    `warps` warps with `registers` registers a thread run the ops labelled with
    one of `steps`. Ops of the steps in `delayed` run `delay` trips later, so
    that a role may take what comes of its own work in an earlier trip. Vectors
    are loaded from arrays `ahead` trips before they are used. With `rotate` the
    warps take the chunks in turn, each alone; with `split` each warpgroup takes
    one part of the V channels. With `roll` the chunks of a trip are a loop rather
    than copies: a role that others wait for less gives its place in the
    instruction cache to them. With `share` the CTAs of a cluster take the trips
    in turn, and what one of them makes goes to all. With `interleave` ops of the
    chunks of a trip follow each other by turns, so that a warp that is alone with
    chains of short ops waits for each of them less.

    Example:
    `#gdn_warp.role_plan<name = "state", warps = 8, registers = 168, steps = ["state"], split = true>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$warps, "int64_t":$registers,
    "::mlir::ArrayAttr":$steps, OptionalParameter<"::mlir::ArrayAttr">:$delayed,
    DefaultValuedParameter<"int64_t", "0">:$delay,
    DefaultValuedParameter<"int64_t", "0">:$ahead,
    DefaultValuedParameter<"bool", "false">:$rotate,
    DefaultValuedParameter<"bool", "false">:$split,
    DefaultValuedParameter<"bool", "false">:$roll,
    DefaultValuedParameter<"bool", "false">:$share,
    DefaultValuedParameter<"bool", "false">:$interleave);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Whether ops of `step` run in this role, and whether `delay` trips later.
    bool runs(::mlir::StringAttr step) const;
    bool runsLate(::mlir::StringAttr step) const;
  }];
}

def Warp_ChannelPlanAttr : Warp_Attr<"ChannelPlan", "channel_plan"> {
  let summary = "Slots for the values that some steps hand to some roles";
  let description = [{
    Values made by a step in `from` and used by roles in `to` share slots of
    shared memory, `depth` of them: the producers may run that many trips ahead.
    With `by_chunk` a slot is for one chunk of a trip, not for all of them: it is
    free again as soon as that chunk is done.

    Example:
    `#gdn_warp.channel_plan<name = "qkv", depth = 3, from = ["load", "gates"], to = ["scores", "state"]>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$depth, "::mlir::ArrayAttr":$from,
    "::mlir::ArrayAttr":$to, DefaultValuedParameter<"bool", "false">:$by_chunk);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Warp_ScheduleAttr : Warp_Attr<"Schedule", "schedule"> {
  let summary = "How the warps of a CTA divide a program's work";
  let description = [{
    One trip of a role's loop takes `trip` chunks. `parts` parts of the V
    channels are folded into one CTA; with `cluster` so many parts have a CTA
    each, which form a cluster. A step stands in one role. With
    `persistent` a CTA takes items in turn, and its roles run ahead of each
    other from one item into the next: so what begins and ends an item costs
    less than a CTA that begins and ends. With `separate` trips whose chunks all
    take their likely branches have code of their own (`gdn-warp-separate-branches`).
  }];
  let parameters = (ins "int64_t":$trip, "int64_t":$parts,
    DefaultValuedParameter<"int64_t", "1">:$cluster, DefaultValuedParameter<"bool", "false">:$persistent,
    DefaultValuedParameter<"bool", "false">:$separate,
    ArrayRefParameter<"RolePlanAttr">:$roles, ArrayRefParameter<"ChannelPlanAttr">:$channels);
  let assemblyFormat = [{
    `<` `trip` `=` $trip `,` `parts` `=` $parts `,` (`cluster` `=` $cluster^ `,`)? (`persistent` `=` $persistent^ `,`)?
    (`separate` `=` $separate^ `,`)? `roles` `=` custom<PlanList>($roles) `,`
    `channels` `=` custom<PlanList>($channels) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Name of the attribute on a program or kernel.
    static constexpr ::llvm::StringLiteral kName = "gdn_warp.schedule";
    /// Threads of a CTA.
    int64_t getThreads() const;
  }];
}

#endif // GDN_DIALECT_WARP_IR_SCHEDULE_TD
