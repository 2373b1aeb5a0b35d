// The backward of a training step on Hopper, from states that its forward saved every 128 tokens, is two kernels.
// RUN: gdn-compile %s --follow-adjoint --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local --implicit-check-not=.entry

// CHECK: .entry layer_adjoint(
// CHECK: .entry layer_gradients(
func.func @layer(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>,
    %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?xf32>, %initial_state: tensor<?x?x128x128xf32>,
    %cu_seqlens: tensor<?xi32>, %d_o: tensor<1x?x?x128xbf16>, %d_final_state: tensor<?x?x128x128xf32>,
    %writes: tensor<1x?x?x128xbf16>, %states: tensor<?x?x128x128xbf16>)
    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>,
        tensor<?x?x128x128xf32>) {
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>)
      v(%v : tensor<1x?x?x128xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>)
      initial_state(%initial_state : tensor<?x?x128x128xf32>) cu_seqlens(%cu_seqlens : tensor<?xi32>)
      d_o(%d_o : tensor<1x?x?x128xbf16>) d_final_state(%d_final_state : tensor<?x?x128x128xf32>)
      writes(%writes : tensor<1x?x?x128xbf16>) states(%states : tensor<?x?x128x128xbf16>) {state_interval = 128 : i64}
      -> tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>,
         tensor<?x?x128x128xf32>
  return %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>,
      tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>, tensor<?x?x128x128xf32>
}
