// RUN: gdn-opt %s --convert-gdn-to-tile=v-tiles=2 --canonicalize --cse --gdn-tile-verify-form | FileCheck %s

// States in memory as [N, H, V, K]: the same tile S^T, other axes. A bf16 state
// is computed in f32 and rounded where it is stored.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK: %[[FIRST:.*]] = arith.muli %vt
// CHECK: %[[IN:.*]] = gdn_tile.load %initial_state[%n, %h, %[[FIRST]], %{{.*}}] axes [2, 3] {{.*}} -> tensor<16x64xbf16>
// CHECK: %[[S0:.*]] = arith.extf %[[IN]] {gdn_tile.step = "state"}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S0]]) -> (tensor<16x64xf32>)
// CHECK: %[[OUT:.*]] = arith.truncf {{.*}} to tensor<16x64xbf16>
// CHECK: gdn_tile.store %[[OUT]], %final_state[%n, %h, %[[FIRST]], %{{.*}}] axes [2, 3]
func.func @layer(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x32xf32>,
    %beta: tensor<1x64x4xf32>, %initial: tensor<1x4x32x64xbf16>) -> tensor<1x4x32x64xbf16> {
  %o, %state = gdn.stage.fused q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      initial_state(%initial : tensor<1x4x32x64xbf16>)
      {chunk_size = 32, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x64x4x32xf32>, tensor<1x4x32x64xbf16>
  return %state : tensor<1x4x32x64xbf16>
}
