// A layer for any number of heads.
func.func @heads(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                 %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xf32>,
                 %gate: tensor<?x?x?xf32>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>)
      v(%v : tensor<?x?x?x128xbf16>) beta(%beta : tensor<?x?x?xf32>)
      gate(%gate : tensor<?x?x?xf32>) {output_final_state}
      -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %state : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
