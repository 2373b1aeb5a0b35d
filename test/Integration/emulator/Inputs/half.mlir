// The same in f16, with states in f16: scores have the norms of queries by a
// channel of their own.
func.func @half(%q: tensor<1x?x?x128xf16>, %k: tensor<1x?x?x128xf16>,
                 %v: tensor<1x?x?x128xf16>, %beta: tensor<1x?x?xf16>,
                 %gate: tensor<1x?x?xf16>, %state: tensor<?x?x128x128xf16>,
                 %cu_seqlens: tensor<?xi32>, %a_log: tensor<?xf32>,
                 %dt_bias: tensor<?xf32>)
    -> (tensor<1x?x?x128xf16>, tensor<?x?x128x128xf16>) {
  %o, %next = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x?x128xf16>) k(%k : tensor<1x?x?x128xf16>)
      v(%v : tensor<1x?x?x128xf16>) beta(%beta : tensor<1x?x?xf16>)
      gate(%gate : tensor<1x?x?xf16>)
      initial_state(%state : tensor<?x?x128x128xf16>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>)
      a_log(%a_log : tensor<?xf32>) dt_bias(%dt_bias : tensor<?xf32>)
      {gate_domain = #gdn.gate_domain<softplus>,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state}
      -> tensor<1x?x?x128xf16>, tensor<?x?x128x128xf16>
  return %o, %next : tensor<1x?x?x128xf16>, tensor<?x?x128x128xf16>
}
