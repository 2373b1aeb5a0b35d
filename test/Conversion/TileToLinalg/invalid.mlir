// RUN: gdn-opt %s --convert-gdn-tile-to-linalg -verify-diagnostics

// Blocks of 16 merge in pairs: other sizes have no expansion.
func.func @solve_size(%kk : tensor<48x48xf32>, %b : tensor<48xf32>) -> tensor<48x48xf32> {
  // expected-error @below {{'gdn_tile.solve' op expected 16 times a power of two rows or at most 16, got 48}}
  // expected-error @below {{failed to legalize operation 'gdn_tile.solve' that was explicitly marked illegal}}
  %r = gdn_tile.solve %kk, %b merge f16 : tensor<48x48xf32>, tensor<48xf32>
  return %r : tensor<48x48xf32>
}
