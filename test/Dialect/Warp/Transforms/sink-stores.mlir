// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-sink-stores,cse))' | FileCheck %s

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
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
// CHECK: %[[P:.*]] = gdn_warp.wgmma
// CHECK: scf.if
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[P]]
// CHECK-NEXT: gdn_warp.fragment_store %[[A]], %{{.*}} rows [0, 32] guarded
gdn_warp.kernel @product() threads(128) shared(8192) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %view = gdn_warp.view %c0 : !tile
  %out = gdn_warp.channel "out" depth(2) : <!half>
  gdn_warp.role "scores" warps(0, 4) {
    %slot = gdn_warp.slot put %out[0] at %c0 : <!half> -> !half
    %p = gdn_warp.wgmma %view, %view : !tile, !tile -> !wide
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

// What the diagonal of a product makes is made and stored by the warps that hold its rows; what it takes of slots is
// loaded before, where the product is not awaited yet.
// CHECK-LABEL: gdn_warp.kernel @diagonal(
// CHECK: %[[P:.*]] = gdn_warp.wgmma
// CHECK: %[[L:.*]] = gdn_warp.vector_load
// CHECK: scf.if
// CHECK-NEXT: %[[D:.*]] = gdn_warp.diagonal %[[P]] from 0
// CHECK-NEXT: %[[N:.*]] = arith.mulf %[[D]], %[[L]]
// CHECK: linalg.broadcast ins(%[[N]]
// CHECK: %[[T:.*]] = arith.truncf
// CHECK-NEXT: gdn_warp.vector_store %[[N]], %{{.*}} rows [0, 32]
// CHECK-NEXT: gdn_warp.fragment_store %[[T]], %{{.*}} rows [0, 32] guarded
gdn_warp.kernel @diagonal() threads(128) shared(8192) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %view = gdn_warp.view %c0 : !tile
  %in = gdn_warp.channel "in" depth(2) : <!gdn_warp.view<32xf32>>
  %out = gdn_warp.channel "out" depth(2) : <!gdn_warp.view<32xf32>, !gdn_warp.view<32x32xbf16>>
  gdn_warp.role "scores" warps(0, 4) {
    %right = gdn_warp.slice %view[0, 0] : !tile -> !gdn_warp.view<32x64xbf16, swizzle = 128, stride = 8192>
    %p = gdn_warp.wgmma %view, %right transpose_b : !tile, !gdn_warp.view<32x64xbf16, swizzle = 128, stride = 8192> -> tensor<64x32xf32, #gdn_warp.fragment>
    %d = gdn_warp.diagonal %p from 0 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
    %i = gdn_warp.slot get %in[0] at %c0 : <!gdn_warp.view<32xf32>> -> !gdn_warp.view<32xf32>
    %l = gdn_warp.vector_load %i : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.rows>
    %n = arith.mulf %d, %l : tensor<64xf32, #gdn_warp.rows>
    %a = gdn_warp.slot put %out[0] at %c0 : <!gdn_warp.view<32xf32>, !gdn_warp.view<32x32xbf16>> -> !gdn_warp.view<32xf32>
    gdn_warp.vector_store %n, %a rows [0, 32] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<32xf32>
    %none = tensor.empty() : tensor<64x32xf32, #gdn_warp.fragment>
    %b = linalg.broadcast ins(%n : tensor<64xf32, #gdn_warp.rows>)
        outs(%none : tensor<64x32xf32, #gdn_warp.fragment>) dimensions = [1]
    %m = arith.mulf %p, %b : tensor<64x32xf32, #gdn_warp.fragment>
    %t = arith.truncf %m : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
    %s = gdn_warp.slot put %out[1] at %c0 : <!gdn_warp.view<32xf32>, !gdn_warp.view<32x32xbf16>> -> !gdn_warp.view<32x32xbf16>
    gdn_warp.fragment_store %t, %s rows [0, 32] : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x32xbf16>
  }
}

// A channel of which each side of a branch takes a field is taken there, where it is first used, though a field be used on
// one side alone.
// CHECK-LABEL: gdn_warp.kernel @sides(
// CHECK: gdn_warp.role "use"
// CHECK-NOT: gdn_warp.slot
// CHECK: scf.if
// CHECK: arith.negf
// CHECK-NEXT: gdn_warp.slot get %{{.*}}[0]
// CHECK: } else {
// CHECK: math.absf
// CHECK: gdn_warp.slot get %{{.*}}[1]
gdn_warp.kernel @sides(%c: i1, %f: f32, %y: memref<64xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <!gdn_warp.view<64xf32>, !gdn_warp.view<64xf32>>
  gdn_warp.role "use" warps(0, 4) {
    %a = gdn_warp.slot get %in[0] at %c0 : <!gdn_warp.view<64xf32>, !gdn_warp.view<64xf32>> -> !gdn_warp.view<64xf32>
    %b = gdn_warp.slot get %in[1] at %c0 : <!gdn_warp.view<64xf32>, !gdn_warp.view<64xf32>> -> !gdn_warp.view<64xf32>
    %r = scf.if %c -> (tensor<64xf32, #gdn_warp.rows>) {
      %n = arith.negf %f : f32
      %l = gdn_warp.vector_load %a : !gdn_warp.view<64xf32> -> tensor<64xf32, #gdn_warp.rows>
      %s = tensor.splat %n : tensor<64xf32, #gdn_warp.rows>
      %p = arith.mulf %l, %s : tensor<64xf32, #gdn_warp.rows>
      scf.yield %p : tensor<64xf32, #gdn_warp.rows>
    } else {
      %n = math.absf %f : f32
      %s = tensor.splat %n : tensor<64xf32, #gdn_warp.rows>
      %l = gdn_warp.vector_load %b : !gdn_warp.view<64xf32> -> tensor<64xf32, #gdn_warp.rows>
      %p = arith.mulf %l, %s : tensor<64xf32, #gdn_warp.rows>
      scf.yield %p : tensor<64xf32, #gdn_warp.rows>
    }
    %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
    gdn_warp.vector_store %r, %v : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
  }
}

// Of warpgroups that take turns a vector is stored where the first tile of its slot is: what makes the tile need not wait
// for the slot.
// CHECK-LABEL: gdn_warp.kernel @vectors(
// CHECK: gdn_warp.role "make"
// CHECK-NOT: gdn_warp.slot
// CHECK: arith.truncf
// CHECK-NEXT: gdn_warp.slot put %{{.*}}[0]
// CHECK-NEXT: gdn_warp.vector_store
// CHECK-NEXT: gdn_warp.slot put %{{.*}}[1]
// CHECK-NEXT: gdn_warp.fragment_store
gdn_warp.kernel @vectors(%x: memref<64x64xf32>, %v: memref<64xf32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %out = gdn_warp.channel "out" depth(2) : <!gdn_warp.view<64xf32>, !gdn_warp.view<64x64xbf16, swizzle = 128>>
  gdn_warp.role "make" warps(0, 8) attributes {gdn_warp.round_robin = 4 : i64} {
    %w = gdn_warp.array_load %v[%c0] axes [0] : memref<64xf32> -> tensor<64xf32, #gdn_warp.rows>
    %a = gdn_warp.slot put %out[0] at %c0 : <!gdn_warp.view<64xf32>, !gdn_warp.view<64x64xbf16, swizzle = 128>> -> !gdn_warp.view<64xf32>
    gdn_warp.vector_store %w, %a : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
    %t = arith.truncf %m : tensor<64x64xf32, #gdn_warp.fragment> to tensor<64x64xbf16, #gdn_warp.fragment>
    %b = gdn_warp.slot put %out[1] at %c0 : <!gdn_warp.view<64xf32>, !gdn_warp.view<64x64xbf16, swizzle = 128>> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.fragment_store %t, %b : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
  }
}
