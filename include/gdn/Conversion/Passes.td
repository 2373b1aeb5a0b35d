//===- Passes.td - Conversions between the levels ----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_PASSES_TD
#define GDN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGDNToTilePass : Pass<"convert-gdn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Write the program of every stage op";
  let description = [{
    Each stage op becomes a `gdn_tile.program` and a `gdn_tile.launch` of it: a
    grid of (sequence, value head, V tile), a loop over chunks, tiles. The
    state is S^T (rows V, columns K). Every rounding of the kernel is an
    `arith.truncf` in the program (spec 8). `gdn.convert` becomes a program and
    a launch, too, of stage `convert`.

    With `two-product-chain`, X = (I + Y)^T Kr and R = P (I + Y), Y = -b Bm, are
    made beside the chain and multiply b V - b K S (spec 3.5). They are made from
    f16 operands where the program's have 16 bits: one more product of C x C x K
    and C x C x C a chunk, one of V x C x C less. Its results are closer to exact
    ones where the keys of a chunk are alike and nothing decays, since nothing
    that cancels is rounded (docs/Numerics.md).

    Before:

    ```mlir
    // gdn-opt docs/examples/layer.mlir --gdn-plan-stages
    ... = gdn.stage.fused q(%arg0 ...) k(%arg1 ...) v(%arg2 ...) beta(%arg3 ...) gate(%arg4 ...) {chunk_size = 32 : i64} -> ...
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/layer.mlir --gdn-plan-stages --convert-gdn-to-tile
    gdn_tile.program @layer_fused(%q: ...) outs(%o: ..., %final_state: ...) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) ...
      ... = scf.for %arg0 = %begin to %end step %c32 iter_args(...) -> (tensor<128x128xf32>, f32) {
        ... = gdn_tile.load %k[...
        ... = linalg.contract ... {gdn_tile.step = "scores"} ...
        ... = gdn_tile.tri_inverse ...
        gdn_tile.store ...
    ... = gdn_tile.launch @layer_fused grid(...) tokens(...) ins(...
    ```
  }];
  let dependentDialects = ["::mlir::gdn::tile::TileDialect"];
  let options = [
    Option<"operandType", "operand-type", "std::string", "\"auto\"",
      "Type that product operands are rounded to: bf16, f16, f32, or auto (the type of q, k and v)">,
    Option<"vTiles", "v-tiles", "int64_t", "1",
      "Tiles that the V channels of a head are split into">,
    Option<"clusterHeads", "cluster-heads", "bool", "false",
      "Gradients that carry the state compute the value heads of a group at the same time, in a cluster of a GPU">,
    Option<"workItems", "work-items", "int64_t", "0",
      "Work items that the device computes at a time, by which a call chooses how many share the chunks of gradients; 0: 16 do">,
    Option<"twoProductChain", "two-product-chain", "bool", "false",
      "Fold the solve into the keys and scores: a chunk's state waits for two products instead of three">];
}

def ConvertGDNTileToLinalgPass : Pass<"convert-gdn-tile-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Expand the tile ops for a CPU: programs become functions";
  let description = [{
    Programs become `func.func` on memrefs and work item indices; load, store, scan,
    causal, diagonal, inverse and solve become loops, vector transfers and
    `linalg`. Launches stay: they are bufferized first. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Conversion/TileToLinalg/scan.mlir --split-input-file
    ... = gdn_tile.scan %arg0 axis 0 : tensor<32xf32>
    ```

    After:

    ```mlir
    // gdn-opt test/Conversion/TileToLinalg/scan.mlir --split-input-file --convert-gdn-tile-to-linalg
    ... = scf.for %arg1 = ... iter_args(%arg2 = ..., %arg3 = ...) -> (tensor<32xf32>, f32) {
      ... = tensor.extract %arg0[%arg1] : tensor<32xf32>
      ... = arith.addf %arg3, ... : f32
      ... = tensor.insert ... into %arg2[%arg1] : tensor<32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::vector::VectorDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect"];
}

def OutlineLinalgPass : Pass<"gdn-warp-outline-linalg", "::mlir::ModuleOp"> {
  let summary = "Turn work on whole tensors into programs";
  let description = [{
    The `linalg.generic` ops on the tensors of a function become programs with a
    schedule and launches of them, so that a GPU runs what stands around the
    kernels: norms, chain rules of gates, sums over the heads of a group. On the
    way to a CPU such ops stay.

    An op is elementwise on arrays [B, T, H] or [B, T, H, K], or a sum of f32
    over K or over G of a [B, T, H, G, K] that `tensor.expand_shape` made of
    [B, T, H G, K], or one of f32 or f64 over B and T of [B, T, H]. Inputs may
    also be [B, T, H] beside rows of K, or [H]. The body has ops of `arith` and
    `math`. K is a multiple of 16 up to 128. A `linalg.fill` by a constant that is
    read as an array, as a state of zeros, is elementwise work without inputs.
    The pass refuses other ops, and says what it expected.

    Ops that read the same array, or one what another makes, become one program,
    and so do vectors of the same sizes. The program loads each array once, and
    stores what others read. The launch stands where the last of them stood, so
    nobody else reads a result or overwrites an input before it. A sum over what
    a program loads anyway is repeated there, not read. What is made of sums of
    rows alone is another number a row, which the program of the rows stores.

    A lane has up to 16 bytes of a row, and loads the next chunk of tokens before
    it computes one. Vectors are of 32 heads, 8 tokens a chunk. The call chooses
    how many work items share the tokens: each has up to 4 chunks.

    A sum over tokens takes two programs, and its order is always the same. As
    many work items as a device runs at a time share the tokens. Each adds up its
    chunks and stores a sum, of columns one a column. The second program adds
    these. Both add in f32, also where the op adds in f64, and the elements must
    be f32. An op that rounds the sum is part of the second program.

    Before:

    ```mlir
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = [...]}
        ins(%o : tensor<?x?x?x128xbf16>) outs(%e : tensor<?x?x?x128xbf16>) {
    ^bb0(%x: bf16, %out: bf16):
      %n = arith.negf %x : bf16
      linalg.yield %n : bf16
    } -> tensor<?x?x?x128xbf16>
    ```

    After:

    ```mlir
    gdn_tile.program @layer_map(%x0: memref<?x?x?x128xbf16, ...>, %chunks: index, %parts: index) outs(%y: memref<?x?x?x128xbf16, ...>)
        work_item(%n, %part, %v, %h) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = ...} {
      // %first, %last: the tokens of the part; %count: its chunks
      %0 = gdn_tile.load %x0[%batch, %first, %h, %c0] axes [1, 3] until(%last, dim = 1) ... -> tensor<16x128xbf16>
      scf.for %i = %c0 to %count step %c1 iter_args(%x = %0) {
        // %t = %first + 16 %i
        %1 = gdn_tile.load %x0[%batch, %t + %c16, %h, %c0] axes [1, 3] until(%last, dim = 1) ... -> tensor<16x128xbf16>
        %2 = arith.negf %x : tensor<16x128xbf16>
        gdn_tile.store %2, %y[%batch, %t, %h, %c0] axes [1, 3] until(%last, dim = 1) ...
        scf.yield %1
      }
    }
    %y = gdn_tile.launch @layer_map grid(%b, %parts, %c1, %h) tokens(%t) ins(%o, %chunks, %parts : ...) outs(%e : ...) -> ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::gdn::tile::TileDialect", "::mlir::gdn::warp::WarpDialect"];
}

def VerifyProgramPass : Pass<"gdn-warp-verify-program", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "Check that warpgroups can run a program";
  let description = [{
    Fails where a program asks for what no kernel has: products of other than
    16-bit operands or of other than whole warps' rows, more of a state than the
    registers of a warpgroup hold, reductions to a scalar, scratch memory. The
    message says which layers there are kernels for. Run behind
    `gdn-tile-stack-products` and `gdn-tile-split-rows`. Changes nothing.
  }];
}

def AttachTargetPass : Pass<"gdn-warp-attach-target", "::mlir::ModuleOp"> {
  let summary = "Say which chip programs and kernels are for";
  let description = [{
    Sets `gdn_warp.target` to the chip on every `gdn_tile.program` and
    `gdn_warp.kernel` that has none. The passes behind it take the chip's numbers
    from there.

    ```mlir
    gdn_warp.kernel @k() threads(128) shared(0)
    // chip=sm_90a
    gdn_warp.kernel @k() threads(128) shared(0)
        attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_90a">}
    ```
  }];
  let dependentDialects = ["::mlir::gdn::warp::WarpDialect"];
  let options = [Option<"chip", "chip", "std::string", "std::string(::mlir::gdn::warp::getDefaultArch().chip)",
    "Chip of the table in include/gdn/Dialect/Warp/IR/Arch.h">];
}

def ChooseSchedulePass : Pass<"gdn-warp-choose-schedule", "::mlir::ModuleOp"> {
  let summary = "Give every program a schedule";
  let description = [{
    Sets `gdn_warp.schedule` on programs that have none. `cta_per_head` gives all V tiles
    of a head to one CTA, which prepares its chunks once; `cta_per_v_tile` gives each V
    tile a CTA. Two such CTAs are a cluster, each of which prepares every other
    iteration for both, except with l2norm. `auto` takes what the cost model predicts to be faster
    (include/gdn/CostModel/CostModel.h), from what of the launch is constant and
    from the options. What neither says is taken for many long sequences, of
    equal length unless there are two. A program without a launch and a schedule
    is erased: nobody uses its results.

    Before:

    ```mlir
    // gdn-opt docs/examples/layer.mlir --gdn-plan-stages --convert-gdn-to-tile=v-tiles=2 --gdn-tile-stack-products --gdn-tile-unroll-chunks
    gdn_tile.program @layer_fused(... tokens(%batch, %begin, %end) attributes {gdn_tile.stage = "fused"} {
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/layer.mlir --gdn-plan-stages --convert-gdn-to-tile=v-tiles=2 --gdn-tile-stack-products --gdn-tile-unroll-chunks --gdn-warp-choose-schedule=schedule=cta_per_head
    gdn_tile.program @layer_fused(... attributes {gdn_tile.stage = "fused", gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 2, persistent = true, roles = [<name = "scores", warps = 4, ...
    ```
  }];
  let dependentDialects = ["::mlir::gdn::warp::WarpDialect"];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"auto\"",
      "auto, cta_per_head, cta_per_v_tile, or another schedule or template that there is">,
    Option<"scheduleFile", "schedule-file", "std::string", "\"\"",
      "File of schedule templates that are tried before the project's own">,
    Option<"sequences", "sequences", "int64_t", "0",
      "Number of sequences where the module does not say; 0 is many">,
    Option<"tokens", "tokens", "int64_t", "0",
      "Tokens (T) where the module does not say; 0 is many">,
    Option<"longest", "longest", "int64_t", "0",
      "Tokens of the longest of packed sequences; 0 is unknown">];
  let statistics = [
    Statistic<"numFitted", "schedules", "Number of schedules that were fitted from templates">];
}

def UnrollChunksPass : Pass<"gdn-tile-unroll-chunks", "::mlir::gdn::tile::ProgramOp"> {
  let summary = "Several chunks an iteration through a program's loop";
  let description = [{
    An iteration of each loop of the program takes as many chunks as the program's
    schedule says, or `factor` where it has none. Each op gets the number of its chunk
    in `gdn_tile.chunk`. Loops whose ops have numbers stay as they are. Numerics
    unchanged.

    The last iteration may have chunks past the loop's last one. In a loop whose
    accesses all end, by `until`, where the loop does, they read zeros and store
    nothing, and what such a loop carries stays as it is if the loop has
    `gdn_tile.neutral_past_end`. Everything else gets guards: accesses of those chunks
    are moved to the loop's first chunk, their stores stand in an `scf.if`, and an
    `arith.select` keeps carried values. Loops with a known number of whole iterations
    need none. A loop with `gdn_tile.neutral_before_first` begins earlier instead, so
    that its last iteration is whole.

    An `scf.if` with `gdn_tile.every` is done in every n-th chunk. Where an iteration has
    n chunks, its first chunk does it without a condition, and the others have none of it.

    Before:

    ```mlir
    // gdn-opt test/Conversion/TileToWarp/unroll-chunks.mlir --split-input-file
    ... = scf.for %arg0 = %begin to %end step %c32 iter_args(%arg1 = ...) -> (tensor<32xf32>) {
      ... = gdn_tile.load %x[%batch, %arg0, %h] axes [1] until(%end, dim = 1) ...
      ... = arith.addf %arg1, ...
    ```

    After:

    ```mlir
    // gdn-opt test/Conversion/TileToWarp/unroll-chunks.mlir --split-input-file --gdn-tile-unroll-chunks
    ... = scf.for %arg0 = %begin to %end step ... iter_args(%arg1 = ...) -> (tensor<32xf32>) {
      ... = gdn_tile.load %x[%batch, ..., %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0 : i64, ...
      ... = arith.addf %arg1, ... {gdn_tile.chunk = 0 : i64, ...
      ... = gdn_tile.load %x[%batch, ..., %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1 : i64, ...
      ... = arith.addf ... {gdn_tile.chunk = 1 : i64, ...
    ```
  }];
  let options = [Option<"factor", "factor", "int64_t", "2", "Chunks an iteration, 1 to 64">];
}

def PartitionPass : Pass<"gdn-warp-partition", "::mlir::ModuleOp"> {
  let summary = "Programs with a schedule become kernels of roles";
  let description = [{
    Each role of the schedule gets a copy of the program with the ops of its
    steps; constants, index and scalar arithmetic and widening are copied where
    they are used. A value that one role makes and another takes goes through a
    channel of the schedule (`gdn_warp.put`, `gdn_warp.get`), or through several
    if no channel reaches every consumer. What a branch makes goes there inside, on both sides. V tiles that share a CTA become warpgroups in
    roles with `warpgroup_per_v_tile`, and copies of the ops in other roles. A role with
    `alternate_ctas` has a branch: a CTA runs the ops for iterations of its own and copies
    the results to the others (`gdn_warp.copy_to_cluster`), and lets the slots of their
    iterations pass (`gdn_warp.release_unused`). The kernel's arguments are the program's
    arrays, then `tokens` (i64), then `cu_seqlens` if the launch has it; its grid
    has one CTA per work item, V tiles next to each other, then heads. In a work item's last
    iteration, a role with delayed steps prefetches the next work item's initial tiles
    into L2 (`gdn_warp.prefetch`). With `min_ctas` above 1, a role that loads initial tiles
    of contiguous rows itself prefetches, behind these loads, those of the work item that
    comes when all CTAs of the multiprocessor are done.

    Fails where a program has not exactly one launch, where the tokens of the
    launch are not the extent at which its arrays end, and where the schedule does
    not fit the program: where delayed and other steps of a role exchange
    values or use one channel alike, or where the slots on the way from a role
    back to its delayed steps are too few for `delay` + 1 iterations (the roles would
    deadlock).

    Before:

    ```mlir
    // gdn-opt docs/examples/double.mlir
    gdn_tile.program @double(...) outs(...) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) ...
      scf.for %arg0 = %begin to %end step %c64 {
        ... = gdn_tile.load %x[...
        ... = arith.addf ... {gdn_tile.step = "state"} : tensor<64x64xf32>
        gdn_tile.store ...
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse
    gdn_warp.kernel @double(...) threads(256) ...
      %7 = gdn_warp.channel "in" depth(3) : <tensor<64x64xbf16>>
      %8 = gdn_warp.channel "out" depth(3) : <tensor<64x64xbf16>>
      gdn_warp.role "double" warps(0, 4) registers(160) {
        ... = gdn_warp.get %7[0] at ... : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
        ... = arith.addf ... {gdn_tile.step = "state"} : tensor<64x64xf32>
        gdn_warp.put ..., %8[0] at ... : ...
      gdn_warp.role "load" warps(4, 2) registers(96) ...
        ... = gdn_tile.load %x[...
        gdn_warp.put ..., %7[0] at ... : ...
      gdn_warp.role "store" warps(6, 2) registers(96) ...
        ... = gdn_warp.get %8[0] at ... : ...
        gdn_tile.store ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::gdn::warp::WarpDialect"];
  let statistics = [
    Statistic<"numCrossing", "crossing", "Number of values that cross between roles">,
    Statistic<"numChannels", "channels", "Number of channels of the kernels">];
}

def InferLayoutsPass : Pass<"gdn-warp-infer-layouts", "::mlir::gdn::warp::KernelOp"> {
  let summary = "Say where the values of every role live";
  let description = [{
    Tiles of a role of warpgroups become fragments, those of one of single warps
    vectors over lanes; fields of channels become views. Products, loads, stores,
    triangles and solves become the ops of `gdn_warp`. A tile of fewer rows than
    a fragment lies in some of its rows: the others hold what nobody reads.
    A kernel that has layouts stays as it is.

    Before:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse
    ... = gdn_warp.get %7[0] at ... : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    ... = arith.extf ... : tensor<64x64xbf16> to tensor<64x64xf32>
    ... = gdn_tile.load %x[...
    gdn_warp.put ..., %7[0] at ... : ...
    ```

    After:

    ```mlir
    // gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse --gdn-warp-infer-layouts --cse
    ... = gdn_warp.slot get %7[0] at ... : ... -> <64x64xbf16, swizzle = 128>
    ... = gdn_warp.fragment_load ... -> tensor<64x64xbf16, #gdn_warp.fragment>
    ... = arith.extf ... : tensor<64x64xbf16, #gdn_warp.fragment> to tensor<64x64xf32, #gdn_warp.fragment>
    ... = gdn_warp.slot put %7[0] at ... : ... -> <64x64xbf16, swizzle = 128>
    gdn_warp.tma_load %x[...
    ```
  }];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFragments", "fragments", "Number of values that lie in registers as fragments">,
    Statistic<"numVectors", "vectors", "Number of values that lie in registers as vectors">];
}

def ConvertGDNWarpToNVVMPass : Pass<"convert-gdn-warp-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Write the instructions of every kernel";
  let description = [{
    Kernels of the explicit form become `llvm.func` kernels that hold `nvvm`,
    `llvm`, `scf`, `arith` and `vector`; a register tile is the vector of the
    elements that a thread holds. Roles become branches, products wgmma, copies
    tensor-map copies, whose maps become arguments by value. `gdn_warp.launch`
    on the function tells the host how to launch it. exp and log become the
    approximate instructions of base 2; other numerics are unchanged.

    Before:

    ```mlir
    // gdn-opt test/Conversion/WarpToNVVM/synchronisation.mlir --split-input-file
    gdn_warp.barrier_arrive ...
    ```

    After:

    ```mlir
    // gdn-opt test/Conversion/WarpToNVVM/synchronisation.mlir --split-input-file --convert-gdn-warp-to-nvvm
    nvvm.mbarrier.arrive...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // GDN_CONVERSION_PASSES_TD
