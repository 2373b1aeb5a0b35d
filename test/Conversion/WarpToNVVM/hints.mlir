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

// A branch that makes what it makes of numbers takes copies of those of a loop, which nothing is made of before it. Others are there
// anyway.
// CHECK-LABEL: llvm.func @copies(
// CHECK: scf.for %[[I:.*]] = %{{.*}} iter_args(%[[NUMBER:.*]] =
// CHECK:   scf.if
// CHECK-NEXT: %[[COPY:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.b32 $0, $1;", "=r,r" %[[NUMBER]] : (i32) -> i32
// CHECK-NEXT: arith.muli %[[COPY]], %{{.*}} : i32
// CHECK-NOT: inline_asm
// CHECK:   scf.if
// CHECK-NEXT: arith.muli %[[NUMBER]]
gdn_warp.kernel @copies(%m: memref<?xi32>, %n: i32, %factor: i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  gdn_warp.role "state" warps(0, 4) {
    %last = scf.for %i = %c0_i32 to %n step %c1_i32 iter_args(%number = %c0_i32) -> (i32) : i32 {
      %is = arith.cmpi eq, %i, %factor : i32
      scf.if %is {
        %product = arith.muli %number, %factor : i32
        memref.store %product, %m[%c0] : memref<?xi32>
      } {gdn_warp.late_addresses, gdn_warp.likely = false}
      scf.if %is {
        %product = arith.muli %number, %factor : i32
        memref.store %product, %m[%c0] : memref<?xi32>
      } {gdn_warp.likely = false}
      %next = arith.addi %number, %n : i32
      scf.yield %next : i32
    }
  }
}
