// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-loop-pieces))' | FileCheck %s

!whole = !gdn_warp.view<32x128xbf16, swizzle = 128>
!part = !gdn_warp.view<32x64xbf16, swizzle = 128>
!stack = !gdn_warp.view<128x64xbf16, swizzle = 128>
!piece = !gdn_warp.view<64x64xbf16, swizzle = 128, stride = 16384>
!wide = tensor<64x32xf32, #gdn_warp.fragment>
!narrow = tensor<64x32xbf16, #gdn_warp.fragment>
!rows = tensor<64xf32, #gdn_warp.rows>

// What two pieces store and publish is made in a loop: parts of views move on with the piece, vectors from outside are
// selected, and what both take stays outside. Slots that the loop uses are waited for in it; one that is also read behind
// it is named there again.
// CHECK-LABEL: gdn_warp.kernel @pieces(
// CHECK: gdn_warp.role "make"
// CHECK: %[[B0:.*]] = gdn_warp.array_load %bias[%c0]
// CHECK: %[[B1:.*]] = gdn_warp.array_load %bias[%c64]
// CHECK: %[[SCALE:.*]] = tensor.splat
// CHECK-NOT: gdn_warp.slot
// CHECK: %[[PLACE:.*]] = gdn_warp.publish : -> <32x128xbf16, swizzle = 128>
// CHECK: scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: arith.constant 0
// CHECK-NEXT: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[P]]
// CHECK-NEXT: %[[BIAS:.*]] = arith.select %[[IS_FIRST]], %[[B0]], %[[B1]]
// CHECK-NEXT: %[[IN:.*]] = gdn_warp.slot get
// CHECK-NEXT: %[[FROM:.*]] = gdn_warp.slice %[[IN]][0, 0] + %[[P]] * [0, 64] : <32x128xbf16, swizzle = 128> -> <32x64xbf16, swizzle = 128>
// CHECK-NEXT: gdn_warp.fragment_load %[[FROM]] transpose
// CHECK-NEXT: arith.extf
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NEXT: arith.truncf %[[SCALED]]
// CHECK-NEXT: %[[OUT:.*]] = gdn_warp.slot put %{{.*}}[0]
// CHECK-NEXT: %[[VECTOR:.*]] = gdn_warp.slice %[[OUT]][0, 0] + %[[P]] * [0, 64] : <128xf32> -> <64xf32>
// CHECK-NEXT: gdn_warp.vector_store %[[BIAS]], %[[VECTOR]]
// CHECK-NEXT: %[[TILES:.*]] = gdn_warp.slot put %{{.*}}[1]
// CHECK-NEXT: gdn_warp.slice %[[TILES]][0, 0] + %[[P]] * [64, 0]
// CHECK-NEXT: gdn_warp.join
// CHECK-NEXT: gdn_warp.fragment_store
// CHECK-NEXT: %[[COLUMNS:.*]] = gdn_warp.slice %[[PLACE]][0, 0] + %[[P]] * [0, 64]
// CHECK-NEXT: gdn_warp.fragment_store %{{.*}}, %[[COLUMNS]] transpose
// CHECK-NEXT: } {gdn_warp.pieces = 2 : i64}
// CHECK-NEXT: %[[AGAIN:.*]] = gdn_warp.slot put %{{.*}}[1]
// CHECK-NEXT: %[[SHARED:.*]] = gdn_warp.share %[[PLACE]]
// CHECK-NEXT: %[[OWN:.*]] = gdn_warp.share %[[AGAIN]]
// CHECK-NEXT: gdn_warp.wgmma %[[OWN]] transpose_a, %[[SHARED]] transpose_b
gdn_warp.kernel @pieces(%bias: memref<128xf32>, %x: f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!whole>
  %out = gdn_warp.channel "out" depth(2) : !gdn_warp.channel<!gdn_warp.view<128xf32>, !stack>
  gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.loop_pieces} {
    %b0 = gdn_warp.array_load %bias[%c0] axes [0] : memref<128xf32> -> !rows
    %b1 = gdn_warp.array_load %bias[%c64] axes [0] : memref<128xf32> -> !rows
    scf.for %i = %c0 to %c64 step %c64 {
      %scale = tensor.splat %x : !wide
      %k = gdn_warp.slot get %in[0] at %i : !gdn_warp.channel<!whole> -> !whole
      %from0 = gdn_warp.slice %k[0, 0] : !whole -> !part
      %k0 = gdn_warp.fragment_load %from0 transpose : !part -> !narrow
      %from1 = gdn_warp.slice %k[0, 64] : !whole -> !part
      %k1 = gdn_warp.fragment_load %from1 transpose : !part -> !narrow
      %w0 = arith.extf %k0 : !narrow to !wide
      %w1 = arith.extf %k1 : !narrow to !wide
      %m0 = arith.mulf %w0, %scale : !wide
      %m1 = arith.mulf %w1, %scale : !wide
      %t0 = arith.truncf %m0 : !wide to !narrow
      %t1 = arith.truncf %m1 : !wide to !narrow
      %vectors = gdn_warp.slot put %out[0] at %i : !gdn_warp.channel<!gdn_warp.view<128xf32>, !stack> -> !gdn_warp.view<128xf32>
      %v0 = gdn_warp.slice %vectors[0, 0] : !gdn_warp.view<128xf32> -> !gdn_warp.view<64xf32>
      gdn_warp.vector_store %b0, %v0 : !rows -> !gdn_warp.view<64xf32>
      %v1 = gdn_warp.slice %vectors[0, 64] : !gdn_warp.view<128xf32> -> !gdn_warp.view<64xf32>
      gdn_warp.vector_store %b1, %v1 : !rows -> !gdn_warp.view<64xf32>
      %tiles = gdn_warp.slot put %out[1] at %i : !gdn_warp.channel<!gdn_warp.view<128xf32>, !stack> -> !stack
      %p0 = gdn_warp.slice %tiles[0, 0] : !stack -> !piece
      %j0 = gdn_warp.join %t0, %k0 : !narrow, !narrow -> tensor<64x64xbf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %j0, %p0 : tensor<64x64xbf16, #gdn_warp.fragment> -> !piece
      %p1 = gdn_warp.slice %tiles[64, 0] : !stack -> !piece
      %j1 = gdn_warp.join %t1, %k1 : !narrow, !narrow -> tensor<64x64xbf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %j1, %p1 : tensor<64x64xbf16, #gdn_warp.fragment> -> !piece
      %columns = gdn_warp.publish %t0, %t1 transpose : !narrow, !narrow -> !whole
      %own = gdn_warp.share %tiles : !stack
      %p = gdn_warp.wgmma %own transpose_a, %columns transpose_b : !stack, !whole -> tensor<64x32xf32, #gdn_warp.fragment>
    }
  }
}

// -----

!whole = !gdn_warp.view<32x128xbf16, swizzle = 128>
!part = !gdn_warp.view<32x64xbf16, swizzle = 128>
!narrow = tensor<64x32xbf16, #gdn_warp.fragment>

// Roles without the attribute, pieces of other ops, a piece that something else or another piece takes, tiles from before
// the block, a fence between the stores, and loads of what is stored: they stay as they are.
// CHECK-LABEL: gdn_warp.kernel @others(
// CHECK-NOT: scf.for
gdn_warp.kernel @others(%x: memref<64x32xbf16>) threads(896) shared(0) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  gdn_warp.role "unasked" warps(0, 4) {
    %to = gdn_warp.view %c0 : !whole
    %a = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> !narrow
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    gdn_warp.fragment_store %a, %p0 transpose : !narrow -> !part
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    gdn_warp.fragment_store %a, %p1 transpose : !narrow -> !part
  }
  gdn_warp.role "unlike" warps(4, 4) attributes {gdn_warp.loop_pieces} {
    %to = gdn_warp.view %c0 : !whole
    %a = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> !narrow
    %n = arith.negf %a : !narrow
    %m = arith.addf %a, %a : !narrow
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    gdn_warp.fragment_store %n, %p0 transpose : !narrow -> !part
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    gdn_warp.fragment_store %m, %p1 transpose : !narrow -> !part
  }
  gdn_warp.role "taken" warps(8, 4) attributes {gdn_warp.loop_pieces} {
    %from = gdn_warp.view %c0 : !whole
    %to = gdn_warp.view %c0 : !whole
    %f0 = gdn_warp.slice %from[0, 0] : !whole -> !part
    %a = gdn_warp.fragment_load %f0 transpose : !part -> !narrow
    %f1 = gdn_warp.slice %from[0, 64] : !whole -> !part
    %b = gdn_warp.fragment_load %f1 transpose : !part -> !narrow
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    gdn_warp.fragment_store %a, %p0 transpose : !narrow -> !part
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    gdn_warp.fragment_store %b, %p1 transpose : !narrow -> !part
    gdn_warp.array_store %b, %x[%c0, %c0] axes [0, 1] : !narrow -> memref<64x32xbf16>
  }
  gdn_warp.role "carried" warps(12, 4) attributes {gdn_warp.loop_pieces} {
    %to = gdn_warp.view %c0 : !whole
    %a = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> !narrow
    %b = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> !narrow
    scf.if %true {
      %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
      gdn_warp.fragment_store %a, %p0 transpose : !narrow -> !part
      %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
      gdn_warp.fragment_store %b, %p1 transpose : !narrow -> !part
    }
  }
  gdn_warp.role "met" warps(16, 4) attributes {gdn_warp.loop_pieces} {
    %to = gdn_warp.view %c0 : !whole
    %a = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> !narrow
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    gdn_warp.fragment_store %a, %p0 transpose : !narrow -> !part
    gdn_warp.fence async
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    gdn_warp.fragment_store %a, %p1 transpose : !narrow -> !part
  }
  gdn_warp.role "chained" warps(20, 4) attributes {gdn_warp.loop_pieces} {
    %from = gdn_warp.view %c0 : !whole
    %to = gdn_warp.view %c0 : !whole
    %f0 = gdn_warp.slice %from[0, 0] : !whole -> !part
    %a = gdn_warp.fragment_load %f0 transpose : !part -> !narrow
    %f1 = gdn_warp.slice %from[0, 64] : !whole -> !part
    %b = gdn_warp.fragment_load %f1 transpose : !part -> !narrow
    %m = arith.addf %a, %a : !narrow
    %n = arith.addf %b, %a : !narrow
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    gdn_warp.fragment_store %m, %p0 transpose : !narrow -> !part
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    gdn_warp.fragment_store %n, %p1 transpose : !narrow -> !part
  }
  gdn_warp.role "in_place" warps(24, 4) attributes {gdn_warp.loop_pieces} {
    %to = gdn_warp.view %c0 : !whole
    %p0 = gdn_warp.slice %to[0, 0] : !whole -> !part
    %a = gdn_warp.fragment_load %p0 transpose : !part -> !narrow
    %p1 = gdn_warp.slice %to[0, 64] : !whole -> !part
    %b = gdn_warp.fragment_load %p1 transpose : !part -> !narrow
    gdn_warp.fragment_store %a, %p0 transpose : !narrow -> !part
    gdn_warp.fragment_store %b, %p1 transpose : !narrow -> !part
  }
}
