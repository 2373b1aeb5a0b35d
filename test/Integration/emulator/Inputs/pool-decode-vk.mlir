// Decoding with states in a pool, which sequences begin with or not.
func.func @layer(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x4x64xbf16>, %beta: tensor<?x?x4xf32>,
                 %gate: tensor<?x?x4xf32>, %pool: tensor<?x4x64x128xf32> {bufferization.writable = true}, %rows: tensor<?xi32>,
                 %first: index, %flags: tensor<?xi8>) -> (tensor<?x?x4x64xbf16>, tensor<?x4x64x128xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x2x128xbf16>) k(%k : tensor<?x?x2x128xbf16>) v(%v : tensor<?x?x4x64xbf16>)
      beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4xf32>) initial_state(%pool : tensor<?x4x64x128xf32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index) has_initial_state(%flags : tensor<?xi8>)
      {output_final_state, state_layout = #gdn.state_layout<vk>} -> tensor<?x?x4x64xbf16>, tensor<?x4x64x128xf32>
  return %o, %states : tensor<?x?x4x64xbf16>, tensor<?x4x64x128xf32>
}
