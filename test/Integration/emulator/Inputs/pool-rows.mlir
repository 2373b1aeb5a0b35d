// Batch rows whose states lie in a pool of 16 bits, as [V, K].
func.func @layer(%q: tensor<?x?x1x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x2x128xbf16>, %beta: tensor<?x?x2xf32>,
                 %gate: tensor<?x?x2xf32>, %pool: tensor<?x2x128x64xbf16> {bufferization.writable = true}, %rows: tensor<?xi64>)
    -> (tensor<?x?x2x128xbf16>, tensor<?x2x128x64xbf16>) {
  %o, %states = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x1x64xbf16>) k(%k : tensor<?x?x1x64xbf16>) v(%v : tensor<?x?x2x128xbf16>)
      beta(%beta : tensor<?x?x2xf32>) gate(%gate : tensor<?x?x2xf32>) initial_state(%pool : tensor<?x2x128x64xbf16>)
      state_indices(%rows : tensor<?xi64>) {output_final_state, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x2x128xbf16>, tensor<?x2x128x64xbf16>
  return %o, %states : tensor<?x?x2x128xbf16>, tensor<?x2x128x64xbf16>
}
