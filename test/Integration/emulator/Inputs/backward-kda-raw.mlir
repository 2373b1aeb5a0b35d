// Gradients of packed sequences with raw gates a channel, their parameters, logits and norms, by programs of every kind.
func.func @backward(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xbf16>,
    %gate: tensor<1x?x2x128xbf16>, %h0: tensor<?x2x128x128xf32>, %cu: tensor<?xi32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x128xf32>,
    %do: tensor<1x?x2x128xbf16>, %dht: tensor<?x2x128x128xf32>)
    -> (tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xbf16>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>,
        tensor<2xf32>, tensor<2x128xf32>) {
  %r:8 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xbf16>) gate(%gate : tensor<1x?x2x128xbf16>) initial_state(%h0 : tensor<?x2x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2x128xf32>) d_o(%do : tensor<1x?x2x128xbf16>) d_final_state(%dht : tensor<?x2x128x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0, beta_domain = #gdn.beta_domain<logit>, qk_l2norm}
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xbf16>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>,
         tensor<2xf32>, tensor<2x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xbf16>,
      tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>, tensor<2xf32>, tensor<2x128xf32>
}
