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

// Iteration t is in slot t mod 2. The filler waits for the empty barrier and its copy arrives with its bytes;
// the taker's four warps arrive at the empty one when they have read.
// CHECK-LABEL: gdn_warp.kernel @hand(
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// The first threads of four warps share the barriers.
// CHECK: %[[THREAD:.*]] = gdn_warp.id thread
// CHECK: %[[OTHERS:.*]] = arith.andi %[[THREAD]], %c-97
// CHECK: %[[PREPARES:.*]] = arith.cmpi ult, %[[OTHERS]], %c1
// CHECK: scf.if %[[PREPARES]]
// CHECK: %[[TWO_WARPS:.*]] = arith.cmpi ult, %[[THREAD]], %c64
// CHECK: scf.if %[[TWO_WARPS]]
// CHECK: %[[ONE_WARP:.*]] = arith.cmpi ult, %[[THREAD]], %c32
// CHECK: scf.if %[[ONE_WARP]]
// CHECK: %[[FULL0:.*]] = gdn_warp.barrier %c16384
// CHECK-NEXT: gdn_warp.barrier_init %[[FULL0]], 1
// CHECK-NEXT: else
// CHECK-NEXT: %[[EMPTY0:.*]] = gdn_warp.barrier %c16400
// CHECK-NEXT: gdn_warp.barrier_init %[[EMPTY0]], 4
// CHECK: else
// CHECK: gdn_warp.barrier_init
// CHECK: else
// CHECK: gdn_warp.barrier_init
// CHECK: gdn_warp.fence barrier_init
// CHECK-NEXT: }
// CHECK-NEXT: gdn_warp.grid_dependency_wait
// CHECK: gdn_warp.sync cta
// CHECK: gdn_warp.role "move"
// CHECK: %[[SLOT:.*]] = arith.remui %{{.*}}, %[[TWO]]
// CHECK: gdn_warp.barrier_wait
// CHECK: %[[ONE:.*]] = gdn_warp.elect
// CHECK: scf.if %[[ONE]] {
// CHECK: gdn_warp.bulk_tensor_load
// CHECK: gdn_warp.barrier_expect %{{.*}}, 8192
// CHECK: gdn_warp.role "state"
// CHECK: gdn_warp.barrier_wait
// CHECK: gdn_warp.fragment_load
// CHECK-NEXT: gdn_warp.sync warp
// CHECK: gdn_warp.barrier_arrive
// CHECK-NOT: gdn_warp.channel
gdn_warp.kernel @hand(%x: memref<?x64xbf16>, %n: i32) threads(256) shared(16416) {
  gdn_warp.grid_dependency_wait
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %ch = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 8192, barriers = 16384}
      : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %ch[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "state" warps(4, 4) {
    %s = gdn_warp.slot get %ch[0] at %t : !gdn_warp.channel<!tile> -> !tile
    %f = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
    gdn_warp.array_store %f, %x[%c0, %c0] axes [0, 1] : tensor<64x64xbf16, #gdn_warp.fragment> -> memref<?x64xbf16>
  }
}

// Copies that look for their end begin in one thread, which announces their bytes first.
// CHECK-LABEL: gdn_warp.kernel @together(
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.sync warp
// CHECK: %[[ONE:.*]] = gdn_warp.elect
// CHECK: scf.if %[[ONE]] {
// CHECK: gdn_warp.barrier_expect %{{.*}}, 16384
// CHECK: gdn_warp.bulk_tensor_load %x{{.*}} until
// CHECK: gdn_warp.bulk_tensor_load %y{{.*}} until
// CHECK: }
// CHECK-NOT: gdn_warp.bulk_tensor_load
gdn_warp.kernel @together(%x: memref<?x64xbf16>, %y: memref<?x64xbf16>, %n: i32) threads(256) shared(32800) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %ch = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0, 8192>, slot_bytes = 16384, barriers = 32768}
      : !gdn_warp.channel<!tile, !tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %ch[0] at %t : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1] until(%t, dim = 0), %s : memref<?x64xbf16> -> !tile
    %r = gdn_warp.slot put %ch[1] at %t : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.tma_load %y[%c0, %c0] axes [0, 1] until(%t, dim = 0), %r : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "state" warps(4, 4) {
    %s = gdn_warp.slot get %ch[0] at %t : !gdn_warp.channel<!tile, !tile> -> !tile
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
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
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

// The chunks of an iteration are a loop in "make": each turn waits and arrives, with every lane of the one warp, and its
// field is 128 bytes behind the last one's. "take" visits both fields in two branches: it waits in the first one alone
// and arrives in the second.
// CHECK-LABEL: gdn_warp.kernel @chunks(
// CHECK: gdn_warp.barrier_init %{{.*}}, 64
// CHECK: gdn_warp.barrier_init %{{.*}}, 4
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
  %iterations = arith.index_cast %n : i64 to index
  %is = arith.cmpi eq, %iterations, %c2 : index
  %also = arith.cmpi eq, %iterations, %c1 : index
  %v = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %ch = gdn_warp.channel "in" depth(2) chunks(2)
      {offset = 0, places = array<i64: 0, 128>, slot_bytes = 256, barriers = 512} : !gdn_warp.channel<!row, !row>
  gdn_warp.role "make" warps(0, 1) {
    scf.for %t = %c0 to %iterations step %c1 {
      scf.for %c = %c0 to %c2 step %c1 {
        %s = gdn_warp.slot put %ch[0] chunk %c at %t : !gdn_warp.channel<!row, !row> -> !row
        gdn_warp.vector_store %v, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
      } {gdn_warp.chunks = 2}
    }
  }
  gdn_warp.role "take" warps(4, 4) {
    scf.for %t = %c0 to %iterations step %c1 {
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

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>

// With lanes-arrive a CTA counts for another one's lanes, too.
// LANES-LABEL: gdn_warp.kernel @cluster(
// LANES: gdn_warp.barrier %c32800
// LANES-NEXT: gdn_warp.barrier_init %{{.*}}, 128
// LANES-NEXT: gdn_warp.barrier %c32816
// LANES-NEXT: gdn_warp.barrier_init %{{.*}}, 256
// LANES: gdn_warp.barrier_arrive %{{.*}} rank(%{{.*}}) count(127)
// LANES: } else {
// LANES: gdn_warp.barrier_wait
// LANES-NOT: gdn_warp.sync warp
// LANES: gdn_warp.barrier_arrive

// One CTA of two fills a slot of "all" for both, the slots of "own" are each CTA's. The takers of both arrive where
// "all" was filled, so its empty barriers take 8 warps instead of 4.
// CHECK-LABEL: gdn_warp.kernel @cluster(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[DEPTH:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[OWN_FULL:.*]] = arith.constant 32768 : index
// CHECK-DAG: %[[OWN_EMPTY:.*]] = arith.constant 32784 : index
// CHECK-DAG: %[[ALL_FULL:.*]] = arith.constant 32800 : index
// CHECK-DAG: %[[ALL_EMPTY:.*]] = arith.constant 32816 : index
// CHECK: gdn_warp.barrier %[[OWN_FULL]]
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 1
// CHECK-NEXT: gdn_warp.barrier %[[OWN_EMPTY]]
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 4
// CHECK: gdn_warp.barrier %[[ALL_FULL]]
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 4
// CHECK-NEXT: gdn_warp.barrier %[[ALL_EMPTY]]
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 8
// CHECK: gdn_warp.fence barrier_init
// No CTA arrives in one that has not begun.
// CHECK: gdn_warp.sync cluster
// CHECK-NEXT: gdn_warp.role "load"

// CHECK: gdn_warp.role "make"
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK: scf.if
// CHECK: gdn_warp.fragment_load
// CHECK: %[[LANE:.*]] = gdn_warp.id lane
// CHECK-NEXT: %[[FIRST_LANE:.*]] = arith.cmpi eq, %[[LANE]], %[[ZERO]]
// The slot of its own CTA is free there.
// CHECK: gdn_warp.barrier_arrive %{{[^ ]*$}}
// CHECK: %[[EMPTY_AT:.*]] = arith.addi %{{.*}}, %[[ALL_EMPTY]]
// CHECK-NEXT: %[[EMPTY:.*]] = gdn_warp.barrier %[[EMPTY_AT]]
// CHECK-NEXT: gdn_warp.barrier_wait %[[EMPTY]],
// CHECK: gdn_warp.fragment_store
// CHECK: gdn_warp.barrier_arrive %{{[^ ]*$}}
// One warp copies the slot when all four have filled it: three arrivals, one with the bytes, and the bytes themselves.
// CHECK: %[[FULL_AT:.*]] = arith.addi %{{.*}}, %[[ALL_FULL]]
// CHECK-NEXT: %[[FULL:.*]] = gdn_warp.barrier %[[FULL_AT]]
// CHECK-NEXT: gdn_warp.barrier_wait %[[FULL]],
// CHECK-NEXT: %[[BYTES:.*]] = gdn_warp.view %{{.*}} : <2048xf32>
// CHECK-NEXT: scf.if %[[FIRST_LANE]] {
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[RANK]], %[[ONE]]
// CHECK-NEXT: %[[PEER:.*]] = arith.remui %[[NEXT]], %[[TWO]]
// CHECK-NEXT: %[[PEER32:.*]] = arith.index_cast %[[PEER]] : index to i32
// CHECK-NEXT: gdn_warp.barrier_arrive %[[FULL]] rank(%[[PEER32]]) count(3)
// CHECK-NEXT: gdn_warp.barrier_expect %[[FULL]], 8192 rank(%[[PEER32]])
// CHECK-NEXT: gdn_warp.bulk_copy_to_cta %[[BYTES]], %[[FULL]] rank(%[[PEER32]]) : <2048xf32>
// A slot that the other CTA's iteration would take from passes: full, then free.
// CHECK: } else {
// CHECK: %[[FULL_AT:.*]] = arith.addi %{{.*}}, %[[OWN_FULL]]
// CHECK-NEXT: %[[FULL:.*]] = gdn_warp.barrier %[[FULL_AT]]
// CHECK-NEXT: gdn_warp.barrier_wait %[[FULL]],
// CHECK-NEXT: gdn_warp.sync warp
// CHECK: scf.if
// CHECK: %[[EMPTY_AT:.*]] = arith.addi %{{.*}}, %[[OWN_EMPTY]]
// CHECK-NEXT: %[[EMPTY:.*]] = gdn_warp.barrier %[[EMPTY_AT]]
// CHECK-NEXT: gdn_warp.barrier_arrive %[[EMPTY]]{{$}}

// An iteration's owner is told that its slot is free, behind the products that read it.
// CHECK: gdn_warp.role "take"
// CHECK: scf.for %[[TRIP:.*]] = %[[ZERO]]
// CHECK: %[[TRIP32:.*]] = arith.index_cast %[[TRIP]] : index to i32
// CHECK: %[[OWNER:.*]] = arith.remui %[[TRIP32]], %[[DEPTH]] : i32
// CHECK: gdn_warp.wgmma_wait 0
// CHECK-NEXT: gdn_warp.sync warp
// CHECK: %[[EMPTY_AT:.*]] = arith.addi %{{.*}}, %[[ALL_EMPTY]]
// CHECK-NEXT: %[[EMPTY:.*]] = gdn_warp.barrier %[[EMPTY_AT]]
// CHECK-NEXT: gdn_warp.barrier_arrive %[[EMPTY]] rank(%[[OWNER]]){{$}}
// No CTA ends while another one may still arrive in it.
// CHECK: gdn_warp.sync cluster
// CHECK-NEXT: }
gdn_warp.kernel @cluster(%x: memref<?x64xbf16>, %n: i32) threads(384) shared(32832) cluster(2) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %iterations = arith.index_cast %n : i32 to index
  %own = gdn_warp.channel "own" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 8192, barriers = 32768}
      : !gdn_warp.channel<!tile>
  %all = gdn_warp.channel "all" depth(2) turn(1)
      {offset = 16384, places = array<i64: 0>, slot_bytes = 8192, barriers = 32800} : !gdn_warp.channel<!tile>
  gdn_warp.role "load" warps(0, 1) {
    scf.for %t = %c0 to %iterations step %c1 {
      %s = gdn_warp.slot put %own[0] at %t : !gdn_warp.channel<!tile> -> !tile
      gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
    }
  }
  gdn_warp.role "make" warps(4, 4) attributes {gdn_warp.alternate_ctas} {
    %rank = gdn_warp.id cluster_rank
    %warp = gdn_warp.id warp
    %first = arith.cmpi eq, %warp, %c4 : index
    scf.for %t = %c0 to %iterations step %c1 {
      %owner = arith.remui %t, %c2 : index
      %mine = arith.cmpi eq, %owner, %rank : index
      scf.if %mine {
        %s = gdn_warp.slot get %own[0] at %t : !gdn_warp.channel<!tile> -> !tile
        %f = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
        %a = gdn_warp.slot put %all[0] at %t : !gdn_warp.channel<!tile> -> !tile
        gdn_warp.fragment_store %f, %a : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
        scf.if %first {
          gdn_warp.copy_to_cluster %all at %t : !gdn_warp.channel<!tile>
        }
      } else {
        gdn_warp.release_unused %own at %t : !gdn_warp.channel<!tile>
      }
    }
  }
  gdn_warp.role "take" warps(8, 4) {
    scf.for %t = %c0 to %iterations step %c1 {
      %a = gdn_warp.slot get %all[0] at %t : !gdn_warp.channel<!tile> -> !tile
      %p = gdn_warp.wgmma %a, %a : !tile, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
      gdn_warp.wgmma_commit
      %q = gdn_warp.wgmma_wait 0 of %p : tensor<64x64xf32, #gdn_warp.fragment>
    }
  }
}

// -----

!row = !gdn_warp.view<32xf32>

// Of four CTAs one copies to the three others, two iterations in a row. Its one warp fills the slot, so bytes are all that
// counts. Who shares the iterations ("near") takes in the CTA that fills, alone; "take" does in all four: 1 + 4 * 2 warps.
// CHECK-LABEL: gdn_warp.kernel @four(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[TURN:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[CTAS:.*]] = arith.constant 4 : i32
// CHECK: gdn_warp.barrier %c1024
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 1
// CHECK-NEXT: gdn_warp.barrier %c1088
// CHECK-NEXT: gdn_warp.barrier_init %{{.*}}, 9
// CHECK: gdn_warp.role "make"
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK-NOT: count(
// CHECK: %[[NEXT:.*]] = arith.addi %[[RANK]], %[[ONE]]
// CHECK: arith.remui %[[NEXT]], %[[FOUR]]
// CHECK: gdn_warp.barrier_expect %{{.*}}, 128 rank(
// CHECK-NEXT: gdn_warp.bulk_copy_to_cta %{{.*}} : <32xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[RANK]], %[[TWO]]
// CHECK: arith.remui %[[NEXT]], %[[FOUR]]
// CHECK: gdn_warp.barrier_expect %{{.*}}, 128 rank(
// CHECK-NEXT: gdn_warp.bulk_copy_to_cta %{{.*}} : <32xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[RANK]], %[[THREE]]
// CHECK: arith.remui %[[NEXT]], %[[FOUR]]
// CHECK: gdn_warp.barrier_expect %{{.*}}, 128 rank(
// CHECK-NEXT: gdn_warp.bulk_copy_to_cta %{{.*}} : <32xf32>
// CHECK-NOT: gdn_warp.bulk_copy_to_cta
// CHECK: gdn_warp.role "near"
// CHECK: gdn_warp.barrier_arrive %{{[^ ]*$}}
// CHECK: gdn_warp.role "take"
// CHECK: %[[TURNS:.*]] = arith.divui %n, %[[TURN]] : i32
// CHECK-NEXT: %[[OWNER:.*]] = arith.remui %[[TURNS]], %[[CTAS]] : i32
// CHECK-NEXT: gdn_warp.barrier_arrive %{{.*}} rank(%[[OWNER]])
gdn_warp.kernel @four(%x: memref<?xf32>, %n: i32) threads(128) shared(1152) cluster(4) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %all = gdn_warp.channel "all" depth(8) turn(2)
      {offset = 0, places = array<i64: 0>, slot_bytes = 128, barriers = 1024} : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 1) attributes {gdn_warp.alternate_ctas, gdn_warp.round_robin} {
    %s = gdn_warp.slot put %all[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
    gdn_warp.copy_to_cluster %all at %t : !gdn_warp.channel<!row>
  }
  gdn_warp.role "near" warps(1, 1) attributes {gdn_warp.alternate_ctas} {
    %s = gdn_warp.slot get %all[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
  gdn_warp.role "take" warps(2, 2) {
    %s = gdn_warp.slot get %all[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
}

// -----

!row = !gdn_warp.view<32xf32>

// A warpgroup's turn is an arrival of each of its warps, whoever else takes turns.
// CHECK-LABEL: gdn_warp.kernel @warpgroups_in_turn
// CHECK: gdn_warp.barrier_init %{{.*}}, 4
gdn_warp.kernel @warpgroups_in_turn(%x: memref<?xf32>, %n: i32) threads(384) shared(144) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %all = gdn_warp.channel "all" depth(1)
      {offset = 0, places = array<i64: 0>, slot_bytes = 128, barriers = 128} : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 8) attributes {gdn_warp.round_robin = 4 : i64} {
    %s = gdn_warp.slot put %all[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
  gdn_warp.role "take" warps(8, 1) {
    %s = gdn_warp.slot get %all[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
}

// -----

!row = !gdn_warp.view<32xf32>

// Two arrivals of each warp for a slot that passes, one for a slot that is taken: the phases would run apart.
gdn_warp.kernel @skips_twice(%x: memref<?xf32>, %is: i1, %n: i32) threads(256) shared(160) cluster(2) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %v = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %own = gdn_warp.channel "own" depth(1) {offset = 0, places = array<i64: 0>, slot_bytes = 128, barriers = 128}
      : !gdn_warp.channel<!row>
  gdn_warp.role "load" warps(0, 1) {
    %s = gdn_warp.slot put %own[0] at %t : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
  }
  // expected-error-re @below {{expected to arrive as often for slots of channel "own" that it lets pass as for those that it takes, got {{8 and 4|256 and 128}}}}
  gdn_warp.role "make" warps(4, 4) attributes {gdn_warp.alternate_ctas} {
    scf.if %is {
      %s = gdn_warp.slot get %own[0] at %t : !gdn_warp.channel<!row> -> !row
      %f = gdn_warp.load %s[%c0] : !row -> f32
      memref.store %f, %x[%c0] : memref<?xf32>
    } else {
      gdn_warp.release_unused %own at %t : !gdn_warp.channel<!row>
      gdn_warp.release_unused %own at %t : !gdn_warp.channel<!row>
    }
  }
}

// -----

!row = !gdn_warp.view<32xf32>

// A role that takes nothing has nothing to let pass.
gdn_warp.kernel @skips_alone(%x: memref<?xf32>, %is: i1, %n: i32) threads(256) shared(160) cluster(2) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i32 to index
  %v = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %own = gdn_warp.channel "own" depth(1) {offset = 0, places = array<i64: 0>, slot_bytes = 128, barriers = 128}
      : !gdn_warp.channel<!row>
  gdn_warp.role "load" warps(0, 1) {
    %s = gdn_warp.slot put %own[0] at %t : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
  }
  gdn_warp.role "take" warps(1, 1) {
    %s = gdn_warp.slot get %own[0] at %t : !gdn_warp.channel<!row> -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
  // expected-error-re @below {{expected to arrive as often for slots of channel "own" that it lets pass as for those that it takes, got {{4 and 0|128 and 0}}}}
  gdn_warp.role "pass" warps(4, 4) attributes {gdn_warp.alternate_ctas} {
    gdn_warp.release_unused %own at %t : !gdn_warp.channel<!row>
  }
}

// -----

// A loop over pieces waits for its slots at each piece and arrives behind the last one. What it stores goes to its takers
// before the role's own product has read it, as the role asks, and is copied behind the begun product.
!rows = !gdn_warp.view<128x64xbf16, swizzle = 128>
!piece = !gdn_warp.view<64x64xbf16, swizzle = 128, stride = 16384>
!tile = tensor<64x64xbf16, #gdn_warp.fragment>
// CHECK-LABEL: gdn_warp.kernel @pieces(
// CHECK: gdn_warp.role "make"
// CHECK: scf.for %[[P:.*]] = %c0 to %c2 step %c1
// CHECK: gdn_warp.barrier_wait
// CHECK: gdn_warp.slice %{{.*}}[0, 0] + %[[P]] * [64, 0]
// CHECK: gdn_warp.fragment_load
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[P]], %c1
// CHECK-NEXT: %[[LAST:.*]] = arith.cmpi eq, %[[NEXT]], %c2
// CHECK-NEXT: scf.if %[[LAST]] {
// CHECK: gdn_warp.barrier_arrive
// CHECK: gdn_warp.barrier_wait
// CHECK: gdn_warp.fragment_store
// CHECK-NOT: gdn_warp.barrier_arrive
// CHECK: } {gdn_warp.pieces = 2 : i64}
// CHECK-NOT: gdn_warp.barrier_wait
// CHECK: gdn_warp.barrier_arrive
// CHECK: gdn_warp.wgmma
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK: gdn_warp.bulk_copy_to_cta
// CHECK: gdn_warp.wgmma_wait
// CHECK-NOT: gdn_warp.barrier_arrive
// CHECK: gdn_warp.role "take"
gdn_warp.kernel @pieces(%x: memref<?x64xbf16>, %n: i32) threads(384) shared(98400) cluster(2) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = arith.index_cast %n : i32 to index
  %in = gdn_warp.channel "in" depth(2) {offset = 0, places = array<i64: 0>, slot_bytes = 16384, barriers = 98304}
      : !gdn_warp.channel<!rows>
  %all = gdn_warp.channel "all" depth(4) turn(2)
      {offset = 32768, places = array<i64: 0>, slot_bytes = 16384, barriers = 98336} : !gdn_warp.channel<!rows>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!rows> -> !rows
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !rows
  }
  gdn_warp.role "make" warps(4, 4) attributes {gdn_warp.alternate_ctas, gdn_warp.hand_on_early} {
    %warp = gdn_warp.id warp
    scf.for %p = %c0 to %c2 step %c1 {
      %s = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!rows> -> !rows
      %from = gdn_warp.slice %s[0, 0] + %p * [64, 0] : !rows -> !piece
      %f = gdn_warp.fragment_load %from : !piece -> !tile
      %a = gdn_warp.slot put %all[0] at %t : !gdn_warp.channel<!rows> -> !rows
      %to = gdn_warp.slice %a[0, 0] + %p * [64, 0] : !rows -> !piece
      gdn_warp.fragment_store %f, %to : !tile -> !piece
    } {gdn_warp.pieces = 2}
    %a = gdn_warp.slot put %all[0] at %t : !gdn_warp.channel<!rows> -> !rows
    %m = gdn_warp.wgmma %a transpose_a, %a : !rows, !rows -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    %r = gdn_warp.wgmma_wait 0 of %m : tensor<64x64xf32, #gdn_warp.fragment>
    %first = arith.cmpi eq, %warp, %c4 : index
    scf.if %first {
      gdn_warp.copy_to_cluster %all at %t : !gdn_warp.channel<!rows>
    }
  }
  gdn_warp.role "take" warps(8, 4) {
    %a = gdn_warp.slot get %all[0] at %t : !gdn_warp.channel<!rows> -> !rows
    %m = gdn_warp.wgmma %a transpose_a, %a : !rows, !rows -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    %r = gdn_warp.wgmma_wait 0 of %m : tensor<64x64xf32, #gdn_warp.fragment>
  }
}

// -----

// Sums over a cluster have barriers where no role has a channel.
// CHECK-LABEL: gdn_warp.kernel @sums_alone(
gdn_warp.kernel @sums_alone() threads(128) shared(8240) cluster(2) {
  // CHECK: scf.if
  // CHECK-COUNT-2: gdn_warp.barrier_init
  // CHECK: gdn_warp.sync cluster
  // CHECK-NEXT: gdn_warp.role "a"
  // CHECK: gdn_warp.sync cluster
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.role "a" warps(0, 4) registers(160) {
    %s = gdn_warp.cluster_send %x number %c0 place [0, 8192, 0, 1]
        : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
    %a = gdn_warp.cluster_add %s number %c0 of 2 place [0, 8192, 0, 1]
        : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
  }
}
