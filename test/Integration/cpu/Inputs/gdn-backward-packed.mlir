// Gradients of packed sequences in f32, two value heads a query/key head, K != V, gradients of both states.
func.func @layer(%q: tensor<1x?x2x64xf32>, %k: tensor<1x?x2x64xf32>, %v: tensor<1x?x4x32xf32>, %beta: tensor<1x?x4xf32>,
    %gate: tensor<1x?x4xf32>, %h0: tensor<?x4x64x32xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x4x32xf32>, %dht: tensor<?x4x64x32xf32>)
    -> (tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x4x32xf32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x64x32xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x64xf32>) k(%k : tensor<1x?x2x64xf32>) v(%v : tensor<1x?x4x32xf32>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) initial_state(%h0 : tensor<?x4x64x32xf32>)
      cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x4x32xf32>) d_final_state(%dht : tensor<?x4x64x32xf32>)
      -> tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x4x32xf32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x64x32xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x4x32xf32>,
      tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x64x32xf32>
}
