// Batch rows in segments of a length that a call chooses.
func.func @waiting(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %beta: tensor<?x?x?xf32>, %gate: tensor<?x?x?xf32>,
    %h0: tensor<?x?x64x64xf32> {gdn.optional, gdn.strided}, %length: index {gdn.cut = "segment_length"})
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x?x64xbf16>) k(%k : tensor<?x?x?x64xbf16>) v(%v : tensor<?x?x?x64xbf16>)
      beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>) initial_state(%h0 : tensor<?x?x64x64xf32>)
      {output_final_state} -> tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32>
  return %o, %last : tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32>
}
