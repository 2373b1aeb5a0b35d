//===- EntryOps.td - What a caller calls -------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries: tables of functions that compute the same. Ops.td includes this file.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_ENTRYOPS_TD
#define GDN_DIALECT_GDN_IR_ENTRYOPS_TD

include "mlir/IR/SymbolInterfaces.td"

def GDN_EntryOp : Op<GDN_Dialect, "entry", [
    HasParent<"::mlir::ModuleOp">, IsolatedFromAbove, NoTerminator, SingleBlock, Symbol]> {
  let summary = "Functions that compute one call in different ways";
  let description = [{
    What a caller calls: a table of functions that take the same arrays and make
    the same results. The host chooses one for each call, by its sizes
    (`gdn-c/Calls.h`). An entry launches nothing itself; a lowering leaves it as
    it is, and the table that is emitted for the host has it.

    Example:

    ```mlir
    gdn.entry @layer {
      gdn.variant @layer_cta_per_head schedule("cta_per_head")
      gdn.variant @layer_segments schedule("cta_per_head")
    }
    ```
  }];
  let arguments = (ins Arg<SymbolNameAttr, "The name, which the host's table has.">:$sym_name);
  let regions = (region SizedRegion<1>:$variants);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $variants";
  let hasVerifier = 1;
}

def GDN_VariantOp : Op<GDN_Dialect, "variant", [
    HasParent<"EntryOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function of an entry";
  let description = [{
    A public function of the module. Its arrays are those of the entry's first
    variant, in the same order and of the same element types and ranks; states
    may lie as [V, K] in one variant and as [K, V] in another, as the layer op
    says. Scalars are its own: by those with `gdn.cut` a call chooses how
    sequences are cut. `schedule` is that of the program that takes most of the
    time, by which the host's cost model knows the function.
  }];
  let arguments = (ins Arg<FlatSymbolRefAttr, "The function.">:$function,
    Arg<StrAttr, "The schedule by which the host's cost model knows it.">:$schedule);
  let assemblyFormat = "$function `schedule` `(` $schedule `)` attr-dict";
}

#endif // GDN_DIALECT_GDN_IR_ENTRYOPS_TD
