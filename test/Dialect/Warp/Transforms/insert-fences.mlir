// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-insert-fences))' | FileCheck %s

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!row = !gdn_warp.view<64xf32>

// One fence behind the last store to what a product or a copy reads; none behind one that threads read
// themselves.
// CHECK-LABEL: gdn_warp.kernel @fences(
// CHECK: gdn_warp.role "make"
// CHECK: gdn_warp.vector_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.fragment_store
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.role "move"
// CHECK-NOT: gdn_warp.fence
gdn_warp.kernel @fences(%y: memref<?x64xbf16>) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xbf16, #gdn_warp.fragment>
  %v = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  %tiles = gdn_warp.channel "tiles" depth(2) : !gdn_warp.channel<!tile, !tile>
  %rows = gdn_warp.channel "rows" depth(2) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 4) {
    %r = gdn_warp.slot put %rows[0] at %c0 : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %v, %r : tensor<64xf32, #gdn_warp.rows> -> !row
    %a = gdn_warp.slot put %tiles[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %t, %a : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
    %b = gdn_warp.slot put %tiles[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.fragment_store %t, %b : tensor<64x64xbf16, #gdn_warp.fragment> -> !tile
  }
  gdn_warp.role "move" warps(4, 4) {
    %r = gdn_warp.slot get %rows[0] at %c0 : !gdn_warp.channel<!row> -> !row
    %read = gdn_warp.vector_load %r : !row -> tensor<64xf32, #gdn_warp.rows>
    %a = gdn_warp.slot get %tiles[0] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.flush %a, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
    %b = gdn_warp.slot get %tiles[1] at %c0 : !gdn_warp.channel<!tile, !tile> -> !tile
    gdn_warp.flush %b, %y[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}
