// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-verify-channels))' | FileCheck %s

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!value = tensor<64x64xbf16, #gdn_warp.fragment>
!product = tensor<64x64xf32, #gdn_warp.fragment>

// Fences behind stores and before copies, takes on both sides of a branch, a guard with one side, and another CTA's
// iterations, which fill nothing: all is right.
// CHECK-LABEL: gdn_warp.kernel @right(
gdn_warp.kernel @right(%x: memref<?x64xbf16>, %n: i64) threads(384) shared(0) cluster(2) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %v = arith.constant dense<1.0> : !value
  %is = arith.cmpi eq, %t, %c0 : index
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!tile>
  %out = gdn_warp.channel "out" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.alternate_ctas} {
    scf.if %is {
      %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
      gdn_warp.fragment_store %v, %s : !value -> !tile
      gdn_warp.fence async
    } else {
      gdn_warp.sync warp
    }
  }
  gdn_warp.role "use" warps(4, 4) {
    scf.if %is {
      %a = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
      %p = gdn_warp.wgmma %v, %a : !value, !tile -> !product
    } else {
      gdn_warp.release_unused %in at %t : !gdn_warp.channel<!tile>
    }
    scf.if %is {
      %s = gdn_warp.slot put %out[0] at %t : !gdn_warp.channel<!tile> -> !tile
      gdn_warp.fragment_store %v, %s : !value -> !tile
    }
  }
  gdn_warp.role "move" warps(8, 1) {
    %s = gdn_warp.slot get %out[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fence async
    gdn_warp.tma_store %s, %x[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!value = tensor<64x64xbf16, #gdn_warp.fragment>
gdn_warp.kernel @store(%n: i64) threads(256) shared(0) {
  %t = arith.index_cast %n : i64 to index
  %v = arith.constant dense<1.0> : !value
  // expected-note @below {{the channel}}
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "make" warps(0, 4) {
    %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fence async
    // expected-error @below {{expected gdn_warp.fence async directly behind the last store to channel "in", which products or other CTAs read, got none (gdn-warp-insert-fences)}}
    gdn_warp.fragment_store %v, %s : !value -> !tile
  }
  gdn_warp.role "use" warps(4, 4) {
    %a = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
    %p = gdn_warp.wgmma %v, %a : !value, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!value = tensor<64x64xbf16, #gdn_warp.fragment>
gdn_warp.kernel @copy(%x: memref<?x64xbf16>, %n: i64) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %v = arith.constant dense<1.0> : !value
  // expected-note @below {{the channel}}
  %out = gdn_warp.channel "out" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "make" warps(0, 4) {
    %s = gdn_warp.slot put %out[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fragment_store %v, %s : !value -> !tile
  }
  gdn_warp.role "move" warps(4, 1) {
    %s = gdn_warp.slot get %out[0] at %t : !gdn_warp.channel<!tile> -> !tile
    // expected-error @below {{expected gdn_warp.fence async before the first copy out of channel "out", to which other threads have stored, got none (gdn-warp-insert-fences)}}
    gdn_warp.tma_store %s, %x[%c0, %c0] axes [0, 1] : !tile -> memref<?x64xbf16>
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
gdn_warp.kernel @refill(%x: memref<?x64xbf16>, %n: i64) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  // expected-note @below {{the channel}}
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "move" warps(0, 1) {
    %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.tma_load %x[%c0, %c0] axes [0, 1], %s : memref<?x64xbf16> -> !tile
  }
  gdn_warp.role "use" warps(4, 4) {
    %s = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!tile> -> !tile
    // expected-error @below {{expected gdn_warp.fence async directly behind the last load from channel "in", which copies fill, got none (gdn-warp-insert-fences)}}
    %a = gdn_warp.fragment_load %s : !tile -> tensor<64x64xbf16, #gdn_warp.fragment>
  }
}

// -----

!row = !gdn_warp.view<32xf32>
gdn_warp.kernel @take(%x: memref<?xf32>, %n: i64) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %is = arith.cmpi eq, %t, %c0 : index
  %row = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 1) {
    %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %row, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
  }
  gdn_warp.role "use" warps(4, 4) {
    // expected-note @below {{the branch}}
    scf.if %is {
      gdn_warp.sync warp
    } else {
      // expected-error @below {{expected both sides of the branch to take slots of channel "in", got one: where the other one runs, the slot waits for ever}}
      %s = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!row> -> !row
      %f = gdn_warp.load %s[%c0] : !row -> f32
      memref.store %f, %x[%c0] : memref<?xf32>
    }
  }
}

// -----

!row = !gdn_warp.view<32xf32>
gdn_warp.kernel @fill(%n: i64) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %is = arith.cmpi eq, %t, %c0 : index
  %row = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  %in = gdn_warp.channel "in" depth(2) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 1) {
    // expected-note @below {{the branch}}
    scf.if %is {
      // expected-error @below {{expected both sides of the branch to fill slots of channel "in", got one}}
      %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!row> -> !row
      gdn_warp.vector_store %row, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
    } else {
      gdn_warp.sync warp
    }
  }
}

// -----

!row = !gdn_warp.view<32xf32>
gdn_warp.kernel @load(%x: memref<?xf32>, %n: i64) threads(256) shared(0) cluster(2) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %row = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  // expected-note @below {{the channel}}
  %in = gdn_warp.channel "in" depth(2) turn(1) : !gdn_warp.channel<!row>
  gdn_warp.role "make" warps(0, 1) attributes {gdn_warp.alternate_ctas} {
    %s = gdn_warp.slot put %in[0] at %t : !gdn_warp.channel<!row> -> !row
    gdn_warp.vector_store %row, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
    gdn_warp.fence async
    gdn_warp.copy_to_cluster %in at %t : !gdn_warp.channel<!row>
  }
  gdn_warp.role "use" warps(4, 4) {
    %s = gdn_warp.slot get %in[0] at %t : !gdn_warp.channel<!row> -> !row
    // expected-error @below {{expected products and loads of vectors alone to read slots of channel "in", which CTAs fill for each other: the arrival in the other CTA is not ordered behind a load}}
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
}

// -----

// A fence behind another channel's stores is behind the arrival for this one.
!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!value = tensor<64x64xbf16, #gdn_warp.fragment>
gdn_warp.kernel @late_fence(%n: i64) threads(256) shared(0) {
  %t = arith.index_cast %n : i64 to index
  %v = arith.constant dense<1.0> : !value
  // expected-note @below {{the channel}}
  %a = gdn_warp.channel "a" depth(2) : !gdn_warp.channel<!tile>
  %b = gdn_warp.channel "b" depth(2) : !gdn_warp.channel<!tile>
  gdn_warp.role "make" warps(0, 4) {
    %s = gdn_warp.slot put %a[0] at %t : !gdn_warp.channel<!tile> -> !tile
    // expected-error @below {{expected gdn_warp.fence async directly behind the last store to channel "a"}}
    gdn_warp.fragment_store %v, %s : !value -> !tile
    %r = gdn_warp.slot put %b[0] at %t : !gdn_warp.channel<!tile> -> !tile
    gdn_warp.fragment_store %v, %r : !value -> !tile
    gdn_warp.fence async
  }
  gdn_warp.role "use" warps(4, 4) {
    %s = gdn_warp.slot get %a[0] at %t : !gdn_warp.channel<!tile> -> !tile
    %p = gdn_warp.wgmma %v, %s : !value, !tile -> tensor<64x64xf32, #gdn_warp.fragment>
  }
}

// -----

// The arrivals of a slot say nothing of its fields.
!row = !gdn_warp.view<32xf32>
!pair = !gdn_warp.channel<!row, !row>
gdn_warp.kernel @unfilled(%x: memref<?xf32>, %n: i64) threads(256) shared(0) {
  %c0 = arith.constant 0 : index
  %t = arith.index_cast %n : i64 to index
  %row = arith.constant dense<1.0> : tensor<32xf32, #gdn_warp.lanes>
  // expected-note @below {{the channel}}
  %in = gdn_warp.channel "in" depth(2) : !pair
  gdn_warp.role "make" warps(0, 1) {
    %s = gdn_warp.slot put %in[0] at %t : !pair -> !row
    gdn_warp.vector_store %row, %s : tensor<32xf32, #gdn_warp.lanes> -> !row
  }
  gdn_warp.role "use" warps(4, 4) {
    // expected-error @below {{expected a role that fills field 1 of channel "in", which is taken here, got none}}
    %s = gdn_warp.slot get %in[1] at %t : !pair -> !row
    %f = gdn_warp.load %s[%c0] : !row -> f32
    memref.store %f, %x[%c0] : memref<?xf32>
  }
}
