//===- EntryOps.td - Where work items leave, wait or tell --*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_ENTRYOPS_TD
#define GDN_DIALECT_TILE_IR_ENTRYOPS_TD

// Included by Ops.td, which is the one file that is compiled.

def Tile_LeaveOp : Tile_Op<"leave"> {
  let summary = "A work item that has nothing to do";
  let description = [{
    If `condition` holds, the program's only results that are read are zeros: the
    elements of `cleared` at the work item's sequence and head, its first two
    dimensions. So a GPU's CTA may end at once. With `early` the condition does
    not depend on the previous launch, and a CTA does not wait for it. With
    `unread` nothing is read that the program makes, by any work item: the
    condition follows from arrays alone, and no CTA does anything.

    Example:

    ```mlir
    gdn_tile.leave %isEmpty clears(%map : memref<?x4x128x128xf16>)
    ```
  }];
  let arguments = (ins
      Arg<I1, "What follows from the work item alone.">:$condition,
      Arg<Variadic<AnyMemRef>, "The arrays [N, H, ...] that it makes zero.">:$cleared,
      Arg<UnitAttr, "Whether it ends before the launch in front does.">:$early,
      Arg<UnitAttr, "Whether the program has no effect if the condition holds.">:$unread);
  let assemblyFormat = [{
    $condition (`clears` `(` $cleared^ `:` type($cleared) `)`)? attr-dict
  }];
}

def Tile_ClearOp : Tile_Op<"clear", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Zeros instead of what a work item does not compute";
  let description = [{
    If `condition` holds, rows offsets[dim] .. `end` of dimension `dim` of `array`
    become zeros, `columns` elements of the last dimension from its offset on.
    For a work item of whose tokens nothing is computed: no other access of the
    program touches these elements then.

    Example:

    ```mlir
    gdn_tile.clear %o[%batch, %begin, %h, %c0] until(%end, dim = 1) columns 64 if %isSkipped
        : memref<1x?x4x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "The array.">:$array,
      Arg<Variadic<Index>, "The first element of the first row, one index per dimension of the array.">:$offsets,
      Arg<Index, "The row past the last one.">:$end,
      Arg<I64Attr, "The dimension along which the rows follow each other; not the last one.">:$dim,
      Arg<I64Attr, "Elements of a row.">:$columns,
      Arg<I1, "What follows from the work item alone.">:$condition);
  let assemblyFormat = [{
    $array `[` $offsets `]` `until` `(` $end `,` `dim` `=` $dim `)` `columns` $columns `if` $condition
    attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_Op<"await"> {
  let summary = "Wait for a program that runs at the same time";
  let description = [{
    Waits until all work items of another program have met `gdn_tile.count_down`
    of the same array. Launches behind each other need none, so a CPU has none.

    Example:

    ```mlir
    gdn_tile.await %before if %isLate : memref<?xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[I32], [1]>, "The array whose last entry is 0 behind the wait.">:$array,
      Arg<I1, "What follows from the work item alone: others do not wait.">:$condition);
  let assemblyFormat = "$array `if` $condition attr-dict `:` type($array)";
}

def Tile_CountDownOp : Tile_Op<"count_down"> {
  let summary = "Tell a program that runs at the same time";
  let description = [{
    Behind all that a work item does, `gdn_tile.count_down %before : memref<?xi32>`
    counts the array's last entry down. That is 2^31 - 1 before the first of
    them, and 0 behind the last one.
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[I32], [1]>, "The array whose last entry counts.">:$array);
  let assemblyFormat = "$array attr-dict `:` type($array)";
}

def Tile_ReportOp : Tile_Op<"report"> {
  let summary = "Tell a program that runs at the same time how far this one is";
  let description = [{
    Behind all that the work item has stored before it, the entry of `array` at
    `offsets` becomes `done`. A work item has one entry, which is 0 before its
    first report and only grows.

    Example:

    ```mlir
    gdn_tile.report %done, %progress[%n, %head, %v_tile] : memref<?x4x2xi32>
    ```
  }];
  let arguments = (ins
      Arg<Index, "How much is done.">:$done,
      Arg<MemRefOf<[I32]>, "The array of what work items report.">:$array,
      Arg<Variadic<Index>, "The work item's entry.">:$offsets);
  let assemblyFormat = "$done `,` $array `[` $offsets `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Tile_AwaitReportOp : Tile_Op<"await_report"> {
  let summary = "Wait until work items of another program report enough";
  let description = [{
    Waits until all entries of `count` rows of `array` are at least `done`: a row
    is the last dimension, and `offsets` are those of the first one. Launches behind each other
    need no wait, so a CPU has none.

    Example:

    ```mlir
    gdn_tile.await_report %progress[%n, %first_head] count %heads done %tokens : memref<?x4x2xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[I32]>, "The array of what work items report.">:$array,
      Arg<Variadic<Index>, "The first row.">:$offsets,
      Arg<Index, "Rows.">:$count,
      Arg<Index, "What follows from the work item alone: how much must be done.">:$done);
  let assemblyFormat = [{
    $array `[` $offsets `]` `count` $count `done` $done attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Tile_HoldBackOp : Tile_Op<"hold_back"> {
  let summary = "Let the program that runs beside this one begin later";
  let description = [{
    A program that runs beside this one begins when each work item of this one
    has. Where `condition` holds in any work item, it begins when all launches in
    front of this one are done, too. Until then it would take multiprocessors
    from these. A CPU runs one after the other.

    Example:

    ```mlir
    gdn_tile.hold_back if %isLonger
    ```
  }];
  let arguments = (ins
      Arg<I1, "What follows from the work item alone.">:$condition);
  let assemblyFormat = "`if` $condition attr-dict";
}

#endif // GDN_DIALECT_TILE_IR_ENTRYOPS_TD
