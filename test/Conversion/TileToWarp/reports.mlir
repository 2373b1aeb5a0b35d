// Kernels that report how far they are to kernels that run at the same time.
// RUN: gdn-opt %s --split-input-file --gdn-warp-partition --canonicalize --cse | FileCheck %s

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// The kernel behind begins when each CTA of this one has set its entry to 0. A role reports behind its stores.
// CHECK-LABEL: gdn_warp.kernel @reports(
// CHECK: gdn_warp.grid_dependency_wait launch_later{{$}}
// CHECK-NOT: gdn_warp.launch_dependents
// CHECK: gdn_warp.begin_reports %progress[%[[N:.*]], %[[H:.*]], %c0] : memref<?x4x1xi32>
// CHECK-NEXT: gdn_warp.launch_dependents
// CHECK: gdn_warp.role "move"
// CHECK: gdn_tile.store {{.*}} %y[%c0, %[[T:.*]], %[[H]], %c0]
// CHECK: %[[DONE:.*]] = arith.subi %{{.*}}, %[[T]]
// CHECK: gdn_tile.report %[[DONE]], %progress[%[[N]], %[[H]], %c0]
gdn_tile.program @reports(%x: memref<1x?x4x64xbf16>)
    outs(%y: memref<1x?x4x64xbf16>, %progress: memref<?x4x1xi32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
    %done = arith.subi %end, %t : index
    gdn_tile.report %done, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x1xi32>
  }
}

// All CTAs of the one that follows wait for what their blocks need, and its last one for the kernels in front.
// CHECK-LABEL: gdn_warp.kernel @follows(
// CHECK: gdn_warp.launch_dependents
// CHECK-NOT: gdn_warp.grid_dependency_wait
// CHECK: gdn_warp.await_report %progress[%{{.*}}, %{{.*}}] count %c1 done %{{.*}} : memref<?x4x1xi32>
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.grid_dependency_wait last_cta
gdn_tile.program @follows(%y: memref<1x?x4x64xbf16>, %progress: memref<?x4x1xi32>) outs(%z: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %tokens = arith.subi %end, %begin : index
  gdn_tile.await_report %progress[%n, %h] count %c1 done %tokens : memref<?x4x1xi32>
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %z[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %cu: tensor<3xi32>) -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %p = tensor.empty(%c2) : tensor<?x4x1xi32>
  %r:2 = gdn_tile.launch @reports grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x : tensor<1x?x4x64xbf16>) outs(%y, %p : tensor<1x?x4x64xbf16>, tensor<?x4x1xi32>)
      {gdn_tile.first_of_two} -> tensor<1x?x4x64xbf16>, tensor<?x4x1xi32>
  %z = gdn_tile.launch @follows grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%r#0, %r#1 : tensor<1x?x4x64xbf16>, tensor<?x4x1xi32>) outs(%y : tensor<1x?x4x64xbf16>)
      {gdn_tile.beside} -> tensor<1x?x4x64xbf16>
  return %z : tensor<1x?x4x64xbf16>
}

// -----

// A CTA that has both V tiles of a head begins the entries of both.
#folded = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @folded(
// CHECK: gdn_warp.begin_reports %progress[%[[N:.*]], %[[H:.*]], %c0] : memref<?x4x2xi32>
// CHECK-NEXT: gdn_warp.begin_reports %progress[%[[N]], %[[H]], %c1] : memref<?x4x2xi32>
// CHECK: gdn_warp.role "move"
// CHECK: gdn_tile.report %{{.*}}, %progress[%[[N]], %[[H]], %c0]
// CHECK: gdn_tile.report %{{.*}}, %progress[%[[N]], %[[H]], %c1]
gdn_tile.program @folded(%x: memref<1x?x4x128xbf16>)
    outs(%y: memref<1x?x4x128xbf16>, %progress: memref<?x4x2xi32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #folded} {
  %c64 = arith.constant 64 : index
  %v = arith.muli %vt, %c64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %v] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x128xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %v] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x128xbf16>
    %done = arith.subi %end, %t : index
    gdn_tile.report %done, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x2xi32>
  }
}
func.func @call(%x: tensor<1x?x4x128xbf16>, %cu: tensor<3xi32>) -> tensor<?x4x2xi32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x128xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x128xbf16>
  %p = tensor.empty(%c2) : tensor<?x4x2xi32>
  %r:2 = gdn_tile.launch @folded grid(%c2, %c4, %c2) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x : tensor<1x?x4x128xbf16>) outs(%y, %p : tensor<1x?x4x128xbf16>, tensor<?x4x2xi32>)
      {gdn_tile.first_of_two} -> tensor<1x?x4x128xbf16>, tensor<?x4x2xi32>
  return %r#1 : tensor<?x4x2xi32>
}
