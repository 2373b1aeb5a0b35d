// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-allocate-shared))' | FileCheck %s

// Slots behind each other, swizzled fields first and aligned to 1024 bytes; then the barriers, two a
// slot. A field that begins inside a row shares the rows of the narrow one before it.
// CHECK-LABEL: gdn_warp.kernel @places() threads(128) shared(20624)
// CHECK: gdn_warp.channel "a" depth(2) {barriers = 20528 : i64, offset = 0 : i64, places = array<i64: 8192, 0>, slot_bytes = 9216 : i64}
// CHECK: gdn_warp.channel "b" depth(1) {barriers = 20560 : i64, offset = 18432 : i64, places = array<i64: 0, 0>, slot_bytes = 2048 : i64}
// CHECK: gdn_warp.channel "c" depth(3) {barriers = 20576 : i64, offset = 20480 : i64, places = array<i64: 0>, slot_bytes = 16 : i64}
gdn_warp.kernel @places() threads(128) shared(0) {
  %a = gdn_warp.channel "a" depth(2) : !gdn_warp.channel<!gdn_warp.view<32xf32>, !gdn_warp.view<64x64xbf16, swizzle = 128>>
  %b = gdn_warp.channel "b" depth(1) : !gdn_warp.channel<!gdn_warp.view<16x32xbf16, swizzle = 128>,
      !gdn_warp.view<16x32xbf16, swizzle = 128, column = 64>>
  %c = gdn_warp.channel "c" depth(3) : !gdn_warp.channel<!gdn_warp.view<1xf32>>
}

// -----

// expected-error @below {{expected at most 232448 bytes of shared memory, got 238032: 5584 too many; give a channel fewer slots, or use chunks of fewer tokens}}
gdn_warp.kernel @large() threads(128) shared(0) {
  // expected-note @below {{channel "a": 29 slots of 8192 bytes}}
  %a = gdn_warp.channel "a" depth(29) : !gdn_warp.channel<!gdn_warp.view<64x64xbf16, swizzle = 128>>
}

// -----

gdn_warp.kernel @tensors() threads(128) shared(0) {
  // expected-error @below {{expected fields with layouts, got '!gdn_warp.channel<f32>'}}
  %a = gdn_warp.channel "a" depth(2) : !gdn_warp.channel<f32>
}

// -----

// A field that begins inside a row has a row only from a narrow one before it, and for itself.
!half = !gdn_warp.view<16x32xbf16, swizzle = 128>
!rest = !gdn_warp.view<16x32xbf16, swizzle = 128, column = 64>
gdn_warp.kernel @columns() threads(128) shared(0) {
  // expected-error @below {{expected before field 2, '!gdn_warp.view<16x32xbf16, swizzle = 128, column = 64>', a view of as many rows that leaves room from column byte 64, got none}}
  %a = gdn_warp.channel "a" depth(1) : !gdn_warp.channel<!half, !rest, !rest>
}

// -----

// Sums over a cluster: those of a role take turns in one place, which holds the columns of the other three CTAs, 4096 bytes each,
// and two barriers.
// CHECK-LABEL: gdn_warp.kernel @sums() threads(256) shared(24608) cluster(4)
gdn_warp.kernel @sums() threads(256) shared(0) cluster(4) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.role "a" warps(0, 4) registers(160) {
    // CHECK: gdn_warp.cluster_send %{{.*}} number %{{.*}} place [0, 12288, 0, 2] :
    %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x16xf32, #gdn_warp.fragment>
    // CHECK: gdn_warp.cluster_add %{{.*}} number %{{.*}} of 4 place [0, 12288, 0, 2] :
    %a = gdn_warp.cluster_add %s number %c0 of 4 : tensor<64x16xf32, #gdn_warp.fragment> -> tensor<64x16xf32, #gdn_warp.fragment>
    // CHECK: gdn_warp.cluster_send %{{.*}} number %{{.*}} place [0, 12288, 1, 2] :
    %t = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x16xf32, #gdn_warp.fragment>
  }
  gdn_warp.role "b" warps(4, 4) registers(160) {
    // CHECK: gdn_warp.cluster_send %{{.*}} number %{{.*}} place [12304, 24592, 0, 1] :
    %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x16xf32, #gdn_warp.fragment>
  }
}

// -----

gdn_warp.kernel @apart(%b : i1) threads(128) shared(0) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.role "a" warps(0, 4) registers(160) {
    // expected-note @below {{the first one}}
    %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
    scf.if %b {
      // expected-error @below {{expected all sums of a role in one block, to take turns}}
      %t = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
    }
  }
}
