// RUN: gdn-opt %s --convert-gdn-to-tile --gdn-tile-verify-form --verify-roundtrip -split-input-file | FileCheck %s

// Programs are named after the function and the stage, and stay unique. A stage
// in a region leaves its launch there; the program goes before the function.

// CHECK: gdn_tile.program @f_linear_attention(
// CHECK: gdn_tile.program @f_linear_attention_1(
// CHECK-LABEL: func.func @f(
// CHECK: gdn_tile.launch @f_linear_attention
// CHECK: scf.if
// CHECK-NEXT: %{{.*}} = arith.constant
// CHECK: gdn_tile.launch @f_linear_attention_1
// CHECK: scf.yield
// CHECK: func.func private @f_linear_attention_0()
func.func @f(%x: tensor<1x32x1x16xf32>, %again: i1) -> tensor<1x32x1x16xf32> {
  %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
  %z = scf.if %again -> tensor<1x32x1x16xf32> {
    %two = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
        v(%y : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
    scf.yield %two : tensor<1x32x1x16xf32>
  } else {
    scf.yield %y : tensor<1x32x1x16xf32>
  }
  return %z : tensor<1x32x1x16xf32>
}
func.func private @f_linear_attention_0()

// -----

// A program lives in the module of its launch, which is its symbol table.
// CHECK-LABEL: module @inner
// CHECK-NEXT: gdn_tile.program @f_linear_attention(
// CHECK: gdn_tile.launch @f_linear_attention
module @outer {
  module @inner {
    func.func @f(%x: tensor<1x32x1x16xf32>) -> tensor<1x32x1x16xf32> {
      %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
          v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
      return %y : tensor<1x32x1x16xf32>
    }
  }
}
