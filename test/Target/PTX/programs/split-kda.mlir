// Forwards with a gate a channel whose sequences are cut into segments.
// RUN: gdn-compile %s --segments=8 --schedule=cta_per_head --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local
// RUN: gdn-opt %s --gdn-plan-stages --gdn-cp-split=segments=8 --gdn-to-warp=schedule=cta_per_head --remarks-filter=gdn-warp-choose-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHOSEN

// Chunks of 32 tokens leave registers for both V tiles in a CTA, but not beside norms of rows and gates in float32.
// CHOSEN-DAG: Function=layer_state_pass | Template=state_pass.channel_gates.cta_per_head.norms
// CHOSEN-DAG: Function=layer_segment_map | Template=state_pass.channel_gates.cta_per_head.norms
// CHOSEN-DAG: Function=wide_state_pass | Template=state_pass.channel_gates.norms
// CHOSEN-DAG: Function=any_state_pass | Template=state_pass.channel_gates

// CHECK: .entry layer_state_pass(
// CHECK: setmaxnreg.dec.sync.aligned.u32 120;
// CHECK: setmaxnreg.dec.sync.aligned.u32 72;
// CHECK: setmaxnreg.inc.sync.aligned.u32 160;
// CHECK: .entry layer_segment_map(
// A thread adds up the gates of its channels, which lie in its rows of a tile, and stores them.
// CHECK: setmaxnreg.dec.sync.aligned.u32 120;
// CHECK: st.global.b32
// The diagonal is made again behind the chunks.
// CHECK: setmaxnreg.inc.sync.aligned.u32 160;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: mov.u32 {{.*}}, %tid.x;
// CHECK: setp.eq.b32
// CHECK: st.global.b16
// CHECK: .entry layer_segment_scan(
// CHECK: .entry layer_fused(
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xbf16>, %gate: tensor<1x?x32x128xbf16>,
    %h0: tensor<?x32x128x128xf32>, %cu: tensor<?xi32>, %a: tensor<32xf32>, %d: tensor<32x128xf32>) -> (tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>)
      beta(%beta : tensor<1x?x32xbf16>) gate(%gate : tensor<1x?x32x128xbf16>) initial_state(%h0 : tensor<?x32x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) a_log(%a : tensor<32xf32>) dt_bias(%d : tensor<32x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<logit>, qk_l2norm, chunk_size = 32 : i64, output_final_state}
      -> tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %ht : tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
func.func @wide(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32x128xf32>,
    %cu: tensor<?xi32>, %a: tensor<32xf32>, %d: tensor<32x128xf32>) -> tensor<1x?x32x128xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>)
      beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32x128xf32>) cu_seqlens(%cu : tensor<?xi32>) a_log(%a : tensor<32xf32>) dt_bias(%d : tensor<32x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, qk_l2norm, chunk_size = 32 : i64} -> tensor<1x?x32x128xbf16>
  return %o : tensor<1x?x32x128xbf16>
}
func.func @any(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32x128xf32>,
    %h0: tensor<?x32x128x128xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>)
      beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32x128xf32>) initial_state(%h0 : tensor<?x32x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {chunk_size = 16 : i64, output_final_state} -> tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %ht : tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
