// A forward whose sequences are cut into segments: six kernels.
// RUN: gdn-compile %s --segments=8 --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local

// CHECK: .entry layer_segment_boundaries(
// CHECK: st.global.b32
// CHECK: .entry layer_segment_starts(
// CHECK: .entry layer_state_pass(
// CHECK: .entry layer_segment_map(
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: .entry layer_segment_scan(
// The maps are the left operand.
// CHECK: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
// What a segment adds is read under the product.
// CHECK: wgmma.commit_group
// CHECK: ld.shared.b32
// CHECK: wgmma.wait_group
// CHECK: .entry layer_fused(
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>,
    %gate: tensor<1x?x32xf32>, %h0: tensor<?x32x128x128xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>)
      v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>)
      initial_state(%h0 : tensor<?x32x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) {output_final_state}
      -> tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %ht : tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
