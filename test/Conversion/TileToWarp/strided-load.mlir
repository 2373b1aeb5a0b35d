// Tiles that no tensor map can copy are loaded by the lanes of a warp.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts,cse))' | FileCheck %s

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
#rows = strided<[?, ?, ?, 1]>
#any = strided<[?, ?, ?, ?]>
!tile = !gdn_warp.channel<tensor<64x64xbf16>>

// A tile that lies otherwise in the array that it is stored to: its loader turns it, and the slot is as the store wants it.
// CHECK-LABEL: gdn_warp.kernel @turned(
// CHECK: gdn_warp.channel "in" depth(2) : <!gdn_warp.view<64x64xbf16, swizzle = 128>>
// CHECK: %[[PUT:.*]] = gdn_warp.slot put
// CHECK: gdn_warp.strided_load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] axes [3, 2], %[[PUT]] :
// CHECK: %[[GET:.*]] = gdn_warp.slot get
// CHECK: gdn_warp.tma_store %[[GET]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] axes [1, 3] :
gdn_warp.kernel @turned(%x : memref<?x?x?x?xbf16, #rows>, %y : memref<?x?x?x?xbf16, #rows>) threads(256) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "load" warps(0, 4) attributes {gdn_warp.round_robin} {
    %tile = gdn_tile.load %x[%c0, %c0, %c0, %c0] axes [3, 2] {gdn_tile.step = "load"}
        : memref<?x?x?x?xbf16, #rows> -> tensor<64x64xbf16>
    gdn_warp.put %tile, %in[0] at %c0 : tensor<64x64xbf16>, !tile
  }
  gdn_warp.role "store" warps(4, 4) attributes {gdn_warp.round_robin} {
    %tile = gdn_warp.get %in[0] at %c0 : !tile -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%c0, %c0, %c0, %c0] axes [1, 3] {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<?x?x?x?xbf16, #rows>
  }
}

// No dimension has stride 1. What computes with the tile reads it from the slot as ever.
// CHECK-LABEL: gdn_warp.kernel @any(
// CHECK: %[[PUT:.*]] = gdn_warp.slot put
// CHECK: gdn_warp.strided_load %{{.*}} axes [1, 3] until(%{{.*}}, dim = 1), %[[PUT]] :
// CHECK: gdn_warp.fragment_load %{{.*}} : <64x64xbf16, swizzle = 128>
gdn_warp.kernel @any(%x : memref<?x?x?x?xbf16, #any>, %y : memref<64x64xbf16>, %tokens : i64) threads(256) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = arith.index_cast %tokens : i64 to index
  %half = arith.divui %n, %c2 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "load" warps(0, 1) {
    %tile = gdn_tile.load %x[%c0, %c0, %c0, %c0] axes [1, 3] until(%half, dim = 1) {gdn_tile.step = "load"}
        : memref<?x?x?x?xbf16, #any> -> tensor<64x64xbf16>
    gdn_warp.put %tile, %in[0] at %c0 : tensor<64x64xbf16>, !tile
  }
  gdn_warp.role "state" warps(4, 4) {
    %tile = gdn_warp.get %in[0] at %c0 : !tile -> tensor<64x64xbf16>
    %sum = arith.addf %tile, %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
    gdn_tile.store %sum, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x64xbf16> -> memref<64x64xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
#any = strided<[?, ?]>

// One warp fills a slot.
gdn_warp.kernel @together(%x : memref<?x?xbf16, #any>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "load" warps(0, 4) {
    // expected-error @below {{expected a role of one warp, or of warps that take turns (round_robin), for a tile that is copied between an array and a slot, got role "load" of 4 warps}}
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<?x?xbf16, #any> -> tensor<64x64xbf16>
    gdn_warp.put %tile, %in[0] at %c0 : tensor<64x64xbf16>, !gdn_warp.channel<tensor<64x64xbf16>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// The copy engine needs one warp, too: each of several would copy the tile once more.
gdn_warp.kernel @redundant(%x : memref<64x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "load" warps(0, 4) {
    // expected-error @below {{expected a role of one warp, or of warps that take turns (round_robin), for a tile that is copied between an array and a slot, got role "load" of 4 warps}}
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x64xbf16> -> tensor<64x64xbf16>
    gdn_warp.put %tile, %in[0] at %c0 : tensor<64x64xbf16>, !gdn_warp.channel<tensor<64x64xbf16>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
!tile = !gdn_warp.channel<tensor<64x64xbf16>>

gdn_warp.kernel @redundant_store(%x : memref<64x64xbf16>, %y : memref<64x64xbf16>) threads(256) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "load" warps(0, 1) {
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x64xbf16> -> tensor<64x64xbf16>
    gdn_warp.put %tile, %in[0] at %c0 : tensor<64x64xbf16>, !tile
  }
  gdn_warp.role "store" warps(4, 4) {
    %tile = gdn_warp.get %in[0] at %c0 : !tile -> tensor<64x64xbf16>
    // expected-error @below {{got role "store" of 4 warps}}
    gdn_tile.store %tile, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<64x64xbf16> -> memref<64x64xbf16>
  }
}
