// Two value heads that share a query head, neither a multiple of the chunk nor
// of an iteration.
func.func @forward(%q: tensor<1x150x1x128xbf16>, %k: tensor<1x150x1x128xbf16>,
                   %v: tensor<1x150x2x128xbf16>, %beta: tensor<1x150x2xf32>,
                   %gate: tensor<1x150x2xf32>)
    -> (tensor<1x150x2x128xbf16>, tensor<1x2x128x128xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x150x1x128xbf16>) k(%k : tensor<1x150x1x128xbf16>)
      v(%v : tensor<1x150x2x128xbf16>) beta(%beta : tensor<1x150x2xf32>)
      gate(%gate : tensor<1x150x2xf32>) {output_final_state}
      -> tensor<1x150x2x128xbf16>, tensor<1x2x128x128xf32>
  return %o, %state : tensor<1x150x2x128xbf16>, tensor<1x2x128x128xf32>
}
