// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-lower-channels),canonicalize,cse)' | FileCheck %s

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>

// Trip t is in slot t mod 2. The filler waits for the empty barrier and its copy arrives with its bytes;
// the taker's four warps arrive at the empty one when they have read.
// CHECK-LABEL: gdn_warp.kernel @hand(
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: %[[THREAD:.*]] = gdn_warp.id thread
// CHECK: scf.if
// CHECK: %[[FULL0:.*]] = gdn_warp.barrier %c16384
// CHECK-NEXT: gdn_warp.barrier_init %[[FULL0]], 1
// CHECK-NEXT: %[[EMPTY0:.*]] = gdn_warp.barrier %c16400
// CHECK-NEXT: gdn_warp.barrier_init %[[EMPTY0]], 4
// CHECK: gdn_warp.barrier_init
// CHECK: gdn_warp.barrier_init
// CHECK: gdn_warp.fence barrier_init
// CHECK: gdn_warp.sync cta
// CHECK: gdn_warp.role "move"
// CHECK: %[[SLOT:.*]] = arith.remui %{{.*}}, %[[TWO]]
// CHECK: gdn_warp.barrier_wait
// CHECK: gdn_warp.copy_in
// CHECK: gdn_warp.barrier_expect %{{.*}}, 8192
// CHECK: gdn_warp.role "state"
// CHECK: gdn_warp.barrier_wait
// CHECK: gdn_warp.fragment_load
// CHECK-NEXT: gdn_warp.sync warp
// CHECK: gdn_warp.barrier_arrive
// CHECK-NOT: gdn_warp.channel
gdn_warp.kernel @hand(%x: memref<?x64xbf16>, %n: i32) threads(256) shared(16416) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %ch = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 8192, barriers = 16384}
      : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %ch[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fetch %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "state" warps(4, 4) {
    %s = gdn_warp.slot get %ch[0] at %t : !gdn_warp.channel<!tile> -> !tile
    %f = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
    gdn_warp.array_store %f, %x[%c0, %c0] axes [0, 1] : tensor<64x64xbf16, #gdn_warp.fragment> -> memref<?x64xbf16>
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
gdn_warp.kernel @no_taker(%x: memref<?x64xbf16>) threads(128) shared(16416) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a role that fills the slots and one that takes them, got no taker}}
  %ch = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 8192, barriers = 16384}
      : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %ch[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fetch %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
gdn_warp.kernel @no_place() threads(128) shared(0) {
  // expected-error @below {{expected a place in shared memory: gdn-warp-allocate-shared}}
  %ch = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
  }
}
