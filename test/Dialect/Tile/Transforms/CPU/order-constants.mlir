// RUN: gdn-opt %s --gdn-tile-order-constants --verify-roundtrip | FileCheck %s

// Constants stand in the order of their first uses and are called by it, whatever order bufferization made them in. A name
// that somebody else has is left to them.
// CHECK: memref.global "private" constant @__constant_0 : memref<4xf32> = dense<1.000000e+00>
// CHECK-NEXT: memref.global "private" constant @__constant_1 : memref<4xf32> = dense<2.000000e+00>
// CHECK-NEXT: memref.global "private" @scratch
// CHECK-NEXT: memref.global constant @__constant : memref<4xf32> = dense<3.000000e+00>
// CHECK-NEXT: memref.global "private" constant @unused
memref.global "private" @scratch : memref<4xf32> = dense<0.0>
memref.global "private" constant @__constant_4xf32_0 : memref<4xf32> = dense<2.0>
memref.global constant @__constant : memref<4xf32> = dense<3.0>
memref.global "private" constant @unused : memref<4xf32> = dense<4.0>
memref.global "private" constant @__constant_4xf32 : memref<4xf32> = dense<1.0>
// CHECK-LABEL: func.func @first
func.func @first() -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
  // CHECK-NEXT: memref.get_global @__constant_0
  %one = memref.get_global @__constant_4xf32 : memref<4xf32>
  // CHECK-NEXT: memref.get_global @scratch
  %scratch = memref.get_global @scratch : memref<4xf32>
  // CHECK-NEXT: memref.get_global @__constant :
  %public = memref.get_global @__constant : memref<4xf32>
  return %one, %scratch, %public : memref<4xf32>, memref<4xf32>, memref<4xf32>
}
// CHECK-LABEL: func.func @second
func.func @second() -> (memref<4xf32>, memref<4xf32>) {
  // CHECK-NEXT: memref.get_global @__constant_1
  %two = memref.get_global @__constant_4xf32_0 : memref<4xf32>
  // CHECK-NEXT: memref.get_global @__constant_0
  %one = memref.get_global @__constant_4xf32 : memref<4xf32>
  return %two, %one : memref<4xf32>, memref<4xf32>
}
