// What the function of forward.sed computes.
func.func @layer(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x4x128xbf16>,
                 %beta: tensor<?x?x4xf32>, %gate: tensor<?x?x4xf32>)
    -> (tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule
      q(%q : tensor<?x?x2x128xbf16>) k(%k : tensor<?x?x2x128xbf16>)
      v(%v : tensor<?x?x4x128xbf16>) beta(%beta : tensor<?x?x4xf32>)
      gate(%gate : tensor<?x?x4xf32>)
      {output_final_state, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>
  return %o, %s : tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>
}
