// RUN: gdn-opt %s --gdn-plan-stages --convert-gdn-to-tile=operand-type=bf16 --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Token by token (spec 1), in f32 whatever the operand type: only the output is
// rounded, to its own type.

// CHECK-LABEL: gdn_tile.program @decode_recurrent(
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: scf.for %{{.*}} = %begin to %end step %[[ONE]] iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<16x64xf32>)
// CHECK-NOT: arith.truncf
// CHECK: %[[DECAY:.*]] = math.exp2 %{{.*}}"gates"} : tensor<1xf32>
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[DECAY]]
// Neither product waits for the other one: both are with the state before the token.
// CHECK: %[[KS:.*]] = linalg.contract {{.*}} ins(%[[S]], %[[K:.*]] : tensor<16x64xf32>, tensor<64xf32>)
// CHECK: %[[KNOWN:.*]] = arith.mulf %[[KS]], %
// CHECK: %[[QS:.*]] = linalg.contract {{.*}} ins(%[[S]], %[[Q:.*]] : tensor<16x64xf32>, tensor<64xf32>)
// CHECK: %[[READ:.*]] = arith.mulf %[[QS]], %
// CHECK: %[[QK:.*]] = arith.mulf %[[Q]], %[[K]]
// CHECK: linalg.reduce {{.*}}ins(%[[QK]]
// CHECK: %[[E:.*]] = arith.subf %{{.*}}, %[[KNOWN]]
// CHECK: %[[U:.*]] = arith.mulf %{{.*}}, %[[E]]
// CHECK: %[[US:.*]] = linalg.broadcast ins(%[[U]]
// CHECK: %[[KEYS:.*]] = linalg.broadcast ins(%[[K]]
// CHECK: %[[WRITE:.*]] = arith.mulf %[[US]], %[[KEYS]]
// CHECK: %[[SBAR:.*]] = arith.mulf %[[S]], %
// CHECK: %[[NEXT:.*]] = arith.addf %[[SBAR]], %[[WRITE]]
// CHECK: %[[MORE:.*]] = arith.mulf %[[U]], %
// CHECK: arith.addf %[[READ]], %[[MORE]]
// CHECK: arith.truncf {{.*}}"store"}
// CHECK-NOT: arith.truncf
// CHECK: scf.yield %[[NEXT]]
func.func @decode(%q: tensor<8x1x2x64xbf16>, %k: tensor<8x1x2x64xbf16>, %v: tensor<8x1x4x16xbf16>,
    %beta: tensor<8x1x4xf32>, %gate: tensor<8x1x4xf32>, %initial: tensor<8x4x64x16xf32>)
    -> (tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>) {
  %o, %state = gdn.recurrent_gated_delta_rule q(%q : tensor<8x1x2x64xbf16>) k(%k : tensor<8x1x2x64xbf16>)
      v(%v : tensor<8x1x4x16xbf16>) beta(%beta : tensor<8x1x4xf32>) gate(%gate : tensor<8x1x4xf32>)
      initial_state(%initial : tensor<8x4x64x16xf32>) {output_final_state}
      -> tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>
  return %o, %state : tensor<8x1x4x16xbf16>, tensor<8x4x64x16xf32>
}
