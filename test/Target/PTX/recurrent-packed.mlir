// Outputs of tokens in front of the first sequence and behind the last one are zeros: a store for each token of a loop over
// them has no end, but the array has.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s

// CHECK: gdn_warp.sequence_by_rank %cu_seqlens, %{{.*}} in_order
// CHECK: gdn_warp.array_clear %o[
// CHECK: gdn_warp.array_clear %o[
// CHECK: gdn_warp.role "state"
func.func @layer(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?xf32>, %s: tensor<?x?x128x128xf32>, %c: tensor<?xi32>) -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>) initial_state(%s : tensor<?x?x128x128xf32>)
      cu_seqlens(%c : tensor<?xi32>) {output_final_state} -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %t : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
