// RUN: gdn-opt %s --convert-gdn-to-tile=v-tiles=3 -split-input-file -verify-diagnostics
// RUN: not gdn-opt %s --convert-gdn-to-tile=v-tiles=-1 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not gdn-opt %s --convert-gdn-to-tile=operand-type=f64 2>&1 | FileCheck %s --check-prefix=TYPE

// PARTS: error: expected v-tiles of at least 0, got -1
// TYPE: error: expected operand-type auto, bf16, f16 or f32, got 'f64'

// Parts are equal.
func.func @parts(%x: tensor<1x32x1x16xf32>) -> tensor<1x32x1x16xf32> {
  // expected-error @below {{expected V = 16 to be a multiple of v-tiles, got 3}}
  %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
  return %y : tensor<1x32x1x16xf32>
}
