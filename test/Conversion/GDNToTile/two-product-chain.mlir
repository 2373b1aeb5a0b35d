// RUN: gdn-opt %s --convert-gdn-to-tile=two-product-chain --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// The chain of two products (spec 3.5). With Y = -Bm Diag(beta) in f16, which
// two products beside the chain take, X = b (I + Y)^T K and R = P b (I + Y); the
// identity's part is added in f32 and each is rounded once.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK: %[[Y32:.*]] = gdn_tile.inverse
// CHECK: %[[Y:.*]] = arith.truncf %[[Y32]] {gdn_tile.step = "solve"} : tensor<32x32xf32> to tensor<32x32xf16>
// CHECK: %[[BK:.*]] = arith.mulf {{.*}}"solve"} : tensor<32x64xf32>
// CHECK: %[[BKH:.*]] = arith.truncf %[[BK]] {{.*}} to tensor<32x64xf16>
// CHECK: %[[X32:.*]] = linalg.contract {{.*}}"solve"} ins(%[[Y]], %[[BKH]] : {{.*}}) outs(%[[BK]] :
// CHECK: %[[X:.*]] = arith.truncf %[[X32]] {{.*}} to tensor<32x64xbf16>
// CHECK: %[[PB:.*]] = arith.mulf {{.*}}"solve"} : tensor<32x32xf32>
// CHECK: %[[PBH:.*]] = arith.truncf %[[PB]] {{.*}} to tensor<32x32xf16>
// CHECK: %[[R32:.*]] = linalg.contract {{.*}}"solve"} ins(%[[PBH]], %[[Y]] : {{.*}}) outs(%[[PB]] :
// CHECK: %[[R:.*]] = arith.truncf %[[R32]] {{.*}} to tensor<32x32xbf16>

// The state waits for K S and X^T W; there is no product with the solve.
// CHECK: %[[W:.*]] = arith.subf {{.*}}"state"} : tensor<16x32xf32>
// CHECK: %[[WB:.*]] = arith.truncf %[[W]] {{.*}} to tensor<16x32xbf16>
// CHECK: linalg.contract {{.*}}"state"} ins(%[[WB]], %[[R]] :
// CHECK: linalg.contract {{.*}}"state"} ins(%[[WB]], %[[X]] :
// CHECK-NOT: linalg.contract
// CHECK-LABEL: func.func @layer
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>) -> (tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>) {
  %o, %s = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32}
      -> tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>
  return %o, %s : tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>
}

// Plain linear attention has no solve to fold.
// CHECK-LABEL: gdn_tile.program @plain_linear_attention(
// CHECK-NOT: f16>, tensor<32x32xf16>
// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>) -> tensor<1x64x4x16xf32> {
  %o = gdn.stage.linear_attention q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) {chunk_size = 32} -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}
