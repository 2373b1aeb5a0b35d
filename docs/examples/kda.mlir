// Kimi Delta Attention: a gate for every channel of a key. The layer takes
// what the model's projections give it and does the rest itself: it normalises
// q and k, makes beta from logits and the gate from raw values with a lower
// bound of -5. Batch and length are open.
//
//   gdn-run docs/examples/kda.mlir --dim B=2 --dim T=200 --check
func.func @kda(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x4x128xbf16>,
               %v: tensor<?x?x4x128xbf16>, %beta: tensor<?x?x4xbf16>,
               %gate: tensor<?x?x4x128xbf16>, %a_log: tensor<4xf32>,
               %dt_bias: tensor<4x128xf32>)
    -> (tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<?x?x4x128xbf16>) k(%k : tensor<?x?x4x128xbf16>)
      v(%v : tensor<?x?x4x128xbf16>) beta(%beta : tensor<?x?x4xbf16>)
      gate(%gate : tensor<?x?x4x128xbf16>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state}
      -> tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>
  return %o, %state : tensor<?x?x4x128xbf16>, tensor<?x4x128x128xf32>
}
