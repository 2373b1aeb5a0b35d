// Layers with a gate a channel, in segments of a length that a call chooses.

// Batch rows whose segments wait for the scan: raw gates with a bound, norms, logits.
func.func @waiting(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xbf16>, %gate: tensor<?x?x?x128xbf16>,
    %h0: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}, %a_log: tensor<?xf32>, %dt_bias: tensor<?x128xf32>,
    %length: index {gdn.cut = "segment_length"}) -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xbf16>) gate(%gate : tensor<?x?x?x128xbf16>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      a_log(%a_log : tensor<?xf32>) dt_bias(%dt_bias : tensor<?x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state, chunk_size = 32 : i64}
      -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %last : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}

// Packed sequences whose segments run what is before them, or wait for its parts: gates of any strength.
func.func @own(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x128xf32>,
    %h0: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>,
    %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"})
    -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x128xf32>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {output_final_state, chunk_size = 16 : i64, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %last : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}

// The same, or whole for heads that keep a state.
func.func @whole(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x128xf32>,
    %h0: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>,
    %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"},
    %longer: index {gdn.cut = "longer_segment_length"})
    -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x128xf32>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {output_final_state, chunk_size = 16 : i64, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %last : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}

// The same with raw gates.
func.func @sampled(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xbf16>, %gate: tensor<1x?x?x128xbf16>,
    %h0: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x128xf32>,
    %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"}, %longer: index {gdn.cut = "longer_segment_length"})
    -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xbf16>) gate(%gate : tensor<1x?x?x128xbf16>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) a_log(%a_log : tensor<?xf32>) dt_bias(%dt_bias : tensor<?x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<logit>, qk_l2norm, output_final_state,
       chunk_size = 32 : i64, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %last : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
