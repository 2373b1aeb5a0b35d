// All that a model leaves to the layer: a raw gate with its parameters, logits of beta, rows of q and k to be
// normalised, a state before and after.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local
// What any level writes can be read again:
// RUN: gdn-compile %s --target=sm_90a --emit=ptx -o %t.direct
// RUN: gdn-compile %s --target=sm_90a --emit=warp -o %t.mlir && gdn-compile %t.mlir --target=sm_90a --emit=ptx -o %t.again && cmp %t.direct %t.again

// CHECK: .entry layer_fused(
// CHECK: .maxntid 384
// CHECK-DAG: rsqrt.approx.ftz.f32
// CHECK-DAG: lg2.approx.ftz.f32
// CHECK-DAG: rcp.approx.ftz.f32
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>,
    %beta: tensor<1x?x32xbf16>, %gate: tensor<1x?x32xbf16>, %initial: tensor<1x32x128x128xf32>,
    %a_log: tensor<32xf32>, %dt_bias: tensor<32xf32>) -> (tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>)
      v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xbf16>) gate(%gate : tensor<1x?x32xbf16>)
      initial_state(%initial : tensor<1x32x128x128xf32>) a_log(%a_log : tensor<32xf32>)
      dt_bias(%dt_bias : tensor<32xf32>) {chunk_size = 32, qk_l2norm, gate_domain = #gdn.gate_domain<softplus>,
      beta_domain = #gdn.beta_domain<logit>} -> tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
  return %o, %state : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
}
