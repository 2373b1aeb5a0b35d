// Sequences are cut into segments of as many tokens as a call says.
func.func @packed(%k: tensor<1x?x1x16xbf16>, %cu: tensor<?xi32>, %length: index) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:3 = gdn.stage.segment_boundaries k(%k : tensor<1x?x1x16xbf16>) cu_seqlens(%cu : tensor<?xi32>) length(%length : index)
      {chunk_size = 32} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @rows(%k: tensor<?x?x1x16xbf16>, %length: index) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:3 = gdn.stage.segment_boundaries k(%k : tensor<?x?x1x16xbf16>) length(%length : index)
      {chunk_size = 32} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// Into parts of segments.
func.func @parts_packed(%k: tensor<1x?x1x16xbf16>, %cu: tensor<?xi32>, %length: index, %parts: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:5 = gdn.stage.segment_boundaries k(%k : tensor<1x?x1x16xbf16>) cu_seqlens(%cu : tensor<?xi32>) length(%length : index)
      parts(%parts : index) {chunk_size = 32} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @parts_rows(%k: tensor<?x?x1x16xbf16>, %length: index, %parts: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:5 = gdn.stage.segment_boundaries k(%k : tensor<?x?x1x16xbf16>) length(%length : index)
      parts(%parts : index) {chunk_size = 32} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// Of a length that the gates choose.
func.func @lengths_packed(%k: tensor<1x?x1x16xbf16>, %g: tensor<1x?x8xf32>, %cu: tensor<?xi32>, %length: index, %parts: index, %longer: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:5 = gdn.stage.segment_boundaries k(%k : tensor<1x?x1x16xbf16>) gate(%g : tensor<1x?x8xf32>) cu_seqlens(%cu : tensor<?xi32>)
      length(%length : index) parts(%parts : index) longer_length(%longer : index)
      {chunk_size = 32, live_heads = array<i64: 1, 3>, tolerance = 1.0e-5} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @lengths_rows(%k: tensor<?x?x1x16xbf16>, %g: tensor<?x?x8xf32>, %length: index, %parts: index, %longer: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:5 = gdn.stage.segment_boundaries k(%k : tensor<?x?x1x16xbf16>) gate(%g : tensor<?x?x8xf32>)
      length(%length : index) parts(%parts : index) longer_length(%longer : index)
      {chunk_size = 32, live_heads = array<i64: 1, 3>, tolerance = 1.0e-5} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// The same with gates a channel: heads that keep a state have whole sequences.
func.func @channels_packed(%k: tensor<1x?x1x16xbf16>, %g: tensor<1x?x?x16xbf16>, %cu: tensor<?xi32>, %length: index, %parts: index, %longer: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:7 = gdn.stage.segment_boundaries k(%k : tensor<1x?x1x16xbf16>) gate(%g : tensor<1x?x?x16xbf16>) cu_seqlens(%cu : tensor<?xi32>)
      length(%length : index) parts(%parts : index) longer_length(%longer : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @channels_rows(%k: tensor<?x?x1x16xbf16>, %g: tensor<?x?x?x16xbf16>, %length: index, %parts: index, %longer: index)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:7 = gdn.stage.segment_boundaries k(%k : tensor<?x?x1x16xbf16>) gate(%g : tensor<?x?x?x16xbf16>)
      length(%length : index) parts(%parts : index) longer_length(%longer : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}
