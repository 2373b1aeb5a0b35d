// Gradients of packed sequences with a gate a channel, of any numbers of heads.
func.func @backward(%q: tensor<1x?x?x128xbf16>,
    %k: tensor<1x?x?x128xbf16>,
    %v: tensor<1x?x?x128xbf16>,
    %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?x128xf32>,
    %initial_state: tensor<?x?x128x128xf32>,
    %cu_seqlens: tensor<?xi32>,
    %d_o: tensor<1x?x?x128xbf16>,
    %d_final_state: tensor<?x?x128x128xf32>)
    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>) {
  %results:6 = gdn.chunk_gated_delta_rule_bwd
      q(%q : tensor<1x?x?x128xbf16>)
      k(%k : tensor<1x?x?x128xbf16>)
      v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>)
      gate(%gate : tensor<1x?x?x128xf32>)
      initial_state(%initial_state : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>)
      d_o(%d_o : tensor<1x?x?x128xbf16>)
      d_final_state(%d_final_state : tensor<?x?x128x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64}
      -> tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
  return %results#0, %results#1, %results#2, %results#3, %results#4, %results#5 : tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
}
