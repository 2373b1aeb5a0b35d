// Kept states in rows that a sequence names, or that follow each other: a call has one of these arrays.
func.func @layer(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x1x64xbf16>, %beta: tensor<1x?x1xf32>,
                 %gate: tensor<1x?x1xf32>, %pool: tensor<?x1x64x64xbf16> {bufferization.writable = true, gdn.strided}, %cu: tensor<?xi32>,
                 %rows: tensor<?xi32>, %first: index, %kept: tensor<?x1x64x64xbf16> {bufferization.writable = true, gdn.strided},
                 %slots: tensor<?x?xi32> {gdn.optional}, %starts: tensor<?xi32> {gdn.optional}, %every: tensor<?xi32>)
    -> (tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16> {gdn.strided}, tensor<?x1x64x64xbf16> {gdn.strided}) {
  %o, %last, %states = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>)
      v(%v : tensor<1x?x1x64xbf16>) beta(%beta : tensor<1x?x1xf32>) gate(%gate : tensor<1x?x1xf32>)
      initial_state(%pool : tensor<?x1x64x64xbf16>) cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>)
      first_state(%first : index) step_states(%kept : tensor<?x1x64x64xbf16>) step_indices(%slots : tensor<?x?xi32>)
      step_starts(%starts : tensor<?xi32>) step_intervals(%every : tensor<?xi32>) {output_final_state}
      -> tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16>, tensor<?x1x64x64xbf16>
  return %o, %last, %states : tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16>, tensor<?x1x64x64xbf16>
}
