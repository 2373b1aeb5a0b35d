// Sequences are cut into segments of as many tokens as a call says.
func.func @packed(%k: tensor<1x?x1x16xbf16>, %cu: tensor<?xi32>, %length: index) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:3 = gdn.stage.segment_boundaries k(%k : tensor<1x?x1x16xbf16>) cu_seqlens(%cu : tensor<?xi32>) length(%length : index)
      {chunk_size = 32} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @rows(%k: tensor<?x?x1x16xbf16>, %length: index) -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi32>) {
  %r:3 = gdn.stage.segment_boundaries k(%k : tensor<?x?x1x16xbf16>) length(%length : index)
      {chunk_size = 32} -> tensor<?xi64>, tensor<?xi64>, tensor<?xi32>
  return %r#0, %r#1, %r#2 : tensor<?xi64>, tensor<?xi64>, tensor<?xi32>
}
