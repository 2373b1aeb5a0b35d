func.func @layer(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>,
    %gate: tensor<1x?x4x64xf32>, %h0: tensor<?x4x64x64xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x64xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4x64xf32>)
      initial_state(%h0 : tensor<?x4x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>
  return %o, %ht : tensor<1x?x4x64xbf16>, tensor<?x4x64x64xf32>
}
