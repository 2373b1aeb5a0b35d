func.func @layer(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>,
    %beta: tensor<?x?x?xf32>, %gate: tensor<?x?x?xf32>, %h0: tensor<?x?x64x64xf32>) -> (tensor<?x?x?x64xf32>, tensor<?x?x64x64xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x?x64xf32>) k(%k : tensor<?x?x?x64xf32>)
      v(%v : tensor<?x?x?x64xf32>) beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>)
      initial_state(%h0 : tensor<?x?x64x64xf32>) {output_final_state} -> tensor<?x?x?x64xf32>, tensor<?x?x64x64xf32>
  return %o, %s : tensor<?x?x?x64xf32>, tensor<?x?x64x64xf32>
}
