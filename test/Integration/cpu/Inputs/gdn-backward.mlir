func.func @layer(%q: tensor<?x?x2x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x4x64xf32>, %beta: tensor<?x?x4xf32>,
    %gate: tensor<?x?x4xf32>, %h0: tensor<?x4x64x64xf32>, %do: tensor<?x?x4x64xf32>, %dht: tensor<?x4x64x64xf32>)
    -> (tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x64xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x4x64x64xf32>) {
  %dq, %dk, %dv, %dbeta, %dg, %dh0 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<?x?x2x64xf32>)
      k(%k : tensor<?x?x2x64xf32>) v(%v : tensor<?x?x4x64xf32>) beta(%beta : tensor<?x?x4xf32>)
      gate(%gate : tensor<?x?x4xf32>) initial_state(%h0 : tensor<?x4x64x64xf32>) d_o(%do : tensor<?x?x4x64xf32>)
      d_final_state(%dht : tensor<?x4x64x64xf32>)
      -> tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x64xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x4x64x64xf32>
  return %dq, %dk, %dv, %dbeta, %dg, %dh0 : tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x4x64xf32>,
      tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x4x64x64xf32>
}
