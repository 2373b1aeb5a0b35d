// A tile of any strides, by the lanes of one warp.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// Rows have stride 1: lane l loads row l of 32. Its elements are a stride apart, one address after the other, and eight
// of them are a store of 16 bytes: 32 loads are in flight before the first store.
// CHECK-LABEL: llvm.func @turned(
// CHECK: scf.if
// CHECK: %[[STRIDE:.*]] = llvm.inline_asm has_side_effects {{.*}} "mov.b64 $0, $1;"
// CHECK: %[[FIRST:.*]] = llvm.getelementptr
// CHECK-NEXT: llvm.load %[[FIRST]] {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
// CHECK-NEXT: %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][%[[STRIDE]]]
// CHECK-NEXT: llvm.load %[[SECOND]]
// CHECK-NOT: llvm.store
// CHECK-COUNT-30: llvm.load
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-96: llvm.load
// CHECK-COUNT-4: llvm.store
// A tile that reaches out of the array takes a loop. What lies outside is zero and is not read.
// CHECK: } else {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[PLACE:.*]] = arith.minsi
// CHECK: %[[LOADED:.*]] = llvm.load
// CHECK: arith.select %{{.*}}, %[[LOADED]], %{{.*}} : bf16
// CHECK: } {loop_annotation
gdn_warp.kernel @turned(%x : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>, %n : i64) threads(128) shared(9216) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %view = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  gdn_warp.role "load" warps(0, 1) {
    gdn_warp.strided_load %x[%c0, %c0, %c0, %t] axes [3, 2], %view
        : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
  }
}

// No dimension has: lane l has column l of 32, and an element is a store. The end cuts the rows.
// CHECK-LABEL: llvm.func @any(
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: scf.if
// CHECK-COUNT-32: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK-COUNT-32: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: } else {
// CHECK: arith.cmpi slt, %{{.*}}, %[[END]]
gdn_warp.kernel @any(%x : memref<?x?xf32, strided<[?, ?]>>, %n : i64) threads(128) shared(9216) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %n : i64 to index
  %view = gdn_warp.view %c0 : !gdn_warp.view<64x32xf32, swizzle = 128>
  gdn_warp.role "load" warps(0, 1) {
    gdn_warp.strided_load %x[%c0, %c0] axes [0, 1] until(%end, dim = 0), %view
        : memref<?x?xf32, strided<[?, ?]>> -> !gdn_warp.view<64x32xf32, swizzle = 128>
  }
}
