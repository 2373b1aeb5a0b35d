// A forward with a gate a channel that saves a state every 64 tokens, and the backward that reads it.
func.func @step(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x1x128xbf16>, %beta: tensor<1x?x1xf32>,
    %gate: tensor<1x?x1x128xf32>, %h0: tensor<?x1x128x128xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x1x128xbf16>, %dht: tensor<?x1x128x128xf32>)
    -> (tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x1x128xbf16>)
      beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1x128xf32>) initial_state(%h0 : tensor<?x1x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state, state_interval = 64 : i64, lower_bound = -5.0} -> tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>, tensor<1x?x1x128xbf16>, tensor<?x1x128x128xbf16>
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x1x128xbf16>)
      beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1x128xf32>) initial_state(%h0 : tensor<?x1x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%do : tensor<1x?x1x128xbf16>) d_final_state(%dht : tensor<?x1x128x128xf32>) writes(%r#2 : tensor<1x?x1x128xbf16>) states(%r#3 : tensor<?x1x128x128xbf16>)
      {state_interval = 64 : i64, lower_bound = -5.0} -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>
  return %r#0, %r#1, %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>, tensor<1x?x1x128xbf16>,
      tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>
}
