// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm | FileCheck %s

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!sum = tensor<64x64xf32, #gdn_warp.fragment>

// What a condition usually is becomes a hint, except around a product.
// CHECK-LABEL: llvm.func @hints(
// CHECK-SAME: %[[C:[^ ]*]]: i1
// CHECK: scf.if %[[C]] {
// CHECK: nvvm.wgmma.mma_async
// CHECK: %[[USUAL:.*]] = llvm.intr.expect %[[C]], %true : i1
// CHECK-NEXT: scf.if %[[USUAL]] {
// CHECK: llvm.store
gdn_warp.kernel @hints(%m: memref<?xf32>, %c: i1, %x: f32) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    scf.if %c {
      gdn_warp.wgmma_fence
      %p = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
      gdn_warp.wgmma_commit
    } {gdn_warp.likely = true}
    scf.if %c {
      memref.store %x, %m[%c0] : memref<?xf32>
    } {gdn_warp.likely = true}
  }
}
