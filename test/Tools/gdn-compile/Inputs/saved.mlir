// docs/examples/layer.mlir with what it saves for a backward. Input of explain.test.
func.func @layer(%q: tensor<1x4096x16x128xbf16>, %k: tensor<1x4096x16x128xbf16>, %v: tensor<1x4096x32x128xbf16>,
    %beta: tensor<1x4096x32xf32>, %gate: tensor<1x4096x32xf32>) -> (tensor<1x4096x32x128xbf16>,
    tensor<1x32x128x128xf32>, tensor<1x4096x32x128xbf16>, tensor<65x32x128x128xbf16>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x4096x16x128xbf16>) k(%k : tensor<1x4096x16x128xbf16>)
      v(%v : tensor<1x4096x32x128xbf16>) beta(%beta : tensor<1x4096x32xf32>) gate(%gate : tensor<1x4096x32xf32>)
      {output_final_state, state_interval = 64 : i64} -> tensor<1x4096x32x128xbf16>, tensor<1x32x128x128xf32>,
      tensor<1x4096x32x128xbf16>, tensor<65x32x128x128xbf16>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x4096x32x128xbf16>, tensor<1x32x128x128xf32>,
      tensor<1x4096x32x128xbf16>, tensor<65x32x128x128xbf16>
}
