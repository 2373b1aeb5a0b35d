// Kept states in rows of the pool that a sequence names, with a gate a channel and chunks of 32 tokens.
func.func @layer(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x1x128xbf16>, %beta: tensor<1x?x1xbf16>,
                 %gate: tensor<1x?x1x128xbf16>, %a: tensor<1xf32>, %bias: tensor<1x128xf32>,
                 %pool: tensor<?x1x128x128xf32> {bufferization.writable = true}, %cu: tensor<?xi32>, %rows: tensor<?xi32>, %first: index,
                 %slots: tensor<?x?xi32>, %every: tensor<?xi32>) -> (tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>)
      v(%v : tensor<1x?x1x128xbf16>) beta(%beta : tensor<1x?x1xbf16>) gate(%gate : tensor<1x?x1x128xbf16>)
      initial_state(%pool : tensor<?x1x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a : tensor<1xf32>) dt_bias(%bias : tensor<1x128xf32>) state_indices(%rows : tensor<?xi32>)
      first_state(%first : index) step_indices(%slots : tensor<?x?xi32>) step_intervals(%every : tensor<?xi32>)
      {output_final_state, qk_l2norm, chunk_size = 32, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64,
       beta_domain = #gdn.beta_domain<logit>, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>
  return %o, %last : tensor<1x?x1x128xbf16>, tensor<?x1x128x128xf32>
}
