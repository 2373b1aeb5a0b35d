// A tile that `move` loads before the loop is the right operand of a product in it, and the sum goes to `scores` behind it.
// RUN: gdn-opt %s --gdn-tile-to-warp | FileCheck %s

// CHECK: gdn_warp.role "scores"
// CHECK: gdn_warp.role "state"
// CHECK: gdn_warp.barrier_wait
// CHECK: scf.for
// CHECK: gdn_warp.wgmma
#s = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
  <name = "move", warps = 1, registers = 96, steps = ["load"]>, <name="idle", warps = 3, registers = 96, steps = []>,
  <name = "scores", warps = 4, registers = 152, steps = ["scores", "store"]>,
  <name = "state", warps = 4, registers = 152, steps = ["state"]>],
  channels = [<name = "in", depth = 2, from = ["load"], to = ["scores", "state"]>, <name = "scaled", depth = 1, from = ["scores"], to = ["state"]>,
    <name = "last", depth = 1, from = ["state"], to = ["scores"]>]>
gdn_tile.program @outside(%w: memref<64x64xbf16>, %x: memref<1x?x4x64xbf16>) outs(%y: memref<4x64x64xf32>)
    work_item(%n, %h, %p) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #s} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64x64xf32>
  %wt = gdn_tile.load %w[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x64xbf16> -> tensor<64x64xbf16>
  %r = scf.for %t = %begin to %end step %c64 iter_args(%st = %zero) -> (tensor<64x64xf32>) {
    %xt = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %sb = arith.truncf %st {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %u = linalg.contract indexing_maps = [affine_map<(d0,d1,d2)->(d0,d2)>, affine_map<(d0,d1,d2)->(d1,d2)>, affine_map<(d0,d1,d2)->(d0,d1)>] {gdn_tile.step = "state"}
        ins(%sb, %wt : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %xf = arith.extf %xt {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %next = arith.addf %u, %xf {gdn_tile.step = "state"} : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %neg = arith.negf %r {gdn_tile.step = "store"} : tensor<64x64xf32>
  gdn_tile.store %neg, %y[%h, %c0, %c0] axes [1, 2] {gdn_tile.step = "store"} : tensor<64x64xf32> -> memref<4x64x64xf32>
}
func.func @host(%n: index, %t: index, %w: memref<64x64xbf16>, %x: memref<1x?x4x64xbf16>, %y: memref<4x64x64xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @outside grid(%n, %c4, %c1) tokens(%t) cu_seqlens(%cu : memref<?xi32>) ins(%w, %x : memref<64x64xbf16>, memref<1x?x4x64xbf16>) outs(%y : memref<4x64x64xf32>)
  return
}
