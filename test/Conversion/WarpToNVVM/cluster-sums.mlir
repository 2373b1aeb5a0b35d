// A sum over a cluster: a thread sends what another CTA keeps, and adds what it gets to what this one keeps.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// Two CTAs: 16 of 32 elements are kept, as the rank says, and the others sent in four stores of 16 bytes. The CTA that gets
// them said before that it has read the last ones, and says so again for these.
// CHECK-LABEL: llvm.func @two(
// CHECK: %[[BYTES:.*]] = arith.constant 8192 : i32
// CHECK: %[[RANK:.*]] = llvm.inline_asm {{.*}}%cluster_ctarank
// CHECK: %[[BIT:.*]] = arith.andi %[[RANK]], %c1_i32
// CHECK: %[[ODD:.*]] = arith.cmpi ne, %[[BIT]]
// CHECK-COUNT-32: arith.select %[[ODD]]
// CHECK: scf.while
// CHECK: nvvm.mbarrier.try_wait
// CHECK-COUNT-2: nvvm.mapa
// CHECK-COUNT-4: llvm.inline_asm has_side_effects {{.*}}"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
// CHECK-NOT: st.async
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: scf.while
// CHECK: nvvm.mbarrier.try_wait
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-16: arith.addf
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.mapa
// CHECK: nvvm.mbarrier.arrive
gdn_warp.kernel @two(%n : i32, %x : memref<64x64xf32>, %z : memref<64x32xf32>) threads(128) shared(16384) cluster(2) {
  %c0 = arith.constant 0 : index
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
  %number = arith.index_cast %n : i32 to index
  %own = gdn_warp.cluster_send %tile number %number place [0, 8192, 1, 2] : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
  %y = gdn_warp.cluster_add %own number %number of 2 place [0, 8192, 1, 2] : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
  gdn_warp.array_store %y, %z[%c0, %c0] axes [0, 1] : tensor<64x32xf32, #gdn_warp.fragment> -> memref<64x32xf32>
}

// -----

gdn_warp.kernel @unplaced() threads(128) shared(16384) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a place in shared memory (gdn-warp-allocate-shared)}}
  // expected-error @below {{failed to legalize}}
  %y = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
}
