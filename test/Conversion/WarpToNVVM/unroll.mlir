// Loops of kernels: bodies that load two iterations ahead of their use, and chunks.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// What the first body loads the loop carries to the next iteration of two bodies; nothing moves.
// The rest, of at most one iteration, is a loop of its own.
// CHECK-LABEL: llvm.func @ahead(
gdn_warp.kernel @ahead(%x : memref<?xf32>, %y : memref<?xf32>, %n : i32) threads(128) shared(0) {
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = memref.load %x[%c0] : memref<?xf32>
  %b0 = memref.load %x[%c1] : memref<?xf32>
  // CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (f32, f32)
  // CHECK: %[[C:.*]] = llvm.load
  // CHECK: llvm.store %[[A]]
  // CHECK: %[[D:.*]] = llvm.load
  // CHECK: llvm.store %[[B]]
  // CHECK: scf.yield %[[C]], %[[D]] : f32, f32
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LOOP]]#0, %{{.*}} = %[[LOOP]]#1)
  %e:2 = scf.for %i = %i0 to %n step %i1 iter_args(%a = %a0, %b = %b0) -> (f32, f32) : i32 {
    %j = arith.addi %i, %i2 : i32
    %at = arith.index_cast %i : i32 to index
    %next = arith.index_cast %j : i32 to index
    %c = memref.load %x[%next] : memref<?xf32>
    memref.store %a, %y[%at] : memref<?xf32>
    scf.yield %b, %c : f32, f32
  } {gdn_warp.unroll = 2}
}

// The chunks of an iteration stay a loop, also for ptxas: a copy of them would not fit the instruction cache.
// CHECK-LABEL: llvm.func @chunks(
gdn_warp.kernel @chunks(%y : memref<?xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  // CHECK: scf.for
  // CHECK: } {loop_annotation = #loop_annotation}
  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %one, %y[%i] : memref<?xf32>
  } {gdn_warp.chunks = 2}
}

// So do pieces of tiles, whose places in shared memory move on with the number of the piece.
// CHECK-LABEL: llvm.func @pieces(
gdn_warp.kernel @pieces(%y : memref<?xf32>) threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %view = gdn_warp.view %c0 : !gdn_warp.view<32x128xf32, swizzle = 128>
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to
  // CHECK: %[[NUMBER:.*]] = arith.index_cast %[[I]] : index to i32
  // CHECK: %[[FAR:.*]] = arith.muli %[[NUMBER]], %c4096_i32
  // CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[FAR]]]
  // CHECK: llvm.getelementptr %[[AT]][1024]
  // CHECK: } {loop_annotation = #loop_annotation}
  scf.for %i = %c0 to %c2 step %c1 {
    %part = gdn_warp.slice %view[8, 0] + %i * [0, 32] : !gdn_warp.view<32x128xf32, swizzle = 128>
        -> !gdn_warp.view<8x32xf32, swizzle = 128, stride = 4096>
    gdn_warp.store %one, %part[%c0, %c0] : f32 -> !gdn_warp.view<8x32xf32, swizzle = 128, stride = 4096>
  } {gdn_warp.pieces = 2}
}
