//===- Ops.td - Kernel, roles, shared memory and barriers --*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_OPS_TD
#define GDN_DIALECT_WARP_IR_OPS_TD

include "gdn/Dialect/Warp/IR/Attributes.td"
include "gdn/Dialect/Warp/IR/Schedule.td"
include "gdn/Dialect/Warp/IR/Types.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Warp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Warp_Dialect, mnemonic, traits>;

def Warp_KernelOp : Warp_Op<"kernel",
    [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel with its launch facts";
  let description = [{
    Runs on CTAs of `threads` threads with `shared` bytes of dynamic shared
    memory; `min_ctas` of them fit on a multiprocessor, `cluster` of them form a
    cluster. A `persistent` kernel does all its work with any number of CTAs, so
    that no more are launched than run at a time. Arguments are arrays in global memory (memrefs, any strides) and
    scalars. Ops outside roles run in all threads.

    Example:

    ```mlir
    gdn_warp.kernel @scale(%x : memref<?x64xf32>, %s : f32) threads(128) shared(1024) {
      gdn_warp.role "all" warps(0, 4) {
        %c0 = arith.constant 0 : index
        %f = gdn_warp.array_load %x[%c0, %c0] axes [0, 1]
            : memref<?x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
        %b = tensor.splat %s : tensor<64x64xf32, #gdn_warp.fragment>
        %g = arith.mulf %f, %b : tensor<64x64xf32, #gdn_warp.fragment>
        gdn_warp.array_store %g, %x[%c0, %c0] axes [0, 1]
            : tensor<64x64xf32, #gdn_warp.fragment> -> memref<?x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$threads, I64Attr:$shared_bytes,
    DefaultValuedAttr<I64Attr, "1">:$min_ctas, DefaultValuedAttr<I64Attr, "1">:$cluster,
    UnitAttr:$persistent, OptionalAttr<StrArrayAttr>:$arg_names);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments,
    "int64_t":$threads, "int64_t":$shared_bytes, CArg<"int64_t", "1">:$min_ctas,
    CArg<"int64_t", "1">:$cluster)>];
}

def Warp_RoleOp : Warp_Op<"role",
    [SingleBlock, NoTerminator, HasParent<"::mlir::gdn::warp::KernelOp">]> {
  let summary = "What a range of warps does";
  let description = [{
    Warps `first` .. `first` + `count` run the region. `registers` a thread are
    taken or given back (setmaxnreg) by the whole warpgroup: roles that share a
    warpgroup name the same number.

    Example:

    ```mlir
    gdn_warp.role "state" warps(4, 8) registers(168) {
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$first, I64Attr:$count,
    OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` `(` $first `,` $count `)` (`registers` `(` $registers^ `)`)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Warp_IdOp : Warp_Op<"id", [Pure]> {
  let summary = "Number of this thread, lane, warp or CTA";
  let description = [{
    `thread` and `warp` count in the CTA, `lane` in the warp, `cta` of
    `cta_count` in the grid, `cluster_rank` in the cluster. `warp` is known to be
    the same for all lanes.

    Example:

    ```mlir
    %w = gdn_warp.id warp
    ```
  }];
  let arguments = (ins Warp_IdKind:$kind);
  let results = (outs Index:$result);
  let assemblyFormat = "$kind attr-dict";
}

def Warp_SequenceByRankOp : Warp_Op<"sequence_by_rank"> {
  let summary = "Sequence of a rank by length, the longest first";
  let description = [{
    Of the sequences `bounds[n]` to `bounds[n + 1]` the number n of the one that
    `rank` others come before, and its boundaries: longer ones come before, and
    of the same length those before it. CTAs that take sequences in this order
    end together. Among more than 32 sequences (a lane has one) the order does
    not matter: then n is `rank`. Boundaries are below 2^31, as coordinates of
    copies are. All lanes of a warp run it.

    Example:

    ```mlir
    %n, %begin, %end = gdn_warp.sequence_by_rank %cu_seqlens, %rank : memref<?xi32>
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[I32, I64], [1]>, "boundaries", [MemRead]>:$bounds, Index:$rank);
  let results = (outs Index:$sequence, Index:$begin, Index:$end);
  let assemblyFormat = "$bounds `,` $rank attr-dict `:` type($bounds)";
}

def Warp_ElectOp : Warp_Op<"elect"> {
  let summary = "True in one thread of the warp";
  let description = [{
    All lanes of the warp run it.

    Example:

    ```mlir
    %one = gdn_warp.elect
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

def Warp_ShuffleOp : Warp_Op<"shuffle", [AllTypesMatch<["value", "result"]>]> {
  let summary = "A value of another lane of the warp";
  let description = [{
    Lane l reads `value` of lane l - `lane` (`up`), l + `lane` (`down`), l xor
    `lane` or `lane` (`index`); out of the warp, its own. All lanes run it.

    Example:

    ```mlir
    %y = gdn_warp.shuffle up %x, %distance : f32
    ```
  }];
  let arguments = (ins Warp_ShuffleKind:$kind, AnyTypeOf<[F32, I32]>:$value, I32:$lane);
  let results = (outs AnyTypeOf<[F32, I32]>:$result);
  let assemblyFormat = "$kind $value `,` $lane attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Warp_ViewOp : Warp_Op<"view", [Pure]> {
  let summary = "A vector or matrix at a byte offset of shared memory";
  let description = [{
    `offset` bytes from the start of the kernel's shared memory; a multiple of
    1024 if the view is swizzled and of 16 otherwise.

    Example:

    ```mlir
    %k = gdn_warp.view %offset : !gdn_warp.view<32x128xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Index:$offset);
  let results = (outs Warp_ViewType:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Warp_SliceOp : Warp_Op<"slice", [Pure]> {
  let summary = "A rectangle of a matrix in shared memory";
  let description = [{
    Rows from `row` and columns from `column`. In a swizzled view `row` is a
    multiple of 8 and the column's byte one of 32.

    Example:

    ```mlir
    %p = gdn_warp.slice %tile[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128>
        -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
    ```
  }];
  let arguments = (ins Warp_ViewType:$source, I64Attr:$row, I64Attr:$column);
  let results = (outs Warp_ViewType:$result);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Warp_LoadOp : Warp_Op<"load"> {
  let summary = "This thread reads elements of shared memory";
  let description = [{
    One element, or a vector of elements of one row that lie in an aligned run
    of at most 16 bytes.

    Example:

    ```mlir
    %m = gdn_warp.load %view[%i, %j] : !gdn_warp.view<32x40xf16> -> vector<8xf16>
    ```
  }];
  let arguments = (ins Warp_ViewType:$view, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_StoreOp : Warp_Op<"store"> {
  let summary = "This thread writes elements of shared memory";
  let description = [{
    The counterpart of `gdn_warp.load`.

    Example:

    ```mlir
    gdn_warp.store %x, %view[%i] : f32 -> !gdn_warp.view<32xf32>
    ```
  }];
  let arguments = (ins AnyType:$value, Warp_ViewType:$view, Variadic<Index>:$indices);
  let assemblyFormat = "$value `,` $view `[` $indices `]` attr-dict `:` type($value) `->` type($view)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

def Warp_BarrierOp : Warp_Op<"barrier", [Pure]> {
  let summary = "The mbarrier at a byte offset of shared memory";
  let description = [{
    Eight bytes at a multiple of 8.

    Example:

    ```mlir
    %full = gdn_warp.barrier %offset
    ```
  }];
  let arguments = (ins Index:$offset);
  let results = (outs Warp_BarrierType:$result);
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
  let arguments = (ins Warp_BarrierType:$barrier, I64Attr:$count);
  let assemblyFormat = "$barrier `,` $count attr-dict";
}

def Warp_BarrierArriveOp : Warp_Op<"barrier_arrive"> {
  let summary = "This thread arrives";
  let description = [{
    At the barrier of this CTA, with release semantics, or at the same place of
    CTA `rank` of the cluster; as `count` arrivals. In another CTA it is relaxed,
    for a release there waits for all that the thread has written anywhere
    (a microsecond): it says that products have read a place, or counts for
    bytes that are on their way, which arrive by themselves.

    Example:

    ```mlir
    gdn_warp.barrier_arrive %empty
    gdn_warp.barrier_arrive %empty rank(%peer)
    gdn_warp.barrier_arrive %full rank(%peer) count(9)
    ```
  }];
  let arguments = (ins Warp_BarrierType:$barrier, Optional<I32>:$rank, DefaultValuedAttr<I64Attr, "1">:$count);
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
  let arguments = (ins Warp_BarrierType:$barrier, I64Attr:$bytes, Optional<I32>:$rank);
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
  let arguments = (ins Warp_BarrierType:$barrier, I32:$parity, UnitAttr:$cluster);
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
  let arguments = (ins Warp_BarrierType:$barrier, I32:$parity);
  let results = (outs I1:$result);
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
  let arguments = (ins Warp_SyncKind:$kind);
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
  let arguments = (ins I32:$id, I64Attr:$threads);
  let assemblyFormat = "$id `,` $threads attr-dict";
}

def Warp_GridDependencyWaitOp : Warp_Op<"grid_dependency_wait"> {
  let summary = "Wait for the kernel before this one in its stream";
  let description = [{
    A kernel with this op may begin before the one that it follows has ended, and
    lets the next one begin: what stands before the op, and the launch, costs no
    time then. Nothing before it may touch global memory. All threads do it.

    Example:

    ```mlir
    gdn_warp.grid_dependency_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
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
  let arguments = (ins Warp_FenceKind:$kind);
  let assemblyFormat = "$kind attr-dict";
}

include "gdn/Dialect/Warp/IR/FragmentOps.td"
include "gdn/Dialect/Warp/IR/Channels.td"

#endif // GDN_DIALECT_WARP_IR_OPS_TD
