// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// The recurrence without read-out: no queries, no scores but K K^T, nothing
// stored inside the loop.

// CHECK-LABEL: gdn_tile.program @layer_state_pass(%k: {{.*}} %v: {{.*}} %beta: {{.*}} %gate: {{[^%]*}}) outs(%final_state:
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK-NOT: gdn_tile.load %q
// CHECK-COUNT-1: linalg.contract {{.*}}"scores"}
// CHECK-NOT: linalg.contract {{.*}}"scores"}
// CHECK-NOT: gdn_tile.store
// CHECK: {{^    }}}
// S^ times the decay since its reference point.
// CHECK: %[[DECAY:.*]] = math.exp2 %[[LOOP]]#1 : f32
// CHECK: %[[TILE:.*]] = tensor.splat %[[DECAY]] {gdn_tile.step = "state"}
// CHECK: %[[S:.*]] = arith.mulf %[[LOOP]]#0, %[[TILE]]
// CHECK: gdn_tile.store %[[S]], %final_state
// CHECK: gdn_tile.launch @layer_state_pass {{.*}} ins(%arg1, %arg2, %arg3, %arg4 :
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) -> tensor<1x4x64x16xf32> {
  %state = gdn.stage.state_pass q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {chunk_size = 32} -> tensor<1x4x64x16xf32>
  return %state : tensor<1x4x64x16xf32>
}
