// RUN: gdn-opt %s --gdn-tile-vectorize --split-input-file --verify-diagnostics
// RUN: not gdn-opt %s --gdn-tile-vectorize=vector-bits=-1 2>&1 | FileCheck %s -DGOT=-1
// RUN: not gdn-opt %s --gdn-tile-vectorize=vector-bits=384 2>&1 | FileCheck %s -DGOT=384
// RUN: echo "func.func private @no_program()" | not gdn-opt --gdn-tile-vectorize=vector-bits=-1 2>&1 | \
// RUN:   FileCheck %s -DGOT=-1

// CHECK: error: 'func.func' op expected vector-bits to be 0, 128, 256 or 512, got [[GOT]]

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
