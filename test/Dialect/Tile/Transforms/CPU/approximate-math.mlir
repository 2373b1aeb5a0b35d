// RUN: gdn-opt %s --gdn-tile-approximate-math | FileCheck %s

// A vector of exponentials stays in vector registers: a polynomial, and the exponent by integer arithmetic.
// CHECK-LABEL: func.func @exponentials
// CHECK-NOT: math.exp2
// CHECK: math.fma {{.*}} : vector<8xf32>
// CHECK: arith.bitcast {{.*}} : vector<8xi32> to vector<8xf32>
func.func @exponentials(%x : vector<8xf32>) -> vector<8xf32> {
  %y = math.exp2 %x : vector<8xf32>
  return %y : vector<8xf32>
}

// f64 is left to the library.
// CHECK-LABEL: func.func @doubles
// CHECK: math.exp2 {{.*}} : f64
func.func @doubles(%x : f64) -> f64 {
  %y = math.exp2 %x : f64
  return %y : f64
}
