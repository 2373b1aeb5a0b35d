// Products of fewer rows than a tensor core's: a left operand that lies turned in a slot is read into the first rows of a fragment, since a product
// that read it from there would read 64 rows.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#roles = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
  <name = "move", warps = 1, registers = 40, steps = ["load"]>, <name = "idle", warps = 3, registers = 40, steps = []>,
  <name = "state", warps = 4, registers = 232, steps = ["state"]>],
  channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @scores
// CHECK: gdn_warp.role "state"
// CHECK: scf.for
// A product of rows that were loaded fills up with copies of them.
// CHECK-DAG: gdn_warp.wgmma %{{.*}}, %{{.*}} transpose_b : {{.*}}<64x128xbf16, swizzle = 128>, <32x128xbf16, {{.*}}> -> tensor<64x32xf32, #gdn_warp.fragment>
// CHECK-DAG: gdn_warp.array_store %{{.*}} axes [1, 3] until({{.*}}) rows [0, 32]
// CHECK-DAG: %[[W:.*]] = gdn_warp.fragment_load %{{.*}} transpose rows [0, 16] : <128x16xbf16{{.*}} -> tensor<64x128xbf16, #gdn_warp.fragment>
// CHECK-DAG: gdn_warp.wgmma %[[W]], %{{.*}} transpose_b into
// CHECK: gdn_warp.array_store %{{.*}} axes [1, 2] rows [0, 16]
// PTX: .entry scores
gdn_tile.program @scores(%k: memref<1x?x4x128xbf16>, %w: memref<4x128x16xbf16>) outs(%s: memref<1x?x4x32xf32>, %z: memref<4x16x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #roles} {
  %c0 = arith.constant 0 : index
  %chunk = arith.constant 32 : index
  %none = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<32x32xf32>
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<16x32xf32>
  %r = scf.for %t = %begin to %end step %chunk iter_args(%sum = %zero) -> (tensor<16x32xf32>) {
    %kt = gdn_tile.load %k[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4x128xbf16> -> tensor<32x128xbf16>
    %wt = gdn_tile.load %w[%h, %c0, %c0] axes [1, 2] {gdn_tile.step = "load"} : memref<4x128x16xbf16> -> tensor<128x16xbf16>
    %kk = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%kt, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%none : tensor<32x32xf32>) -> tensor<32x32xf32>
    gdn_tile.store %kk, %s[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32x32xf32> -> memref<1x?x4x32xf32>
    %next = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%wt, %kt : tensor<128x16xbf16>, tensor<32x128xbf16>) outs(%sum : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %next : tensor<16x32xf32>
  }
  gdn_tile.store %r, %z[%h, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : tensor<16x32xf32> -> memref<4x16x32xf32>
}
func.func @host(%t: index, %n: index, %k: memref<1x?x4x128xbf16>, %w: memref<4x128x16xbf16>, %s: memref<1x?x4x32xf32>, %z: memref<4x16x32xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @scores grid(%n, %c4, %c1) tokens(%t) ins(%k, %w : memref<1x?x4x128xbf16>, memref<4x128x16xbf16>) outs(%s, %z : memref<1x?x4x32xf32>, memref<4x16x32xf32>)
  return
}
