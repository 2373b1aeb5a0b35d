//===- Passes.td - Tile programs for a CPU -----------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_TD
#define GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def LaunchToParallelPass : Pass<"gdn-tile-launch-to-parallel", "::mlir::ModuleOp"> {
  let summary = "Run the work items of launches in a parallel loop";
  let description = [{
    A launch on memrefs becomes an `scf.parallel` over its grid that calls the
    function that its program became (`convert-gdn-tile-to-linalg`). Wrong
    boundaries make sequences by the rule of `gdn_tile.launch`: they lie inside
    the arrays and share no token. Numerics unchanged.

    ```mlir
    gdn_tile.launch @f grid(%n, %h, %p) tokens(%t) ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
    ```
    becomes
    ```mlir
    scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%n, %h, %p) step (%c1, %c1, %c1) {
      func.call @f(%x, %y, %i, %j, %k, %i, %c0, %t) : (...) -> ()
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PrepareBufferizationPass : Pass<"gdn-tile-prepare-bufferization", "::mlir::ModuleOp"> {
  let summary = "State what one-shot bufferization cannot know";
  let description = [{
    Arguments of public functions belong to the caller and are marked read-only,
    unless the function says `bufferization.writable` of them; public functions
    get a C interface. In the functions that programs became,
    every tile that a loop carries stays in one buffer: what the loop yields is
    written into the buffer of its argument, which is no copy where it is there
    already. Rows of a tensor.expand_shape into two open sizes are copied, which is more than
    its lowering to memrefs can do. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/prepare-bufferization.mlir --split-input-file
    func.func @interface(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/prepare-bufferization.mlir --split-input-file --gdn-tile-prepare-bufferization
    func.func @interface(%arg0: tensor<8xf32> {bufferization.writable = false}) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def OrderConstantsPass : Pass<"gdn-tile-order-constants", "::mlir::ModuleOp"> {
  let summary = "Put constant arrays into the order of their first uses";
  let description = [{
    Bufferization makes the arrays of constants function by function, in an order that
    follows the addresses of the functions in the compiler's memory. So the same
    layer had objects of different bytes. Private constants are moved to the
    front of the module, in the order in which functions use them first, and get
    names by that order. Constants that nobody uses stay where they are. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/order-constants.mlir
    memref.global "private" constant @__constant_4xf32_0 : memref<4xf32> = dense<2.000000e+00>
    memref.global "private" constant @__constant_4xf32 : memref<4xf32> = dense<1.000000e+00>
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/order-constants.mlir --gdn-tile-order-constants
    memref.global "private" constant @__constant_0 : memref<4xf32> = dense<1.000000e+00>
    memref.global "private" constant @__constant_1 : memref<4xf32> = dense<2.000000e+00>
    ```
  }];
}

def ExpandCopiesPass : Pass<"gdn-tile-expand-copies"> {
  let summary = "Copies between strided buffers become linalg";
  let description = [{
    A `memref.copy` whose sides are not both dense becomes `linalg.copy`, which
    vectorises; upstream lowers it to a call of its runtime library, element by
    element. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/buffers.mlir
    memref.copy %arg0, %arg2 : memref<8x8xf32> to memref<8x8xf32, strided<[16, 1]>>
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/buffers.mlir --gdn-tile-expand-copies
    linalg.copy ins(%arg0 : memref<8x8xf32>) outs(%arg2 : memref<8x8xf32, strided<[16, 1]>>)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def PackProductsPass : Pass<"gdn-tile-pack-products", "::mlir::func::FuncOp"> {
  let summary = "Widen and transpose the operands of products for a CPU";
  let description = [{
    In the functions that programs became, 16-bit operands of `linalg.contract`
    are widened to f32 (their products are exact in f32, so numerics are
    unchanged), and the operand that holds the result's innermost dimension gets
    it innermost, by an explicit `linalg.transpose` beside its definition, which
    all products share. Transposes themselves move to f32.

    ```mlir
    %c = linalg.contract indexing_maps = [(m,n,k)->(m,k), (m,n,k)->(n,k), (m,n,k)->(m,n)]
        ins(%a, %b : tensor<64x128xbf16>, tensor<32x128xbf16>) outs(%z : tensor<64x32xf32>)
    ```
    becomes
    ```mlir
    %a32 = arith.extf %a ...
    %b32 = arith.extf %b ...
    %bt = linalg.transpose ins(%b32) outs(%e : tensor<128x32xf32>) permutation = [1, 0]
    %c = linalg.contract indexing_maps = [(m,n,k)->(m,k), (m,n,k)->(k,n), (m,n,k)->(m,n)]
        ins(%a32, %bt : tensor<64x128xf32>, tensor<128x32xf32>) outs(%z : tensor<64x32xf32>)
    ```

    With `bf16-dot` products of bf16 matrices keep their operands, in pairs
    along the sum: left [m, k/2, 2], right [k/2, n, 2], for x86's vdpbf16ps. It
    rounds the sum of a pair differently from two fma, to f32 all the same.
  }];
  let options = [
    Option<"bf16Dot", "bf16-dot", "bool", "false",
      "Keep bf16 operands, in pairs along the sum, for an instruction that multiplies pairs">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def FuseElementwisePass : Pass<"gdn-tile-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Elementwise work on tensors in as few loops as possible";
  let description = [{
    `arith` and `math` on tensors, broadcasts and reductions become
    `linalg.generic`, which are fused where the producer has one use. Tiles that
    are written over from a constant get a `linalg.fill` of their own beside the
    writer. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/fuse-elementwise.mlir --split-input-file
    %broadcasted = linalg.broadcast ins(%arg1 : tensor<32xf32>) outs(...
    ... = arith.mulf %arg0, %broadcasted : tensor<4x32xf32>
    ... = arith.truncf ... : tensor<4x32xf32> to tensor<4x32xbf16>
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/fuse-elementwise.mlir --split-input-file --gdn-tile-fuse-elementwise
    ... = linalg.generic {indexing_maps = [#map, #map1, #map], ...} ins(%arg0, %arg1 : ...
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      ... = arith.mulf %in, %in_0 : f32
      ... = arith.truncf ... : f32 to bf16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def HoistBuffersPass : Pass<"gdn-tile-hoist-buffers", "::mlir::func::FuncOp"> {
  let summary = "Allocate the tile buffers of a program once a work item";
  let description = [{
    In the functions that programs became, every `memref.alloc` of static shape
    moves to the start of the function, unless a loop carries the buffer from
    iteration to iteration. Every `memref.dealloc` is dropped: the upstream pipeline for
    deallocation, which must follow, places them. Numerics unchanged.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/buffers.mlir
    ... = scf.for ... iter_args(%arg4 = %arg1) -> (memref<4xf32>) {
      %alloc = memref.alloc() : memref<8xf32>
      %alloc_0 = memref.alloc() : memref<4xf32>
      memref.dealloc %alloc : memref<8xf32>
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/buffers.mlir --gdn-tile-hoist-buffers
    %alloc = memref.alloc() : memref<8xf32>
    ... = scf.for ... iter_args(%arg4 = %arg1) -> (memref<4xf32>) {
      %alloc_0 = memref.alloc() : memref<4xf32>
    ```
  }];
}

def VectorizePass : Pass<"gdn-tile-vectorize", "::mlir::func::FuncOp"> {
  let summary = "Tile and vectorise the linalg of programs for a CPU";
  let description = [{
    In the functions that programs became, products become loops of fused
    multiply-adds whose accumulators stay in registers over the whole k loop,
    with register tiles from CPUArch.h; transposes go by squares of one register;
    all else by rows. What fits none of these becomes loops over elements.

    Products of bf16 pairs (`bf16-dot` of `gdn-tile-pack-products`) are made by
    x86's vdpbf16ps; with `amx` those of m a multiple of 16, n of 16 and k of 16
    by tile registers, 2 x 2 tiles of sums at a time, 32 of k a product:
    ```mlir
    linalg.contract ... ins(%a, %b : memref<128x64x2xbf16>, memref<64x32x2xbf16>) outs(%c : memref<128x32xf32>)
    ```
    becomes a loop over 32 rows of
    ```mlir
    %s = amx.tile_load %c[%i, %j] : memref<128x32xf32> into !amx.tile<16x16xf32>
    %l = amx.tile_load %a2[%i, %c0] : memref<128x128xbf16> into !amx.tile<16x32xbf16>
    %r = amx.tile_load %b2[%c0, %j2] : memref<64x64xbf16> into !amx.tile<16x32xbf16>
    %p = amx.tile_mulf %l, %r, %s : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    ...
    amx.tile_store %c[%i, %j], %p : memref<128x32xf32>, !amx.tile<16x16xf32>
    ```

    Numerics: sums inside a product or reduction are taken in an order of the
    pass's choice, the same on every run.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "0",
      "Width of the target's vector registers in bits: 128, 256, 512, or 0 for that of the host">,
    Option<"amx", "amx", "bool", "false",
      "Multiply pairs of bf16 by the target's tile registers">];
  let dependentDialects = ["::mlir::amx::AMXDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def ApproximateMathPass : Pass<"gdn-tile-approximate-math"> {
  let summary = "Exponentials and logarithms of f32 as polynomials";
  let description = [{
    `math.exp`, `exp2`, `log`, `log2` and `log1p` of f32 and vectors of it become
    arithmetic that stays in vector registers. Numerics: relative error about
    1e-7; exp2(-inf) = 0, exp2(inf) = inf, exact for integers, NaN stays NaN.
    The argument of a logarithm below 2^-126 counts as 2^-126.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/approximate-math.mlir
    ... = math.exp2 %arg0 : vector<8xf32>
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/approximate-math.mlir --gdn-tile-approximate-math
    ... = math.fma ... : vector<8xf32>
    ... = arith.shli ... : vector<8xi32>
    ... = arith.bitcast ... : vector<8xi32> to vector<8xf32>
    ... = arith.mulf ... : vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def ScheduleWorkItemsPass : Pass<"gdn-tile-schedule-work-items"> {
  let summary = "Threads take the work items of a launch as they become free";
  let description = [{
    Gives every `omp.wsloop` a dynamic schedule: sequences differ in length, so
    equal numbers of work items are not equal work. Results do not depend on which
    thread computes a work item.

    Before:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/schedule-work-items.mlir
    omp.wsloop {
    ```

    After:

    ```mlir
    // gdn-opt test/Dialect/Tile/Transforms/CPU/schedule-work-items.mlir --gdn-tile-schedule-work-items
    omp.wsloop schedule(dynamic) {
    ```
  }];
  let dependentDialects = ["::mlir::omp::OpenMPDialect"];
}

#endif // GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_TD
