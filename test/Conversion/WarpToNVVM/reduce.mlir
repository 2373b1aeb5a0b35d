// Rows of a fragment are reduced by the threads that hold them.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// A thread of a fragment of 8 columns holds two elements of each of its two rows; the quad shares the row.
// CHECK-LABEL: llvm.func @rows(
gdn_warp.kernel @rows(%x : memref<64x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
  %zero = arith.constant dense<0.0> : tensor<64xf32, #gdn_warp.rows>
  // CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[BELOW:.*]] = arith.constant 32 : i32
  // CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
  // CHECK: %[[NEXT:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[SUM]], %[[ONE]]
  // CHECK: %[[PAIR:.*]] = arith.addf %[[SUM]], %[[NEXT]]
  // CHECK: %[[OTHERS:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[PAIR]], %[[TWO]]
  // CHECK: arith.addf %[[PAIR]], %[[OTHERS]]
  // CHECK-COUNT-2: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl.sync
  %sums = linalg.reduce ins(%tile : tensor<64x8xf32, #gdn_warp.fragment>)
      outs(%zero : tensor<64xf32, #gdn_warp.rows>) dimensions = [1]
      (%element: f32, %sum: f32) {
        %more = arith.addf %element, %sum fastmath<contract> : f32
        linalg.yield %more : f32
      }
  // Rows 32 to 63 are those of the last two warps, and one lane of a quad writes both of its rows.
  // CHECK: %[[FIRST:.*]] = arith.cmpi ult
  // CHECK: scf.if %[[FIRST]] {
  // CHECK: scf.if
  // CHECK: arith.subi %{{.*}}, %[[BELOW]] : i32
  // CHECK: llvm.store
  // CHECK: llvm.store
  gdn_warp.vector_store %sums, %at rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
}

// -----

// Four lanes share a row, and a pass takes eight: four of 32 rows. A lane sums its 16 words of a row in pairs of bf16,
// by twos and as a tree, and its two halves in f32. Two exchanges among the four halve what a lane sums; then each takes its row.
// CHECK-LABEL: llvm.func @lanes(
gdn_warp.kernel @lanes() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  %view = gdn_warp.view %c0 : !gdn_warp.view<32x128xbf16, swizzle = 128>
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[PAIR:.*]], %[[PAIR]] : vector<2xbf16>
  // CHECK: math.fma %[[NEXT:.*]], %[[NEXT]], %[[SQUARE]] : vector<2xbf16>
  // CHECK-COUNT-7: arith.mulf %{{.*}} : vector<2xbf16>
  // CHECK-COUNT-7: arith.addf %{{.*}} : vector<2xbf16>
  // CHECK: arith.addf %{{.*}}, %{{.*}} : f32
  // CHECK-COUNT-12: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK-COUNT-3: nvvm.shfl.sync bfly
  // CHECK: nvvm.shfl.sync idx
  // CHECK-NOT: nvvm.shfl
  %dots = gdn_warp.row_dots %view, %view : !gdn_warp.view<32x128xbf16, swizzle = 128>,
      !gdn_warp.view<32x128xbf16, swizzle = 128> -> tensor<32xf32, #gdn_warp.lanes>
  gdn_warp.vector_store %dots, %at : tensor<32xf32, #gdn_warp.lanes> -> !gdn_warp.view<32xf32>
}

// -----

// A thread of a warpgroup has the two rows that it has of a fragment, and so do the others of its four.
// CHECK-LABEL: llvm.func @group(
gdn_warp.kernel @group() threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  %view = gdn_warp.view %c0 : !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-4: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl
  %dots = gdn_warp.row_dots %view, %view : !gdn_warp.view<64x128xbf16, swizzle = 128>,
      !gdn_warp.view<64x128xbf16, swizzle = 128> -> tensor<64xf32, #gdn_warp.rows>
  gdn_warp.vector_store %dots, %at : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
}

// -----

// Products of two tiles may cancel each other: each is added in f32. Of 16 rows there are two passes.
// CHECK-LABEL: llvm.func @products(
gdn_warp.kernel @products() threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<16xf32>
  %x = gdn_warp.view %c0 : !gdn_warp.view<16x64xbf16, swizzle = 128>
  %y = gdn_warp.view %c4096 : !gdn_warp.view<16x64xbf16, swizzle = 128>
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK-COUNT-8: arith.mulf %{{.*}} : f32
  // CHECK-COUNT-8: math.fma %{{.*}} : f32
  // CHECK-COUNT-7: arith.addf
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK-COUNT-2: nvvm.shfl.sync bfly
  // CHECK: nvvm.shfl.sync idx
  %dots = gdn_warp.row_dots %x, %y : !gdn_warp.view<16x64xbf16, swizzle = 128>,
      !gdn_warp.view<16x64xbf16, swizzle = 128> -> tensor<16xf32, #gdn_warp.lanes>
  gdn_warp.vector_store %dots, %at : tensor<16xf32, #gdn_warp.lanes> -> !gdn_warp.view<16xf32>
}

// -----

// Columns run over all warps: there is no sum of them without a place in shared memory.
gdn_warp.kernel @columns(%x : memref<64x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
  %zero = arith.constant dense<0.0> : tensor<8xf32, #gdn_warp.columns>
  // expected-error @below {{expected a place in shared memory in gdn_warp.scratch (gdn-warp-allocate-shared)}}
  // expected-error @below {{failed to legalize operation 'linalg.reduce'}}
  %sums = linalg.reduce { arith.addf } ins(%tile : tensor<64x8xf32, #gdn_warp.fragment>)
      outs(%zero : tensor<8xf32, #gdn_warp.columns>) dimensions = [0]
  %at = gdn_warp.view %c0 : !gdn_warp.view<8xf32>
  gdn_warp.vector_store %sums, %at : tensor<8xf32, #gdn_warp.columns> -> !gdn_warp.view<8xf32>
}

// -----

// Over rows: the eight quads of a warp hand each other halves of what they hold of 64 columns, 14 shuffles for 48, and then each
// has the sums of two columns. Behind a barrier a lane adds up two columns of the four warps, and all take theirs from it.
// CHECK-LABEL: llvm.func @over_rows(
// CHECK-COUNT-14: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.barrier
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8
// CHECK-NOT: llvm.load
// CHECK-COUNT-16: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
gdn_warp.kernel @over_rows(%x : memref<64x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %tile = arith.constant dense<2.0> : tensor<64x64xf32, #gdn_warp.fragment>
  %zero = arith.constant dense<0.0> : tensor<64xf32, #gdn_warp.columns>
  %sums = linalg.reduce { arith.addf } ins(%tile : tensor<64x64xf32, #gdn_warp.fragment>)
      outs(%zero : tensor<64xf32, #gdn_warp.columns>) dimensions = [0] {gdn_warp.scratch = array<i64: 0, 1024>}
  gdn_warp.array_store %sums, %x[%c0, %c0] axes [1] : tensor<64xf32, #gdn_warp.columns> -> memref<64x64xf32>
}

// -----

// Of 24 columns, an odd number of eights, each quad keeps all.
// CHECK-LABEL: llvm.func @odd_columns(
// CHECK-COUNT-18: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.barrier
gdn_warp.kernel @odd_columns(%x : memref<64x24xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %tile = arith.constant dense<2.0> : tensor<64x24xf32, #gdn_warp.fragment>
  %zero = arith.constant dense<0.0> : tensor<24xf32, #gdn_warp.columns>
  %sums = linalg.reduce { arith.addf } ins(%tile : tensor<64x24xf32, #gdn_warp.fragment>)
      outs(%zero : tensor<24xf32, #gdn_warp.columns>) dimensions = [0] {gdn_warp.scratch = array<i64: 0, 1024>}
  gdn_warp.array_store %sums, %x[%c0, %c0] axes [1] : tensor<24xf32, #gdn_warp.columns> -> memref<64x24xf32>
}
