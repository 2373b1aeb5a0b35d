// A product of a tile and a vector is a multiplication and a sum of the rows, whose vector goes to an array.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#roles = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
  <name = "move", warps = 4, registers = 64, steps = ["load"]>, <name = "state", warps = 4, registers = 232, steps = ["state"]>],
  channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @product
// CHECK: gdn_warp.role "state"
// CHECK: gdn_warp.vector_load %{{.*}} : {{.*}}<128xbf16> -> tensor<128xbf16, #gdn_warp.columns>
// CHECK: arith.mulf {{.*}} : tensor<64x128xf32, #gdn_warp.fragment>
// CHECK: %[[SUMS:.*]] = linalg.reduce {{.*}}ins(%{{.*}} : tensor<64x128xf32, #gdn_warp.fragment>) outs(%{{.*}} : tensor<64xf32, #gdn_warp.rows>) dimensions = [1]
// CHECK: gdn_warp.array_store %[[SUMS]], %{{.*}} axes [3] : tensor<64xf32, #gdn_warp.rows>
// PTX: .entry product
gdn_tile.program @product(%a: memref<4x64x128xf32>, %k: memref<1x?x4x128xbf16>) outs(%s: memref<1x?x4x64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #roles} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64xf32>
  %at = gdn_tile.load %a[%h, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : memref<4x64x128xf32> -> tensor<64x128xf32>
  scf.for %t = %begin to %end step %c1 {
    %kt = gdn_tile.load %k[%batch, %t, %h, %c0] axes [3] {gdn_tile.step = "load"} : memref<1x?x4x128xbf16> -> tensor<128xbf16>
    %ab = arith.truncf %at {gdn_tile.step = "state"} : tensor<64x128xf32> to tensor<64x128xbf16>
    %u = linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {gdn_tile.step = "state"}
        ins(%ab, %kt : tensor<64x128xbf16>, tensor<128xbf16>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    gdn_tile.store %u, %s[%batch, %t, %h, %c0] axes [3] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<1x?x4x64xf32>
  }
}
func.func @host(%t: index, %n: index, %a: memref<4x64x128xf32>, %k: memref<1x?x4x128xbf16>, %s: memref<1x?x4x64xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @product grid(%n, %c4, %c1) tokens(%t) ins(%a, %k : memref<4x64x128xf32>, memref<1x?x4x128xbf16>) outs(%s : memref<1x?x4x64xf32>)
  return
}
