// The same in bf16, with normalised rows.
func.func @step(%q: tensor<1x?x1x32xbf16>, %k: tensor<1x?x1x32xbf16>, %v: tensor<1x?x2x32xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2xf32>, %h0: tensor<?x2x32x32xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x2x32xbf16>, %dht: tensor<?x2x32x32xf32>)
    -> (tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x32x32xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x32xbf16>) k(%k : tensor<1x?x1x32xbf16>) v(%v : tensor<1x?x2x32xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>)
      initial_state(%h0 : tensor<?x2x32x32xf32>) cu_seqlens(%cu : tensor<?xi32>) {output_final_state, state_interval = 64 : i64, qk_l2norm} -> tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x2x32xbf16>, tensor<?x2x32x32xbf16>
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x32xbf16>) k(%k : tensor<1x?x1x32xbf16>) v(%v : tensor<1x?x2x32xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>)
      initial_state(%h0 : tensor<?x2x32x32xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x2x32xbf16>) d_final_state(%dht : tensor<?x2x32x32xf32>) writes(%r#2 : tensor<1x?x2x32xbf16>) states(%r#3 : tensor<?x2x32x32xbf16>)
      {qk_l2norm, state_interval = 64 : i64} -> tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x32x32xf32>
  return %r#0, %r#1, %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x32x32xf32>
}
