// A role makes a number with `before_loops` before its loop, and other numbers of what it loads where it takes them. A role that
// takes none of them makes none.
// RUN: gdn-opt %s --gdn-warp-partition --canonicalize --cse | FileCheck %s

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @numbers(
// CHECK: gdn_warp.role "move"
// CHECK-NOT: memref.load
// CHECK: scf.for
// CHECK: gdn_warp.role "state"
// CHECK: %[[ONE:.*]] = memref.load %once
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[ONE]]
// CHECK-NOT: memref.load
// CHECK: scf.for
// CHECK: %[[OTHER:.*]] = memref.load %each
// CHECK: %[[ROW:.*]] = arith.index_cast %[[OTHER]]
// CHECK: gdn_tile.store %{{.*}}, %y[%[[FIRST]], %[[ROW]]
gdn_tile.program @numbers(%x: memref<1x?x4x64xf32>, %once: memref<?xi32>, %each: memref<?xi32>) outs(%y: memref<?x?x4x64xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = memref.load %once[%n] : memref<?xi32>
  %first = arith.index_cast %one {gdn_tile.before_loops} : i32 to index
  %other = memref.load %each[%n] : memref<?xi32>
  %row = arith.index_cast %other : i32 to index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xf32> -> tensor<64x64xf32>
    %sum = arith.addf %tile, %tile {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %sum, %y[%first, %row, %h, %c0] axes [3, 1] {gdn_tile.step = "state"}
        : tensor<64x64xf32> -> memref<?x?x4x64xf32>
  }
}
func.func @host(%n: index, %t: index, %x: memref<1x?x4x64xf32>, %once: memref<?xi32>, %each: memref<?xi32>,
                %y: memref<?x?x4x64xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @numbers grid(%n, %c4, %c1) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x, %once, %each : memref<1x?x4x64xf32>, memref<?xi32>, memref<?xi32>) outs(%y : memref<?x?x4x64xf32>)
  return
}
