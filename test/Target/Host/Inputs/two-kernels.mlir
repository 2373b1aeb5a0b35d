// A layer whose states before come from another one: a state pass as a stage, or a whole layer whose output nobody wants.
func.func @pass(%q: tensor<1x?x2x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>, %g: tensor<1x?x2xf32>,
                %h0: tensor<?x2x128x128xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>) {
  %s = gdn.stage.state_pass q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%g : tensor<1x?x2xf32>) initial_state(%h0 : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {chunk_size = 32} -> tensor<?x2x128x128xf32>
  %o, %t = gdn.stage.fused q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%g : tensor<1x?x2xf32>) initial_state(%s : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {chunk_size = 32} -> tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %t : tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}
func.func @layers(%q: tensor<?x?x2x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %beta: tensor<?x?x2xf32>,
                  %g: tensor<?x?x2xf32>) -> (tensor<?x?x2x128xbf16>, tensor<?x2x128x128xf32>) {
  %unused, %s = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x2x128xbf16>) k(%k : tensor<?x?x2x128xbf16>)
      v(%v : tensor<?x?x2x128xbf16>) beta(%beta : tensor<?x?x2xf32>) gate(%g : tensor<?x?x2xf32>) {output_final_state}
      -> tensor<?x?x2x128xbf16>, tensor<?x2x128x128xf32>
  %o, %t = gdn.chunk_gated_delta_rule q(%k : tensor<?x?x2x128xbf16>) k(%q : tensor<?x?x2x128xbf16>)
      v(%v : tensor<?x?x2x128xbf16>) beta(%beta : tensor<?x?x2xf32>) gate(%g : tensor<?x?x2xf32>)
      initial_state(%s : tensor<?x2x128x128xf32>) {output_final_state, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %o, %t : tensor<?x?x2x128xbf16>, tensor<?x2x128x128xf32>
}
