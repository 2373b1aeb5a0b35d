// Batch rows with states [V, K] of 16 bits, to be cut into segments.
func.func @rows(%q: tensor<?x?x1x128xbf16>, %k: tensor<?x?x1x128xbf16>,
                %v: tensor<?x?x2x128xbf16>, %beta: tensor<?x?x2xf32>,
                %gate: tensor<?x?x2xf32>, %h0: tensor<?x2x128x128xbf16>)
    -> (tensor<?x?x2x128xbf16>, tensor<?x2x128x128xbf16>) {
  %o, %ht = gdn.chunk_gated_delta_rule
      q(%q : tensor<?x?x1x128xbf16>) k(%k : tensor<?x?x1x128xbf16>)
      v(%v : tensor<?x?x2x128xbf16>) beta(%beta : tensor<?x?x2xf32>)
      gate(%gate : tensor<?x?x2xf32>) initial_state(%h0 : tensor<?x2x128x128xbf16>)
      {output_final_state, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x2x128xbf16>, tensor<?x2x128x128xbf16>
  return %o, %ht : tensor<?x?x2x128xbf16>, tensor<?x2x128x128xbf16>
}
