// Packed sequences of different lengths, empty ones among them: sequence n has
// the tokens cu_seqlens[n] to cu_seqlens[n + 1]. Every sequence starts from a
// state of its own and leaves one. Four value heads share two query/key heads.
//
//   gdn-run docs/examples/varlen.mlir --lengths=0,1,63,64,65,200 --check
func.func @varlen(%q: tensor<1x?x2x128xbf16>, %k: tensor<1x?x2x128xbf16>,
                  %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>,
                  %gate: tensor<1x?x4xf32>, %initial: tensor<?x4x128x128xf32>,
                  %cu_seqlens: tensor<?xi32>)
    -> (tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x2x128xbf16>) k(%k : tensor<1x?x2x128xbf16>)
      v(%v : tensor<1x?x4x128xbf16>) beta(%beta : tensor<1x?x4xf32>)
      gate(%gate : tensor<1x?x4xf32>)
      initial_state(%initial : tensor<?x4x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) {output_final_state}
      -> tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>
  return %o, %state : tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>
}
