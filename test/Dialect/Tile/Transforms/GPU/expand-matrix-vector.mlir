// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-expand-matrix-vector))' | FileCheck %s

// CHECK-LABEL: gdn_tile.program @products
gdn_tile.program @products(%x: memref<64x128xbf16>, %k: memref<128xbf16>, %q: memref<64xf32>) outs(%y: memref<64xf32>, %z: memref<128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64xf32>
  %ones = arith.constant {gdn_tile.step = "state"} dense<1.0> : tensor<128xf32>
  // CHECK: %[[A:.*]] = gdn_tile.load {{.*}} -> tensor<64x128xbf16>
  %a = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x128xbf16> -> tensor<64x128xbf16>
  // CHECK: %[[K:.*]] = gdn_tile.load {{.*}} -> tensor<128xbf16>
  %kt = gdn_tile.load %k[%c0] axes [0] {gdn_tile.step = "load"} : memref<128xbf16> -> tensor<128xbf16>
  %qt = gdn_tile.load %q[%c0] axes [0] {gdn_tile.step = "load"} : memref<64xf32> -> tensor<64xf32>
  // CHECK: %[[KF:.*]] = arith.extf %[[K]] {gdn_tile.step = "state"}
  // CHECK: %[[AF:.*]] = arith.extf %[[A]] {gdn_tile.step = "state"}
  // CHECK: %[[KS:.*]] = linalg.broadcast ins(%[[KF]] : tensor<128xf32>) {{.*}} dimensions = [0]
  // CHECK: %[[T:.*]] = arith.mulf %[[AF]], %[[KS]] fastmath<contract> {gdn_tile.step = "state"}
  // CHECK: linalg.reduce {{.*}}ins(%[[T]] : tensor<64x128xf32>) outs(%{{.*}} : tensor<64xf32>) dimensions = [1]
  %u = linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {gdn_tile.step = "state"}
      ins(%a, %kt : tensor<64x128xbf16>, tensor<128xbf16>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  // The vector on the left, along the rows: what it is added to is where the sums begin.
  // CHECK: %[[QS:.*]] = linalg.broadcast ins(%{{.*}} : tensor<64xf32>) {{.*}} dimensions = [1]
  // CHECK: %[[T2:.*]] = arith.mulf %{{.*}}, %[[QS]]
  // CHECK: linalg.reduce {{.*}}ins(%[[T2]] : tensor<64x128xf32>) outs(%{{.*}} : tensor<128xf32>) dimensions = [0]
  %w = linalg.contract indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>] {gdn_tile.step = "state"}
      ins(%qt, %a : tensor<64xf32>, tensor<64x128xbf16>) outs(%ones : tensor<128xf32>) -> tensor<128xf32>
  gdn_tile.store %u, %y[%c0] axes [0] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<64xf32>
  gdn_tile.store %w, %z[%c0] axes [0] {gdn_tile.step = "state"} : tensor<128xf32> -> memref<128xf32>
}
