// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s

// The squares of keys are on the diagonal of the product that M is made of. The warps that hold keys, and no others, make
// their norms of it, hand on what depends on them, and multiply the rows of M; what that takes was loaded under the
// product. The solve multiplies the columns, when it rounds M, and what it makes. A warp sums the squares of queries; the
// one that moves makes the gates, of both chunks by turns. No product of the state is multiplied by a norm.
// CHECK: gdn_warp.role "scores"
// CHECK: scf.for
// CHECK: %[[BEGUN:.*]] = gdn_warp.wgmma %{{.*}}, %{{.*}} transpose_b
// CHECK-COUNT-3: gdn_warp.barrier_wait
// CHECK: gdn_warp.vector_load %{{.*}} : <32xbf16> -> tensor<64xbf16, #gdn_warp.rows>
// CHECK: %[[PRODUCT:.*]] = gdn_warp.wgmma_wait 0 of %[[BEGUN]]
// CHECK: scf.if
// CHECK: %[[SQUARES:.*]] = gdn_warp.diagonal %[[PRODUCT]] from 0
// CHECK: %[[SUM:.*]] = arith.addf %[[SQUARES]],
// CHECK: %[[NORM:.*]] = math.rsqrt %[[SUM]]
// CHECK: arith.mulf %{{.*}}, %[[NORM]]
// CHECK: %[[WEIGHTS:.*]] = linalg.broadcast
// CHECK: arith.mulf %[[PRODUCT]], %[[WEIGHTS]]
// CHECK: %[[CUT:.*]] = gdn_warp.causal strict %{{.*}} : tensor<64x32xf32, #gdn_warp.fragment>
// CHECK-COUNT-4: gdn_warp.vector_store %{{.*}} rows [0, 32]
// CHECK: gdn_warp.fragment_store %[[CUT]], %{{.*}} transpose rows [0, 32] guarded : {{.*}} -> <32x32xf32, stride = 144>
// CHECK: gdn_warp.fragment_store {{.*}} rows [32, 64] guarded
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.array_load %dt_bias
// CHECK: scf.for
// CHECK-NOT: gdn_warp.array_load %dt_bias
// CHECK: gdn_tile.scan
// CHECK-NOT: math.exp2
// CHECK: gdn_tile.scan
// CHECK: gdn_warp.role "solve"
// CHECK: gdn_warp.tri_inverse %{{.*}} by(%{{.*}} : !gdn_warp.view<32xf32>), %{{.*}} times %{{.*}}, %{{.*}} : <32x32xf32, stride = 144>
// CHECK: gdn_warp.role "queries"
// CHECK: %[[QUERIES:.*]] = gdn_warp.row_dots %[[Q:.*]], %[[Q]] :
// CHECK: %[[QSUM:.*]] = arith.addf %[[QUERIES]],
// CHECK: math.rsqrt %[[QSUM]]
// CHECK-NOT: gdn_warp.row_dots
// CHECK: gdn_warp.role "state"
// CHECK: %[[READ:.*]] = gdn_warp.wgmma negate
// CHECK: gdn_warp.barrier_wait
// CHECK: %[[MINUS:.*]] = gdn_warp.wgmma_wait 0 of %[[READ]]
// CHECK: math.fma %[[MINUS]],
// CHECK-NOT: gdn_warp.row_dots
func.func @layer(%q: tensor<4x?x16x128xbf16>, %v: tensor<4x?x64x128xbf16>, %beta: tensor<4x?x64xbf16>,
                 %p: tensor<64xf32>) -> tensor<4x?x64x128xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<4x?x16x128xbf16>) k(%q : tensor<4x?x16x128xbf16>)
      v(%v : tensor<4x?x64x128xbf16>) beta(%beta : tensor<4x?x64xbf16>) gate(%beta : tensor<4x?x64xbf16>)
      a_log(%p : tensor<64xf32>) dt_bias(%p : tensor<64xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, qk_l2norm} -> tensor<4x?x64x128xbf16>
  return %o : tensor<4x?x64x128xbf16>
}
