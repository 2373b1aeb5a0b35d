// Whether the gates of a call break a bound of -5: logarithms, and raw ones of two types, packed and in rows of a batch.
func.func @log_packed(%k: tensor<1x?x1x128xbf16>, %g: tensor<1x?x?x128xf32>, %cu: tensor<?xi32>) -> tensor<1x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %r = gdn.stage.gate_bound k(%k : tensor<1x?x1x128xbf16>) gate(%g : tensor<1x?x?x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      none(%none : tensor<1x1x1xf32>) {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}

func.func @log_rows(%k: tensor<?x?x1x128xbf16>, %g: tensor<?x?x?x128xf32>) -> tensor<1x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %r = gdn.stage.gate_bound k(%k : tensor<?x?x1x128xbf16>) gate(%g : tensor<?x?x?x128xf32>)
      none(%none : tensor<1x1x1xf32>) {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}

func.func @raw_packed(%k: tensor<1x?x1x128xbf16>, %g: tensor<1x?x?x128xbf16>, %cu: tensor<?xi32>, %a: tensor<?xf32>, %b: tensor<?x128xf32>)
    -> tensor<1x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %r = gdn.stage.gate_bound k(%k : tensor<1x?x1x128xbf16>) gate(%g : tensor<1x?x?x128xbf16>) cu_seqlens(%cu : tensor<?xi32>)
      a_log(%a : tensor<?xf32>) dt_bias(%b : tensor<?x128xf32>) none(%none : tensor<1x1x1xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}

func.func @raw_rows(%k: tensor<?x?x1x128xbf16>, %g: tensor<?x?x?x128xf32>, %a: tensor<?xf32>, %b: tensor<?x128xf32>) -> tensor<1x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %r = gdn.stage.gate_bound k(%k : tensor<?x?x1x128xbf16>) gate(%g : tensor<?x?x?x128xf32>)
      a_log(%a : tensor<?xf32>) dt_bias(%b : tensor<?x128xf32>) none(%none : tensor<1x1x1xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}
