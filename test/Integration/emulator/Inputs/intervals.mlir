// Packed sequences that keep states in between, in bfloat16 and any strides.
func.func @layer(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x1x128xbf16>, %beta: tensor<1x?x1xf32>,
                 %gate: tensor<1x?x1xf32>, %state: tensor<?x1x64x128xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>,
                 %kept: tensor<?x1x64x128xbf16> {bufferization.writable = true, gdn.strided}, %starts: tensor<?xi64>, %every: tensor<?xi32>)
    -> (tensor<1x?x1x128xbf16>, tensor<?x1x64x128xf32> {gdn.optional, gdn.strided}, tensor<?x1x64x128xbf16> {gdn.strided}) {
  %o, %last, %states = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>)
      v(%v : tensor<1x?x1x128xbf16>) beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1xf32>)
      initial_state(%state : tensor<?x1x64x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      step_states(%kept : tensor<?x1x64x128xbf16>) step_starts(%starts : tensor<?xi64>) step_intervals(%every : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x1x128xbf16>, tensor<?x1x64x128xf32>, tensor<?x1x64x128xbf16>
  return %o, %last, %states : tensor<1x?x1x128xbf16>, tensor<?x1x64x128xf32>, tensor<?x1x64x128xbf16>
}
