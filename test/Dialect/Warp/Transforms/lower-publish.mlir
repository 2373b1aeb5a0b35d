// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-allocate-shared,gdn-warp-lower-publish))' | FileCheck %s

// A place for each warpgroup of the role, by the number of the warpgroup in the CTA: that of warps 4 to 7 is the first.
// CHECK-LABEL: gdn_warp.kernel @own
// CHECK-SAME: shared(32768)
gdn_warp.kernel @own(%x: memref<64x64xbf16>) threads(384) shared(0) {
  // CHECK: gdn_warp.role "state" warps(4, 8)
  gdn_warp.role "state" warps(4, 8) {
    %c0 = arith.constant 0 : index
    // CHECK: %[[M:.*]] = gdn_warp.array_load
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    // CHECK: %[[WARP:.*]] = gdn_warp.id warp
    // CHECK: %[[GROUP:.*]] = arith.divui %[[WARP]], %{{.*}} : index
    // CHECK: %[[DISTANCE:.*]] = arith.constant 16384 : index
    // CHECK: %[[FAR:.*]] = arith.muli %[[GROUP]], %[[DISTANCE]]
    // CHECK: %[[BEGIN:.*]] = arith.constant -16384 : index
    // CHECK: %[[PLACE:.*]] = arith.addi %[[FAR]], %[[BEGIN]]
    // CHECK: %[[VIEW:.*]] = gdn_warp.view %[[PLACE]] : <128x64xbf16, swizzle = 128>
    // CHECK: gdn_warp.sync_group %[[ID:.*]], 128
    // CHECK: %[[UPPER:.*]] = gdn_warp.slice %[[VIEW]][0, 0]
    // CHECK: gdn_warp.fragment_store %[[M]], %[[UPPER]]
    // CHECK: %[[LOWER:.*]] = gdn_warp.slice %[[VIEW]][64, 0]
    // CHECK: gdn_warp.fragment_store %[[M]], %[[LOWER]]
    // CHECK: gdn_warp.fence async
    // CHECK: gdn_warp.sync_group %[[ID]], 128
    %b = gdn_warp.publish %m, %m : tensor<64x64xbf16, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment>
        -> !gdn_warp.view<128x64xbf16, swizzle = 128>
    // CHECK: gdn_warp.wgmma %[[M]], %[[VIEW]] transpose_b
    gdn_warp.wgmma_fence
    %p = gdn_warp.wgmma %m, %b transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>, !gdn_warp.view<128x64xbf16, swizzle = 128>
        -> tensor<64x128xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    gdn_warp.wgmma_wait 0
  }
}

// -----

// Turned fragments lie side by side.
// CHECK-LABEL: gdn_warp.kernel @turned
// CHECK-SAME: shared(8192)
gdn_warp.kernel @turned(%x: memref<64x32xbf16>) threads(128) shared(0) {
  gdn_warp.role "state" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xbf16> -> tensor<64x32xbf16, #gdn_warp.fragment>
    // CHECK: %[[VIEW:.*]] = gdn_warp.view %{{.*}} : <32x128xbf16, swizzle = 128>
    // CHECK: %[[LEFT:.*]] = gdn_warp.slice %[[VIEW]][0, 0] : {{.*}} -> <32x64xbf16, swizzle = 128
    // CHECK: gdn_warp.fragment_store %{{.*}}, %[[LEFT]] transpose
    // CHECK: %[[RIGHT:.*]] = gdn_warp.slice %[[VIEW]][0, 64]
    // CHECK: gdn_warp.fragment_store %{{.*}}, %[[RIGHT]] transpose
    %b = gdn_warp.publish %m, %m transpose : tensor<64x32xbf16, #gdn_warp.fragment>, tensor<64x32xbf16, #gdn_warp.fragment>
        -> !gdn_warp.view<32x128xbf16, swizzle = 128>
  }
}

// -----

// A place alone is free when the warps have met; what is stored there is shared by a fence and one more meeting. One fence
// stands in front of it already, and a second share behind it waits for nothing.
// CHECK-LABEL: gdn_warp.kernel @place
// CHECK-SAME: shared(8192)
gdn_warp.kernel @place(%x: memref<64x64xbf16>) threads(128) shared(0) {
  gdn_warp.role "state" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    // CHECK: %[[VIEW:.*]] = gdn_warp.view %{{.*}} : <64x64xbf16, swizzle = 128>
    // CHECK-NEXT: gdn_warp.sync_group
    // CHECK-NEXT: gdn_warp.fragment_store %{{.*}}, %[[VIEW]]
    // CHECK-NEXT: gdn_warp.fence async
    // CHECK-NOT: gdn_warp.fence
    // CHECK: gdn_warp.sync_group
    // CHECK-NOT: gdn_warp.sync_group
    // CHECK: gdn_warp.wgmma %{{.*}}, %[[VIEW]] transpose_b
    %place = gdn_warp.publish : -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.fragment_store %m, %place : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.fence async
    %b = gdn_warp.share %place : !gdn_warp.view<64x64xbf16, swizzle = 128>
    %again = gdn_warp.share %b : !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.wgmma_fence
    %p = gdn_warp.wgmma %m, %again transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>, !gdn_warp.view<64x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    gdn_warp.wgmma_wait 0
  }
}

// -----

// What the rare branch publishes takes turns, behind its last reader and with the other branch. Others do not.
// CHECK-LABEL: gdn_warp.kernel @branches
// CHECK-SAME: shared(24576)
gdn_warp.kernel @branches(%x: memref<64x64xbf16>, %c: i1) threads(128) shared(0) {
  gdn_warp.role "state" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    // CHECK: scf.if
    scf.if %c {
      // CHECK: arith.constant 0 : index
      %a = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
      // CHECK: gdn_warp.view
      // CHECK: arith.constant 8192 : index
      %b = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    } else {
      // CHECK: } else {
      // CHECK: arith.constant 0 : index
      %a = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
      // Read behind the next one.
      // CHECK: gdn_warp.view
      // CHECK: arith.constant 8192 : index
      %b = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
      %r = gdn_warp.fragment_load %a : !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
      // CHECK: gdn_warp.view
      // CHECK: arith.constant 0 : index
      %d = gdn_warp.publish %r : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    } {gdn_warp.likely = true}
    // CHECK: gdn_warp.likely
    // CHECK: arith.constant 16384 : index
    %last = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
  }
}

// -----

// The ops over rows of a role run one after the other: one place serves them.
// CHECK-LABEL: gdn_warp.kernel @scratch
// CHECK-SAME: shared(1024)
gdn_warp.kernel @scratch(%x: memref<64x64xf32>) threads(128) shared(0) {
  gdn_warp.role "state" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
    // CHECK: gdn_tile.scan {{.*}}gdn_warp.scratch = array<i64: 0, 1024>
    %s = gdn_tile.scan %m axis 0 {gdn_warp.scratch_bytes = 1024 : i64} : tensor<64x64xf32, #gdn_warp.fragment>
    // CHECK: gdn_warp.row {{.*}}gdn_warp.scratch = array<i64: 0, 1024>
    %r = gdn_warp.row %s[63] {gdn_warp.scratch_bytes = 256 : i64} : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.columns>
    gdn_warp.array_store %r, %x[%c0, %c0] axes [1] : tensor<64xf32, #gdn_warp.columns> -> memref<64x64xf32>
  }
}

// -----

// What lies in a slot is shared by a fence, and a wait of the warps, which serves a publish in front of it.
// CHECK-LABEL: gdn_warp.kernel @share
// CHECK: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.sync_group
// CHECK-NEXT: gdn_warp.wgmma %{{.*}}, %[[SLOT:.*]] transpose_b
// CHECK: gdn_warp.sync_group
// CHECK: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NOT: gdn_warp.fence
// CHECK: gdn_warp.sync_group
// CHECK-NEXT: gdn_warp.wgmma %{{.*}}, %[[SLOT]] transpose_b
gdn_warp.kernel @share(%x: memref<64x64xbf16>) threads(128) shared(0) {
  gdn_warp.role "scores" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %slot = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    gdn_warp.fragment_store %m, %slot : tensor<64x64xbf16, #gdn_warp.fragment> -> <64x64xbf16, swizzle = 128>
    %a = gdn_warp.share %slot : !gdn_warp.view<64x64xbf16, swizzle = 128>
    %p = gdn_warp.wgmma %m, %a transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>, <64x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
    %b = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    %c = gdn_warp.share %slot : !gdn_warp.view<64x64xbf16, swizzle = 128>
    %q = gdn_warp.wgmma %m, %c transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>, <64x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
  }
}

// -----

// The warps meet once for tiles that follow each other, and where a product or a branch with one takes a tile in between, for each.
// CHECK-LABEL: gdn_warp.kernel @share_several
// CHECK: gdn_warp.sync_group
// CHECK-NEXT: gdn_warp.fragment_store
// CHECK-NEXT: %[[SLOT:.*]] = gdn_warp.view
// CHECK-NOT: gdn_warp.sync_group
// CHECK: gdn_warp.fragment_store %{{.*}}, %[[SLOT]]
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.sync_group
// CHECK: gdn_warp.wgmma
// CHECK: gdn_warp.fragment_store %{{.*}}, %[[SLOT]]
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.sync_group
// CHECK: scf.if
// CHECK: gdn_warp.fragment_store %{{.*}}, %[[SLOT]]
// CHECK-NEXT: gdn_warp.fence async
// CHECK: gdn_warp.sync_group
gdn_warp.kernel @share_several(%x: memref<64x64xbf16>, %c: i1) threads(128) shared(16384) {
  gdn_warp.role "scores" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %c8192 = arith.constant 8192 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    %a = gdn_warp.publish %m : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
    %slot = gdn_warp.view %c8192 : !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.fragment_store %m, %slot : tensor<64x64xbf16, #gdn_warp.fragment> -> <64x64xbf16, swizzle = 128>
    %b = gdn_warp.share %slot : !gdn_warp.view<64x64xbf16, swizzle = 128>
    %p = gdn_warp.wgmma %m, %a transpose_b : tensor<64x64xbf16, #gdn_warp.fragment>, <64x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.fragment_store %m, %slot : tensor<64x64xbf16, #gdn_warp.fragment> -> <64x64xbf16, swizzle = 128>
    %d = gdn_warp.share %slot : !gdn_warp.view<64x64xbf16, swizzle = 128>
    scf.if %c {
      %rows = gdn_warp.slice %d[0, 0] : !gdn_warp.view<64x64xbf16, swizzle = 128>
          -> !gdn_warp.view<16x64xbf16, swizzle = 128, stride = 8192>
      %n = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x16xbf16, #gdn_warp.fragment>
      %q = gdn_warp.wgmma %n, %rows : tensor<64x16xbf16, #gdn_warp.fragment>, <16x64xbf16, swizzle = 128, stride = 8192>
          -> tensor<64x64xf32, #gdn_warp.fragment>
    }
    gdn_warp.fragment_store %m, %slot : tensor<64x64xbf16, #gdn_warp.fragment> -> <64x64xbf16, swizzle = 128>
    %e = gdn_warp.share %slot : !gdn_warp.view<64x64xbf16, swizzle = 128>
  }
}

// -----

// Rows that have a turn lie where others of their size lay that nobody reads any more; those of the product behind them do not.
// CHECK-LABEL: gdn_warp.kernel @turns
// CHECK-SAME: shared(4096)
gdn_warp.kernel @turns(%x: memref<64x64xbf16>) threads(128) shared(0) {
  gdn_warp.role "state" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
    %left = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x16xbf16, #gdn_warp.fragment>
    // CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %c0{{(_[0-9]+)?}} : index
    // CHECK: gdn_warp.view %[[FIRST]] : <16x64xbf16
    // CHECK: gdn_warp.fragment_store %{{.*}} rows [0, 16]
    %a = gdn_warp.publish %m rows [0, 16] in_turn : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<16x64xbf16, swizzle = 128>
    // CHECK: %[[SECOND:.*]] = arith.addi %{{.*}}, %c2048{{(_[0-9]+)?}} : index
    // CHECK: gdn_warp.view %[[SECOND]] : <16x64xbf16
    // CHECK: gdn_warp.fragment_store %{{.*}} rows [16, 32]
    %b = gdn_warp.publish %m rows [16, 32] in_turn : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<16x64xbf16, swizzle = 128>
    %p = gdn_warp.wgmma %left, %a : tensor<64x16xbf16, #gdn_warp.fragment>, !gdn_warp.view<16x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
    // CHECK: %[[THIRD:.*]] = arith.addi %{{.*}}, %c0{{(_[0-9]+)?}} : index
    // CHECK: gdn_warp.view %[[THIRD]] : <16x64xbf16
    // CHECK: gdn_warp.fragment_store %{{.*}} rows [32, 48]
    %c = gdn_warp.publish %m rows [32, 48] in_turn : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<16x64xbf16, swizzle = 128>
    %q = gdn_warp.wgmma %left, %b into(%p : tensor<64x64xf32, #gdn_warp.fragment>) : tensor<64x16xbf16, #gdn_warp.fragment>, !gdn_warp.view<16x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
    %r = gdn_warp.wgmma %left, %c into(%q : tensor<64x64xf32, #gdn_warp.fragment>) : tensor<64x16xbf16, #gdn_warp.fragment>, !gdn_warp.view<16x64xbf16, swizzle = 128>
        -> tensor<64x64xf32, #gdn_warp.fragment>
  }
}
