// Kimi Delta Attention with two V tiles of a head: the CTAs of a cluster make the decayed tiles of every other iteration for
// both.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s -DTHREADS=512 -DMOVE=8 -DSTATE=12
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX --implicit-check-not=.local
// Tiles of gates of any strength need more shared memory, but still fit.
// RUN: sed 's/gate_domain<bounded>, lower_bound = -5.0 : f64/gate_domain<softplus>, chunk_size = 16 : i64/' %s | gdn-compile - --target=sm_90a --emit=warp | FileCheck %s -DTHREADS=384 -DMOVE=4 -DSTATE=8

// CHECK: gdn_warp.kernel @kda_fused({{.*}} threads([[THREADS]]) {{.*}} cluster(2)
// CHECK: gdn_warp.role "prepare" {{.*}} {gdn_warp.alternate_ctas
// Keys, queries and gates are copied in the iterations of the CTA alone, values in all.
// CHECK: gdn_warp.role "move" warps([[MOVE]], 1)
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK: %[[OWNER:.*]] = arith.remui
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]], %[[RANK]]
// CHECK: scf.if %[[MINE]] {
// CHECK-DAG: gdn_warp.bulk_tensor_load %k
// CHECK-DAG: gdn_warp.bulk_tensor_load %q
// CHECK-DAG: gdn_warp.bulk_tensor_load %gate
// CHECK-NOT: cluster_rank
// CHECK: gdn_warp.bulk_tensor_load %v
// CHECK: gdn_warp.role "norms" {{.*}} {gdn_warp.alternate_ctas
// CHECK: gdn_warp.role "state" warps([[STATE]], 4)

// PTX: .reqnctapercluster 2
func.func @kda(%q: tensor<1x?x4x128xbf16>, %k: tensor<1x?x4x128xbf16>, %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xbf16>,
    %gate: tensor<1x?x4x128xbf16>, %a: tensor<4xf32>, %d: tensor<4x128xf32>) -> tensor<1x?x4x128xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x4x128xbf16>) k(%k : tensor<1x?x4x128xbf16>) v(%v : tensor<1x?x4x128xbf16>)
      beta(%beta : tensor<1x?x4xbf16>) gate(%gate : tensor<1x?x4x128xbf16>) a_log(%a : tensor<4xf32>)
      dt_bias(%d : tensor<4x128xf32>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64,
      beta_domain = #gdn.beta_domain<logit>, qk_l2norm} -> tensor<1x?x4x128xbf16>
  return %o : tensor<1x?x4x128xbf16>
}
