// Two narrow tiles in one channel: the copies of each take whole rows of a panel, so neither lies beside the other.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --gdn-warp-partition --canonicalize --gdn-warp-infer-layouts | FileCheck %s --check-prefix=CHANNELS

// CHECK-LABEL: gdn_warp.kernel @narrow
// CHECK: gdn_warp.role "load"
// CHECK-COUNT-2: load %{{.*}}<64x32xbf16, swizzle = 128>
// CHECK: gdn_warp.role "store"
// CHECK-COUNT-2: store %{{.*}}<64x32xbf16, swizzle = 128>
// CHANNELS: gdn_warp.channel "in" depth(2) : <!gdn_warp.view<64x32xbf16, swizzle = 128>, !gdn_warp.view<64x32xbf16, swizzle = 128>>
// CHANNELS: gdn_warp.channel "out" depth(2) : <!gdn_warp.view<64x32xbf16, swizzle = 128>, !gdn_warp.view<64x32xbf16, swizzle = 128>>
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "all", warps = 4, registers = 160, steps = ["state"]>,
    <name = "load", warps = 2, registers = 96, steps = ["load"], round_robin = true>,
    <name = "store", warps = 2, registers = 96, steps = ["store"], round_robin = true>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["all"]>,
    <name = "out", depth = 2, from = ["state"], to = ["store"]>]>
gdn_tile.program @narrow(%x: memref<?x?x2x32xbf16>, %y: memref<?x?x2x32xbf16>) outs(%z: memref<?x?x2x32xbf16>, %w: memref<?x?x2x32xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<?x?x2x32xbf16> -> tensor<64x32xbf16>
    %b = gdn_tile.load %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<?x?x2x32xbf16> -> tensor<64x32xbf16>
    %wa = arith.extf %a {gdn_tile.step = "state"} : tensor<64x32xbf16> to tensor<64x32xf32>
    %wb = arith.extf %b {gdn_tile.step = "state"} : tensor<64x32xbf16> to tensor<64x32xf32>
    %s = arith.addf %wa, %wb {gdn_tile.step = "state"} : tensor<64x32xf32>
    %d = arith.subf %wa, %wb {gdn_tile.step = "state"} : tensor<64x32xf32>
    %hs = arith.truncf %s {gdn_tile.step = "state"} : tensor<64x32xf32> to tensor<64x32xbf16>
    %hd = arith.truncf %d {gdn_tile.step = "state"} : tensor<64x32xf32> to tensor<64x32xbf16>
    gdn_tile.store %hs, %z[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"} : tensor<64x32xbf16> -> memref<?x?x2x32xbf16>
    gdn_tile.store %hd, %w[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"} : tensor<64x32xbf16> -> memref<?x?x2x32xbf16>
  }
}
func.func @host(%x: tensor<?x?x2x32xbf16>, %y: tensor<?x?x2x32xbf16>) -> (tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x2x32xbf16>
  %t = tensor.dim %x, %c1 : tensor<?x?x2x32xbf16>
  %e = tensor.empty(%n, %t) : tensor<?x?x2x32xbf16>
  %z:2 = gdn_tile.launch @narrow grid(%n, %c2, %c1) tokens(%t)
      ins(%x, %y : tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>) outs(%e, %e : tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>) -> tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>
  return %z#0, %z#1 : tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>
}
