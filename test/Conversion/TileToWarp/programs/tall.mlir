// A tile of 128 rows in the registers of a warpgroup is two fragments: each row is loaded, carried and stored once.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#one = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @twice
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[UPPER:.*]] = gdn_warp.array_load %{{.*}}[%{{.*}}, %{{.*}}, %[[C0]], %[[C0]]] axes [2, 3] : {{.*}} -> tensor<64x128xf32, #gdn_warp.fragment>
// CHECK: %[[LOWER:.*]] = gdn_warp.array_load %{{.*}}[%{{.*}}, %{{.*}}, %[[C64]], %[[C0]]] axes [2, 3] : {{.*}} -> tensor<64x128xf32, #gdn_warp.fragment>
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %[[UPPER]], %[[B:.*]] = %[[LOWER]])
// CHECK-DAG: arith.addf %[[A]], %[[A]]
// CHECK-DAG: arith.addf %[[B]], %[[B]]
// CHECK: gdn_warp.array_store {{.*}}, %[[C0]], %[[C0]]] axes [2, 3]
// CHECK: gdn_warp.array_store {{.*}}, %[[C64]], %[[C0]]] axes [2, 3]
// PTX: .entry twice
gdn_tile.program @twice(%x: memref<4x4x128x128xf32>) outs(%y: memref<4x4x128x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = gdn_tile.load %x[%n, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : memref<4x4x128x128xf32> -> tensor<128x128xf32>
  %r = scf.for %i = %begin to %end step %c1 iter_args(%s = %a) -> (tensor<128x128xf32>) {
    %b = arith.addf %s, %s {gdn_tile.step = "state"} : tensor<128x128xf32>
    scf.yield %b : tensor<128x128xf32>
  }
  gdn_tile.store %r, %y[%n, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : tensor<128x128xf32> -> memref<4x4x128x128xf32>
}
func.func @host(%t: index, %x: memref<4x4x128x128xf32>, %y: memref<4x4x128x128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @twice grid(%c4, %c4, %c1) tokens(%t) ins(%x : memref<4x4x128x128xf32>) outs(%y : memref<4x4x128x128xf32>)
  return
}
