// Kimi Delta Attention over chunks: packed sequences, two value heads a q/k head, states that a call may leave out.

// The gates' lower bound keeps every factor in range: nothing is chosen at run time.
func.func @bounded(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>,
    %beta: tensor<1x?x2xbf16>, %gate: tensor<1x?x2x128xbf16>, %h0: tensor<?x2x128x128xf32> {gdn.optional, gdn.strided},
    %cu: tensor<?xi32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x128xf32>)
    -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %state = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>)
      v(%v : tensor<1x?x2x128xbf16>) beta(%beta : tensor<1x?x2xbf16>) gate(%gate : tensor<1x?x2x128xbf16>)
      initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<logit>, output_final_state} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %state : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}

// Norms inside, and beta as it is.
func.func @norms(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>,
    %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2x128xbf16>, %h0: tensor<?x2x128x128xf32> {gdn.optional, gdn.strided},
    %cu: tensor<?xi32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x128xf32>)
    -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %state = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>)
      v(%v : tensor<1x?x2x128xbf16>) beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x128xbf16>)
      initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, qk_l2norm, output_final_state} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %state : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}

// Gates of any strength: chunks whose gates are too strong go by halves.
func.func @softplus(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>,
    %beta: tensor<1x?x2xbf16>, %gate: tensor<1x?x2x128xbf16>, %h0: tensor<?x2x128x128xf32> {gdn.optional, gdn.strided},
    %cu: tensor<?xi32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x128xf32>)
    -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %state = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>)
      v(%v : tensor<1x?x2x128xbf16>) beta(%beta : tensor<1x?x2xbf16>) gate(%gate : tensor<1x?x2x128xbf16>)
      initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2x128xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, output_final_state} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %state : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}

// The same in f16, which has less room for factors, with norms and log gates.
func.func @half(%q: tensor<1x?x1x128xf16>, %k: tensor<1x?x1x128xf16>, %v: tensor<1x?x2x128xf16>,
    %beta: tensor<1x?x2xbf16>, %gate: tensor<1x?x2x128xf32>, %h0: tensor<?x2x128x128xf32> {gdn.optional, gdn.strided},
    %cu: tensor<?xi32>)
    -> (tensor<1x?x2x128xf16>, tensor<?x2x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %state = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xf16>) k(%k : tensor<1x?x1x128xf16>)
      v(%v : tensor<1x?x2x128xf16>) beta(%beta : tensor<1x?x2xbf16>) gate(%gate : tensor<1x?x2x128xf32>)
      initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {chunk_size = 16, beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state} -> tensor<1x?x2x128xf16>, tensor<?x2x128x128xf32>
  return %o, %state : tensor<1x?x2x128xf16>, tensor<?x2x128x128xf32>
}
