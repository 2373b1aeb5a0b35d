// Packed sequences in segments that run what is before them, of one of two lengths.
func.func @own(%q: tensor<1x?x?x64xbf16>, %k: tensor<1x?x?x64xbf16>, %v: tensor<1x?x?x64xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?xf32>,
    %h0: tensor<?x?x64x64xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>, %length: index {gdn.cut = "segment_length"},
    %parts: index {gdn.cut = "segment_parts"}, %longer: index {gdn.cut = "longer_segment_length"})
    -> (tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32> {gdn.optional, gdn.strided}) {
  %o, %last = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x64xbf16>) k(%k : tensor<1x?x?x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>) initial_state(%h0 : tensor<?x?x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32>
  return %o, %last : tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32>
}
