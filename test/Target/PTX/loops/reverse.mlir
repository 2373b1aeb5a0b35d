// A reverse loop as convert-gdn-to-tile writes it, two chunks an iteration. With an odd number of chunks the second
// one of the last iteration would lie before the sequence.
// RUN: gdn-opt %s --gdn-tile-to-warp | FileCheck %s

// CHECK: gdn_warp.role "move"
// CHECK: %[[PLACE:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK: gdn_warp.role "state"
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: scf.if %[[INSIDE]] {
// CHECK: gdn_warp.array_store
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["load"]>,
    <name = "gates", warps = 1, registers = 96, steps = ["gates"], prefetch_distance = 1>,
    <name = "idle", warps = 2, registers = 96, steps = []>,
    <name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>,
    <name = "vectors", depth = 2, from = ["gates"], to = ["state"]>]>
gdn_tile.program @reverse(%x: memref<1x?x4x64xbf16>, %g: memref<1x?x4xf32>) outs(%y: memref<1x?x4x64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %length = arith.subi %end, %begin : index
  %count = arith.ceildivui %length, %c64 : index
  %upper = arith.muli %count, %c64 : index
  %last = arith.subi %upper, %c64 : index
  %empty = tensor.empty() {gdn_tile.step = "state"} : tensor<64x64xf32>
  scf.for %i = %c0 to %upper step %c64 {
    %o = arith.subi %last, %i : index
    %t = arith.addi %begin, %o : index
    %k = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %a = gdn_tile.load %g[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"} : memref<1x?x4xf32> -> tensor<64xf32>
    %b = math.exp2 %a {gdn_tile.step = "gates"} : tensor<64xf32>
    %f = arith.extf %k {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %rows = linalg.broadcast ins(%b : tensor<64xf32>) outs(%empty : tensor<64x64xf32>) dimensions = [1] {gdn_tile.step = "state"}
    %m = arith.mulf %f, %rows {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %m, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<1x?x4x64xf32>
  }
}
func.func @host(%n: index, %t: index, %x: memref<1x?x4x64xbf16>, %g: memref<1x?x4xf32>, %y: memref<1x?x4x64xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @reverse grid(%n, %c4, %c1) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x, %g : memref<1x?x4x64xbf16>, memref<1x?x4xf32>) outs(%y : memref<1x?x4x64xf32>)
  return
}
