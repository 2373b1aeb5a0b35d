// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// The ungated delta rule, the barest chunk: every product, every rounding and
// the step of each. The state is S^T (rows V, columns K) and everything of the
// chain is transposed with it (spec 3.3 with D = 1).

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK-SAME: %q: memref<1x64x2x64xbf16, strided<[?, ?, ?, 1], offset: ?>>, %k: {{.*}} %v: {{.*}} %beta: {{.*}} %initial_state:
// CHECK-SAME: outs(%o: {{.*}} %final_state:
// CHECK-SAME: work_item(%n, %h, %vt) tokens(%batch, %begin, %end)

// Value head h reads q/k head h / (H / Hq).
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[GROUP:.*]] = arith.constant 2 : index
// CHECK: %[[HQ:.*]] = arith.divui %h, %[[GROUP]]
// CHECK: %[[S0:.*]] = gdn_tile.load %initial_state[%n, %h, %[[ZERO]], %[[ZERO]]] axes [3, 2] {gdn_tile.step = "state"}
// CHECK-SAME: -> tensor<16x64xf32>
// CHECK: scf.for %[[T:.*]] = %begin to %end step %{{.*}} iter_args(%[[S:.*]] = %[[S0]])

// CHECK: %[[K:.*]] = gdn_tile.load %k[%batch, %[[T]], %[[HQ]], %[[ZERO]]] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
// CHECK-SAME: -> tensor<32x64xbf16>
// CHECK: %[[Q:.*]] = gdn_tile.load %q{{.*}} {gdn_tile.step = "load"}
// CHECK: %[[VIN:.*]] = gdn_tile.load %v[%batch, %[[T]], %h, %[[ZERO]]] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "load"}
// CHECK-SAME: -> tensor<16x32xbf16>
// CHECK: %[[V:.*]] = arith.extf %[[VIN]] {gdn_tile.step = "load"}
// CHECK: %[[BETA:.*]] = gdn_tile.load %beta{{.*}} {gdn_tile.step = "gates"}

// M = Diag(beta) Kk in the type that the solve takes, and the scores.
// CHECK: %[[KKF:.*]] = linalg.contract {{.*}}"scores"} ins(%[[K]], %[[K]] : {{.*}}) outs(%{{.*}} : tensor<32x32xf32>)
// CHECK: %[[QK:.*]] = linalg.contract {{.*}}"scores"} ins(%[[Q]], %[[K]] :
// CHECK: %[[ROWS:.*]] = linalg.broadcast ins(%[[BETA]] {{.*}} dimensions = [1] {gdn_tile.step = "scores"}
// CHECK: %[[KK:.*]] = arith.mulf %[[KKF]], %[[ROWS]] {{.*}}"scores"}
// CHECK: %[[MR:.*]] = arith.truncf %[[KK]] {gdn_tile.step = "scores"} : tensor<32x32xf32> to tensor<32x32xf16>
// CHECK: %[[M:.*]] = gdn_tile.causal strict %[[MR]] {gdn_tile.step = "scores"} : tensor<32x32xf16>
// CHECK: %[[PR:.*]] = arith.truncf %[[QK]] {gdn_tile.step = "scores"} : tensor<32x32xf32> to tensor<32x32xbf16>
// CHECK: %[[P:.*]] = gdn_tile.causal %[[PR]] {gdn_tile.step = "scores"} : tensor<32x32xbf16>

// -Diag(beta) Bm, rounded once.
// CHECK: %[[BMB:.*]] = gdn_tile.tri_inverse %[[M]] merge f16 {gdn_tile.step = "solve"}
// CHECK: %[[B:.*]] = arith.truncf %[[BMB]] {gdn_tile.step = "solve"} : tensor<32x32xf32> to tensor<32x32xbf16>

// W = b V - b K S; u = W - b Bm W with W itself in f32: no factor stands between its two products.
// CHECK: %[[SB:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: %[[READ:.*]] = linalg.contract {{.*}}"state"} ins(%[[SB]], %[[K]] :
// CHECK: %[[FACTORS:.*]] = linalg.broadcast ins(%[[BETA]] {{.*}} dimensions = [0] {gdn_tile.step = "state"}
// CHECK: %[[BV:.*]] = arith.mulf %[[V]], %[[FACTORS]] {{.*}}"state"}
// CHECK: %[[BREAD:.*]] = arith.mulf %[[READ]], %[[FACTORS]] {{.*}}"state"}
// CHECK: %[[W:.*]] = arith.subf %[[BV]], %[[BREAD]] {{.*}}"state"}
// CHECK: %[[WB:.*]] = arith.truncf %[[W]] {gdn_tile.step = "state"}
// CHECK: %[[UF:.*]] = linalg.contract {{.*}}"state"} ins(%[[WB]], %[[B]] : {{.*}}) outs(%[[W]] : tensor<16x32xf32>)
// CHECK: %[[OQ:.*]] = linalg.contract {{.*}}"state"} ins(%[[SB]], %[[Q]] :
// CHECK: %[[U:.*]] = arith.truncf %[[UF]] {gdn_tile.step = "state"}

// O = scale (Q S + P U) in one accumulation; S += K^T U on the f32 state.
// CHECK: %[[OF:.*]] = linalg.contract {{.*}}"state"} ins(%[[U]], %[[P]] : {{.*}}) outs(%[[OQ]] : tensor<16x32xf32>)
// CHECK: %[[NEXT:.*]] = linalg.contract {{.*}}"state"} ins(%[[U]], %[[K]] : {{.*}}) outs(%[[S]] : tensor<16x64xf32>)
// CHECK: %[[OS:.*]] = arith.mulf %[[OF]], %{{.*}}"state"}
// CHECK: %[[O:.*]] = arith.truncf %[[OS]] {gdn_tile.step = "state"}
// CHECK: gdn_tile.store %[[O]], %o[%batch, %[[T]], %h, %[[ZERO]]] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "store"}
// CHECK: scf.yield %[[NEXT]]
// CHECK: gdn_tile.store %{{.*}}, %final_state[%n, %h, %[[ZERO]], %[[ZERO]]] axes [3, 2]

// CHECK-LABEL: func.func @layer(
// CHECK: gdn_tile.launch @layer_fused grid(%{{.*}}, %{{.*}}, %{{.*}}) tokens(%{{.*}}) ins(%arg0, %arg1, %arg2, %arg3, %arg4 :
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %initial: tensor<1x4x64x16xf32>)
    -> (tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>)
      initial_state(%initial : tensor<1x4x64x16xf32>) {chunk_size = 32}
      -> tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>
  return %o, %state : tensor<1x64x4x16xbf16>, tensor<1x4x64x16xf32>
}
