// RUN: gdn-opt %s --convert-gdn-tile-to-linalg -split-input-file -verify-diagnostics

// Blocks of 16 merge in pairs: other sizes have no expansion.
func.func @solve_size(%kk : tensor<48x48xf32>, %b : tensor<48xf32>) -> tensor<48x48xf32> {
  // expected-error @below {{'gdn_tile.solve' op expected 16 times a power of two rows or at most 16, got 48}}
  // expected-error @below {{failed to legalize operation 'gdn_tile.solve' that was explicitly marked illegal}}
  %r = gdn_tile.solve %kk, %b merge f16 : tensor<48x48xf32>, tensor<48xf32>
  return %r : tensor<48x48xf32>
}

// -----

// The passes after this one see the functions of one module.
// expected-error @below {{expected launches of programs in the outermost module, got one in a nested one}}
module @inner {
  gdn_tile.program @p(%x: memref<4xf32>) outs(%y: memref<4xf32>) work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  }
  func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %c1 = arith.constant 1 : index
    %r = gdn_tile.launch @p grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
        -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
module @empty {
}
