// RUN: gdn-opt %s --gdn-tile-to-llvm --mlir-print-ir-before=gdn-tile-vectorize -o %t 2>&1 | FileCheck %s

// The tiles that a branch yields lie in buffers without strides and offset, so
// that who reads them reads rows, and not elements.
// CHECK-LABEL: func.func private @p(
// CHECK: scf.if
// CHECK-NOT: strided<[?, ?]
// CHECK: return
gdn_tile.program @p(%x : memref<?x16xf32, strided<[?, 1], offset: ?>>)
    outs(%y : memref<?x16xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %two = arith.constant dense<2.0> : tensor<8x16xf32>
  scf.for %t = %begin to %end step %c8 {
    %tile = gdn_tile.load %x[%t, %c0] axes [0, 1] until(%end, dim = 0)
        : memref<?x16xf32, strided<[?, 1], offset: ?>> -> tensor<8x16xf32>
    %first = arith.cmpi eq, %t, %begin : index
    %narrow = scf.if %first -> tensor<8x16xf16> {
      %0 = arith.truncf %tile : tensor<8x16xf32> to tensor<8x16xf16>
      scf.yield %0 : tensor<8x16xf16>
    } else {
      %1 = arith.mulf %tile, %two : tensor<8x16xf32>
      %2 = arith.truncf %1 : tensor<8x16xf32> to tensor<8x16xf16>
      scf.yield %2 : tensor<8x16xf16>
    }
    %wide = arith.extf %narrow : tensor<8x16xf16> to tensor<8x16xf32>
    gdn_tile.store %wide, %y[%t, %c0] axes [0, 1] until(%end, dim = 0)
        : tensor<8x16xf32> -> memref<?x16xf32, strided<[?, 1], offset: ?>>
  }
}
