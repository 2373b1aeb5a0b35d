// RUN: gdn-opt %s --gdn-tile-vectorize --split-input-file --verify-diagnostics

// A program that has no buffers yet.
func.func @tensors(%x : tensor<128x64xf32>) -> tensor<64x128xf32> attributes {gdn_tile.program} {
  %empty = tensor.empty() : tensor<64x128xf32>
  // expected-error @below {{'linalg.transpose' op expected an op on memrefs, got one on tensors}}
  %y = linalg.transpose ins(%x : tensor<128x64xf32>) outs(%empty : tensor<64x128xf32>) permutation = [1, 0]
  return %y : tensor<64x128xf32>
}

// -----

func.func @product(%a : tensor<64x128xf32>, %b : tensor<128x32xf32>, %c : tensor<64x32xf32>) -> tensor<64x32xf32>
    attributes {gdn_tile.program} {
  // expected-error @below {{'linalg.contract' op expected an op on memrefs, got one on tensors}}
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<64x128xf32>, tensor<128x32xf32>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}
