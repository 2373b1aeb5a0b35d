// What cannot be run or checked is named with its place.

// RUN: not gdn-run %s 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: gdn-run: error: expected --entry of one of @negate, @scalar, @constant, got none

// RUN: not gdn-run %s --entry=scalar 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: error: expected argument 0 of @scalar to be a tensor of f32, bf16, f16, i8, i32 or i64, or a scalar of index, i64, i32 or f32, got f16
func.func @negate(%x: tensor<4xf32>) -> tensor<4xf32> {
  // RUN: not gdn-run %s --entry=negate --check 2>&1 | FileCheck %s --check-prefix=OP
  // OP: uncheckable.mlir:{{.*}}: expected only layer ops and forward stages of gdn, arith.constant and tensor.cast for --check, got 'arith.negf'
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @scalar(%x: f16) {
  return
}

// A value that no layer touches must come back as it is.
// RUN: gdn-run %s --entry=constant --check | FileCheck %s --check-prefix=CONSTANT
// CONSTANT: 0 value {{.*}}0.00e+00 {{.*}} pass
func.func @constant() -> tensor<2xf32> {
  %x = arith.constant dense<[1.5, -2.0]> : tensor<2xf32>
  return %x : tensor<2xf32>
}
