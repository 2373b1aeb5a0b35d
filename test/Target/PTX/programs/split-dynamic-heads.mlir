// The scan over segments knows the heads by its outputs: the array that has told them is not its own.
// RUN: gdn-compile %s --segments=8 --target=sm_90a --emit=ptx | FileCheck %s
// CHECK: .entry layer_segment_scan(
// CHECK: .entry layer_fused(
func.func @layer(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?xf32>, %h0: tensor<?x?x128x128xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>)
      v(%v : tensor<1x?x?x128xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>)
      initial_state(%h0 : tensor<?x?x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) {output_final_state}
      -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %ht : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
