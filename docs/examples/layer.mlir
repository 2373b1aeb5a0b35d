// A Gated DeltaNet layer of the size of Qwen3-Next: one sequence of 4096
// tokens, 16 query/key heads, 32 value heads, K = V = 128, bf16. The gate is
// the logarithm of the decay. Returns the outputs and the state after the last
// token.
//
//   gdn-run docs/examples/layer.mlir --check
func.func @layer(%q: tensor<1x4096x16x128xbf16>, %k: tensor<1x4096x16x128xbf16>,
                 %v: tensor<1x4096x32x128xbf16>, %beta: tensor<1x4096x32xf32>,
                 %gate: tensor<1x4096x32xf32>)
    -> (tensor<1x4096x32x128xbf16>, tensor<1x32x128x128xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x4096x16x128xbf16>) k(%k : tensor<1x4096x16x128xbf16>)
      v(%v : tensor<1x4096x32x128xbf16>) beta(%beta : tensor<1x4096x32xf32>)
      gate(%gate : tensor<1x4096x32xf32>) {output_final_state}
      -> tensor<1x4096x32x128xbf16>, tensor<1x32x128x128xf32>
  return %o, %state : tensor<1x4096x32x128xbf16>, tensor<1x32x128x128xf32>
}
