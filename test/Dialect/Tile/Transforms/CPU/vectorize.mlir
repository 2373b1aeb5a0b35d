// RUN: gdn-opt %s --gdn-tile-vectorize=vector-bits=512 --canonicalize -split-input-file | FileCheck %s

// 8 x 32 accumulators in registers over the whole k loop. The fill before is
// dropped: the sums start from zero.
// CHECK-LABEL: func.func @product
// CHECK-NOT: linalg.
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: scf.for %{{.*}} to %c64 step %c8
// CHECK-NOT: vector.store
// CHECK: %[[SUMS:.*]]:16 = scf.for %{{.*}} = %c0 to %c128 step %c1 iter_args(%{{.*}} = %[[ZERO]]
// CHECK-COUNT-2: vector.load
// CHECK-COUNT-16: vector.fma
// CHECK-NOT: vector.store
// CHECK: scf.yield
// CHECK-COUNT-16: vector.store %[[SUMS]]
func.func @product(%a : memref<64x128xf32>, %b : memref<128x32xf32>, %c : memref<64x32xf32>)
    attributes {gdn_tile.program} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<64x32xf32>)
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<64x128xf32>, memref<128x32xf32>) outs(%c : memref<64x32xf32>)
  return
}

// -----

// What is the same for a whole row stays a scalar until it meets a vector.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[I:.*]] = %c0 to %c4
// CHECK:   scf.for %[[J:.*]] = %c0 to %c64 step %c32
// CHECK:     %[[X:.*]] = vector.load %{{.*}}[%[[I]], %[[J]]] : memref<4x64xf32>, vector<32xf32>
// CHECK:     %[[B:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK:     %[[NEG:.*]] = arith.negf %[[B]] : f32
// CHECK:     %[[V:.*]] = vector.broadcast %[[NEG]]
// CHECK:     arith.mulf %[[X]], %[[V]] : vector<32xf32>
func.func @rows(%x : memref<4x64xf32>, %b : memref<4xf32>, %y : memref<4x64xf32>)
    attributes {gdn_tile.program} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : memref<4x64xf32>, memref<4xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%in : f32, %scale : f32, %out : f32):
    %n = arith.negf %scale : f32
    %p = arith.mulf %in, %n : f32
    linalg.yield %p : f32
  }
  return
}

// -----

// A transpose goes by squares of one register, in four rounds of interleaving.
// CHECK-LABEL: func.func @transpose
// CHECK: scf.for %{{.*}} to %c32 step %c16
// CHECK:   scf.for %{{.*}} to %c64 step %c16
// CHECK-COUNT-16: vector.load
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-16: vector.store
func.func @transpose(%x : memref<32x64xf32>, %y : memref<64x32xf32>)
    attributes {gdn_tile.program} {
  linalg.transpose ins(%x : memref<32x64xf32>) outs(%y : memref<64x32xf32>) permutation = [1, 0]
  return
}

// -----

// A tile of i1 is bytes in memory: its loops stay loops over elements.
// CHECK-LABEL: func.func @booleans
// CHECK-NOT: vector
// CHECK: memref.store %{{.*}} : memref<4x64xi1>
func.func @booleans(%x : memref<4x64xf32>, %y : memref<4x64xi1>)
    attributes {gdn_tile.program} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x64xf32>) outs(%y : memref<4x64xi1>) {
  ^bb0(%in : f32, %out : i1):
    %p = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %p : i1
  }
  return
}
