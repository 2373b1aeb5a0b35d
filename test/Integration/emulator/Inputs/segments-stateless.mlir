// Packed sequences that begin at zero, to be cut into segments.
func.func @stateless(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>,
                     %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
                     %gate: tensor<1x?x2xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>)
      v(%v : tensor<1x?x2x128xbf16>) beta(%beta : tensor<1x?x2xf32>)
      gate(%gate : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %ht : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}
