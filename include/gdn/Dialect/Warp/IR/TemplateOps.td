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

    `chunks_per_iteration`, `cluster` and `clone_likely_path` are those of
    `#gdn_warp.schedule`. With `fold_v_tiles` a CTA has all V tiles of a head;
    else it has one. With `persistent` CTAs take work items in turn where the cost
    model expects them to.

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
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$schedules,
    OptionalAttr<StrArrayAttr>:$stages, OptionalAttr<Warp_ConditionAttr>:$when,
    I64Attr:$chunks_per_iteration, UnitAttr:$fold_v_tiles,
    DefaultValuedAttr<I64Attr, "1">:$cluster, UnitAttr:$persistent, UnitAttr:$clone_likely_path,
    TypedArrayAttrBase<Warp_RoleTemplateAttr, "role templates">:$roles,
    TypedArrayAttrBase<Warp_ChannelTemplateAttr, "channel templates">:$channels);
  let assemblyFormat = [{
    $sym_name `schedules` $schedules (`stages` $stages^)? (`when` custom<Condition>($when)^)?
    attr-dict-with-keyword `roles` custom<RoleTemplates>($roles)
    `channels` custom<ChannelTemplates>($channels)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_WARP_IR_TEMPLATEOPS_TD
