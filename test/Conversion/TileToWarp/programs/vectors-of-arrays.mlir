// Each thread loads the elements of a vector that it needs, whether the vector lies along the rows or the columns of its fragment, or over lanes.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 232, steps = ["state"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @scaled
// CHECK: gdn_warp.array_load %{{.*}} axes [2] : {{.*}} -> tensor<128xf32, #gdn_warp.columns>
// CHECK: gdn_warp.array_load %{{.*}} axes [2] : {{.*}} -> tensor<64xf32, #gdn_warp.rows>
// CHECK-NOT: gdn_warp.lanes
// A vector of columns, each written by one thread.
// CHECK: gdn_warp.array_store %{{.*}} axes [2] : tensor<128xf32, #gdn_warp.columns>
// PTX: .entry scaled
gdn_tile.program @scaled(%x: memref<4x4x128x128xf32>, %k: memref<4x4x128xf32>) outs(%y: memref<4x4x128x128xf32>, %z: memref<4x4x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %v, %c64 : index
  %a = gdn_tile.load %x[%n, %h, %row, %c0] axes [2, 3] {gdn_tile.step = "state"} : memref<4x4x128x128xf32> -> tensor<64x128xf32>
  %kc = gdn_tile.load %k[%n, %h, %c0] axes [2] {gdn_tile.step = "state"} : memref<4x4x128xf32> -> tensor<128xf32>
  %kr = gdn_tile.load %k[%n, %h, %row] axes [2] {gdn_tile.step = "state"} : memref<4x4x128xf32> -> tensor<64xf32>
  %e = tensor.empty() {gdn_tile.step = "state"} : tensor<64x128xf32>
  %columns = linalg.broadcast ins(%kc : tensor<128xf32>) outs(%e : tensor<64x128xf32>) dimensions = [0] {gdn_tile.step = "state"}
  %rows = linalg.broadcast ins(%kr : tensor<64xf32>) outs(%e : tensor<64x128xf32>) dimensions = [1] {gdn_tile.step = "state"}
  %b = arith.mulf %a, %columns {gdn_tile.step = "state"} : tensor<64x128xf32>
  %c = arith.mulf %b, %rows {gdn_tile.step = "state"} : tensor<64x128xf32>
  // Sums over the rows go on from the vector.
  %sums = linalg.reduce { arith.addf } ins(%c : tensor<64x128xf32>) outs(%kc : tensor<128xf32>) dimensions = [0] {gdn_tile.step = "state"}
  gdn_tile.store %c, %y[%n, %h, %row, %c0] axes [2, 3] {gdn_tile.step = "state"} : tensor<64x128xf32> -> memref<4x4x128x128xf32>
  gdn_tile.store %sums, %z[%n, %h, %c0] axes [2] {gdn_tile.step = "state"} : tensor<128xf32> -> memref<4x4x128xf32>
}
func.func @host(%t: index, %x: memref<4x4x128x128xf32>, %k: memref<4x4x128xf32>, %y: memref<4x4x128x128xf32>, %z: memref<4x4x128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @scaled grid(%c4, %c4, %c1) tokens(%t) ins(%x, %k : memref<4x4x128x128xf32>, memref<4x4x128xf32>) outs(%y, %z : memref<4x4x128x128xf32>, memref<4x4x128xf32>)
  return
}
