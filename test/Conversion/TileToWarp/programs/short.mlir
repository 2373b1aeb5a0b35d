// Of a tile of 32 rows the warps that hold rows 0 to 31 of a fragment load and store, and no others.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @twice
// CHECK: %[[A:.*]] = gdn_warp.array_load %{{.*}} axes [2, 3] rows [0, 32] : {{.*}} -> tensor<64x128xf32, #gdn_warp.fragment>
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[A]]
// CHECK: gdn_warp.array_store %[[B]], %{{.*}} axes [2, 3] rows [0, 32]
// PTX: .entry twice
// PTX: ld.global
gdn_tile.program @twice(%x: memref<4x4x128x128xf32>) outs(%y: memref<4x4x128x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%n, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : memref<4x4x128x128xf32> -> tensor<32x128xf32>
  %b = arith.addf %a, %a {gdn_tile.step = "state"} : tensor<32x128xf32>
  gdn_tile.store %b, %y[%n, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : tensor<32x128xf32> -> memref<4x4x128x128xf32>
}
func.func @host(%t: index, %x: memref<4x4x128x128xf32>, %y: memref<4x4x128x128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @twice grid(%c4, %c4, %c1) tokens(%t) ins(%x : memref<4x4x128x128xf32>) outs(%y : memref<4x4x128x128xf32>)
  return
}
