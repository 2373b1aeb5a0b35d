// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s

// Loads read zeros beyond the end, stores write nothing there; the loop walks
// the work item's tokens.
// CHECK-LABEL: gdn_tile.program @copy(%x: memref<1x?x4x128xf32>) outs(%y: memref<1x?x4x128xf32>)
// CHECK-SAME: work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
gdn_tile.program @copy(%x: memref<1x?x4x128xf32>) outs(%y: memref<1x?x4x128xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    // CHECK: %[[TILE:.*]] = gdn_tile.load %x[%batch, %{{.*}}, %h, %{{.*}}] axes [1, 3] until(%end, dim = 1) : memref<1x?x4x128xf32> -> tensor<32x128xf32>
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
        : memref<1x?x4x128xf32> -> tensor<32x128xf32>
    // CHECK: gdn_tile.store %[[TILE]], %y[%batch, %{{.*}}, %h, %{{.*}}] axes [1, 3] until(%end, dim = 1) : tensor<32x128xf32> -> memref<1x?x4x128xf32>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
        : tensor<32x128xf32> -> memref<1x?x4x128xf32>
  }
}

// Axes may be transposed, a tile may have fewer than the array, and an array
// without tokens has no end. A program may have attributes and no outputs.
// CHECK-LABEL: gdn_tile.program @read(%x: memref<2x4x16x32xbf16>, %f: f32) work_item
// CHECK-SAME: attributes {test.note = "kept"}
gdn_tile.program @read(%x: memref<2x4x16x32xbf16>, %f: f32)
    work_item(%i, %j, %k) tokens(%b, %from, %to) attributes {test.note = "kept"} {
  %c0 = arith.constant 0 : index
  // CHECK: gdn_tile.load %x[%n, %h, %{{.*}}, %{{.*}}] axes [3, 2] {gdn_tile.step = "state"} : memref<2x4x16x32xbf16> -> tensor<32x16xbf16>
  %s = gdn_tile.load %x[%i, %j, %c0, %c0] axes [3, 2] {gdn_tile.step = "state"}
      : memref<2x4x16x32xbf16> -> tensor<32x16xbf16>
  // CHECK: gdn_tile.load %x[{{.*}}] axes [3] : memref<2x4x16x32xbf16> -> tensor<32xbf16>
  %row = gdn_tile.load %x[%i, %j, %c0, %c0] axes [3] : memref<2x4x16x32xbf16> -> tensor<32xbf16>
}

// A work item may have further coordinates.
// CHECK-LABEL: gdn_tile.program @segments(%x: memref<4xf32>)
// CHECK-SAME: work_item(%n, %h, %vt, %i, %{{.*}}) tokens(%batch, %begin, %end) {
gdn_tile.program @segments(%x: memref<4xf32>) work_item(%n, %h, %vt, %s, %u) tokens(%batch, %begin, %end) {
}
func.func @five(%n: index, %x: memref<4xf32>) {
  // CHECK: gdn_tile.launch @segments grid(%arg0, %arg0, %arg0, %arg0, %arg0) tokens(%arg0)
  gdn_tile.launch @segments grid(%n, %n, %n, %n, %n) tokens(%n) ins(%x : memref<4xf32>)
  return
}

// What a CTA does before its roles begin, and behind them.
// CHECK-LABEL: gdn_tile.program @meeting(
gdn_tile.program @meeting(%x: memref<4x2x64x64xf16>, %count: memref<?xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %empty = arith.cmpi eq, %begin, %end : index
  // CHECK: gdn_tile.leave %[[EMPTY:.*]] clears(%x : memref<4x2x64x64xf16>)
  gdn_tile.leave %empty clears(%x : memref<4x2x64x64xf16>)
  // CHECK: gdn_tile.leave %[[EMPTY]]{{$}}
  gdn_tile.leave %empty
  // CHECK: gdn_tile.clear %x[%n, %h, %begin, %n] until(%end, dim = 2) columns 16 if %[[EMPTY]] : memref<4x2x64x64xf16>
  gdn_tile.clear %x[%n, %h, %begin, %n] until(%end, dim = 2) columns 16 if %empty : memref<4x2x64x64xf16>
  // CHECK: gdn_tile.await %count if %[[EMPTY]] : memref<?xi32>
  gdn_tile.await %count if %empty : memref<?xi32>
  // CHECK: gdn_tile.hold_back if %[[EMPTY]]
  gdn_tile.hold_back if %empty
  // CHECK: gdn_tile.count_down %count : memref<?xi32>
  gdn_tile.count_down %count : memref<?xi32>
}

// CHECK-LABEL: gdn_tile.program @reports(
gdn_tile.program @reports(%progress : memref<?x4x2xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // CHECK: gdn_tile.await_report %progress[%n, %h] count %h done %end : memref<?x4x2xi32>
  gdn_tile.await_report %progress[%n, %h] count %h done %end : memref<?x4x2xi32>
  // CHECK: gdn_tile.report %end, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x2xi32>
  gdn_tile.report %end, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x2xi32>
}

// The ops on tiles alone.
// CHECK-LABEL: gdn_tile.program @tiles(
gdn_tile.program @tiles() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %g = arith.constant dense<1.0> : tensor<32xf32>
  %s = arith.constant dense<1.0> : tensor<32x32xf32>
  // CHECK: gdn_tile.scan %{{.*}} axis 0 : tensor<32xf32>
  %0 = gdn_tile.scan %g axis 0 : tensor<32xf32>
  // CHECK: gdn_tile.scan %{{.*}} axis 1 reverse : tensor<32x32xf32>
  %1 = gdn_tile.scan %s axis 1 reverse : tensor<32x32xf32>
  // CHECK: gdn_tile.rebase %{{.*}} axis 1 block 8 at 3 : tensor<32x32xf32>
  %7 = gdn_tile.rebase %s axis 1 block 8 at 3 : tensor<32x32xf32>
  // CHECK: gdn_tile.repeat %{{.*}} axis 0 block 16 at %{{.*}} : tensor<32x32xf32>
  %at = arith.constant 5 : index
  %8 = gdn_tile.repeat %s axis 0 block 16 at %at : tensor<32x32xf32>
  // CHECK: gdn_tile.causal %{{.*}} : tensor<32x32xf32>
  %2 = gdn_tile.causal %s : tensor<32x32xf32>
  // CHECK: %[[KK:.*]] = gdn_tile.causal strict %{{.*}} : tensor<32x32xf32>
  %3 = gdn_tile.causal strict %s : tensor<32x32xf32>
  // CHECK: gdn_tile.cluster_sum %{{.*}} number %{{.*}} of 2 : tensor<32x32xf32> -> tensor<32x16xf32>
  %number = arith.constant 0 : index
  %6 = gdn_tile.cluster_sum %s number %number of 2 : tensor<32x32xf32> -> tensor<32x16xf32>
  // CHECK: gdn_tile.diagonal %{{.*}} : tensor<32x32xf32> -> tensor<32xf32>
  %5 = gdn_tile.diagonal %s : tensor<32x32xf32> -> tensor<32xf32>
  // CHECK: gdn_tile.solve %[[KK]], %{{.*}} merge f16 : tensor<32x32xf32>, tensor<32xf32>
  %4 = gdn_tile.solve %3, %g merge f16 : tensor<32x32xf32>, tensor<32xf32>
}

// A launch on tensors returns its outs; one on memrefs writes them in place.
// Shapes may be known on one side only.
// CHECK-LABEL: func.func @launch(
func.func @launch(%n: index, %t: index, %x: tensor<1x64x4x128xf32>, %y: tensor<1x64x4x128xf32>,
    %xm: memref<1x?x4x128xf32>, %ym: memref<1x?x4x128xf32>, %cu: tensor<?xi32>, %cum: memref<3xi64>)
    -> tensor<1x64x4x128xf32> {
  // CHECK: gdn_tile.launch @copy grid(%{{.*}}, %{{.*}}, %{{.*}}) tokens(%{{.*}}) ins(%{{.*}} : tensor<1x64x4x128xf32>) outs(%{{.*}} : tensor<1x64x4x128xf32>) -> tensor<1x64x4x128xf32>
  %0 = gdn_tile.launch @copy grid(%n, %n, %n) tokens(%t) ins(%x : tensor<1x64x4x128xf32>)
      outs(%y : tensor<1x64x4x128xf32>) -> tensor<1x64x4x128xf32>
  // CHECK: gdn_tile.launch @copy {{.*}} cu_seqlens(%{{.*}} : tensor<?xi32>)
  %1 = gdn_tile.launch @copy grid(%n, %n, %n) tokens(%t) cu_seqlens(%cu : tensor<?xi32>)
      ins(%x : tensor<1x64x4x128xf32>) outs(%0 : tensor<1x64x4x128xf32>) -> tensor<1x64x4x128xf32>
  // CHECK: gdn_tile.launch @copy {{.*}} ins(%{{.*}} : memref<1x?x4x128xf32>) outs(%{{.*}} : memref<1x?x4x128xf32>){{$}}
  gdn_tile.launch @copy grid(%n, %n, %n) tokens(%t) cu_seqlens(%cum : memref<3xi64>)
      ins(%xm : memref<1x?x4x128xf32>) outs(%ym : memref<1x?x4x128xf32>)
  return %1 : tensor<1x64x4x128xf32>
}

// The inverse of a solve, of M in f32 or in the type of its merges.
// CHECK-LABEL: func.func @inverse(
func.func @inverse(%m: tensor<32x32xf32>, %h: tensor<16x16xf16>) {
  // CHECK: gdn_tile.tri_inverse %{{.*}} merge bf16 : tensor<32x32xf32> -> tensor<32x32xf32>
  %x = gdn_tile.tri_inverse %m merge bf16 : tensor<32x32xf32> -> tensor<32x32xf32>
  // CHECK: gdn_tile.tri_inverse %{{.*}} merge f16 : tensor<16x16xf16> -> tensor<16x16xf32>
  %y = gdn_tile.tri_inverse %h merge f16 : tensor<16x16xf16> -> tensor<16x16xf32>
  return
}
