// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-insert-fences))' | FileCheck %s

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!row = !gdn_warp.view<64xf32>

// A fence stands behind the last store to what a product reads, and before the first copy out of what copies alone
// read; none is there for what threads read themselves.
// CHECK-LABEL: gdn_warp.kernel @fences(
// CHECK: gdn_warp.role "make"
// CHECK: gdn_warp.vector_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.fragment_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.fragment_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.role "use"
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.slot get
// CHECK: gdn_warp.fence async
// CHECK-NEXT: gdn_warp.tma_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.tma_store
gdn_warp.kernel @fences(%y: memref<?x64xbf16>) threads(384) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xbf16, #gdn_warp.fragment>
  %v = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  %tiles = gdn_warp.channel "tiles" depth(2) : !gdn_warp.channel<!tile, !tile>
  %out = gdn_warp.channel "out" depth(2) : !gdn_warp.channel<!tile>
  %rows = gdn_warp.channel "rows" depth(2) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 4) {
    %r = gdn_warp.slot put %rows[0] at %c0 : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %r : tensor<64xf32, #gdn_warp.rows> -> !row
    %a = gdn_warp.slot put %tiles[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %t, %a : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %b = gdn_warp.slot put %tiles[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %t, %b : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %o = gdn_warp.slot put %out[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fragment_store %t, %o : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
  }
  gdn_warp.role "use" warps(4, 4) {
    %r = gdn_warp.slot get %rows[0] at %c0 : !gdn_warp.channel<!row> -> !row
    %read = gdn_warp.vector_load %r : !row -> tensor<64xf32, #gdn_warp.rows>
    %a = gdn_warp.slot get %tiles[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    %b = gdn_warp.slot get %tiles[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    %p = gdn_warp.wgmma %a, %b transpose_b : !tile, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
  }
  gdn_warp.role "move" warps(8, 4) {
    %o = gdn_warp.slot get %out[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_store %o, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
    gdn_warp.tma_store %o, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}

// A slot that goes to another CTA is read by a copy, whatever else reads it.
// CHECK-LABEL: gdn_warp.kernel @share(
// CHECK: gdn_warp.vector_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NEXT: gdn_warp.copy_to_cluster
// CHECK-NEXT: gdn_warp.slot
// CHECK-NEXT: gdn_warp.vector_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.vector_load
// CHECK-NEXT: gdn_warp.fence async
gdn_warp.kernel @share() threads(256) shared(0) cluster(2) {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  %all = gdn_warp.channel "all" depth(2) turn(1) : !gdn_warp.channel<!row>
  %own = gdn_warp.channel "own" depth(2) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.alternate_ctas} {
    %r = gdn_warp.slot put %all[0] at %c0 : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %r : tensor<64xf32, #gdn_warp.rows> -> !row
    gdn_warp.copy_to_cluster %all at %c0 : !gdn_warp.channel<!row>
    %s = gdn_warp.slot put %own[0] at %c0 : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %s : tensor<64xf32, #gdn_warp.rows> -> !row
  }
  gdn_warp.role "use" warps(4, 4) {
    %r = gdn_warp.slot get %all[0] at %c0 : !gdn_warp.channel<!row> -> !row
    %read = gdn_warp.vector_load %r : !row -> tensor<64xf32, #gdn_warp.rows>
  }
}

// Each slot has a fence of its own: what stands in a later one may have been stored after the first was waited for.
// CHECK-LABEL: gdn_warp.kernel @slots(
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.slot get
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NEXT: gdn_warp.tma_store
// CHECK-NEXT: gdn_warp.slot get
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NEXT: gdn_warp.tma_store
gdn_warp.kernel @slots(%y: memref<?x64xbf16>) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = arith.constant dense<1.0> : tensor<64x64xbf16, #gdn_warp.fragment>
  %out = gdn_warp.channel "out" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "make" warps(0, 4) {
    %o = gdn_warp.slot put %out[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fragment_store %t, %o : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %p = gdn_warp.slot put %out[0] at %c1 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fragment_store %t, %p : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
  }
  gdn_warp.role "move" warps(4, 4) {
    %o = gdn_warp.slot get %out[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_store %o, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
    %p = gdn_warp.slot get %out[0] at %c1 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_store %p, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}

// A product that names a chunk or a V tile reads the fields of all: the fence stands behind the last of them.
// CHECK-LABEL: gdn_warp.kernel @named(
// CHECK: gdn_warp.role "make"
// CHECK-COUNT-2: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NEXT: gdn_warp.slot put
// CHECK-NEXT: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.slot put
// CHECK-NEXT: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.role "use"
gdn_warp.kernel @named() threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #gdn_warp.fragment>
  %chunks = gdn_warp.channel "chunks" depth(2) chunks(2) : !gdn_warp.channel<!tile, !tile>
  %tiles = gdn_warp.channel "tiles" depth(2) : !gdn_warp.channel<!tile, !tile>
  gdn_warp.role "make" warps(0, 4) {
    %a = gdn_warp.slot put %chunks[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %v, %a : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %b = gdn_warp.slot put %chunks[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %v, %b : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %c = gdn_warp.slot put %tiles[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %v, %c : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %d = gdn_warp.slot put %tiles[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %v, %d : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
  }
  gdn_warp.role "use" warps(4, 4) {
    scf.for %i = %c0 to %c2 step %c1 {
      %a = gdn_warp.slot get %chunks[0] chunk %i at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
      %p = gdn_warp.wgmma %v, %a : tensor<64x64xbf16, #gdn_warp.fragment>, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
      %c = gdn_warp.slot get %tiles[0 + %i] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
      %q = gdn_warp.wgmma %v, %c : tensor<64x64xbf16, #gdn_warp.fragment>, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
    } {gdn_warp.chunks = 2}
  }
}

// What threads load from a slot that a copy fills next is there before they arrive: a fence stands behind the last load,
// but for a load that a product takes, or adds to, before the visit ends.
// CHECK-LABEL: gdn_warp.kernel @refill(
// CHECK: gdn_warp.role "load"
// CHECK: gdn_warp.fragment_load
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.role "multiply"
// CHECK-NOT: gdn_warp.fence
gdn_warp.kernel @refill(%x: memref<?x64xbf16>) threads(512) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %in[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "load" warps(4, 4) {
    %s = gdn_warp.slot get %in[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    %t = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
    %u = arith.extf %t : tensor<64x64xbf16, #gdn_warp.fragment> to tensor<64x64xf32, #gdn_warp.fragment>
  }
  gdn_warp.role "multiply" warps(8, 4) {
    %s = gdn_warp.slot get %in[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    %t = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
    %u = arith.negf %t : tensor<64x64xbf16, #gdn_warp.fragment>
    gdn_warp.wgmma_fence
    %p = gdn_warp.wgmma %u, %s : tensor<64x64xbf16, #gdn_warp.fragment>, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    %q = gdn_warp.wgmma_wait 0 of %p : tensor<64x64xf32, #gdn_warp.fragment>
  }  gdn_warp.role "add" warps(12, 4) {
    %ones = arith.constant dense<1.0> : tensor<64x64xbf16, #gdn_warp.fragment>
    %s = gdn_warp.slot get %in[0] at %c0 : !gdn_warp.channel<!tile> -> !tile
    %t = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
    %u = arith.extf %t : tensor<64x64xbf16, #gdn_warp.fragment> to tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_fence
    %p = gdn_warp.wgmma %ones, %s into(%u : tensor<64x64xf32, #gdn_warp.fragment>) : tensor<64x64xbf16, #gdn_warp.fragment>, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    %q = gdn_warp.wgmma_wait 0 of %p : tensor<64x64xf32, #gdn_warp.fragment>
  }
}
