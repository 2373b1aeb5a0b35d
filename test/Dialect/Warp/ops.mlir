// Every op, as its page shows it.
// RUN: gdn-opt %s | gdn-opt --verify-roundtrip | FileCheck %s

// CHECK-LABEL: gdn_warp.kernel @order(
gdn_warp.kernel @order(%cu : memref<?xi32>, %ranks : i32) threads(128) shared(0) {
  %rank = gdn_warp.id cta
  // CHECK: gdn_warp.sequence_by_rank %cu, %{{.*}} tokens(%{{.*}}) : memref<?xi32>
  %n, %begin, %end = gdn_warp.sequence_by_rank %cu, %rank tokens(%rank) : memref<?xi32>
}

// CHECK-LABEL: gdn_warp.kernel @clear(
gdn_warp.kernel @clear(%o : memref<1x?x4x128xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // CHECK: gdn_warp.array_clear %o[%c0, %c0, %c0, %c0] until(%c0, dim = 1) columns 64 : memref<1x?x4x128xbf16>
  gdn_warp.array_clear %o[%c0, %c0, %c0, %c0] until(%c0, dim = 1) columns 64 : memref<1x?x4x128xbf16>
}

// CHECK-LABEL: gdn_warp.kernel @meeting(
gdn_warp.kernel @meeting(%count : memref<?xi32>) threads(128) shared(0) {
  // CHECK: gdn_warp.exit
  gdn_warp.exit
  // CHECK: gdn_warp.await %count : memref<?xi32>
  gdn_warp.await %count : memref<?xi32>
  // CHECK: gdn_warp.count_down %count : memref<?xi32>
  gdn_warp.count_down %count : memref<?xi32>
}

// CHECK-LABEL: gdn_warp.kernel @reports(
gdn_warp.kernel @reports(%progress : memref<?x4x2xi32>) threads(128) shared(0) {
  %n = arith.constant 1 : index
  // CHECK: gdn_warp.begin_reports %progress[%[[N:.*]], %[[N]], %[[N]]] : memref<?x4x2xi32>
  gdn_warp.begin_reports %progress[%n, %n, %n] : memref<?x4x2xi32>
  // CHECK: gdn_warp.report %[[N]], %progress[%[[N]], %[[N]], %[[N]]] : memref<?x4x2xi32>
  gdn_warp.report %n, %progress[%n, %n, %n] : memref<?x4x2xi32>
  // CHECK: gdn_warp.await_report %progress[%[[N]], %[[N]]] count %[[N]] done %[[N]] : memref<?x4x2xi32>
  gdn_warp.await_report %progress[%n, %n] count %n done %n : memref<?x4x2xi32>
}

// CHECK-LABEL: gdn_warp.kernel @turns() threads(128) shared(0) cluster(2) persistent {
gdn_warp.kernel @turns() threads(128) shared(0) cluster(2) persistent {
}

// CHECK-LABEL: gdn_warp.kernel @synchronisation(%x: f32) threads(256) shared(1024) min_ctas(2) cluster(2)
gdn_warp.kernel @synchronisation(%x : f32) threads(256) shared(1024) min_ctas(2) cluster(2) {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0 : i32
  // CHECK: gdn_warp.grid_dependency_wait
  gdn_warp.grid_dependency_wait
  // CHECK: gdn_warp.grid_dependency_wait then_launch
  gdn_warp.grid_dependency_wait then_launch
  // CHECK: gdn_warp.grid_dependency_wait last_cta
  gdn_warp.grid_dependency_wait last_cta
  // CHECK: gdn_warp.launch_dependents
  gdn_warp.launch_dependents
  // CHECK: gdn_warp.id cluster_rank
  %rank = gdn_warp.id cluster_rank
  // CHECK: %[[BAR:.*]] = gdn_warp.barrier %{{.*}}
  %bar = gdn_warp.barrier %c0
  // CHECK: gdn_warp.barrier_init %[[BAR]], 4
  gdn_warp.barrier_init %bar, 4
  // CHECK: gdn_warp.fence barrier_init
  gdn_warp.fence barrier_init
  // CHECK: gdn_warp.sync cluster
  gdn_warp.sync cluster
  // CHECK: gdn_warp.role "a" warps(0, 4) registers(64) {
  gdn_warp.role "a" warps(0, 4) registers(64) {
    // CHECK: gdn_warp.elect
    %one = gdn_warp.elect
    // CHECK: gdn_warp.barrier_arrive %[[BAR]]{{$}}
    gdn_warp.barrier_arrive %bar
    // CHECK: gdn_warp.barrier_arrive %[[BAR]] rank(%{{.*}})
    gdn_warp.barrier_arrive %bar rank(%p)
    // One arrival is not printed.
    // CHECK: gdn_warp.barrier_arrive %[[BAR]] rank(%{{.*}}) count(9)
    gdn_warp.barrier_arrive %bar rank(%p) count(9)
    // CHECK: gdn_warp.barrier_arrive %[[BAR]]{{$}}
    gdn_warp.barrier_arrive %bar count(1)
    // CHECK: gdn_warp.barrier_expect %[[BAR]], 4096{{$}}
    gdn_warp.barrier_expect %bar, 4096
    // CHECK: gdn_warp.barrier_expect %[[BAR]], 4096 rank(%{{.*}})
    gdn_warp.barrier_expect %bar, 4096 rank(%p)
  }
  // CHECK: gdn_warp.role "b" warps(4, 1) {
  gdn_warp.role "b" warps(4, 1) {
    // CHECK: gdn_warp.barrier_wait %[[BAR]], %{{.*}} cluster
    gdn_warp.barrier_wait %bar, %p cluster
    // CHECK: gdn_warp.barrier_test %[[BAR]], %{{.*}}
    %done = gdn_warp.barrier_test %bar, %p
    // CHECK: gdn_warp.sync_group %{{.*}}, 32
    gdn_warp.sync_group %p, 32
    // CHECK: gdn_warp.shuffle xor %{{.*}}, %{{.*}} : f32
    %y = gdn_warp.shuffle xor %x, %p : f32
  }
}

// CHECK-LABEL: gdn_warp.kernel @memory(
// CHECK-SAME: %a: memref<?x128xbf16>
gdn_warp.kernel @memory(%a : memref<?x128xbf16>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %bar = gdn_warp.barrier %c0
  // A dense stride and column 0 are not printed.
  // CHECK: %[[VIEW:.*]] = gdn_warp.view %{{.*}} : <64x128xbf16, swizzle = 128>
  %view = gdn_warp.view %c0 : !gdn_warp.view<64x128xbf16, swizzle = 128, stride = 8192, column = 0>
  // CHECK: gdn_warp.slice %[[VIEW]][8, 32] : <64x128xbf16, swizzle = 128> -> <32x32xbf16, swizzle = 128, stride = 8192, column = 64>
  %slice = gdn_warp.slice %view[8, 32] : !gdn_warp.view<64x128xbf16, swizzle = 128>
      -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 8192, column = 64>
  // CHECK: gdn_warp.slice %[[VIEW]][8, 32] + %{{.*}} * [16, 64] : <64x128xbf16, swizzle = 128> -> <16x32xbf16, swizzle = 128, stride = 8192, column = 64>
  %next = gdn_warp.slice %view[8, 32] + %c0 * [16, 64] : !gdn_warp.view<64x128xbf16, swizzle = 128>
      -> !gdn_warp.view<16x32xbf16, swizzle = 128, stride = 8192, column = 64>
  // CHECK: gdn_warp.load %[[VIEW]][%{{.*}}, %{{.*}}] : <64x128xbf16, swizzle = 128> -> vector<8xbf16>
  %x = gdn_warp.load %view[%c0, %c0] : !gdn_warp.view<64x128xbf16, swizzle = 128> -> vector<8xbf16>
  // CHECK: gdn_warp.store
  gdn_warp.store %x, %view[%c0, %c0] : vector<8xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK: gdn_warp.bulk_tensor_load %a[%{{.*}}, %{{.*}}] axes [0, 1], %[[VIEW]] signal %{{.*}} :
  gdn_warp.bulk_tensor_load %a[%c0, %c0] axes [0, 1], %view signal %bar
      : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK: gdn_warp.bulk_tensor_store %[[VIEW]], %a[%{{.*}}, %{{.*}}] axes [0, 1] :
  gdn_warp.bulk_tensor_store %view, %a[%c0, %c0] axes [0, 1]
      : !gdn_warp.view<64x128xbf16, swizzle = 128> -> memref<?x128xbf16>
  %end = arith.constant 40 : index
  // CHECK: gdn_warp.bulk_tensor_load %a[%{{.*}}, %{{.*}}] axes [0, 1] until(%{{.*}}, dim = 0), %[[VIEW]] signal %{{.*}} :
  gdn_warp.bulk_tensor_load %a[%c0, %c0] axes [0, 1] until(%end, dim = 0), %view signal %bar
      : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK: gdn_warp.bulk_tensor_store %[[VIEW]], %a[%{{.*}}, %{{.*}}] axes [0, 1] until(%{{.*}}, dim = 0) :
  gdn_warp.bulk_tensor_store %view, %a[%c0, %c0] axes [0, 1] until(%end, dim = 0)
      : !gdn_warp.view<64x128xbf16, swizzle = 128> -> memref<?x128xbf16>
  // CHECK: gdn_warp.strided_load %a[%{{.*}}, %{{.*}}] axes [1, 0], %[[VIEW]] :
  gdn_warp.strided_load %a[%c0, %c0] axes [1, 0], %view : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK: gdn_warp.strided_load %a[%{{.*}}, %{{.*}}] axes [0, 1] until(%{{.*}}, dim = 0), %[[VIEW]] :
  gdn_warp.strided_load %a[%c0, %c0] axes [0, 1] until(%end, dim = 0), %view
      : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  // CHECK: gdn_warp.bulk_copy_to_cta %{{.*}}, %{{.*}} rank(%{{.*}}) : <2048xf32>
  %rank = arith.constant 1 : i32
  %slot = gdn_warp.view %c0 : !gdn_warp.view<2048xf32>
  gdn_warp.bulk_copy_to_cta %slot, %bar rank(%rank) : !gdn_warp.view<2048xf32>
  // CHECK: gdn_warp.bulk_commit
  gdn_warp.bulk_commit
  // CHECK: gdn_warp.bulk_wait 1 read
  gdn_warp.bulk_wait 1 read
}

// CHECK-LABEL: gdn_warp.kernel @tiles(
gdn_warp.kernel @tiles(%a : memref<?x64xf32>, %n : i32) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %n : i32 to index
  %vb = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  %vv = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  // CHECK: gdn_warp.iota 1 : tensor<64x64xi32, #gdn_warp.fragment>
  %i = gdn_warp.iota 1 : tensor<64x64xi32, #gdn_warp.fragment>
  // CHECK: gdn_warp.fragment_load %{{.*}} row(%{{.*}}) : <64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  %each = gdn_warp.fragment_load %vb row(%c0)
      : !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // CHECK: gdn_warp.fragment_load %{{.*}} transpose : <64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  %f = gdn_warp.fragment_load %vb transpose
      : !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // CHECK: gdn_warp.wgmma_fence
  gdn_warp.wgmma_fence
  // CHECK: %[[D:.*]] = gdn_warp.wgmma %{{.*}}, %{{.*}} transpose_b :
  %d = gdn_warp.wgmma %f, %vb transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>,
      !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.wgmma %{{.*}} transpose_a, %{{.*}} into(%[[D]] : tensor<64x64xf32, #gdn_warp.fragment>) :
  %e = gdn_warp.wgmma %vb transpose_a, %vb into(%d : tensor<64x64xf32, #gdn_warp.fragment>)
      : !gdn_warp.view<64x64xbf16, swizzle = 128>, !gdn_warp.view<64x64xbf16, swizzle = 128>
      -> tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.wgmma negate %{{.*}}, %{{.*}} transpose_b :
  %minus = gdn_warp.wgmma negate %f, %vb transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>,
      !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.wgmma_commit
  gdn_warp.wgmma_commit
  // CHECK: gdn_warp.wgmma_wait 1{{$}}
  gdn_warp.wgmma_wait 1
  // CHECK: gdn_warp.wgmma_wait 0 of %{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
  %w = gdn_warp.wgmma_wait 0 of %e : tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.fragment_store %{{.*}}, %{{.*}} rows [16, 48] :
  %vp = gdn_warp.view %c0 : !gdn_warp.view<32x64xf32>
  gdn_warp.fragment_store %w, %vp rows [16, 48]
      : tensor<64x64xf32, #gdn_warp.fragment> -> !gdn_warp.view<32x64xf32>
  // CHECK: gdn_warp.vector_load %{{.*}} : <64xf32> -> tensor<64xf32, #gdn_warp.rows>
  %r = gdn_warp.vector_load %vv : !gdn_warp.view<64xf32> -> tensor<64xf32, #gdn_warp.rows>
  // CHECK: gdn_warp.vector_load %{{.*}} : <64xf32> -> tensor<128xf32, #gdn_warp.columns>
  %rc = gdn_warp.vector_load %vv : !gdn_warp.view<64xf32> -> tensor<128xf32, #gdn_warp.columns>
  // CHECK: gdn_warp.vector_store
  gdn_warp.vector_store %r, %vv : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
  // CHECK: gdn_warp.vector_store %{{.*}}, %{{.*}} rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> <32xf32>
  %vh = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  gdn_warp.vector_store %r, %vh rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
  // CHECK: gdn_warp.array_load %a[%{{.*}}, %{{.*}}] axes [0, 1] until(%{{.*}}, dim = 0) :
  %x = gdn_warp.array_load %a[%c0, %c0] axes [0, 1] until(%end, dim = 0)
      : memref<?x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.array_store %{{.*}}, %a[%{{.*}}, %{{.*}}] axes [1, 0] :
  gdn_warp.array_store %x, %a[%c0, %c0] axes [1, 0]
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<?x64xf32>
  // CHECK: gdn_warp.tri_inverse %{{.*}}, %{{.*}} : <32x32xf16, stride = 80>, <32x32xbf16, swizzle = 128>
  %m = gdn_warp.view %c0 : !gdn_warp.view<32x32xf16, stride = 80>
  %s = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16, swizzle = 128>
  gdn_warp.tri_inverse %m, %s : !gdn_warp.view<32x32xf16, stride = 80>,
      !gdn_warp.view<32x32xbf16, swizzle = 128>
  // CHECK: gdn_warp.tri_inverse %{{.*}}, %{{.*}} times %{{.*}}, %{{.*}} : <32x32xf16, stride = 80>, <32x32xbf16, swizzle = 128>, !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
  gdn_warp.tri_inverse %m, %s times %vh, %vh : !gdn_warp.view<32x32xf16, stride = 80>,
      !gdn_warp.view<32x32xbf16, swizzle = 128>, !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
  // CHECK: gdn_warp.tri_inverse %{{.*}} by(%{{.*}} : !gdn_warp.view<32xf32>), %{{.*}} : <32x32xf32, stride = 144>, <32x32xbf16, swizzle = 128>
  %mf = gdn_warp.view %c0 : !gdn_warp.view<32x32xf32, stride = 144>
  gdn_warp.tri_inverse %mf by(%vh : !gdn_warp.view<32xf32>), %s : !gdn_warp.view<32x32xf32, stride = 144>,
      !gdn_warp.view<32x32xbf16, swizzle = 128>
  // CHECK: gdn_warp.diagonal %{{.*}} from 0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
  %dg = gdn_warp.diagonal %w from 0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
  // CHECK: gdn_warp.causal %{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
  %cs = gdn_warp.causal %w : tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.causal strict %{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
  %ct = gdn_warp.causal strict %w : tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: gdn_warp.fragment_store %{{.*}}, %{{.*}} transpose : tensor<64x64xf32, #gdn_warp.fragment> -> <64x64xf32>
  %vt = gdn_warp.view %c0 : !gdn_warp.view<64x64xf32>
  gdn_warp.fragment_store %w, %vt transpose : tensor<64x64xf32, #gdn_warp.fragment> -> !gdn_warp.view<64x64xf32>
}

// CHECK-LABEL: gdn_warp.kernel @lanes(
gdn_warp.kernel @lanes(%a : memref<?x4xbf16>, %n : i32) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %n : i32 to index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  // CHECK: gdn_warp.array_load %a[%{{.*}}, %{{.*}}] axes [0] until(%{{.*}}, dim = 0) : memref<?x4xbf16> -> tensor<64xbf16, #gdn_warp.lanes>
  %x = gdn_warp.array_load %a[%c0, %c0] axes [0] until(%end, dim = 0)
      : memref<?x4xbf16> -> tensor<64xbf16, #gdn_warp.lanes>
  %f = arith.extf %x : tensor<64xbf16, #gdn_warp.lanes> to tensor<64xf32, #gdn_warp.lanes>
  // CHECK: gdn_tile.scan %{{.*}} axis 0 reverse : tensor<64xf32, #gdn_warp.lanes>
  %s = gdn_tile.scan %f axis 0 reverse : tensor<64xf32, #gdn_warp.lanes>
  // CHECK: gdn_warp.iota 0 : tensor<64xi32, #gdn_warp.lanes>
  %i = gdn_warp.iota 0 : tensor<64xi32, #gdn_warp.lanes>
  // CHECK: gdn_warp.vector_store %{{.*}} : tensor<64xf32, #gdn_warp.lanes> -> <64xf32>
  gdn_warp.vector_store %s, %v : tensor<64xf32, #gdn_warp.lanes> -> !gdn_warp.view<64xf32>
  // CHECK: gdn_warp.row_dots %{{.*}}, %{{.*}} : <32x64xbf16, swizzle = 128>, <32x64xbf16, swizzle = 128> -> tensor<32xf32, #gdn_warp.lanes>
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  %k = gdn_warp.row_dots %w, %w : !gdn_warp.view<32x64xbf16, swizzle = 128>, !gdn_warp.view<32x64xbf16, swizzle = 128>
      -> tensor<32xf32, #gdn_warp.lanes>
  // CHECK: gdn_warp.array_store %{{.*}}, %a[%{{.*}}, %{{.*}}] axes [0] :
  gdn_warp.array_store %x, %a[%c0, %c0] axes [0]
      : tensor<64xbf16, #gdn_warp.lanes> -> memref<?x4xbf16>
}

// CHECK-LABEL: gdn_warp.kernel @rows(
gdn_warp.kernel @rows(%a : memref<64x64xbf16>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // CHECK: gdn_warp.array_load %a[%{{.*}}, %{{.*}}] axes [0, 1] rows [32, 64] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
  %x = gdn_warp.array_load %a[%c0, %c0] axes [0, 1] rows [32, 64] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // CHECK: gdn_warp.fragment_load %{{.*}} rows [0, 32] : <32x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  %y = gdn_warp.fragment_load %v rows [0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // CHECK: gdn_warp.vector_load %{{.*}} row(31) : <32x64xbf16, swizzle = 128> -> tensor<64xbf16, #gdn_warp.columns>
  %r = gdn_warp.vector_load %v row(31) : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64xbf16, #gdn_warp.columns>
  // CHECK: gdn_warp.vector_load %{{.*}} column(5) : <32x64xbf16, swizzle = 128> -> tensor<32xbf16, #gdn_warp.lanes>
  %c = gdn_warp.vector_load %v column(5) : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<32xbf16, #gdn_warp.lanes>
  // CHECK: gdn_warp.row %{{.*}}[40] : tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64xbf16, #gdn_warp.columns>
  %s = gdn_warp.row %x[40] : tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64xbf16, #gdn_warp.columns>
  // CHECK: gdn_warp.column %{{.*}}[31] : tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64xbf16, #gdn_warp.rows>
  %column = gdn_warp.column %x[31] : tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64xbf16, #gdn_warp.rows>
  // CHECK: gdn_warp.join %{{.*}}, %{{.*}} : tensor<64x64xbf16, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64x128xbf16, #gdn_warp.fragment>
  %joined = gdn_warp.join %x, %x : tensor<64x64xbf16, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment> -> tensor<64x128xbf16, #gdn_warp.fragment>
  // CHECK: gdn_warp.publish %{{.*}} transpose : tensor<64x128xbf16, #gdn_warp.fragment> -> <128x64xbf16, swizzle = 128>
  %turned = gdn_warp.publish %joined transpose : tensor<64x128xbf16, #gdn_warp.fragment> -> !gdn_warp.view<128x64xbf16, swizzle = 128>
  // CHECK: gdn_warp.publish %{{.*}} rows [0, 16] in_turn : tensor<64x64xbf16, #gdn_warp.fragment> -> <16x64xbf16, swizzle = 128>
  %turn = gdn_warp.publish %x rows [0, 16] in_turn : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<16x64xbf16, swizzle = 128>
  // CHECK: gdn_warp.publish : -> <64x64xbf16, swizzle = 128>
  %room = gdn_warp.publish : -> !gdn_warp.view<64x64xbf16, swizzle = 128>
  // CHECK: gdn_warp.publish %{{.*}} rows [32, 64] : tensor<64x64xbf16, #gdn_warp.fragment> -> <32x64xbf16, swizzle = 128>
  %p = gdn_warp.publish %x rows [32, 64] : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
  // CHECK: gdn_warp.array_store %{{.*}}, %a[%{{.*}}, %{{.*}}] axes [1] : tensor<64xbf16, #gdn_warp.columns> -> memref<64x64xbf16>
  gdn_warp.array_store %s, %a[%c0, %c0] axes [1] : tensor<64xbf16, #gdn_warp.columns> -> memref<64x64xbf16>
  // CHECK: gdn_warp.array_store %{{.*}}, %a[%{{.*}}, %{{.*}}] axes [0, 1] rows [0, 32] :
  gdn_warp.array_store %y, %a[%c0, %c0] axes [0, 1] rows [0, 32] : tensor<64x64xbf16, #gdn_warp.fragment> -> memref<64x64xbf16>
}
