// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-group-products))' | FileCheck %s

#one = #gdn_warp.schedule<trip = 1, parts = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!sum = tensor<64x64xf32, #gdn_warp.fragment>

// A product of shared memory alone begins behind the one before it; a wait stands before the first reader
// and leaves the later group on its way; at the end nothing is.
// CHECK-LABEL: gdn_warp.kernel @order(
// CHECK: gdn_warp.role
// CHECK: gdn_warp.product_fence
// CHECK-NEXT: %[[A:.*]] = gdn_warp.product
// CHECK-NEXT: gdn_warp.product_commit
// CHECK-NEXT: %[[B:.*]] = gdn_warp.product
// CHECK-NEXT: gdn_warp.product_commit
// CHECK-NEXT: %[[READY:.*]] = gdn_warp.await 1 of %[[A]]
// CHECK-NEXT: arith.negf %[[READY]]
// CHECK-NEXT: gdn_warp.await 0{{$}}
// CHECK-NEXT: }
gdn_warp.kernel @order() threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.product %v, %v : !tile, !tile -> !sum
    %minus = arith.negf %a : !sum
    %b = gdn_warp.product %v, %v : !tile, !tile -> !sum
  }
}

// A product may take on a sum that is on its way: one wait serves both.
// CHECK-LABEL: gdn_warp.kernel @chain(
// CHECK: %[[A:.*]] = gdn_warp.product
// CHECK-NOT: gdn_warp.await
// CHECK: %[[B:.*]] = gdn_warp.product {{.*}} into(%[[A]]
// CHECK-NEXT: gdn_warp.product_commit
// CHECK-NEXT: %[[READY:.*]] = gdn_warp.await 0 of %[[B]]
// CHECK-NEXT: arith.negf %[[READY]]
gdn_warp.kernel @chain() threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.product %v, %v : !tile, !tile -> !sum
    %b = gdn_warp.product %v, %v into(%a : !sum) : !tile, !tile -> !sum
    %minus = arith.negf %b : !sum
  }
}

// Without a schedule a kernel is in the explicit form already.
// CHECK-LABEL: gdn_warp.kernel @explicit(
// CHECK-NOT: gdn_warp.product_commit
gdn_warp.kernel @explicit() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  %a = gdn_warp.product %v, %v : !tile, !tile -> !sum
}
