// A tile of 32 rows in a slot is read into the first 32 rows of a fragment, and stored from there.
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn-tile-to-warp,gdn-warp-to-llvm)' | gdn-translate --gdn-to-ptx | FileCheck %s --check-prefix=PTX

#roles = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
  <name = "move", warps = 1, registers = 40, steps = ["load"]>, <name = "idle", warps = 3, registers = 40, steps = []>,
  <name = "prep", warps = 4, registers = 232, steps = ["gates"]>,
  <name = "state", warps = 4, registers = 232, steps = ["state"]>],
  channels = [<name = "in", depth = 1, from = ["load"], to = ["prep"]>, <name = "scaled", depth = 1, from = ["gates"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @scaled
// CHECK: gdn_warp.role "prep"
// CHECK: gdn_warp.fragment_load %{{.*}} rows [0, 32] : {{.*}}<32x32xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
// CHECK: gdn_warp.fragment_store %{{.*}}, %{{.*}} rows [0, 32]
// CHECK-SAME: -> {{.*}}<32x32xbf16, swizzle = 128>
// PTX: .entry scaled
gdn_tile.program @scaled(%k: memref<1x?x4x128xbf16>, %g: memref<1x?x4x128xbf16>) outs(%s: memref<4x128x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #roles} {
  %c0 = arith.constant 0 : index
  %chunk = arith.constant 32 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64x32xf32>
  %none = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64x32xf32>
  %r = scf.for %t = %begin to %end step %chunk iter_args(%st = %zero) -> (tensor<64x32xf32>) {
    %kt = gdn_tile.load %k[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4x128xbf16> -> tensor<32x32xbf16>
    %gt = gdn_tile.load %g[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4x128xbf16> -> tensor<32x32xbf16>
    %kf = arith.extf %kt {gdn_tile.step = "gates"} : tensor<32x32xbf16> to tensor<32x32xf32>
    %gf = arith.extf %gt {gdn_tile.step = "gates"} : tensor<32x32xbf16> to tensor<32x32xf32>
    %e = math.exp2 %gf {gdn_tile.step = "gates"} : tensor<32x32xf32>
    %m = arith.mulf %kf, %e {gdn_tile.step = "gates"} : tensor<32x32xf32>
    %mb = arith.truncf %m {gdn_tile.step = "gates"} : tensor<32x32xf32> to tensor<32x32xbf16>
    %sb = arith.truncf %st {gdn_tile.step = "state"} : tensor<64x32xf32> to tensor<64x32xbf16>
    %u = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%sb, %mb : tensor<64x32xbf16>, tensor<32x32xbf16>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
    %ub = arith.truncf %u {gdn_tile.step = "state"} : tensor<64x32xf32> to tensor<64x32xbf16>
    %next = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%ub, %mb : tensor<64x32xbf16>, tensor<32x32xbf16>) outs(%st : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }
  gdn_tile.store %r, %s[%h, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : tensor<64x32xf32> -> memref<4x128x128xf32>
}
func.func @host(%t: index, %n: index, %k: memref<1x?x4x128xbf16>, %g: memref<1x?x4x128xbf16>, %s: memref<4x128x128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @scaled grid(%n, %c4, %c1) tokens(%t) ins(%k, %g : memref<1x?x4x128xbf16>, memref<1x?x4x128xbf16>) outs(%s : memref<4x128x128xf32>)
  return
}
