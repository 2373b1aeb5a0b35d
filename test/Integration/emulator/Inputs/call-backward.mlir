// Gradients of batch rows in segments of a length that a call chooses.
func.func @backward(%q: tensor<?x?x1x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x2x64xbf16>, %beta: tensor<?x?x2xf32>, %gate: tensor<?x?x2xf32>,
    %h0: tensor<?x2x64x64xf32> {gdn.optional, gdn.strided}, %do: tensor<?x?x2x64xbf16>, %dht: tensor<?x2x64x64xf32> {gdn.optional, gdn.strided}, %length: index {gdn.cut = "segment_length"})
    -> (tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2xf32>, tensor<?x?x2xf32>, tensor<?x2x64x64xf32> {gdn.optional, gdn.strided}) {
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<?x?x1x64xbf16>) k(%k : tensor<?x?x1x64xbf16>) v(%v : tensor<?x?x2x64xbf16>) beta(%beta : tensor<?x?x2xf32>) gate(%gate : tensor<?x?x2xf32>)
      initial_state(%h0 : tensor<?x2x64x64xf32>) d_o(%do : tensor<?x?x2x64xbf16>) d_final_state(%dht : tensor<?x2x64x64xf32>)
      -> tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2xf32>, tensor<?x?x2xf32>, tensor<?x2x64x64xf32>
  return %d#0, %d#1, %d#2, %d#3, %d#4, %d#5 : tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2xf32>, tensor<?x?x2xf32>, tensor<?x2x64x64xf32>
}
