// Speculated tokens that are a tree, with states after them beside the pool, whose rows get the last ones. In 16 bits they are
// rounded after each token.
func.func @layer(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x4x64xbf16>, %beta: tensor<?x?x4xf32>,
                 %gate: tensor<?x?x4xf32>, %pool: tensor<?x4x64x128xbf16> {bufferization.writable = true}, %rows: tensor<?xi32>,
                 %first: index, %kept: tensor<?x4x64x128xbf16> {bufferization.writable = true}, %slots: tensor<?x?xi64>,
                 %parents: tensor<?x?xi32>)
    -> (tensor<?x?x4x64xbf16>, tensor<?x4x64x128xbf16>, tensor<?x4x64x128xbf16>) {
  %o, %states, %steps = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x2x128xbf16>) k(%k : tensor<?x?x2x128xbf16>)
      v(%v : tensor<?x?x4x64xbf16>) beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4xf32>)
      initial_state(%pool : tensor<?x4x64x128xbf16>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      step_states(%kept : tensor<?x4x64x128xbf16>) step_indices(%slots : tensor<?x?xi64>) parents(%parents : tensor<?x?xi32>)
      {output_final_state, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x4x64xbf16>, tensor<?x4x64x128xbf16>, tensor<?x4x64x128xbf16>
  return %o, %states, %steps : tensor<?x?x4x64xbf16>, tensor<?x4x64x128xbf16>, tensor<?x4x64x128xbf16>
}
