// A backward of what a model's layer has: three kernels, one for the rows of q and of k, one for those of their gradients, one for the
// gates, and one that adds up what the work items of that have summed over tokens.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local --implicit-check-not=.red.global --implicit-check-not=atom.global

// CHECK: .entry layer_replay(
// CHECK: .entry layer_adjoint(
// CHECK: .entry layer_gradients(
// CHECK: .entry layer_map(
// CHECK: rsqrt.approx
// CHECK: .entry layer_map_1(
// CHECK: .entry layer_map_3(
// CHECK: .minnctapersm 4
// CHECK: .entry layer_sum(
// CHECK-NOT: .entry
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>,
    %gate: tensor<1x?x32xf32>, %initial_state: tensor<?x32x128x128xf32>, %cu_seqlens: tensor<?xi32>, %a_log: tensor<32xf32>,
    %dt_bias: tensor<32xf32>, %d_o: tensor<1x?x32x128xbf16>, %d_final_state: tensor<?x32x128x128xf32>) -> (tensor<1x?x16x128xbf16>,
    tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>, tensor<32xf32>,
    tensor<32xf32>) {
  %r:8 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>)
      beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>) initial_state(%initial_state : tensor<?x32x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) a_log(%a_log : tensor<32xf32>) dt_bias(%dt_bias : tensor<32xf32>)
      d_o(%d_o : tensor<1x?x32x128xbf16>) d_final_state(%d_final_state : tensor<?x32x128x128xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm} -> tensor<1x?x16x128xbf16>,
      tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>, tensor<32xf32>,
      tensor<32xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7 : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>,
      tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>, tensor<32xf32>, tensor<32xf32>
}
