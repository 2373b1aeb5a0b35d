// Vectors over the lanes of a warp: ragged arrays, sums both ways, elements, shared memory; a
// vector that repeats along the rows and columns of a fragment.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// CHECK: .entry lanes(
// CHECK-DAG: shfl.sync.up.b32
// CHECK-DAG: shfl.sync.down.b32
// CHECK-DAG: shfl.sync.idx.b32
// CHECK-DAG: ex2.approx.ftz.f32
// CHECK-NOT: local

gdn_warp.kernel @lanes(%g : memref<?x3xf32>, %up : memref<?x3xf32>, %down : memref<96xf32>,
    %small : memref<16xf32>, %outer : memref<64x64xf32>, %rows : i32, %pick : i32)
    threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at_small = arith.constant 512 : index
  %end = arith.index_cast %rows : i32 to index
  %element = arith.index_cast %pick : i32 to index
  %warp = gdn_warp.id warp
  %v = gdn_warp.view %c0 : !gdn_warp.view<96xf32>
  %vs = gdn_warp.view %at_small : !gdn_warp.view<16xf32>
  %first = arith.cmpi eq, %warp, %c0 : index
  scf.if %first {
    %a = gdn_warp.array_load %g[%c0, %c1] axes [0] until(%end, dim = 0)
        : memref<?x3xf32> -> tensor<96xf32, #gdn_warp.lanes>
    %s = gdn_tile.scan %a axis 0 : tensor<96xf32, #gdn_warp.lanes>
    gdn_warp.array_store %s, %up[%c0, %c1] axes [0] until(%end, dim = 0)
        : tensor<96xf32, #gdn_warp.lanes> -> memref<?x3xf32>
    %r = gdn_tile.scan %a axis 0 reverse : tensor<96xf32, #gdn_warp.lanes>
    %p = tensor.extract %r[%element] : tensor<96xf32, #gdn_warp.lanes>
    %f = tensor.splat %p : tensor<96xf32, #gdn_warp.lanes>
    %e = math.exp2 %f : tensor<96xf32, #gdn_warp.lanes>
    %d = arith.mulf %r, %e : tensor<96xf32, #gdn_warp.lanes>
    gdn_warp.vector_store %d, %v : tensor<96xf32, #gdn_warp.lanes> -> !gdn_warp.view<96xf32>
    // 16 elements are twice in a warp.
    %b = gdn_warp.array_load %g[%c0, %c0] axes [0]
        : memref<?x3xf32> -> tensor<16xf32, #gdn_warp.lanes>
    %t = gdn_tile.scan %b axis 0 : tensor<16xf32, #gdn_warp.lanes>
    %i = gdn_warp.iota 0 : tensor<16xi32, #gdn_warp.lanes>
    %n = arith.sitofp %i : tensor<16xi32, #gdn_warp.lanes> to tensor<16xf32, #gdn_warp.lanes>
    %u = arith.addf %t, %n : tensor<16xf32, #gdn_warp.lanes>
    gdn_warp.vector_store %u, %vs : tensor<16xf32, #gdn_warp.lanes> -> !gdn_warp.view<16xf32>
    gdn_warp.sync warp
    %back = gdn_warp.vector_load %v : !gdn_warp.view<96xf32> -> tensor<96xf32, #gdn_warp.lanes>
    gdn_warp.array_store %back, %down[%c0] axes [0]
        : tensor<96xf32, #gdn_warp.lanes> -> memref<96xf32>
    %sback = gdn_warp.vector_load %vs : !gdn_warp.view<16xf32> -> tensor<16xf32, #gdn_warp.lanes>
    gdn_warp.array_store %sback, %small[%c0] axes [0]
        : tensor<16xf32, #gdn_warp.lanes> -> memref<16xf32>
  }
  gdn_warp.sync cta
  %vr = gdn_warp.vector_load %vs : !gdn_warp.view<16xf32> -> tensor<64xf32, #gdn_warp.rows>
  %vc = gdn_warp.vector_load %vs : !gdn_warp.view<16xf32> -> tensor<64xf32, #gdn_warp.columns>
  %none = tensor.empty() : tensor<64x64xf32, #gdn_warp.fragment>
  %br = linalg.broadcast ins(%vr : tensor<64xf32, #gdn_warp.rows>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [1]
  %bc = linalg.broadcast ins(%vc : tensor<64xf32, #gdn_warp.columns>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [0]
  %product = arith.mulf %br, %bc : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.array_store %product, %outer[%c0, %c0] axes [0, 1]
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}
