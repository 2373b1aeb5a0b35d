// RUN: gdn-opt %s --gdn-tile-hoist-buffers --gdn-tile-expand-copies | FileCheck %s

// A tile's buffer is made once a work item, not once an iteration; one that a loop hands
// from iteration to iteration must stay, there are two of it at a time.
// CHECK-LABEL: func.func @tiles
// CHECK: memref.alloc() : memref<8xf32>
// CHECK: scf.for
// CHECK-NOT: memref.alloc() : memref<8xf32>
// CHECK: memref.alloc() : memref<4xf32>
func.func @tiles(%x : memref<8xf32>, %first : memref<4xf32>, %n : index)
    attributes {gdn_tile.program} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first) -> (memref<4xf32>) {
    %t = memref.alloc() : memref<8xf32>
    memref.copy %x, %t : memref<8xf32> to memref<8xf32>
    %u = memref.alloc() : memref<4xf32>
    memref.copy %s, %u : memref<4xf32> to memref<4xf32>
    memref.dealloc %t : memref<8xf32>
    scf.yield %u : memref<4xf32>
  }
  return
}

// A dense copy is one block of memory, a strided one is work for vectors.
// CHECK-LABEL: func.func @copies
// CHECK: memref.copy
// CHECK: linalg.copy
func.func @copies(%x : memref<8x8xf32>, %y : memref<8x8xf32>,
    %z : memref<8x8xf32, strided<[16, 1]>>) {
  memref.copy %x, %y : memref<8x8xf32> to memref<8x8xf32>
  memref.copy %x, %z : memref<8x8xf32> to memref<8x8xf32, strided<[16, 1]>>
  return
}
