func.func @layer(%q: tensor<1x?x1x16xf32>, %k: tensor<1x?x1x16xf32>,
                 %v: tensor<1x?x2x16xf32>, %beta: tensor<1x?x2xf32>,
                 %gate: tensor<1x?x2xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x2x16xf32>, tensor<?x2x16x16xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x1x16xf32>) k(%k : tensor<1x?x1x16xf32>)
      v(%v : tensor<1x?x2x16xf32>) beta(%beta : tensor<1x?x2xf32>)
      gate(%gate : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state}
      -> tensor<1x?x2x16xf32>, tensor<?x2x16x16xf32>
  return %o, %s : tensor<1x?x2x16xf32>, tensor<?x2x16x16xf32>
}
