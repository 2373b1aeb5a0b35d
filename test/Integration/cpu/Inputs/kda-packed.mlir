func.func @layer(%q: tensor<1x?x?x64xf32>, %k: tensor<1x?x?x64xf32>, %v: tensor<1x?x?x32xf32>, %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?x64xf32>, %h0: tensor<?x?x32x64xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x?x32xf32>, tensor<?x?x32x64xf32>) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x64xf32>) k(%k : tensor<1x?x?x64xf32>)
      v(%v : tensor<1x?x?x32xf32>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x64xf32>)
      initial_state(%h0 : tensor<?x?x32x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x?x32xf32>, tensor<?x?x32x64xf32>
  return %o, %ht : tensor<1x?x?x32xf32>, tensor<?x?x32x64xf32>
}
