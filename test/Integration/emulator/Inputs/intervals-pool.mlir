// The same of normed rows with states [V, K] in a pool: the state's chunks are a loop.
func.func @layer(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x1x128xbf16>, %beta: tensor<1x?x1xf32>,
                 %gate: tensor<1x?x1xf32>, %pool: tensor<?x1x128x64xf32> {bufferization.writable = true}, %cu: tensor<?xi32>,
                 %rows: tensor<?xi32>, %first: index, %kept: tensor<?x1x128x64xf32> {bufferization.writable = true},
                 %starts: tensor<?xi32>, %every: tensor<?xi32>)
    -> (tensor<1x?x1x128xbf16>, tensor<?x1x128x64xf32>, tensor<?x1x128x64xf32>) {
  %o, %last, %states = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>)
      v(%v : tensor<1x?x1x128xbf16>) beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1xf32>)
      initial_state(%pool : tensor<?x1x128x64xf32>) cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>)
      first_state(%first : index) step_states(%kept : tensor<?x1x128x64xf32>) step_starts(%starts : tensor<?xi32>)
      step_intervals(%every : tensor<?xi32>) {output_final_state, qk_l2norm, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x?x1x128xbf16>, tensor<?x1x128x64xf32>, tensor<?x1x128x64xf32>
  return %o, %last, %states : tensor<1x?x1x128xbf16>, tensor<?x1x128x64xf32>, tensor<?x1x128x64xf32>
}
