// Register tiles: upstream ops on them are the same ops on the vectors of a thread.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func @elementwise(
gdn_warp.kernel @elementwise(%x : memref<64x64xf32>, %s : f32) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<8xf32>
  %none = tensor.empty() : tensor<64x8xf32, #gdn_warp.fragment>
  // Column 8 j + 2 (l mod 4) + b is element 2 j + b of a vector and 4 j + 2 h + b of a fragment.
  // CHECK: %[[C:.*]] = llvm.load {{.*}} -> vector<2xf32>
  %c = gdn_warp.vector_load %at : !gdn_warp.view<8xf32> -> tensor<8xf32, #gdn_warp.columns>
  // CHECK: %[[CB:.*]] = vector.shuffle %[[C]], %[[C]] [0, 1, 0, 1]
  %cb = linalg.broadcast ins(%c : tensor<8xf32, #gdn_warp.columns>)
      outs(%none : tensor<64x8xf32, #gdn_warp.fragment>) dimensions = [0]
  // CHECK: %[[SPLAT:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
  %b = tensor.splat %s : tensor<64x8xf32, #gdn_warp.fragment>
  // A loop carries the vector.
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[SPLAT]]) -> (vector<4xf32>)
  // CHECK: arith.mulf %[[ACC]], %[[CB]] : vector<4xf32>
  %l = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %b)
      -> (tensor<64x8xf32, #gdn_warp.fragment>) {
    %m = arith.mulf %acc, %cb : tensor<64x8xf32, #gdn_warp.fragment>
    scf.yield %m : tensor<64x8xf32, #gdn_warp.fragment>
  }
  // CHECK: arith.cmpi sgt, %{{.*}}, %{{.*}} : vector<4xi32>
  // CHECK: arith.select %{{.*}} : vector<4xi1>, vector<4xf32>
  %i = gdn_warp.iota 0 : tensor<64x8xi32, #gdn_warp.fragment>
  %j = gdn_warp.iota 1 : tensor<64x8xi32, #gdn_warp.fragment>
  %k = arith.cmpi sgt, %i, %j : tensor<64x8xi32, #gdn_warp.fragment>
  %z = arith.select %k, %l, %b
      : tensor<64x8xi1, #gdn_warp.fragment>, tensor<64x8xf32, #gdn_warp.fragment>
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  %e = math.exp2 %z : tensor<64x8xf32, #gdn_warp.fragment>
  // Two neighbours of a row are one store.
  // CHECK-COUNT-2: llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  gdn_warp.array_store %e, %x[%c0, %c0] axes [0, 1]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
  // Along columns of memory they are not, and each has its own end.
  // CHECK-COUNT-4: scf.if
  gdn_warp.array_store %e, %x[%c0, %c0] axes [1, 0] until(%c2, dim = 0)
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// Strides of an array without a layout are even where its rows are.
// CHECK-LABEL: llvm.func @pairs(
gdn_warp.kernel @pairs(%dense : memref<?x?x64xf32>,
    %strided : memref<?x?x64xf32, strided<[?, ?, 1]>>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %f = arith.constant dense<1.0> : tensor<64x8xf32, #gdn_warp.fragment>
  // CHECK-COUNT-2: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
  gdn_warp.array_store %f, %dense[%c0, %c0, %c0] axes [1, 2]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<?x?x64xf32>
  // CHECK-COUNT-4: llvm.store {{.*}} : vector<1xf32>, !llvm.ptr<1>
  gdn_warp.array_store %f, %strided[%c0, %c0, %c0] axes [1, 2]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<?x?x64xf32, strided<[?, ?, 1]>>
}

// A 16 x 16 block is one matrix instruction; the swizzle of a thread's address is found once and
// the block's bytes come by exclusive or.
// CHECK-LABEL: llvm.func @matrices(
gdn_warp.kernel @matrices() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x32xbf16, swizzle = 128>
  %t = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // CHECK: %[[A:.*]] = nvvm.ldmatrix %{{.*}} {{.*}}#nvvm.mma_layout<row>, num = 4
  // CHECK: arith.xori
  // CHECK: nvvm.ldmatrix
  %f = gdn_warp.fragment_load %v
      : !gdn_warp.view<64x32xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
  // CHECK: %[[FIRST:.*]] = llvm.getelementptr
  // CHECK: nvvm.stmatrix {{.*}}#nvvm.mma_layout<col>
  // CHECK: nvvm.stmatrix {{.*}}#nvvm.mma_layout<col>
  gdn_warp.fragment_store %f, %t transpose
      : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
}

// Of each of its two rows a lane has the diagonal if it has that column, or its neighbour has; the warp's place among
// the rows says in which 16 columns. Transposed, elements of f32 are stored each by itself.
// CHECK-LABEL: llvm.func @diagonal(
gdn_warp.kernel @diagonal(%x : memref<64x32xf32>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %f = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c1_i32 : i32
  // CHECK: arith.select %[[FIRST]], %{{.*}}, %{{.*}} : f32
  // CHECK: nvvm.shfl.sync idx
  // CHECK: arith.select %[[FIRST]], %{{.*}}, %{{.*}} : f32
  // CHECK: nvvm.shfl.sync idx
  %d = gdn_warp.diagonal %f from 0 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  gdn_warp.vector_store %d, %v : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
  %t = gdn_warp.view %c0 : !gdn_warp.view<32x32xf32, stride = 144>
  // CHECK-COUNT-16: llvm.store {{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
  gdn_warp.fragment_store %f, %t transpose rows [0, 32]
      : tensor<64x32xf32, #gdn_warp.fragment> -> !gdn_warp.view<32x32xf32, stride = 144>
}
