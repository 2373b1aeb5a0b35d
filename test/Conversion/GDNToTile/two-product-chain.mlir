// RUN: gdn-opt %s --convert-gdn-to-tile=two-product-chain --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// The chain of two products (spec 3.5). With Y = -Diag(beta) Bm in f16, which
// two products beside the chain take, X = (I + Y)^T K and R = P (I + Y); the
// identity's part is added in f32 and each is rounded once.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK: %[[Y32:.*]] = gdn_tile.tri_inverse
// CHECK: %[[Y:.*]] = arith.truncf %[[Y32]] {gdn_tile.step = "solve"} : tensor<32x32xf32> to tensor<32x32xf16>
// CHECK: %[[K:.*]] = arith.extf {{.*}}"solve"} : tensor<32x64xbf16> to tensor<32x64xf32>
// CHECK: %[[KH:.*]] = arith.truncf %[[K]] {{.*}} to tensor<32x64xf16>
// CHECK: %[[X32:.*]] = linalg.contract {{.*}}"solve"} ins(%[[Y]], %[[KH]] : {{.*}}) outs(%[[K]] :
// CHECK: %[[X:.*]] = arith.truncf %[[X32]] {{.*}} to tensor<32x64xbf16>
// CHECK: %[[P:.*]] = arith.extf %[[PH:[0-9]+]] {gdn_tile.step = "solve"} : tensor<32x32xf16> to tensor<32x32xf32>
// CHECK: %[[R32:.*]] = linalg.contract {{.*}}"solve"} ins(%[[PH]], %[[Y]] : {{.*}}) outs(%[[P]] :
// CHECK: %[[R:.*]] = arith.truncf %[[R32]] {{.*}} to tensor<32x32xbf16>

// The state waits for K S and X^T W; there is no product with the solve.
// CHECK: %[[KS:.*]] = linalg.contract {{.*}}"state"}
// CHECK: %[[BETA:.*]] = linalg.broadcast {{.*}} dimensions = [0] {gdn_tile.step = "state"}
// CHECK: %[[BV:.*]] = arith.mulf %{{.*}}, %[[BETA]] {{.*}}"state"}
// CHECK: %[[BKS:.*]] = arith.mulf %[[KS]], %[[BETA]] {{.*}}"state"}
// CHECK: %[[W:.*]] = arith.subf %[[BV]], %[[BKS]] {{.*}}"state"} : tensor<16x32xf32>
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

// Rows are normalised when they are loaded: f16 has no room for products of rows of any length.
// CHECK-LABEL: gdn_tile.program @normed_fused(
// CHECK: math.rsqrt {{.*}}"norms"}
// CHECK: arith.truncf %{{.*}} {gdn_tile.step = "norms"} : tensor<32x64xf32> to tensor<32x64xbf16>
// CHECK-NOT: gdn_tile.diagonal
// CHECK-LABEL: func.func @normed
func.func @normed(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>)
    -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32, qk_l2norm}
      -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
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
