// A forward that saves, whose outputs have the bits of any prefix (prefix.c).
func.func @layer(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2xf32>, %h0: tensor<?x2x128x128xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xbf16>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>)
      initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) {output_final_state, state_interval = 128 : i64} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xbf16>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xbf16>
}
