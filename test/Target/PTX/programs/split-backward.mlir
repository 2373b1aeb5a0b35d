// A backward whose sequences are cut into segments: eleven kernels. The two scans over segments read the same maps.
// RUN: gdn-compile %s --segments=8 --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local --implicit-check-not=.red.global --implicit-check-not=atom.global

// CHECK: .entry layer_segment_boundaries(
// CHECK: .entry layer_segment_starts(
// CHECK: .entry layer_segment_starts_0(
// CHECK: .entry layer_adjoint_pass(
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: .entry layer_segment_map(
// CHECK: .entry layer_state_pass(
// CHECK: .entry layer_segment_scan(
// CHECK: .entry layer_segment_scan_1(
// CHECK: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
// CHECK: .entry layer_adjoint(
// CHECK: .entry layer_replay(
// CHECK: .entry layer_gradients(
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32xf32>, %h0: tensor<?x32x128x128xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x32x128xbf16>, %dht: tensor<?x32x128x128xf32>)
    -> (tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>)
      initial_state(%h0 : tensor<?x32x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x32x128xbf16>) d_final_state(%dht : tensor<?x32x128x128xf32>) -> tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>
}
