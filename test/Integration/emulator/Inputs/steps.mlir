// Speculated tokens of packed sequences: chains, whose states go to rows of the pool, and trees, whose states go beside it.
func.func @chain(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>,
                 %gate: tensor<1x?x2xf32>, %pool: tensor<?x2x64x64xf32> {bufferization.writable = true}, %cu: tensor<?xi32>,
                 %rows: tensor<?xi32>, %first: index, %slots: tensor<?x?xi32>, %accepted: tensor<?xi32> {gdn.optional})
    -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      step_indices(%slots : tensor<?x?xi32>) num_accepted(%accepted : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %states : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}

func.func @tree(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>,
                %gate: tensor<1x?x2xf32>, %pool: tensor<?x2x64x64xf32>, %cu: tensor<?xi32>, %rows: tensor<?xi32>, %first: index,
                %kept: tensor<?x2x64x64xf32> {bufferization.writable = true}, %slots: tensor<?x?xi32>, %parents: tensor<?x?xi32>)
    -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      step_states(%kept : tensor<?x2x64x64xf32>) step_indices(%slots : tensor<?x?xi32>) parents(%parents : tensor<?x?xi32>)
      -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %states : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}
