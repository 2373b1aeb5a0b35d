// Packed sequences whose states lie in a pool of any strides, and begin with these or not.
func.func @layer(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>,
                 %gate: tensor<1x?x2xf32>, %pool: tensor<?x2x64x64xf32> {bufferization.writable = true, gdn.strided},
                 %cu: tensor<?xi32>, %rows: tensor<?xi32>, %first: index, %flags: tensor<?xi8> {gdn.optional})
    -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %states = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      has_initial_state(%flags : tensor<?xi8>) {output_final_state}
      -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %states : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}
