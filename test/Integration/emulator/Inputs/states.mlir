// A layer whose states may be absent, and lie in memory as [N, H, K, V] or as [N, H, V, K].
func.func @layer(%q: tensor<1x?x1x64xbf16>, %k: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2xf32>, %h0: tensor<?x2x64x64xf32> {gdn.optional, gdn.strided}, %cu: tensor<?xi32>)
    -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32> {gdn.optional, gdn.strided}) {
  %o, %ht = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x1x64xbf16>) k(%k : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%h0 : tensor<?x2x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) {output_final_state} -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %ht : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}
