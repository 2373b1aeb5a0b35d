// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s

// Norms of keys are made with the gates and reach all by the same channel; what makes M loads them behind the product
// that it began. The warps of the scores that hold queries sum their squares when the scores are stored, with which the
// norms are handed on. Tiles of the state are multiplied by no norm: the solve's result is, by lengths and norms. What is
// the same in each trip is loaded once.
// CHECK: gdn_warp.role "scores"
// CHECK: scf.for
// CHECK: %[[BEGUN:.*]] = gdn_warp.product %[[ROWS:.*]], %{{.*}} transpose_b
// CHECK: gdn_warp.barrier_wait
// CHECK: %[[PRODUCT:.*]] = gdn_warp.await 0 of %[[BEGUN]]
// CHECK-NOT: gdn_warp.fragment_load
// CHECK: gdn_warp.vector_load %{{.*}} : <32xf32> -> tensor<64xf32, #gdn_warp.rows>
// CHECK: gdn_warp.vector_load %{{.*}} : <32xf32> -> tensor<32xf32, #gdn_warp.columns>
// CHECK: gdn_warp.fragment_store {{.*}} rows [32, 64] guarded
// CHECK: scf.if
// CHECK: %[[SQUARES:.*]] = gdn_warp.row_dots %[[ROWS]], %[[ROWS]]
// CHECK: %[[SUM:.*]] = arith.addf %[[SQUARES]],
// CHECK: math.rsqrt %[[SUM]]
// CHECK-COUNT-2: gdn_warp.vector_store %{{.*}} rows [32, 64]
// CHECK: gdn_warp.role "solve"
// CHECK-NOT: gdn_warp.row_dots
// CHECK: gdn_warp.solve %{{.*}}, %{{.*}} times %{{.*}}, %{{.*}} :
// CHECK: gdn_warp.role "gates"
// CHECK: gdn_warp.array_load %dt_bias
// CHECK: scf.for
// CHECK-NOT: gdn_warp.array_load %dt_bias
// CHECK-COUNT-2: gdn_warp.row_dots
// CHECK-NOT: gdn_warp.row_dots
// CHECK: gdn_warp.role "state"
// CHECK: %[[READ:.*]] = gdn_warp.product negate
// CHECK: %[[MINUS:.*]] = gdn_warp.await 0 of %[[READ]]
// CHECK: arith.addf %{{.*}}, %[[MINUS]]
// CHECK-NOT: gdn_warp.row_dots
func.func @layer(%q: tensor<4x?x16x128xbf16>, %v: tensor<4x?x64x128xbf16>, %beta: tensor<4x?x64xbf16>,
                 %p: tensor<64xf32>) -> tensor<4x?x64x128xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<4x?x16x128xbf16>) k(%q : tensor<4x?x16x128xbf16>)
      v(%v : tensor<4x?x64x128xbf16>) beta(%beta : tensor<4x?x64xbf16>) gate(%beta : tensor<4x?x64xbf16>)
      a_log(%p : tensor<64xf32>) dt_bias(%p : tensor<64xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, qk_l2norm} -> tensor<4x?x64x128xbf16>
  return %o : tensor<4x?x64x128xbf16>
}
