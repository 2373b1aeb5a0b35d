// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-lower-channels),canonicalize,cse)' | FileCheck %s
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-lower-channels{lanes-arrive}),canonicalize,cse)' | FileCheck %s --check-prefix=LANES

// With lanes-arrive four warps are 128 arrivals; bytes of copies still arrive once.
// LANES-LABEL: gdn_warp.kernel @hand(
// LANES: gdn_warp.barrier_init %{{.*}}, 1
// LANES: gdn_warp.barrier_init %{{.*}}, 128
// LANES: gdn_warp.role "state"
// LANES: gdn_warp.fragment_load
// LANES-NOT: gdn_warp.sync
// LANES: gdn_warp.barrier_arrive

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
// CHECK-NEXT: }
// CHECK-NEXT: gdn_warp.follow
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
  gdn_warp.follow
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

// -----

!row = !gdn_warp.view<32xf32>

// The chunks of a trip are a loop in "make": each turn waits and arrives, with every lane of the one warp, and its
// field is 128 bytes behind the last one's. "take" visits both fields in two branches: it waits in the first one alone
// and arrives in the second.
// CHECK-LABEL: gdn_warp.kernel @chunks(
// CHECK: gdn_warp.barrier_init %{{.*}}, 64
// CHECK-NEXT: gdn_warp.barrier
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 4
// CHECK: gdn_warp.role "make"
// CHECK: scf.for
// CHECK: scf.for %[[CHUNK:.*]] = %{{.*}} to %{{.*}} step
// CHECK: gdn_warp.barrier_wait
// CHECK: %[[BYTES:.*]] = arith.muli %[[CHUNK]], %c128
// CHECK: gdn_warp.vector_store
// CHECK-NEXT: arith.addi
// CHECK-NEXT: gdn_warp.barrier
// CHECK-NEXT: gdn_warp.barrier_arrive
// CHECK: gdn_warp.role "take"
// CHECK: scf.if
// CHECK: gdn_warp.barrier_wait
// CHECK-NOT: gdn_warp.barrier_arrive
// CHECK: } else {
// CHECK: gdn_warp.barrier_wait
// CHECK-NOT: gdn_warp.barrier_arrive
// CHECK: scf.if
// CHECK-NOT: gdn_warp.barrier_wait
// CHECK: gdn_warp.barrier_arrive
// CHECK: } else {
// CHECK-NOT: gdn_warp.barrier_wait
// CHECK: gdn_warp.barrier_arrive
gdn_warp.kernel @chunks(%x: memref<?xf32>, %n: i64) threads(256) shared(528) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %trips = arith.index_cast %n : i64 to index
  %is = arith.cmpi eq, %trips, %c2 : index
  %also = arith.cmpi eq, %trips, %c1 : index
  %v = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %ch = gdn_warp.channel "in" depth(2) chunks(2)
      {offset = 0, places = array<i64: 0, 128>, slot_bytes = 256, barriers = 512} : !gdn_warp.channel<!row, !row>
  gdn_warp.role "make" warps(0, 1) {
    scf.for %t = %c0 to %trips step %c1 {
      scf.for %c = %c0 to %c2 step %c1 {
        %s = gdn_warp.slot put %ch[0] chunk %c at %t : !gdn_warp.channel<!row, !row> -> !row
        gdn_warp.vector_store %v, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
      } {gdn_warp.chunks = 2}
    }
  }
  gdn_warp.role "take" warps(4, 4) {
    scf.for %t = %c0 to %trips step %c1 {
      scf.if %is {
        %a = gdn_warp.slot get %ch[0] at %t : !gdn_warp.channel<!row, !row> -> !row
        %f = gdn_warp.load %a[%c0] : !row -> f32
        memref.store %f, %x[%c0] : memref<?xf32>
      } else {
        %a = gdn_warp.slot get %ch[0] at %t : !gdn_warp.channel<!row, !row> -> !row
        %f = gdn_warp.load %a[%c1] : !row -> f32
        memref.store %f, %x[%c0] : memref<?xf32>
      }
      scf.if %also {
        %b = gdn_warp.slot get %ch[1] at %t : !gdn_warp.channel<!row, !row> -> !row
        %f = gdn_warp.load %b[%c0] : !row -> f32
        memref.store %f, %x[%c1] : memref<?xf32>
      } else {
        %b = gdn_warp.slot get %ch[1] at %t : !gdn_warp.channel<!row, !row> -> !row
        %f = gdn_warp.load %b[%c1] : !row -> f32
        memref.store %f, %x[%c1] : memref<?xf32>
      }
    }
  }
}
