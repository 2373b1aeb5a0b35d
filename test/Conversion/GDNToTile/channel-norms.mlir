// RUN: gdn-opt %s --gdn-plan-stages=backward=three --convert-gdn-to-tile="v-tiles=2" --canonicalize --cse --gdn-tile-verify-form | FileCheck %s

// Gradients of rows in front of their norm: each half of K has a part of the row dots, and takes that of the other one. Keys come
// first, and are stored before queries begin. Nothing is added up over a group.
// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK-SAME: %q_rstd: memref<1x?x2xf32,{{.*}}%k_rstd: memref<1x?x2xf32,
// CHECK-NOT: %sums
// CHECK-DAG: %[[QUERY_NORM:.*]] = gdn_tile.load %q_rstd[{{.*}}gdn_tile.step = "gates"
// CHECK-DAG: %[[KEY_NORM:.*]] = gdn_tile.load %k_rstd[{{.*}}gdn_tile.step = "gates"
// CHECK: %[[LOW_DOTS:.*]] = linalg.reduce {{.*}} dimensions = [1] {{.*}}gdn_tile.step = "low_keys"}
// CHECK: %[[HIGH_DOTS:.*]] = linalg.reduce {{.*}} dimensions = [1] {{.*}}gdn_tile.step = "high_keys"}
// CHECK: %[[LOW:.*]] = arith.addf %[[LOW_DOTS]], %[[HIGH_DOTS]] {{.*}}gdn_tile.step = "low_keys"}
// CHECK: %[[MINUS:.*]] = arith.negf %[[LOW]]
// CHECK: %[[ALONG:.*]] = linalg.broadcast ins(%[[MINUS]] : tensor<64xf32>) outs(%{{.*}} : tensor<64x64xf32>) dimensions = [1]
// CHECK: %[[PART:.*]] = arith.mulf %{{.*}}, %[[ALONG]]
// CHECK: %[[REST:.*]] = arith.addf %{{.*}}, %[[PART]]
// CHECK: %[[NORMS:.*]] = linalg.broadcast ins(%[[KEY_NORM]]
// CHECK: %[[DK:.*]] = arith.mulf %[[REST]], %[[NORMS]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[DK]]
// CHECK: gdn_tile.store %[[ROUNDED]], %dk[{{.*}}gdn_tile.step = "low_keys"
// CHECK: arith.addf %[[HIGH_DOTS]], %[[LOW_DOTS]] {{.*}}gdn_tile.step = "high_keys"}
// CHECK: gdn_tile.store {{.*}}, %dk[{{.*}}gdn_tile.step = "high_keys"
// CHECK: linalg.reduce {{.*}} dimensions = [1] {{.*}}gdn_tile.step = "low_queries"}
// CHECK: linalg.reduce {{.*}} dimensions = [1] {{.*}}gdn_tile.step = "high_queries"}
// CHECK: linalg.broadcast ins(%[[QUERY_NORM]]
// CHECK: gdn_tile.store {{.*}}, %dq[{{.*}}gdn_tile.step = "low_keys"
// CHECK: gdn_tile.store {{.*}}, %dq[{{.*}}gdn_tile.step = "high_keys"
// CHECK: gdn_tile.store {{.*}}, %dgate[{{.*}}gdn_tile.step = "low_keys"
// CHECK: gdn_tile.store {{.*}}, %dgate[{{.*}}gdn_tile.step = "high_keys"
func.func @layer(%q: tensor<1x?x2x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2x128xbf16>, %cu: tensor<?xi32>)
    -> (tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>) {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x128xbf16>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0, qk_l2norm}
      -> tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x128xbf16>
  return %r#0, %r#1, %r#4 : tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>
}
