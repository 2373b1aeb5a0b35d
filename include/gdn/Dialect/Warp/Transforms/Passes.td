//===- Passes.td - Passes of the gdn_warp dialect ----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD

include "gdn/Dialect/Warp/Transforms/LoopPasses.td"

def VerifyExplicitFormPass : Pass<"gdn-warp-verify-explicit-form", "::mlir::ModuleOp"> {
  let summary = "Check that kernels fit the chip";
  let description = [{
    Fails where a kernel asks for more shared memory than a CTA can have or a
    view or barrier lies outside what it asks for, where roles overlap, leave
    the CTA, share a warpgroup with different register numbers, or where their
    registers exceed those of the launch. Changes nothing.
  }];
}

def PrefetchLoadsPass : Pass<"gdn-warp-prefetch-loads", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Load vectors over lanes some iterations before they are used";
  let description = [{
    In a role of the schedule with `prefetch_distance` = n, a vector that an iteration loads from
    an array is loaded n iterations earlier and carried in registers, so that no role
    waits for memory. Loads of iterations past the end are cut by their ends, where the
    loop has `gdn_warp.cut_past_end`, or end where they begin. If the loop's bounds are
    constants, loads without an end come earlier, too: past the last iteration its values
    are loaded again. A loop that does not count by ones stays as it is. The loop asks for n
    bodies (`gdn_warp.unroll`), so that no register moves.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/prefetch-loads.mlir --split-input-file
    scf.for %arg0 = %c0 to ... step %c1 {
      ... = gdn_warp.array_load %x[...
      gdn_warp.array_store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/prefetch-loads.mlir --split-input-file --gdn-warp-prefetch-loads
    ... = gdn_warp.array_load %x[...
    ... = gdn_warp.array_load %x[...
    ...:2 = scf.for %arg0 = %c0 to ... step %c1 iter_args(%arg1 = ..., %arg2 = ...) -> ... {
      ... = gdn_warp.array_load %x[...
      gdn_warp.array_store %arg1, %y[...
      scf.yield %arg2, ...
    } {gdn_warp.cut_past_end, gdn_warp.unroll = 2 : i64}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def DelayConversionsPass : Pass<"gdn-warp-delay-conversions", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Convert what a loop begins with in its first iteration";
  let description = [{
    A tile over lanes that is loaded and converted before a loop is converted in front of the
    first op of the loop that takes it. A conversion waits for its load; what the
    iteration loads and computes before it does not.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/delay-conversions.mlir --split-input-file
    ... = arith.extf ...
    ... = scf.for %arg0 = %c0 to ... step %c1 iter_args(%arg1 = ...) -> ... {
      ... = gdn_warp.array_load %k[...
      ... = arith.mulf %arg1, ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/delay-conversions.mlir --split-input-file --gdn-warp-delay-conversions
    ... = scf.if ... -> ... {
      ...:2 = scf.for %arg0 = %c0 to ... step %c1 iter_args(%arg1 = ..., %arg2 = ...) -> ... {
        ... = gdn_warp.array_load %k[...
        ... = arith.cmpi eq, %arg0, %c0 : index
        ... = scf.if ... -> ... {
          ... = arith.extf %arg2 ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"];
}

def HoistScalarsPass : Pass<"gdn-warp-hoist-scalars", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Load the scalars of a slot together";
  let description = [{
    A scalar that is loaded from a slot, such as what decides a branch of a later
    chunk of the iteration, is loaded behind the first one that is loaded from the same
    slot in the same block, so that no role waits for it between two chunks.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/hoist-scalars.mlir --split-input-file
    ... = gdn_warp.load ... : <1xf32> -> f32
    gdn_warp.fence async
    ... = gdn_warp.slot get ...[2] at %arg0 : ...
    ... = gdn_warp.load ... : <1xf32> -> f32
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/hoist-scalars.mlir --split-input-file --gdn-warp-hoist-scalars
    ... = gdn_warp.load ... : <1xf32> -> f32
    ... = gdn_warp.slot get ...[2] at %arg0 : ...
    ... = gdn_warp.load ... : <1xf32> -> f32
    gdn_warp.fence async
    ```
  }];
}

def SinkStoresPass : Pass<"gdn-warp-sink-stores", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Store to slots where values are made, take slots where they are used";
  let description = [{
    A channel that only the two sides of a branch read or fill is taken there, at the first use. The result of
    a branch is stored in the branch, right behind what makes it. If only some rows of a value are stored, the
    warps that hold these rows make it; the same holds for values made of a fragment's diagonal. If warpgroups
    of a role take turns, vectors are stored where the first tile of their slot is.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/sink-stores.mlir --split-input-file
    ... = scf.if ... -> (tensor<64x64xf32, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment>) {
      ... = arith.truncf ...
    } else {
      ... = arith.truncf ...
    ... = gdn_warp.slot put ...[0] at %c0 : ...
    gdn_warp.fragment_store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/sink-stores.mlir --split-input-file --gdn-warp-sink-stores
    ... = scf.if ... -> (tensor<64x64xf32, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment>) {
      ... = arith.truncf ...
      ... = gdn_warp.slot put ...[0] at %c0 : ...
      gdn_warp.fragment_store ...
    } else {
      ... = arith.truncf ...
      ... = gdn_warp.slot put ...[0] at %c0 : ...
      gdn_warp.fragment_store ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MergeBranchesPass : Pass<"gdn-warp-merge-branches"> {
  let summary = "Make branches on one condition one";
  let description = [{
    Two `scf.if` without results, on the same condition and with nothing between
    them but ops without effects, become one, and those ops stand before it: the
    copies of a slot are then begun by one elected thread in one branch.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-branches.mlir --split-input-file
    scf.if %arg0 {
      memref.store %arg1, ...
    }
    ... = arith.addi %arg1, %arg1 : i32
    scf.if %arg0 {
      memref.store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-branches.mlir --split-input-file --gdn-warp-merge-branches
    ... = arith.addi %arg1, %arg1 : i32
    scf.if %arg0 {
      memref.store %arg1, ...
      memref.store ...
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def MergeKernelsPass : Pass<"gdn-warp-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "Make one kernel of kernels that differ in their names alone";
  let description = [{
    Functions that make the same launch then share its kernel, the first one, which is lowered and loaded once.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-kernels.mlir
    gdn_warp.kernel @second_cut
    ... gdn_tile.launch @second_cut
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/merge-kernels.mlir --gdn-warp-merge-kernels
    ... gdn_tile.launch @first_cut
    ```
  }];
}

include "gdn/Dialect/Warp/Transforms/CopiesOfCode.td"

def GroupProductsPass : Pass<"gdn-warp-group-products", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Begin, group and wait for products";
  let description = [{
    Each product becomes a group of its own, begun where it stands, or behind the
    product before it if it takes only what lies in shared memory. A wait stands
    before the first op that reads a product's result, and leaves the groups
    begun later on their way; at the end of a block nothing is on its way. What an
    iteration reads of the products of the iteration before, it reads before it begins
    products of its own, or when they have ended. A product gets a copy of a sum that
    other ops read later. A load
    under a product, of a fragment or of a vector that is multiplied before the wait
    and whose slot has been waited for, moves to before what makes the product's left
    operand, for a warp that waits for a load begins no product.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/group-products.mlir --split-input-file
    %1 = gdn_warp.wgmma %0, %0 : ...
    %2 = arith.negf %1 : tensor<64x64xf32, #gdn_warp.fragment>
    %3 = gdn_warp.wgmma %0, %0 : ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/group-products.mlir --split-input-file --gdn-warp-group-products
    gdn_warp.wgmma_fence
    %1 = gdn_warp.wgmma %0, %0 : ...
    gdn_warp.wgmma_commit
    %2 = gdn_warp.wgmma %0, %0 : ...
    gdn_warp.wgmma_commit
    %3 = gdn_warp.wgmma_wait 1 of %1 : tensor<64x64xf32, #gdn_warp.fragment>
    %4 = arith.negf %3 : tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_wait 0
    ```

    With `serial` each product is `alone` instead: it begins when all before it is done,
    and ends before what follows begins. That is slower, and code of which ptxas can always
    tell which registers a product uses (no remark C75xx).
  }];
  let options = [Option<"serial", "serial", "bool", "false",
                        "Let each product begin and end by itself">];
}

def InsertFencesPass : Pass<"gdn-warp-insert-fences", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Order stores to slots before products and copies that read them";
  let description = [{
    Products and tensor-map copies read shared memory through the async proxy.
    Behind a block's last store to fields of a slot that products read, or that go to
    other CTAs (`gdn_warp.copy_to_cluster`), stands `gdn_warp.fence async`; where copies to
    memory alone read, it stands before the first copy out of a slot, in the warp that has
    waited for the stores. An arrival does not order a thread's loads before copies into the
    slot either: a fence stands behind the last load of a visit to a slot that copies fill,
    unless a product takes what was loaded, for it begins when the registers are there.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/insert-fences.mlir --split-input-file
    ... = gdn_warp.slot get ...[0] at %c0 : ...
    gdn_warp.tma_store ...
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Warp/Transforms/insert-fences.mlir --split-input-file --gdn-warp-insert-fences
    ... = gdn_warp.slot get ...[0] at %c0 : ...
    gdn_warp.fence async
    gdn_warp.tma_store ...
    ```
  }];
}

def VerifyChannelsPass : Pass<"gdn-warp-verify-channels", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Check that slots are handed over right";
  let description = [{
    Fails where stores to slots that products or other CTAs read have no
    `gdn_warp.fence async` directly behind the last one, where their role arrives,
    and slots that others stored in none before they are copied out, where a field
    is taken that nobody fills, where a role fills or takes slots of
    a channel on one side of a branch alone (who waits for the slot would wait
    for ever), and where anything but a product takes from slots that CTAs fill
    for each other. Runs the waits and arrivals of all roles for a work item of many
    iterations, where it knows the control flow and there is no cluster, and fails
    where no role can go on. Changes nothing. A channel that nobody fills or takes is
    refused by `gdn-warp-lower-channels`, which counts arrivals.
  }];
}

def AllocateSharedPass : Pass<"gdn-warp-allocate-shared", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Place slots and barriers in shared memory";
  let description = [{
    Gives every channel its offset, the places of its fields and of its barriers,
    and the kernel its bytes of shared memory. Fails where they do not fit, and
    says by how much.

    Before:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse --gdn-warp-infer-layouts --cse --gdn-warp-sink-stores --canonicalize --gdn-warp-group-products --gdn-warp-insert-fences
    gdn_warp.kernel @double(...) threads(256) shared(0) ...
      ... = gdn_warp.channel "in" depth(3) : <!gdn_warp.view<64x64xbf16, swizzle = 128>>
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse --gdn-warp-infer-layouts --cse --gdn-warp-sink-stores --canonicalize --gdn-warp-group-products --gdn-warp-insert-fences --gdn-warp-allocate-shared
    gdn_warp.kernel @double(...) threads(256) shared(49248) ...
      ... = gdn_warp.channel "in" depth(3) {barriers = 49152 : i64, offset = 0 : i64, places = array<i64: 0>, slot_bytes = 8192 : i64} : ...
    ```
  }];
  let statistics = [
    Statistic<"numBytes", "bytes", "Bytes of shared memory of all kernels">];
}

def LowerChannelsPass : Pass<"gdn-warp-lower-channels", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Slots become views, full and empty barriers and their phases";
  let description = [{
    Iteration t uses slot t mod depth for the (t / depth)-th time. In each block the
    first `put` of a channel waits for its empty barrier and the last use of one
    arrives at the full one, by one lane of every warp; `get` the other way
    round, where what a product reads is in use until its group is awaited.
    Copies into a slot arrive with their bytes. Of a channel that the CTAs of a
    cluster fill in turn, the consumers of all CTAs arrive at the empty barrier of
    the one that fills, and its copies to the others count for their fillers.
    Such a kernel begins and ends with a sync of the cluster. The lane that arrives does so
    behind a sync of its warp, which orders what the others did; tools that look
    for races follow each thread's own arrivals alone, and for them `lanes-arrive`
    lets every lane arrive.

    Before:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse --gdn-warp-infer-layouts --cse --gdn-warp-sink-stores --canonicalize --gdn-warp-group-products --gdn-warp-insert-fences --gdn-warp-allocate-shared
    ... = gdn_warp.slot get ...[0] at ... : ...
    ... = gdn_warp.fragment_load ...
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse --gdn-warp-infer-layouts --cse --gdn-warp-sink-stores --canonicalize --gdn-warp-group-products --gdn-warp-insert-fences --gdn-warp-allocate-shared --gdn-warp-lower-channels --canonicalize --cse
    gdn_warp.barrier_wait ...
    ... = gdn_warp.view ... : <64x64xbf16, swizzle = 128>
    ... = gdn_warp.fragment_load ...
    gdn_warp.sync warp
    scf.if ... {
      gdn_warp.barrier_arrive ...
    ```
  }];
  let options = [Option<"lanesArrive", "lanes-arrive", "bool", "false",
    "Every lane arrives for itself: slower, for tools that look for races">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def LowerPublishPass : Pass<"gdn-warp-lower-publish", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Published fragments become stores between two waits";
  let description = [{
    A `gdn_warp.publish`, which has its place from `gdn-warp-allocate-shared`, becomes a view of it; a wait of
    its four warps for each other, since a product of the last time may still read the place; the stores; a
    fence, since products read through another path than threads write; and a second wait. A `gdn_warp.share`
    becomes the fence and one wait. Tiles that follow each other have one fence and wait together, behind the last
    of them, unless something takes one of them before.

    ```mlir
    %b = gdn_warp.publish %m {gdn_warp.scratch = array<i64: 0, 16384>}
        : tensor<64x128xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
    ```
    becomes
    ```mlir
    %b = gdn_warp.view %offset : !gdn_warp.view<64x128xbf16, swizzle = 128>
    gdn_warp.sync_group %id, 128
    gdn_warp.fragment_store %m, %b
        : tensor<64x128xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
    gdn_warp.fence async
    gdn_warp.sync_group %id, 128
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD
