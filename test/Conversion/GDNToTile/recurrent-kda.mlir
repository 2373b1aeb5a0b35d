// RUN: gdn-opt %s --gdn-plan-stages --convert-gdn-to-tile=operand-type=bf16 --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Token by token with a gate a channel: the state decays before both products, which are with it as they are with a gate
// a head with the state before the token. A_log and dt_bias are loaded with the gate, behind the state.

// CHECK-LABEL: gdn_tile.program @decode_recurrent(
// CHECK: gdn_tile.load %initial_state
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<16x64xf32>)
// CHECK-DAG: gdn_tile.load %dt_bias[{{.*}} -> tensor<64xf32>
// CHECK-DAG: gdn_tile.load %a_log[{{.*}} -> tensor<1xf32>
// CHECK-DAG: gdn_tile.load %gate[{{.*}} -> tensor<64xf32>
// CHECK: math.exp2 %{{.*}}"gates"} : tensor<64xf32>
// CHECK: %[[ROWS:.*]] = linalg.broadcast ins(%{{.*}} : tensor<64xf32>) outs(%{{.*}} : tensor<16x64xf32>) dimensions = [0]
// CHECK: %[[SBAR:.*]] = arith.mulf %[[S]], %[[ROWS]]
// CHECK: %[[KNOWN:.*]] = linalg.contract {{.*}} ins(%[[SBAR]], %[[K:.*]] : tensor<16x64xf32>, tensor<64xf32>)
// CHECK: %[[READ:.*]] = linalg.contract {{.*}} ins(%[[SBAR]], %[[Q:.*]] : tensor<16x64xf32>, tensor<64xf32>)
// CHECK: %[[E:.*]] = arith.subf %{{.*}}, %[[KNOWN]]
// CHECK: %[[WRITE:.*]] = arith.mulf %{{.*}}, %{{.*}}"state"} : tensor<16x64xf32>
// CHECK: %[[NEXT:.*]] = arith.addf %[[SBAR]], %[[WRITE]]
// CHECK: arith.addf %[[READ]], %
// CHECK: scf.yield %[[NEXT]]
func.func @decode(%q: tensor<8x1x2x64xbf16>, %k: tensor<8x1x2x64xbf16>, %v: tensor<8x1x4x16xbf16>,
    %beta: tensor<8x1x4xf32>, %gate: tensor<8x1x4x64xf32>, %initial: tensor<8x4x64x16xf32>, %a_log: tensor<4xf32>,
    %dt_bias: tensor<4x64xf32>) -> (tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>) {
  %o, %state = gdn.recurrent_gated_delta_rule q(%q : tensor<8x1x2x64xbf16>) k(%k : tensor<8x1x2x64xbf16>)
      v(%v : tensor<8x1x4x16xbf16>) beta(%beta : tensor<8x1x4xf32>) gate(%gate : tensor<8x1x4x64xf32>)
      initial_state(%initial : tensor<8x4x64x16xf32>) a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4x64xf32>)
      {output_final_state, gate_domain = #gdn.gate_domain<softplus>}
      -> tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>
  return %o, %state : tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>
}
