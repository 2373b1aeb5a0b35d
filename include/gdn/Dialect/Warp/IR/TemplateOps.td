//===- TemplateOps.td - The op of a schedule template ------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_TEMPLATEOPS_TD
#define GDN_DIALECT_WARP_IR_TEMPLATEOPS_TD

// Included by Ops.td, whose base class it shares.

include "gdn/Dialect/Warp/IR/ScheduleTemplate.td"

def Warp_ScheduleTemplateOp : Warp_Op<"schedule_template",
    [Symbol, IsolatedFromAbove, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A schedule that gdn-warp-choose-schedule fits to programs";
  let description = [{
    A file of templates says how kernels of one kind divide their work, without
    C++ (docs/Schedules.md). `schedules` are the names that select the template
    (`--schedule`), besides its own; `stages` the stage ops whose programs it is
    for (`gdn_tile.stage` on the program), any if it is absent; `when` what else
    must hold of the program. Of the templates of one schedule the first that
    goes with the program is taken.

    `chunks_per_iteration`, `cluster`, `min_ctas` and `in_order` are those of `#gdn_warp.schedule`. With `fold_v_tiles` a CTA has all V tiles of a head;
    else it has one. With `persistent` CTAs take work items in turn where the cost
    model expects it to be faster; with `always_persistent` in any case, for stages
    that the cost model does not know.

    Example:

    ```mlir
    gdn_warp.schedule_template @copy schedules ["cta_per_v_tile"] stages ["copy"]
        attributes {chunks_per_iteration = 1 : i64}
        roles [
          <name = "move", warps = 4, registers = 40, steps = ["load"]>,
          <name = "state", warps = 4, min_registers = 128, steps = ["state"]>]
        channels [
          <name = "tokens", depth = <fill 2 to 8 chunks>, from = ["load"], to = ["state"]>]
    ```
  }];
  let arguments = (ins
    Arg<SymbolNameAttr, "Name of the template, which `--schedule` takes too.">:$sym_name,
    Arg<StrArrayAttr, "Names of schedules that select the template.">:$schedules,
    Arg<OptionalAttr<StrArrayAttr>, "Stage ops whose programs it is for; any if absent.">:$stages,
    Arg<OptionalAttr<Warp_ConditionAttr>, "What else must hold of the program.">:$when,
    Arg<I64Attr, "Chunks of one iteration of a role's loop.">:$chunks_per_iteration,
    Arg<UnitAttr, "Whether a CTA has all V tiles of a head.">:$fold_v_tiles,
    Arg<DefaultValuedAttr<I64Attr, "1">, "CTAs of a cluster, each with one V tile.">:$cluster,
    Arg<UnitAttr, "Whether CTAs may take work items in turn.">:$persistent,
    Arg<UnitAttr, "Whether CTAs take work items in turn, whatever the cost model says.">:$always_persistent,
    Arg<DefaultValuedAttr<I64Attr, "1">, "CTAs that a multiprocessor has at least at a time.">:$min_ctas,
    Arg<UnitAttr, "Whether packed sequences are taken as they lie.">:$in_order,
    Arg<TypedArrayAttrBase<Warp_RoleTemplateAttr, "role templates">,
      "The roles, in the order of their warps.">:$roles,
    Arg<TypedArrayAttrBase<Warp_ChannelTemplateAttr, "channel templates">,
      "The channels, in the order in which a value looks for one.">:$channels);
  let assemblyFormat = [{
    $sym_name `schedules` $schedules (`stages` $stages^)? (`when` custom<Condition>($when)^)?
    attr-dict-with-keyword `roles` custom<RoleTemplates>($roles)
    `channels` custom<ChannelTemplates>($channels)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_TEMPLATEOPS_TD
