// A scan over segments that stores the state of each: no access has an end, so a segment past the last one is moved to
// the first, stores nothing and leaves the state.
// RUN: gdn-opt %s --gdn-tile-to-warp | FileCheck %s

// CHECK: gdn_warp.role "state"
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: scf.if %[[INSIDE]] {
// CHECK-NEXT: gdn_warp.array_store
// CHECK: arith.select %[[INSIDE]], %{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["load"]>, <name = "rest", warps = 3, registers = 96, steps = []>,
    <name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = [
    <name = "m", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @scan(%m: memref<4x?x64x64xbf16>) outs(%s: memref<4x?x64x64xf32>, %r: memref<4x64x64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %segments = memref.dim %m, %c1 : memref<4x?x64x64xbf16>
  %one = arith.constant dense<1.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %last = scf.for %i = %c0 to %segments step %c1 iter_args(%state = %one) -> (tensor<64x64xf32>) {
    %mt = gdn_tile.load %m[%n, %i, %c0, %c0] axes [2, 3] {gdn_tile.step = "load"} : memref<4x?x64x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %state, %s[%n, %i, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<4x?x64x64xf32>
    %b = arith.truncf %state {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %next = linalg.contract indexing_maps = [affine_map<(d0,d1,d2)->(d0,d2)>, affine_map<(d0,d1,d2)->(d1,d2)>, affine_map<(d0,d1,d2)->(d0,d1)>] {gdn_tile.step = "state"}
        ins(%b, %mt : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  gdn_tile.store %last, %r[%n, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<4x64x64xf32>
}
func.func @host(%t: index, %m: memref<4x?x64x64xbf16>, %s: memref<4x?x64x64xf32>, %r: memref<4x64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @scan grid(%c4, %c1, %c1) tokens(%t) ins(%m : memref<4x?x64x64xbf16>) outs(%s, %r : memref<4x?x64x64xf32>, memref<4x64x64xf32>)
  return
}
