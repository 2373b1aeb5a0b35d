// Speculated tokens of packed sequences, whose states go to rows of the pool (chains): each begins with the one of its last
// accepted token.
func.func @layer(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>,
                 %gate: tensor<1x?x4xf32>, %pool: tensor<?x4x64x64xf32> {bufferization.writable = true}, %cu: tensor<?xi32>,
                 %rows: tensor<?xi32>, %first: index, %slots: tensor<?x?xi32>, %accepted: tensor<?xi32> {gdn.optional})
    -> (tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) initial_state(%pool : tensor<?x4x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      step_indices(%slots : tensor<?x?xi32>) num_accepted(%accepted : tensor<?xi32>)
      {output_final_state, qk_l2norm} -> tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>
  return %o, %states : tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>
}
