// Packed sequences as a model has them: raw gates, logits of beta, rows that
// are normalised, states before and after.
func.func @model(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>,
                 %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xbf16>,
                 %gate: tensor<1x?x?xbf16>, %state: tensor<?x?x128x128xf32>,
                 %cu_seqlens: tensor<?xi32>, %a_log: tensor<?xf32>,
                 %dt_bias: tensor<?xf32>)
    -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %next = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>)
      v(%v : tensor<1x?x?x128xbf16>) beta(%beta : tensor<1x?x?xbf16>)
      gate(%gate : tensor<1x?x?xbf16>)
      initial_state(%state : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>)
      a_log(%a_log : tensor<?xf32>) dt_bias(%dt_bias : tensor<?xf32>)
      {gate_domain = #gdn.gate_domain<softplus>,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state}
      -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %next : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
