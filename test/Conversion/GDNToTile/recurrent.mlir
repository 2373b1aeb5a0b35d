// RUN: gdn-opt %s --gdn-plan-stages --convert-gdn-to-tile=operand-type=bf16 --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Token by token (spec 1), in f32 whatever the operand type: only the output is
// rounded, to its own type.

// CHECK-LABEL: gdn_tile.program @decode_recurrent(
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: scf.for %{{.*}} = %begin to %end step %[[ONE]] iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<16x64xf32>)
// CHECK-NOT: arith.truncf
// CHECK: %[[DECAY:.*]] = math.exp2 %{{.*}}"gates"} : tensor<1xf32>
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[DECAY]]
// CHECK: %[[TILE:.*]] = tensor.splat %[[NUMBER]]
// CHECK: %[[SBAR:.*]] = arith.mulf %[[S]], %[[TILE]]
// CHECK: %[[READ:.*]] = linalg.contract {{.*}} ins(%[[SBAR]], %[[K:.*]] : tensor<16x64xf32>, tensor<64xf32>)
// CHECK: %[[E:.*]] = arith.subf %{{.*}}, %[[READ]]
// CHECK: %[[U:.*]] = arith.mulf %{{.*}}, %[[E]]
// CHECK: %[[US:.*]] = linalg.broadcast ins(%[[U]]
// CHECK: %[[KS:.*]] = linalg.broadcast ins(%[[K]]
// CHECK: %[[WRITE:.*]] = arith.mulf %[[US]], %[[KS]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[SBAR]], %[[WRITE]]
// CHECK: linalg.contract {{.*}} ins(%[[NEXT]], %
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
