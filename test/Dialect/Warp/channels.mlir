// Channels, and who fills and takes their slots.
// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2, prefetch_distance = 4>,
    <name = "solve", warps = 3, registers = 96, steps = ["solve"], round_robin = true>,
    <name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true>],
  channels = [<name = "in", depth = 3, from = ["load"], to = ["state"]>]>

// A schedule may be of no channels, and of no roles.
// CHECK-LABEL: gdn_warp.kernel @nobody(
// CHECK-SAME: #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
gdn_warp.kernel @nobody() threads(128) shared(0)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>} {
}

// CHECK-LABEL: gdn_warp.kernel @values(
// CHECK-SAME: roles = [<name = "move", warps = 1, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2, prefetch_distance = 4>, <name = "solve", warps = 3, registers = 96, steps = ["solve"], round_robin = true>, <name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true>]
// CHECK-SAME: channels = [<name = "in", depth = 3, from = ["load"], to = ["state"]>]
gdn_warp.kernel @values(%f: f32) threads(384) shared(0) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(3) : <f32, tensor<32xf32>, tensor<32xf32>>
  %in = gdn_warp.channel "in" depth(3) : <f32, tensor<32xf32>, tensor<32xf32>>
  gdn_warp.role "move" warps(0, 1) {
    // CHECK: gdn_warp.put %{{.*}}, %[[IN]][0] at %{{.*}} : f32, <f32, tensor<32xf32>, tensor<32xf32>>
    gdn_warp.put %f, %in[0] at %c0 : f32, <f32, tensor<32xf32>, tensor<32xf32>>
    %v = tensor.splat %f : tensor<32xf32>
    // CHECK: gdn_warp.put %{{.*}}, %[[IN]][1 + %{{.*}}] at
    gdn_warp.put %v, %in[1 + %c0] at %c0 : tensor<32xf32>, <f32, tensor<32xf32>, tensor<32xf32>>
  }
  gdn_warp.role "state" warps(4, 8) {
    // CHECK: gdn_warp.get %[[IN]][0] at %{{.*}} : <f32, tensor<32xf32>, tensor<32xf32>> -> f32
    %g = gdn_warp.get %in[0] at %c0 : <f32, tensor<32xf32>, tensor<32xf32>> -> f32
    // CHECK: gdn_warp.get %[[IN]][1 + %{{.*}}] at
    %w = gdn_warp.get %in[1 + %c0] at %c0 : <f32, tensor<32xf32>, tensor<32xf32>> -> tensor<32xf32>
  }
}

// CTAs of a cluster take the iterations of a role in turn, and fill slots for each other.
// CHECK-LABEL: gdn_warp.kernel @cluster(
// CHECK-SAME: cluster(2)
// CHECK-SAME: #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, persistent = true, roles = [<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>], channels = []>
gdn_warp.kernel @cluster() threads(128) shared(0) cluster(2) attributes {gdn_warp.schedule =
    #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, persistent = true, roles = [<name = "solve", warps = 2,
      registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>], channels = []>} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(2) : <tensor<32xf32>>
  %in = gdn_warp.channel "in" depth(2) : <tensor<32xf32>>
  // CHECK: %[[OUT:.*]] = gdn_warp.channel "out" depth(4) chunks(2) turn(1) : <f32, f32>
  %out = gdn_warp.channel "out" depth(4) chunks(2) turn(1) : <f32, f32>
  // CHECK: gdn_warp.role "solve" warps(0, 2) attributes {gdn_warp.alternate_ctas, gdn_warp.round_robin} {
  gdn_warp.role "solve" warps(0, 2) attributes {gdn_warp.alternate_ctas, gdn_warp.round_robin} {
    // CHECK: gdn_warp.release_unused %[[IN]] at %{{.*}} : <tensor<32xf32>>
    gdn_warp.release_unused %in at %c0 : <tensor<32xf32>>
    // CHECK: gdn_warp.copy_to_cluster %[[OUT]] at %{{.*}} : <f32, f32>
    gdn_warp.copy_to_cluster %out at %c0 : <f32, f32>
  }
}

!tile = !gdn_warp.view<32x64xbf16, swizzle = 128>

// CHECK-LABEL: gdn_warp.kernel @views(
gdn_warp.kernel @views(%x: memref<?x64xbf16>, %n: i64) threads(384) shared(8448) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %n : i64 to index
  // CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(2) {barriers = 8192 : i64, offset = 0 : i64, places = array<i64: 0>, slot_bytes = 4096 : i64}
  %in = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 4096, barriers = 8192}
      : <!tile>
  gdn_warp.role "move" warps(0, 1) {
    // CHECK: %[[PUT:.*]] = gdn_warp.slot put %[[IN]][0] at
    %put = gdn_warp.slot put %in[0] at %c0 : <!tile> -> !tile
    // CHECK: gdn_warp.tma_load %x[%{{.*}}, %{{.*}}] axes [0, 1] until(%{{.*}}, dim = 0), %[[PUT]]
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1] until(%end, dim = 0), %put : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "back" warps(1, 1) {
    // CHECK: %[[GET:.*]] = gdn_warp.slot get %[[IN]][0] at
    %get = gdn_warp.slot get %in[0] at %c0 : <!tile> -> !tile
    // CHECK: gdn_warp.tma_store %[[GET]], %x[%{{.*}}, %{{.*}}] axes [0, 1] :
    gdn_warp.tma_store %get, %x[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}
