// The same of sequences of a batch with a gate a channel.
func.func @layer(%q: tensor<?x?x1x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x1x64xbf16>, %beta: tensor<?x?x1xf32>,
                 %gate: tensor<?x?x1x64xf32>, %kept: tensor<?x1x64x64xf32> {bufferization.writable = true}, %starts: tensor<?xi32>,
                 %every: tensor<?xi32>) -> (tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>) {
  %o, %last, %states = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x1x64xbf16>) k(%k : tensor<?x?x1x64xbf16>)
      v(%v : tensor<?x?x1x64xbf16>) beta(%beta : tensor<?x?x1xf32>) gate(%gate : tensor<?x?x1x64xf32>)
      step_states(%kept : tensor<?x1x64x64xf32>) step_starts(%starts : tensor<?xi32>) step_intervals(%every : tensor<?xi32>)
      {output_final_state, chunk_size = 16} -> tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
  return %o, %last, %states : tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
}
