// Gradients of packed sequences with a gate a channel, which a bound keeps in range, to be computed by three kernels.
func.func @backward(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x1x128xbf16>, %beta: tensor<1x?x1xf32>,
    %gate: tensor<1x?x1x128xf32>, %h0: tensor<?x1x128x128xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x1x128xbf16>, %dht: tensor<?x1x128x128xf32>)
    -> (tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x1x128xbf16>)
      beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1x128xf32>) initial_state(%h0 : tensor<?x1x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%do : tensor<1x?x1x128xbf16>) d_final_state(%dht : tensor<?x1x128x128xf32>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0}
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>,
      tensor<1x?x1xf32>, tensor<1x?x1x128xf32>, tensor<?x1x128x128xf32>
}
