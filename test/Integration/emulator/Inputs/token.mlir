// A token for each of two sequences, as a model has it: raw gates, logits of
// beta, rows that are normalised.
func.func @token(%q: tensor<2x1x1x128xbf16>, %k: tensor<2x1x1x128xbf16>,
                 %v: tensor<2x1x2x128xbf16>, %beta: tensor<2x1x2xbf16>,
                 %gate: tensor<2x1x2xbf16>, %state: tensor<2x2x128x128xf32>,
                 %a_log: tensor<2xf32>, %dt_bias: tensor<2xf32>)
    -> (tensor<2x1x2x128xbf16>, tensor<2x2x128x128xf32>) {
  %o, %next = gdn.recurrent_gated_delta_rule
      q(%q : tensor<2x1x1x128xbf16>) k(%k : tensor<2x1x1x128xbf16>)
      v(%v : tensor<2x1x2x128xbf16>) beta(%beta : tensor<2x1x2xbf16>)
      gate(%gate : tensor<2x1x2xbf16>)
      initial_state(%state : tensor<2x2x128x128xf32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2xf32>)
      {gate_domain = #gdn.gate_domain<softplus>,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state}
      -> tensor<2x1x2x128xbf16>, tensor<2x2x128x128xf32>
  return %o, %next : tensor<2x1x2x128xbf16>, tensor<2x2x128x128xf32>
}
