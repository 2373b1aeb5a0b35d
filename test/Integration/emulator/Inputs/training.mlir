// What a model's layer has: raw gates, beta as a logit, norms of q and k; parameters and gates of bf16. Two value heads of a key head.
func.func @training(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xbf16>,
    %gate: tensor<1x?x2xbf16>, %initial_state: tensor<?x2x128x128xf32>, %cu_seqlens: tensor<?xi32>, %a_log: tensor<2xbf16>,
    %dt_bias: tensor<2xbf16>, %d_o: tensor<1x?x2x128xbf16>, %d_final_state: tensor<?x2x128x128xf32>) -> (tensor<1x?x1x128xbf16>,
    tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xbf16>, tensor<1x?x2xbf16>, tensor<?x2x128x128xf32>, tensor<2xbf16>,
    tensor<2xbf16>) {
  %r:8 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xbf16>) gate(%gate : tensor<1x?x2xbf16>) initial_state(%initial_state : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) a_log(%a_log : tensor<2xbf16>) dt_bias(%dt_bias : tensor<2xbf16>)
      d_o(%d_o : tensor<1x?x2x128xbf16>) d_final_state(%d_final_state : tensor<?x2x128x128xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm} -> tensor<1x?x1x128xbf16>,
      tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xbf16>, tensor<1x?x2xbf16>, tensor<?x2x128x128xf32>, tensor<2xbf16>,
      tensor<2xbf16>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
      tensor<1x?x2xbf16>, tensor<1x?x2xbf16>, tensor<?x2x128x128xf32>, tensor<2xbf16>, tensor<2xbf16>
}

// Batch rows of f16, gates with a bound, beta up to 2, no states.
func.func @bounded(%q: tensor<2x100x1x128xf16>, %k: tensor<2x100x1x128xf16>, %v: tensor<2x100x1x128xf16>, %beta: tensor<2x100x1xf32>,
    %gate: tensor<2x100x1xf32>, %a_log: tensor<1xf32>, %dt_bias: tensor<1xf32>, %d_o: tensor<2x100x1x128xf16>)
    -> (tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>, tensor<2x100x1xf32>, tensor<2x100x1xf32>,
    tensor<1xf32>, tensor<1xf32>) {
  %r:7 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x100x1x128xf16>) k(%k : tensor<2x100x1x128xf16>) v(%v : tensor<2x100x1x128xf16>)
      beta(%beta : tensor<2x100x1xf32>) gate(%gate : tensor<2x100x1xf32>) a_log(%a_log : tensor<1xf32>) dt_bias(%dt_bias : tensor<1xf32>)
      d_o(%d_o : tensor<2x100x1x128xf16>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<doubled_logit>, qk_l2norm} -> tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>, tensor<2x100x1xf32>, tensor<2x100x1xf32>, tensor<1xf32>, tensor<1xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>, tensor<2x100x1x128xf16>,
      tensor<2x100x1xf32>, tensor<2x100x1xf32>, tensor<1xf32>, tensor<1xf32>
}

// Gates that are the decay itself, and may be 0.
func.func @linear(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2xf32>, %cu_seqlens: tensor<?xi32>, %d_o: tensor<1x?x2x128xbf16>) -> (tensor<1x?x1x128xbf16>,
    tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>) {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) cu_seqlens(%cu_seqlens : tensor<?xi32>)
      d_o(%d_o : tensor<1x?x2x128xbf16>) {gate_domain = #gdn.gate_domain<linear>} -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>,
      tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>,
      tensor<1x?x2xf32>
}
