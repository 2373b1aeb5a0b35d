// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-sink-stores,cse))' | FileCheck %s

#one = #gdn_warp.schedule<trip = 1, parts = 1, roles = [], channels = []>
!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!half = !gdn_warp.view<32x64xbf16, swizzle = 128>
!wide = tensor<64x64xf32, #gdn_warp.fragment>
!narrow = tensor<64x64xbf16, #gdn_warp.fragment>

// What a branch makes is stored in both sides, right behind what makes it; so the slot is taken there, where
// it is first used, and nobody waits for the rest of the branch.
// CHECK-LABEL: gdn_warp.kernel @branch(
// CHECK: gdn_warp.role "state"
// CHECK-NOT: gdn_warp.slot
// CHECK: scf.if
// CHECK: %[[A:.*]] = arith.truncf
// CHECK: %[[SLOT:.*]] = gdn_warp.slot put
// CHECK-NEXT: gdn_warp.fragment_store %[[A]], %[[SLOT]]
// CHECK: arith.mulf
// CHECK: } else {
// CHECK: %[[B:.*]] = arith.truncf
// CHECK: %[[OTHER:.*]] = gdn_warp.slot put
// CHECK-NEXT: gdn_warp.fragment_store %[[B]], %[[OTHER]]
// CHECK: }
// CHECK-NOT: gdn_warp.fragment_store
gdn_warp.kernel @branch(%c: i1, %x: memref<64x64xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %out = gdn_warp.channel "out" depth(2) : <!tile>
  gdn_warp.role "state" warps(0, 4) {
    %s = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> !wide
    %r:2 = scf.if %c -> (!wide, !narrow) {
      %a = arith.truncf %s : !wide to !narrow
      %next = arith.mulf %s, %s : !wide
      scf.yield %next, %a : !wide, !narrow
    } else {
      %n = arith.negf %s : !wide
      %b = arith.truncf %n : !wide to !narrow
      scf.yield %n, %b : !wide, !narrow
    }
    %slot = gdn_warp.slot put %out[0] at %c0 : <!tile> -> !tile
    gdn_warp.fragment_store %r#1, %slot : !narrow -> !tile
    gdn_warp.array_store %r#0, %x[%c0, %c0] axes [0, 1] : !wide -> memref<64x64xf32>
  }
}

// Rows 32 to 63 are those of the last two warps: they alone make what is stored of them.
// CHECK-LABEL: gdn_warp.kernel @rows(
// CHECK: gdn_warp.role "scores"
// CHECK: %[[S:.*]] = gdn_warp.array_load
// CHECK-NOT: arith.truncf
// CHECK: %[[MINE:.*]] = arith.cmpi ult
// CHECK: scf.if %[[MINE]] {
// CHECK-NEXT: %[[DOUBLE:.*]] = arith.addf %[[S]], %[[S]]
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[DOUBLE]]
// CHECK-NEXT: gdn_warp.fragment_store %[[A]], %{{.*}} rows [32, 64] guarded
gdn_warp.kernel @rows(%x: memref<64x64xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %out = gdn_warp.channel "out" depth(2) : <!half>
  gdn_warp.role "scores" warps(0, 4) {
    %s = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> !wide
    %slot = gdn_warp.slot put %out[0] at %c0 : <!half> -> !half
    %double = arith.addf %s, %s : !wide
    %a = arith.truncf %double : !wide to !narrow
    gdn_warp.fragment_store %a, %slot rows [32, 64] : !narrow -> !half
  }
}

// A product is the work of all warps: it stays outside.
// CHECK-LABEL: gdn_warp.kernel @product(
// CHECK: %[[P:.*]] = gdn_warp.product
// CHECK: scf.if
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[P]]
// CHECK-NEXT: gdn_warp.fragment_store %[[A]], %{{.*}} rows [0, 32] guarded
gdn_warp.kernel @product() threads(128) shared(8192) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %view = gdn_warp.view %c0 : !tile
  %out = gdn_warp.channel "out" depth(2) : <!half>
  gdn_warp.role "scores" warps(0, 4) {
    %slot = gdn_warp.slot put %out[0] at %c0 : <!half> -> !half
    %p = gdn_warp.product %view, %view : !tile, !tile -> !wide
    %a = arith.truncf %p : !wide to !narrow
    gdn_warp.fragment_store %a, %slot rows [0, 32] : !narrow -> !half
  }
}

// Sums of rows in shared memory take a while: the warps that hold the rows alone make what is stored of them.
// CHECK-LABEL: gdn_warp.kernel @sums(
// CHECK: gdn_warp.role "scores"
// CHECK-NOT: gdn_warp.row_dots
// CHECK: scf.if
// CHECK-NEXT: %[[DOTS:.*]] = gdn_warp.row_dots
// CHECK-NEXT: %[[NORM:.*]] = math.rsqrt %[[DOTS]]
// CHECK-NEXT: %[[TWICE:.*]] = arith.addf %[[NORM]], %[[NORM]]
// CHECK-NEXT: gdn_warp.vector_store %[[NORM]], %{{.*}} rows [32, 64]
// CHECK-NEXT: gdn_warp.vector_store %[[TWICE]], %{{.*}} rows [32, 64]
gdn_warp.kernel @sums() threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <!tile>
  %out = gdn_warp.channel "out" depth(2) : <!gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>>
  gdn_warp.role "scores" warps(0, 4) {
    %v = gdn_warp.slot get %in[0] at %c0 : <!tile> -> !tile
    %d = gdn_warp.row_dots %v, %v : !tile, !tile -> tensor<64xf32, #gdn_warp.rows>
    %n = math.rsqrt %d : tensor<64xf32, #gdn_warp.rows>
    %a = gdn_warp.slot put %out[0] at %c0 : <!gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>> -> !gdn_warp.view<32xf32>
    gdn_warp.vector_store %n, %a rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
    %t = arith.addf %n, %n : tensor<64xf32, #gdn_warp.rows>
    %b = gdn_warp.slot put %out[1] at %c0 : <!gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>> -> !gdn_warp.view<32xf32>
    gdn_warp.vector_store %t, %b rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
  }
}
