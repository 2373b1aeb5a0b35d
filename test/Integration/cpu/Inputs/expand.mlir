// Dimensions that become several of open size.
func.func @unit(%x: tensor<?xf32>, %a: index, %b: index) -> tensor<?x1x?xf32> {
  %e = tensor.expand_shape %x [[0, 1, 2]] output_shape [%a, 1, %b] : tensor<?xf32> into tensor<?x1x?xf32>
  return %e : tensor<?x1x?xf32>
}

func.func @two(%x: tensor<?x?xf32>, %a: index, %b: index) -> tensor<?x?x?x?xf32> {
  %e = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [%a, %b, %b, %a] : tensor<?x?xf32> into tensor<?x?x?x?xf32>
  return %e : tensor<?x?x?x?xf32>
}

func.func @three(%x: tensor<?x4xf32>, %a: index, %b: index) -> tensor<2x?x?x?x4xf32> {
  %e = tensor.expand_shape %x [[0, 1, 2, 3], [4]] output_shape [2, %a, %b, %a, 4] : tensor<?x4xf32> into tensor<2x?x?x?x4xf32>
  return %e : tensor<2x?x?x?x4xf32>
}

// A size that is known, where the type does not say it.
func.func @known(%x: tensor<?xf32>, %a: index, %b: index) -> tensor<?x?xf32> {
  %e = tensor.expand_shape %x [[0, 1]] output_shape [3, %b] : tensor<?xf32> into tensor<?x?xf32>
  return %e : tensor<?x?xf32>
}
