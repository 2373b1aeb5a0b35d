//===- Barriers.td - Barriers, fences and waits ------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_BARRIERS_TD
#define GDN_DIALECT_WARP_IR_BARRIERS_TD

// Included by Ops.td, which is the one file that is compiled.

def Warp_BarrierOp : Warp_Op<"barrier", [Pure]> {
  let summary = "The mbarrier at a byte offset of shared memory";
  let description = [{
    Eight bytes at a multiple of 8.

    Example:

    ```mlir
    %full = gdn_warp.barrier %offset
    ```
  }];
  let arguments = (ins
      Arg<Index, "Bytes from the beginning of shared memory, a multiple of 8.">:$offset);
  let results = (outs
      Res<Warp_BarrierType, "The barrier.">:$result);
  let assemblyFormat = "$offset attr-dict";
}

def Warp_BarrierInitOp : Warp_Op<"barrier_init"> {
  let summary = "Set up a barrier for a number of arrivals a phase";
  let description = [{
    One thread does it; `gdn_warp.fence barrier_init` and a sync of the CTA (or
    cluster) come before the first use.

    Example:

    ```mlir
    gdn_warp.barrier_init %full, 1
    ```
  }];
  let arguments = (ins
      Arg<Warp_BarrierType, "The barrier.">:$barrier,
      Arg<I64Attr, "Arrivals that complete a phase.">:$count);
  let assemblyFormat = "$barrier `,` $count attr-dict";
}

def Warp_BarrierArriveOp : Warp_Op<"barrier_arrive"> {
  let summary = "This thread arrives";
  let description = [{
    At the barrier of this CTA, with release semantics, or at the same place of
    CTA `rank` of the cluster; as `count` arrivals. In another CTA the release is
    at CTA scope: one at cluster scope waits for all that the thread has written
    anywhere (a microsecond). It says that products or loads of vectors have read
    a place, or counts for bytes that are on their way, which arrive by themselves.

    Example:

    ```mlir
    gdn_warp.barrier_arrive %empty
    gdn_warp.barrier_arrive %empty rank(%peer)
    gdn_warp.barrier_arrive %full rank(%peer) count(9)
    ```
  }];
  let arguments = (ins
      Arg<Warp_BarrierType, "The barrier, as it is addressed in this CTA.">:$barrier,
      Arg<Optional<I32>, "The CTA of the cluster whose barrier is meant; absent, this one.">:$rank,
      // An mbarrier counts arrivals, and bytes, in 20 bits (PTX ISA).
      Arg<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<0xfffff>]>, "1">,
        "The number of arrivals.">:$count);
  let assemblyFormat = "$barrier (`rank` `(` $rank^ `)`)? (`count` `(` $count^ `)`)? attr-dict";
}

def Warp_BarrierExpectOp : Warp_Op<"barrier_expect"> {
  let summary = "This thread arrives and announces bytes of copies";
  let description = [{
    The phase completes when all threads have arrived and `bytes` of
    `gdn_warp.bulk_tensor_load` or `gdn_warp.bulk_copy_to_cta` are there. At the barrier of
    this CTA, or, relaxed, at the same place of CTA `rank` of the cluster.

    Example:

    ```mlir
    gdn_warp.barrier_expect %full, 8192
    ```
  }];
  let arguments = (ins
      Arg<Warp_BarrierType, "The barrier, as it is addressed in this CTA.">:$barrier,
      Arg<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<0xfffff>]>,
        "Bytes of copies that the phase waits for.">:$bytes,
      Arg<Optional<I32>, "The CTA of the cluster whose barrier is meant; absent, this one.">:$rank);
  let assemblyFormat = "$barrier `,` $bytes (`rank` `(` $rank^ `)`)? attr-dict";
}

def Warp_BarrierWaitOp : Warp_Op<"barrier_wait"> {
  let summary = "Wait for the end of a phase";
  let description = [{
    Returns when the phase of parity `parity` (0 for the first) has completed.
    A barrier that never completed a phase lets waits for parity 1 through. With
    `cluster`, what other CTAs released is seen.

    Example:

    ```mlir
    gdn_warp.barrier_wait %full, %parity
    ```
  }];
  let arguments = (ins
      Arg<Warp_BarrierType, "The barrier.">:$barrier,
      Arg<I32, "The parity of the phase to wait for.">:$parity,
      Arg<UnitAttr, "Whether writes of other CTAs of the cluster must be visible afterwards.">:$cluster);
  let assemblyFormat = "$barrier `,` $parity (`cluster` $cluster^)? attr-dict";
}

def Warp_BarrierTestOp : Warp_Op<"barrier_test"> {
  let summary = "Ask whether a phase has completed";
  let description = [{
    As `gdn_warp.barrier_wait`, but may return false.

    Example:

    ```mlir
    %done = gdn_warp.barrier_test %full, %parity
    ```
  }];
  let arguments = (ins
      Arg<Warp_BarrierType, "The barrier.">:$barrier,
      Arg<I32, "The parity of the phase.">:$parity);
  let results = (outs
      Res<I1, "True if the phase is complete.">:$result);
  let assemblyFormat = "$barrier `,` $parity attr-dict";
}

def Warp_SyncOp : Warp_Op<"sync"> {
  let summary = "The threads of a warp, CTA or cluster wait for each other";
  let description = [{
    Example:

    ```mlir
    gdn_warp.sync cta
    ```
  }];
  let arguments = (ins
      Arg<Warp_SyncKind, "Which threads wait for each other.">:$kind);
  let assemblyFormat = "$kind attr-dict";
}

def Warp_SyncGroupOp : Warp_Op<"sync_group"> {
  let summary = "A number of threads wait for each other";
  let description = [{
    `id` is one of the CTA's named barriers 1 .. 15, `threads` those that take
    part, in whole warps.

    Example:

    ```mlir
    gdn_warp.sync_group %id, 128
    ```
  }];
  let arguments = (ins
      Arg<I32, "The number of the hardware barrier, 1 to 15.">:$id,
      Arg<ConfinedAttr<I64Attr, [IntMinValue<32>, IntMaxValue<1024>]>,
        "Threads that take part, a multiple of 32.">:$threads);
  let assemblyFormat = "$id `,` $threads attr-dict";
}

def Warp_GridDependencyWaitOp : Warp_Op<"grid_dependency_wait"> {
  let summary = "Wait for the kernel before this one in its stream";
  let description = [{
    A kernel with this op may begin before the one that it follows has ended, and
    lets the next one begin: what stands before the op, and the launch, costs no
    time then. Nothing before it may touch what that kernel writes, or memory
    that it reads. All threads do it.

    With `then_launch` the next kernel may begin behind the wait alone: so it may
    touch what the kernels before this one have written without a wait of its
    own.

    With `launch_later` it lets no kernel begin: `gdn_warp.launch_dependents` does
    so behind it.

    With `last_cta` the CTA with the highest number waits, and the others go on.
    A kernel does this at its end: it then completes behind the one before it,
    and only one multiprocessor is kept until then. It launches nothing.

    Example:

    ```mlir
    gdn_warp.grid_dependency_wait then_launch
    ```
  }];
  let arguments = (ins
      Arg<UnitAttr, "The next kernel begins behind the wait.">:$then_launch,
      Arg<UnitAttr, "Another op lets the next kernel begin.">:$launch_later,
      Arg<UnitAttr, "One CTA waits for the whole kernel.">:$last_cta);
  let assemblyFormat = [{
    (`then_launch` $then_launch^)? (`launch_later` $launch_later^)? (`last_cta` $last_cta^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Warp_LaunchDependentsOp : Warp_Op<"launch_dependents"> {
  let summary = "Let the next kernel of the stream begin";
  let description = [{
    What a kernel does first that runs beside the one before it: it waits for
    that at its end. The one before it lets it begin with `then_launch`, or with
    this op behind what it has to see.

    Example:

    ```mlir
    gdn_warp.launch_dependents
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_ExitOp : Warp_Op<"exit"> {
  let summary = "End the CTA";
  let description = [{
    All threads of the CTA do it, in front of the roles.

    Example:

    ```mlir
    gdn_warp.exit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_AwaitOp : Warp_Op<"await"> {
  let summary = "Wait until a kernel that runs at the same time is done";
  let description = [{
    The CTA waits until the array's last entry is 0, which makes all visible that
    the other kernel wrote in front of its `gdn_warp.count_down`. All of that
    kernel's CTAs must have begun, so that they have multiprocessors. All threads
    do it, in front of the roles.

    Example:

    ```mlir
    gdn_warp.await %before : memref<?xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[I32], [1]>, "The array in global memory.">:$array);
  let assemblyFormat = "$array attr-dict `:` type($array)";
}

def Warp_CountDownOp : Warp_Op<"count_down"> {
  let summary = "Tell a kernel that runs at the same time";
  let description = [{
    Counts the CTAs that are done in the array's last entry: it is 2^31 - 1
    before the first one, and 0 behind the last one. All threads do it, behind
    the roles.

    Example:

    ```mlir
    gdn_warp.count_down %before : memref<?xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[I32], [1]>, "The array in global memory.">:$array);
  let assemblyFormat = "$array attr-dict `:` type($array)";
}

def Warp_BeginReportsOp : Warp_Op<"begin_reports"> {
  let summary = "Nothing is reported so far";
  let description = [{
    Sets the entry of `array` to 0 for kernels that run at the same time. All
    threads do it, in front of the roles and of `gdn_warp.launch_dependents`.

    Example:

    ```mlir
    gdn_warp.begin_reports %progress[%n, %head, %v_tile] : memref<?x4x2xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[I32]>, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The CTA's entry.">:$offsets);
  let assemblyFormat = "$array `[` $offsets `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Warp_ReportOp : Warp_Op<"report"> {
  let summary = "Tell a kernel that runs at the same time how far this one is";
  let description = [{
    Sets the entry of `array` to `done` behind all stores of the warp and all
    copies that its first lane has begun. One warp does it.

    Example:

    ```mlir
    gdn_warp.report %done, %progress[%n, %head, %v_tile] : memref<?x4x2xi32>
    ```
  }];
  let arguments = (ins
      Arg<Index, "How much is done.">:$done,
      Arg<MemRefOf<[I32]>, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The CTA's entry.">:$offsets);
  let assemblyFormat = "$done `,` $array `[` $offsets `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Warp_AwaitReportOp : Warp_Op<"await_report"> {
  let summary = "Wait until CTAs of another kernel report enough";
  let description = [{
    Waits until all entries of `count` rows of `array` are at least `done`: a row
    is the last dimension, and `offsets` are those of the first one. What these CTAs have stored
    and copied before is then visible to all threads, and to copies. All CTAs of
    the other kernel must have begun. All threads do it, in front of the roles.

    Example:

    ```mlir
    gdn_warp.await_report %progress[%n, %first_head] count %heads done %tokens : memref<?x4x2xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[I32]>, "The array in global memory.">:$array,
      Arg<Variadic<Index>, "The first row.">:$offsets,
      Arg<Index, "Rows.">:$count,
      Arg<Index, "How much must be done.">:$done);
  let assemblyFormat = [{
    $array `[` $offsets `]` `count` $count `done` $done attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Warp_FenceOp : Warp_Op<"fence"> {
  let summary = "Order memory accesses of different kinds";
  let description = [{
    `async`: this thread's accesses to shared memory come before later ones of
    products and copies. `barrier_init`: barriers are set up for other threads
    and for copies.

    Example:

    ```mlir
    gdn_warp.fence async
    ```
  }];
  let arguments = (ins
      Arg<Warp_FenceKind, "What is ordered.">:$kind);
  let assemblyFormat = "$kind attr-dict";
}

#endif // GDN_DIALECT_WARP_IR_BARRIERS_TD
