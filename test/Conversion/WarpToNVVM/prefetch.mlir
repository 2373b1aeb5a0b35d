// The lanes of a warp ask for the lines of a tile, 32 at a time; nothing waits for them.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// 128 rows of two lines each: columns of the tile run along the array's last dimension.
// CHECK-LABEL: llvm.func @columns(
// CHECK-DAG: %[[ALL:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[LANES:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: scf.for %[[LINE:.*]] = %{{.*}} to %[[ALL]] step %[[LANES]] {
// CHECK: %[[ROW:.*]] = arith.divui %[[LINE]], %[[TWO]]
// CHECK: %[[PART:.*]] = arith.remui %[[LINE]], %[[TWO]]
// CHECK: %[[COLUMN:.*]] = arith.muli %[[PART]], %[[LANES]]
// CHECK: arith.muli %[[ROW]],
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : {{.*}}, f32
// CHECK: nvvm.prefetch level = L2, %[[ADDRESS]] : !llvm.ptr<1>
// CHECK: } {loop_annotation
gdn_warp.kernel @columns(%s : memref<?x128x128xf32, strided<[?, ?, 1]>>, %n : i64) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %item = arith.index_cast %n : i64 to index
  gdn_warp.prefetch %s[%item, %c0, %c0] axes [2, 1] sizes [64, 128] : memref<?x128x128xf32, strided<[?, ?, 1]>>
}

// Rows that are shorter than a line.
// CHECK-LABEL: llvm.func @rows(
// CHECK-DAG: %[[ALL:.*]] = arith.constant 16 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ALL]] step
// CHECK-NOT: arith.remui
// CHECK: nvvm.prefetch level = L2
gdn_warp.kernel @rows(%s : memref<64x32xbf16>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  gdn_warp.prefetch %s[%c0, %c0] axes [0, 1] sizes [16, 32] : memref<64x32xbf16>
}

// Of an array of any strides: rows along the dimension that is contiguous, 128 of two lines or 64 of four.
// CHECK-LABEL: llvm.func @any(
// CHECK-DAG: %[[ALL:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[TURNED:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: scf.for %[[LINE:.*]] = %{{.*}} to %[[ALL]] step
// CHECK: %[[LINES:.*]] = arith.select %[[TURNED]], %[[FOUR]], %[[TWO]] : index
// CHECK: %[[ROW:.*]] = arith.divui %[[LINE]], %[[LINES]]
// CHECK: %[[PART:.*]] = arith.remui %[[LINE]], %[[LINES]]
// CHECK: %[[COLUMN:.*]] = arith.muli %[[PART]],
// CHECK-DAG: arith.select %[[TURNED]], %[[COLUMN]], %[[ROW]]
// CHECK-DAG: arith.select %[[TURNED]], %[[ROW]], %[[COLUMN]]
// CHECK: nvvm.prefetch level = L2
gdn_warp.kernel @any(%s : memref<?x128x128xf32, strided<[?, ?, ?]>>, %n : i64) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %item = arith.index_cast %n : i64 to index
  gdn_warp.prefetch %s[%item, %c0, %c0] axes [2, 1] sizes [64, 128] : memref<?x128x128xf32, strided<[?, ?, ?]>>
}
