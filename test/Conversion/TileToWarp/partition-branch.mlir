// RUN: gdn-opt %s --gdn-warp-partition --canonicalize --cse | FileCheck %s

// What a branch makes for another role goes to the channel inside, on both sides, right behind what makes it; so do tiles
// of one branch that lie side by side.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @choose(
// CHECK: %[[OUT:.*]] = gdn_warp.channel "out"
// CHECK: gdn_warp.role "state"
// CHECK: %[[TILE:.*]] = gdn_warp.get
// CHECK: %[[C:.*]] = scf.if %{{.*}} -> (tensor<64x64xbf16>) {
// CHECK-NEXT: %[[A:.*]] = arith.negf %[[TILE]]
// CHECK-NEXT: gdn_warp.put %[[A]], %[[OUT]][0]
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[TILE]]
// CHECK-NEXT: %[[AB:.*]] = tensor.concat dim(1) %[[A]], %[[B]]
// CHECK-NEXT: gdn_warp.put %[[AB]], %[[OUT]][1]
// CHECK-NEXT: %[[LAST:.*]] = arith.mulf %[[B]], %[[A]]
// CHECK-NEXT: scf.yield %[[LAST]]
// CHECK-NEXT: } else {
// CHECK-DAG: gdn_warp.put %[[TILE]], %[[OUT]][0]
// CHECK-DAG: %[[BOTH:.*]] = tensor.concat dim(1) %[[TILE]], %[[D:.*]] {
// CHECK: gdn_warp.put %[[BOTH]], %[[OUT]][1]
// CHECK: scf.yield %[[D]]
// CHECK: %[[SUM:.*]] = arith.addf %[[C]], %[[C]]
// CHECK: gdn_warp.put %[[SUM]], %[[OUT]][2]
gdn_tile.program @choose(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>, %z: memref<1x?x4x128xbf16>,
                                                         %w: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %first = arith.cmpi eq, %t, %c0 : index
    %made:3 = scf.if %first -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) {
      %a = arith.negf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
      %b = arith.addf %a, %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
      %c = arith.mulf %b, %a {gdn_tile.step = "state"} : tensor<64x64xbf16>
      scf.yield %a, %b, %c : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
    } else {
      %d = arith.mulf %tile, %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
      scf.yield %tile, %d, %d : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
    }
    %both = tensor.concat dim(1) %made#0, %made#1 {gdn_tile.step = "state"}
        : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x128xbf16>
    %sum = arith.addf %made#2, %made#2 {gdn_tile.step = "state"} : tensor<64x64xbf16>
    gdn_tile.store %made#0, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
    gdn_tile.store %both, %z[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x128xbf16> -> memref<1x?x4x128xbf16>
    gdn_tile.store %sum, %w[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @host(%t: index, %x: memref<1x?x4x64xbf16>, %y: memref<1x?x4x64xbf16>, %z: memref<1x?x4x128xbf16>,
                %w: memref<1x?x4x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @choose grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4x64xbf16>)
      outs(%y, %z, %w : memref<1x?x4x64xbf16>, memref<1x?x4x128xbf16>, memref<1x?x4x64xbf16>)
  return
}
