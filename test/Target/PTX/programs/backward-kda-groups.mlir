// Gradients with a gate a channel and any numbers of heads: those of a group are added up in memory, in f32. If a bound
// keeps gates in range, the last head rounds the sum.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s
// RUN: sed 's/gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0, //' %s > %t.mlir
// RUN: gdn-compile %t.mlir --target=sm_90a --emit=warp | FileCheck %s --check-prefix=ANY

// CHECK: gdn_warp.kernel @layer_gradients({{.*}} threads(512)
// Tokens in no sequence.
// CHECK-COUNT-2: gdn_warp.array_clear %dq[
// CHECK-COUNT-2: gdn_warp.array_clear %dk[
// CHECK: gdn_warp.role "low_keys_high_keys"
// CHECK: gdn_warp.array_load %sums[{{.*}} -> tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: gdn_warp.array_store %{{.*}}, %dk[{{.*}} : tensor<64x64xbf16, #gdn_warp.fragment>
// CHECK: gdn_warp.array_store %{{.*}}, %sums[{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: gdn_warp.array_store %{{.*}}, %dq[{{.*}} : tensor<64x64xbf16, #gdn_warp.fragment>

// ANY: gdn_warp.role "low_keys_high_keys"
// ANY: gdn_warp.array_store %{{.*}}, %dq[{{.*}} sum(%{{.*}}) : tensor<64x32xf32, #gdn_warp.fragment>
// ANY: gdn_warp.array_store %{{.*}}, %dk[{{.*}} sum(%{{.*}}) : tensor<64x32xf32, #gdn_warp.fragment>

// PTX: .visible .entry layer_{{replay|adjoint|gradients|map}}
func.func @layer(%q: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x128xf32>,
    %h0: tensor<?x?x128x128xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x128xbf16>) k(%q : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x128xf32>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x?x128xbf16>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0, qk_l2norm}
      -> tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>,
      tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
}
