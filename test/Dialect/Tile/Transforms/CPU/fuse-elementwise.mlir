// RUN: gdn-opt %s --gdn-tile-fuse-elementwise | FileCheck %s

// A chain with a broadcast is one loop.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK-NOT: linalg.broadcast
func.func @chain(%x : tensor<4x32xf32>, %b : tensor<32xf32>) -> tensor<4x32xbf16> {
  %e = tensor.empty() : tensor<4x32xf32>
  %bb = linalg.broadcast ins(%b : tensor<32xf32>) outs(%e : tensor<4x32xf32>) dimensions = [0]
  %y = arith.mulf %x, %bb : tensor<4x32xf32>
  %z = arith.truncf %y : tensor<4x32xf32> to tensor<4x32xbf16>
  return %z : tensor<4x32xbf16>
}

// An exponential is not repeated for every row that it is broadcast to.
// CHECK-LABEL: func.func @expensive
// CHECK: %[[E:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<32xf32>)
// CHECK:   math.exp2
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[E]] : tensor<4x32xf32>, tensor<32xf32>)
func.func @expensive(%x : tensor<4x32xf32>, %g : tensor<32xf32>) -> tensor<4x32xf32> {
  %e = tensor.empty() : tensor<4x32xf32>
  %gam = math.exp2 %g : tensor<32xf32>
  %b = linalg.broadcast ins(%gam : tensor<32xf32>) outs(%e : tensor<4x32xf32>) dimensions = [0]
  %y = arith.mulf %x, %b : tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}
