// A step of training in segments of a length that a call chooses: a forward that saves, and the backward.
func.func @step(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2xf32>, %h0: tensor<?x2x64x64xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x2x64xbf16>, %dht: tensor<?x2x64x64xf32>,
    %length: index {gdn.cut = "segment_length"}) -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>, tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x64x64xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>)
      initial_state(%h0 : tensor<?x2x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>) {output_final_state, state_interval = 128 : i64}
      -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>, tensor<1x?x2x64xbf16>, tensor<?x2x64x64xbf16>
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>)
      initial_state(%h0 : tensor<?x2x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x2x64xbf16>) d_final_state(%dht : tensor<?x2x64x64xf32>)
      writes(%r#2 : tensor<1x?x2x64xbf16>) states(%r#3 : tensor<?x2x64x64xbf16>) {state_interval = 128 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x64x64xf32>
  return %r#0, %r#1, %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>, tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x64x64xf32>
}
