// Tensor maps and the copies through them.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// A row of two panels is a dimension in a panel and one over panels, so one copy brings the tile;
// a view whose panels lie apart takes a copy a panel, through a map of its own. Equal maps are one.
// CHECK-LABEL: llvm.func @copies(
// CHECK-SAME: %[[DENSE:[^ ]*]]: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: %[[APART:[^ ]*]]: !llvm.ptr {llvm.align = 64 : i32, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-SAME: tensor_maps = [
// CHECK-SAME: <argument = 0, element_type = bf16, dims = [3, 1, 3, 2, 0], steps = [1, 1, 64, 1, 1], extents = [64, 0, 0, 0, 0], box = [64, 32, 2, 1, 1], swizzle = 128>
// CHECK-SAME: <argument = 0, element_type = bf16, dims = [3, 1, 3, 2, 0], steps = [1, 1, 64, 1, 1], extents = [64, 0, 0, 0, 0], box = [64, 32, 1, 1, 1], swizzle = 128>]
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
// One thread fetches the maps.
// CHECK: scf.if
// CHECK-NEXT: nvvm.prefetch tensormap, %[[DENSE]]
// CHECK-NEXT: nvvm.prefetch tensormap, %[[APART]]
gdn_warp.kernel @copies(%k : memref<?x?x4x128xbf16>) threads(128) shared(65536) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32768 = arith.constant 32768 : index
  %bar = gdn_warp.barrier %c32768
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x128xbf16, swizzle = 128>
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[AT:.*]], %[[DENSE]], %{{.*}}, box[%[[C0]], %[[C2]], %[[C0]], %[[C2]], %[[C0]]] {isCTAOnly = true}
  gdn_warp.bulk_tensor_load %k[%c0, %c2, %c2, %c0] axes [1, 3], %v signal %bar
      : memref<?x?x4x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[AT]], %[[APART]], %{{.*}}, box[%[[C0]], %[[C2]], %[[C0]],
  // CHECK: %[[PANEL:.*]] = llvm.getelementptr %[[AT]][8192]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[PANEL]], %[[APART]], %{{.*}}, box[%[[C0]], %[[C2]], %[[C1]],
  gdn_warp.bulk_tensor_load %k[%c0, %c2, %c2, %c0] axes [1, 3], %w signal %bar
      : memref<?x?x4x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128, stride = 8192>
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[DENSE]], %[[AT]], box[
  gdn_warp.bulk_tensor_store %v, %k[%c0, %c2, %c2, %c0] axes [1, 3]
      : !gdn_warp.view<32x128xbf16, swizzle = 128> -> memref<?x?x4x128xbf16>
  // CHECK: nvvm.cp.async.bulk.commit.group
  gdn_warp.bulk_commit
  // CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
  gdn_warp.bulk_wait 0 read
}

// A tile that crosses the end takes a map that ends its rows there: row t is 2^30 + t - end of the
// first dimension of rows, end of the second, and the third takes back 2^30.
// CHECK-LABEL: llvm.func @ragged(
// CHECK-SAME: %[[PLAIN:[^ ]*]]: !llvm.ptr {llvm.align = 64
// CHECK-SAME: %[[CUT:[^ ]*]]: !llvm.ptr {llvm.align = 64
// CHECK-SAME: <argument = 0, element_type = bf16, dims = [3, 1, 3, 2, 0], steps = [1, 1, 64, 1, 1], extents = [64, 0, 0, 0, 0], box = [64, 32, 2, 1, 1], swizzle = 128>
// CHECK-SAME: <argument = 0, element_type = bf16, dims = [3, 1, 2, 1, 1], steps = [1, 1, 1, 1, -1], extents = [0, 1073741824, 0, 2147418112, 2147418112], box = [64, 32, 1, 1, 1], swizzle = 128>
gdn_warp.kernel @ragged(%k : memref<1x?x4x128xbf16>, %row : i32, %stop : i32) threads(128) shared(65536) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %t = arith.index_cast %row : i32 to index
  %end = arith.index_cast %stop : i32 to index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x128xbf16, swizzle = 128>
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : i32
  // CHECK-DAG: %[[ROWS:.*]] = arith.constant 1073741824 : i32
  // CHECK: %[[CROSSES:.*]] = arith.cmpi sgt
  // CHECK: scf.if %[[CROSSES]] {
  // CHECK: %[[BEFORE:.*]] = arith.subi %[[T:.*]], %[[END:.*]] : i32
  // CHECK: %[[X:.*]] = arith.addi %[[BEFORE]], %[[ROWS]] : i32
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[CUT]], %{{.*}}, box[%[[C0]], %[[X]], %[[C2]], %[[END]], %[[ROWS]]]
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[CUT]], %{{.*}}, box[%[[C64]], %[[X]], %[[C2]], %[[END]], %[[ROWS]]]
  // CHECK: } else {
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[PLAIN]], %{{.*}}, box[%[[C0]], %[[T]], %[[C0]], %[[C2]], %[[C0]]]
  gdn_warp.bulk_tensor_store %v, %k[%c0, %t, %c2, %c0] axes [1, 3] until(%end, dim = 1)
      : !gdn_warp.view<32x128xbf16, swizzle = 128> -> memref<1x?x4x128xbf16>
}

// A copy to another CTA goes to the same place there and arrives at the barrier there, though the op
// takes a pointer to a barrier of this CTA.
// CHECK-LABEL: llvm.func @across(
gdn_warp.kernel @across(%rank : i32) threads(128) shared(65536) cluster(2) {
  %c4096 = arith.constant 4096 : index
  %c32768 = arith.constant 32768 : index
  %bar = gdn_warp.barrier %c32768
  %v = gdn_warp.view %c4096 : !gdn_warp.view<512xf32>
  // CHECK-DAG: %[[BYTES:.*]] = arith.constant 2048 : i32
  // CHECK-DAG: %[[FROM:.*]] = llvm.getelementptr %{{.*}}[4096]
  // CHECK-DAG: %[[BAR:.*]] = llvm.getelementptr %{{.*}}[32768]
  // CHECK-DAG: %[[TO:.*]] = nvvm.mapa %[[FROM]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK-DAG: %[[THERE:.*]] = nvvm.mapa %[[BAR]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[THERE]] : !llvm.ptr<7> to i64
  // CHECK: %[[SIGNAL:.*]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr<3>
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  // CHECK-NEXT: nvvm.cp.async.bulk.shared.cluster.shared.cta %[[TO]], %[[FROM]], %[[SIGNAL]], %[[BYTES]]
  gdn_warp.bulk_copy_to_cta %v, %bar rank(%rank) : !gdn_warp.view<512xf32>
}
