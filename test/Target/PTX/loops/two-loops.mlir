// Two loops over the tokens, one behind the other, of which the second takes on what the first carried. The arrays
// have a batch, and sequences end inside of them.
// RUN: gdn-opt %s --gdn-tile-to-warp | FileCheck %s

// CHECK: gdn_warp.role "move"
// CHECK: scf.for
// CHECK: gdn_warp.bulk_tensor_load %k{{.*}} until(
// CHECK: scf.for
// CHECK: gdn_warp.bulk_tensor_load %k
// CHECK: gdn_warp.role "state"
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]])
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["load"]>, <name = "idle", warps = 3, registers = 96, steps = []>,
    <name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
gdn_tile.program @twice(%k: memref<2x?x4x64xbf16>) outs(%s: memref<2x4x64x64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %half = arith.divui %end, %c2 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %t = %begin to %half step %c64 iter_args(%st = %zero) -> (tensor<64x64xf32>) {
    %kt = gdn_tile.load %k[%batch, %t, %h, %c0] axes [1, 3] until(%half, dim = 1) {gdn_tile.step = "load"} : memref<2x?x4x64xbf16> -> tensor<64x64xbf16>
    %sb = arith.truncf %st {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %u = linalg.contract indexing_maps = [affine_map<(d0,d1,d2)->(d0,d2)>, affine_map<(d0,d1,d2)->(d2,d1)>, affine_map<(d0,d1,d2)->(d0,d1)>] {gdn_tile.step = "state"}
        ins(%sb, %kt : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %kf = arith.extf %kt {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %next = arith.addf %u, %kf {gdn_tile.step = "state"} : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %r2 = scf.for %t = %half to %end step %c32 iter_args(%st = %r) -> (tensor<64x64xf32>) {
    %kt = gdn_tile.load %k[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<2x?x4x64xbf16> -> tensor<64x64xbf16>
    %kf = arith.extf %kt {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %next = arith.subf %st, %kf {gdn_tile.step = "state"} : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  gdn_tile.store %r2, %s[%batch, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<2x4x64x64xf32>
}
func.func @host(%k: memref<2x?x4x64xbf16>, %s: memref<2x4x64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = memref.dim %k, %c1 : memref<2x?x4x64xbf16>
  gdn_tile.launch @twice grid(%c2, %c4, %c1) tokens(%t) ins(%k : memref<2x?x4x64xbf16>) outs(%s : memref<2x4x64x64xf32>)
  return
}
