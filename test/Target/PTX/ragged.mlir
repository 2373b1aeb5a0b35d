// Copies of tiles that cross the end of a sequence while the array goes on.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// CHECK: .entry ragged(
// CHECK: prefetch.tensormap
// A tile that crosses comes in two panels, the others whole.
// CHECK: add.s32 {{.*}}, 1073741824
// CHECK-COUNT-3: cp.async.bulk.tensor.5d.shared::cta.global
// CHECK: mbarrier.try_wait
// CHECK: cp.async.bulk.tensor.5d.global.shared::cta

// A CTA copies a sequence of one head, and all of its tiles to %tiles.
gdn_warp.kernel @ragged(%x : memref<1x?x2x128xbf16>, %y : memref<1x?x2x128xbf16>,
    %tiles : memref<?x32x128xbf16>, %ends : memref<?xi32>) threads(128) shared(8200) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %at_bar = arith.constant 8192 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %thread = gdn_warp.id thread
  %cta = gdn_warp.id cta
  %sequence = arith.divui %cta, %c2 : index
  %h = arith.remui %cta, %c2 : index
  %after = arith.addi %sequence, %c1 : index
  %begin_i32 = memref.load %ends[%sequence] : memref<?xi32>
  %end_i32 = memref.load %ends[%after] : memref<?xi32>
  %begin = arith.index_cast %begin_i32 : i32 to index
  %end = arith.index_cast %end_i32 : i32 to index
  %first_tile = arith.muli %cta, %c4 : index
  %view = gdn_warp.view %c0 : !gdn_warp.view<32x128xbf16, swizzle = 128>
  %full = gdn_warp.barrier %at_bar
  %one = arith.cmpi eq, %thread, %c0 : index
  scf.if %one {
    gdn_warp.barrier_init %full, 1
    gdn_warp.fence barrier_init
    %last:2 = scf.for %t = %begin to %end step %c32 iter_args(%tile = %first_tile, %phase = %i0)
        -> (index, i32) {
      gdn_warp.barrier_expect %full, 8192
      gdn_warp.bulk_tensor_load %x[%c0, %t, %h, %c0] axes [1, 3] until(%end, dim = 1), %view signal %full
          : memref<1x?x2x128xbf16> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
      gdn_warp.barrier_wait %full, %phase
      gdn_warp.bulk_tensor_store %view, %y[%c0, %t, %h, %c0] axes [1, 3] until(%end, dim = 1)
          : !gdn_warp.view<32x128xbf16, swizzle = 128> -> memref<1x?x2x128xbf16>
      gdn_warp.bulk_tensor_store %view, %tiles[%tile, %c0, %c0] axes [1, 2]
          : !gdn_warp.view<32x128xbf16, swizzle = 128> -> memref<?x32x128xbf16>
      gdn_warp.bulk_commit
      gdn_warp.bulk_wait 0
      %next = arith.addi %tile, %c1 : index
      %flip = arith.xori %phase, %i1 : i32
      scf.yield %next, %flip : index, i32
    }
  }
}
