// Gradients with a gate a channel: batch rows, and packed sequences whose states lie [V, K].
func.func @batch(%q: tensor<?x?x2x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x4x32xf32>, %beta: tensor<?x?x4xf32>,
    %gate: tensor<?x?x4x64xf32>, %h0: tensor<?x4x64x32xf32>, %do: tensor<?x?x4x32xf32>, %dht: tensor<?x4x64x32xf32>)
    -> (tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x32xf32>, tensor<?x?x4xf32>, tensor<?x?x4x64xf32>, tensor<?x4x64x32xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<?x?x2x64xf32>) k(%k : tensor<?x?x2x64xf32>) v(%v : tensor<?x?x4x32xf32>)
      beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4x64xf32>) initial_state(%h0 : tensor<?x4x64x32xf32>)
      d_o(%do : tensor<?x?x4x32xf32>) d_final_state(%dht : tensor<?x4x64x32xf32>)
      -> tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x32xf32>, tensor<?x?x4xf32>, tensor<?x?x4x64xf32>, tensor<?x4x64x32xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x32xf32>,
      tensor<?x?x4xf32>, tensor<?x?x4x64xf32>, tensor<?x4x64x32xf32>
}

func.func @packed(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2x128xf32>, %h0: tensor<?x2x128x128xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x2x128xbf16>, %dht: tensor<?x2x128x128xf32>)
    -> (tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x128xf32>, tensor<?x2x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x128xf32>) initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%do : tensor<1x?x2x128xbf16>) d_final_state(%dht : tensor<?x2x128x128xf32>) {state_layout = #gdn.state_layout<vk>}
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x128xf32>, tensor<?x2x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
      tensor<1x?x2xf32>, tensor<1x?x2x128xf32>, tensor<?x2x128x128xf32>
}

// Raw gates that a lower bound keeps in range, and parameters of channels.
func.func @bounded(%q: tensor<?x?x1x128xbf16>, %k: tensor<?x?x1x128xbf16>, %v: tensor<?x?x2x64xbf16>, %beta: tensor<?x?x2xbf16>,
    %gate: tensor<?x?x2x128xbf16>, %a: tensor<2xf32>, %bias: tensor<2x128xf32>, %do: tensor<?x?x2x64xbf16>)
    -> (tensor<?x?x1x128xbf16>, tensor<?x?x1x128xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2xbf16>, tensor<?x?x2x128xbf16>, tensor<2xf32>, tensor<2x128xf32>) {
  %r:7 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<?x?x1x128xbf16>) k(%k : tensor<?x?x1x128xbf16>) v(%v : tensor<?x?x2x64xbf16>)
      beta(%beta : tensor<?x?x2xbf16>) gate(%gate : tensor<?x?x2x128xbf16>) a_log(%a : tensor<2xf32>) dt_bias(%bias : tensor<2x128xf32>)
      d_o(%do : tensor<?x?x2x64xbf16>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0, beta_domain = #gdn.beta_domain<logit>}
      -> tensor<?x?x1x128xbf16>, tensor<?x?x1x128xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2xbf16>, tensor<?x?x2x128xbf16>, tensor<2xf32>, tensor<2x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<?x?x1x128xbf16>, tensor<?x?x1x128xbf16>, tensor<?x?x2x64xbf16>,
      tensor<?x?x2xbf16>, tensor<?x?x2x128xbf16>, tensor<2xf32>, tensor<2x128xf32>
}

// What a forward saves, of packed sequences.
func.func @saved(%q: tensor<1x?x1x32xbf16>, %k: tensor<1x?x1x32xbf16>, %v: tensor<1x?x2x32xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2x32xf32>, %h0: tensor<?x2x32x32xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x2x32xbf16>, %dht: tensor<?x2x32x32xf32>)
    -> (tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x32xf32>, tensor<?x2x32x32xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x32xbf16>) k(%k : tensor<1x?x1x32xbf16>) v(%v : tensor<1x?x2x32xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x32xf32>) initial_state(%h0 : tensor<?x2x32x32xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state, state_interval = 256 : i64} -> tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x2x32xbf16>, tensor<?x2x32x32xbf16>
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x32xbf16>) k(%k : tensor<1x?x1x32xbf16>) v(%v : tensor<1x?x2x32xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x32xf32>) initial_state(%h0 : tensor<?x2x32x32xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%do : tensor<1x?x2x32xbf16>) d_final_state(%dht : tensor<?x2x32x32xf32>) writes(%r#2 : tensor<1x?x2x32xbf16>) states(%r#3 : tensor<?x2x32x32xbf16>)
      {state_interval = 256 : i64} -> tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x32xf32>, tensor<?x2x32x32xf32>
  return %r#0, %r#1, %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<1x?x2x32xbf16>, tensor<?x2x32x32xf32>, tensor<1x?x1x32xbf16>,
      tensor<1x?x1x32xbf16>, tensor<1x?x2x32xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x32xf32>, tensor<?x2x32x32xf32>
}
