// The gradients of a Gated DeltaNet layer with an initial state, given those of
// its outputs and of its final state.
//
//   gdn-run docs/examples/backward.mlir --dim T=256 --check
func.func @backward(%q: tensor<1x?x2x128xbf16>, %k: tensor<1x?x2x128xbf16>,
                    %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>,
                    %gate: tensor<1x?x4xf32>, %initial: tensor<1x4x128x128xf32>,
                    %d_o: tensor<1x?x4x128xbf16>,
                    %d_state: tensor<1x4x128x128xf32>)
    -> (tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>,
        tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>,
        tensor<1x4x128x128xf32>) {
  %dq, %dk, %dv, %dbeta, %dgate, %dinitial = gdn.chunk_gated_delta_rule_bwd
      q(%q : tensor<1x?x2x128xbf16>) k(%k : tensor<1x?x2x128xbf16>)
      v(%v : tensor<1x?x4x128xbf16>) beta(%beta : tensor<1x?x4xf32>)
      gate(%gate : tensor<1x?x4xf32>)
      initial_state(%initial : tensor<1x4x128x128xf32>)
      d_o(%d_o : tensor<1x?x4x128xbf16>)
      d_final_state(%d_state : tensor<1x4x128x128xf32>)
      -> tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>,
         tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>,
         tensor<1x4x128x128xf32>
  return %dq, %dk, %dv, %dbeta, %dgate, %dinitial
      : tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>,
        tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>,
        tensor<1x4x128x128xf32>
}
