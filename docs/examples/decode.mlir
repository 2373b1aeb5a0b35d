// One step of decoding: a token for each of 8 sequences, whose states go in
// and come out. Raw gates (the softplus form) and logits of beta, as a model
// has them.
//
//   gdn-run docs/examples/decode.mlir --check
func.func @decode(%q: tensor<8x1x2x128xbf16>, %k: tensor<8x1x2x128xbf16>,
                  %v: tensor<8x1x4x128xbf16>, %beta: tensor<8x1x4xbf16>,
                  %gate: tensor<8x1x4xbf16>, %state: tensor<8x4x128x128xf32>,
                  %a_log: tensor<4xf32>, %dt_bias: tensor<4xf32>)
    -> (tensor<8x1x4x128xbf16>, tensor<8x4x128x128xf32>) {
  %o, %next = gdn.recurrent_gated_delta_rule
      q(%q : tensor<8x1x2x128xbf16>) k(%k : tensor<8x1x2x128xbf16>)
      v(%v : tensor<8x1x4x128xbf16>) beta(%beta : tensor<8x1x4xbf16>)
      gate(%gate : tensor<8x1x4xbf16>)
      initial_state(%state : tensor<8x4x128x128xf32>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4xf32>)
      {gate_domain = #gdn.gate_domain<softplus>,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state}
      -> tensor<8x1x4x128xbf16>, tensor<8x4x128x128xf32>
  return %o, %next : tensor<8x1x4x128xbf16>, tensor<8x4x128x128xf32>
}
