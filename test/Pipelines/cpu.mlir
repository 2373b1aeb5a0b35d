// RUN: gdn-opt %s --gdn-tile-to-llvm | FileCheck %s
// RUN: gdn-opt %s --gdn-tile-to-llvm=parallel=false | FileCheck %s --check-prefix=SERIAL
// RUN: gdn-compile %gdn_src/docs/examples/layer.mlir --emit=obj -o %t.o
// RUN: llvm-nm --undefined-only %t.o | FileCheck %s --check-prefix=SYMBOLS

// A program and its launch all the way: a public function has a C interface, the
// work items are shared out as threads become free, and no op of another level is
// left.
// CHECK-NOT: {{(gdn_tile|linalg|memref|vector|scf|arith|func)\.}}
// CHECK-DAG: llvm.func @_mlir_ciface_scale(
// CHECK-DAG: omp.wsloop schedule({{.*}}dynamic
// CHECK-DAG: llvm.func @p(

// SERIAL-NOT: omp.

// Nothing but libc and LLVM's OpenMP runtime is linked against: no library of
// MLIR's, no conversion of bf16.
// SYMBOLS-DAG: __kmpc_fork_call
// SYMBOLS-DAG: malloc
// SYMBOLS-NOT: memrefCopy
// SYMBOLS-NOT: bf
gdn_tile.program @p(%x : memref<?x16xbf16, strided<[?, 1], offset: ?>>)
    outs(%y : memref<?x16xbf16, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %two = arith.constant dense<2.0> : tensor<8x16xf32>
  scf.for %t = %begin to %end step %c8 {
    %tile = gdn_tile.load %x[%t, %c0] axes [0, 1] until(%end, dim = 0)
        : memref<?x16xbf16, strided<[?, 1], offset: ?>> -> tensor<8x16xbf16>
    %wide = arith.extf %tile : tensor<8x16xbf16> to tensor<8x16xf32>
    %exp = math.exp2 %wide : tensor<8x16xf32>
    %double = arith.mulf %exp, %two : tensor<8x16xf32>
    %narrow = arith.truncf %double : tensor<8x16xf32> to tensor<8x16xbf16>
    gdn_tile.store %narrow, %y[%t, %c0] axes [0, 1] until(%end, dim = 0)
        : tensor<8x16xbf16> -> memref<?x16xbf16, strided<[?, 1], offset: ?>>
  }
}
func.func @scale(%x : tensor<?x16xbf16>, %heads : index) -> tensor<?x16xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c0 : tensor<?x16xbf16>
  %e = tensor.empty(%t) : tensor<?x16xbf16>
  %r = gdn_tile.launch @p grid(%c1, %heads, %c1) tokens(%t) ins(%x : tensor<?x16xbf16>)
      outs(%e : tensor<?x16xbf16>) -> tensor<?x16xbf16>
  return %r : tensor<?x16xbf16>
}
