// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-prefetch-loads))' | FileCheck %s

#ahead = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["gates"], prefetch_distance = 2>,
    <name = "other", warps = 1, registers = 96, steps = ["load"]>], channels = []>

// The values of the next two iterations are carried; an iteration takes the first and loads that of two iterations on. Two
// bodies, so that nothing moves.
// CHECK-LABEL: gdn_warp.kernel @carried(
// CHECK: gdn_warp.role "move"
// CHECK: %[[FIRST:.*]] = gdn_warp.array_load %x
// CHECK: %[[SECOND:.*]] = gdn_warp.array_load %x
// CHECK: scf.for %[[TRIP:.*]] = {{.*}} iter_args(%[[NOW:.*]] = %[[FIRST]], %[[NEXT:.*]] = %[[SECOND]])
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[NUMBER:.*]] = arith.addi %[[TRIP]], %[[TWO]]
// CHECK: %[[PLACE:.*]] = arith.muli %[[NUMBER]], %c32
// CHECK: %[[LATER:.*]] = gdn_warp.array_load %x[%[[PLACE]], %{{.*}}] axes [0] until(%{{.*}}, dim = 0)
// CHECK: gdn_warp.array_store %[[NOW]], %y
// CHECK: scf.yield %[[NEXT]], %[[LATER]]
// CHECK: } {gdn_warp.cut_past_end, gdn_warp.unroll = 2 : i64}
// In a role that loads no iterations ahead, nor without an end, where an iteration that never comes may be outside of
// the array, nothing changes.
// CHECK: gdn_warp.role "other"
// CHECK-NOT: gdn_warp.array_load
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: gdn_warp.array_load
gdn_warp.kernel @carried(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: i64) threads(128) shared(0)
    attributes {gdn_warp.schedule = #ahead} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %end = arith.index_cast %n : i64 to index
  gdn_warp.role "move" warps(0, 1) {
    scf.for %iteration = %c0 to %end step %c1 {
      %at = arith.muli %iteration, %c32 : index
      %v = gdn_warp.array_load %x[%at, %c0] axes [0] until(%end, dim = 0) : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%at, %c0] axes [0] until(%end, dim = 0) : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    } {gdn_warp.cut_past_end}
  }
  gdn_warp.role "other" warps(1, 1) {
    scf.for %iteration = %c0 to %end step %c1 {
      %at = arith.muli %iteration, %c32 : index
      %v = gdn_warp.array_load %x[%at, %c0] axes [0] until(%end, dim = 0) : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%at, %c0] axes [0] until(%end, dim = 0) : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    }
  }
}

// Where nobody says that the end cuts loads of iterations past the last one, such as in a reverse loop, they end where
// they begin.
// CHECK-LABEL: gdn_warp.kernel @reverse(
// CHECK: %[[LOWER:.*]] = arith.addi %c0, %c0{{.*}} : index
// CHECK: %[[PLACE:.*]] = arith.subi %{{.*}}, %[[LOWER]]
// CHECK: %[[THERE:.*]] = arith.cmpi slt, %[[LOWER]], %[[COUNT:.*]] : index
// CHECK: %[[END:.*]] = arith.select %[[THERE]], %[[COUNT]], %[[PLACE]]
// CHECK: gdn_warp.array_load %x[%[[PLACE]], %{{.*}}] axes [0] until(%[[END]], dim = 0)
// CHECK: scf.for
// CHECK: arith.cmpi slt, %{{.*}}, %[[COUNT]]
// CHECK: gdn_warp.array_load %x
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 1, registers = 96, steps = ["gates"], prefetch_distance = 1>], channels = []>
gdn_warp.kernel @reverse(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: i64) threads(128) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i64 to index
  gdn_warp.role "move" warps(0, 1) {
    scf.for %iteration = %c0 to %end step %c1 {
      %at = arith.subi %end, %iteration : index
      %v = gdn_warp.array_load %x[%at, %c0] axes [0] until(%end, dim = 0) : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%at, %c0] axes [0] until(%end, dim = 0) : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    }
  }
}

// A loop by constants says which iterations there are: loads need no end, and past the last one it is loaded again.
// CHECK-LABEL: gdn_warp.kernel @constant(
// CHECK: %[[LAST:.*]] = arith.constant 7 : index
// CHECK: %[[FIRST:.*]] = arith.minsi %{{.*}}, %[[LAST]]
// CHECK: %[[LOADED:.*]] = gdn_warp.array_load %x[%[[FIRST]], %{{.*}}] axes [1]
// CHECK: scf.for %[[TRIP:.*]] = %c0 to %c8 step %c1 iter_args(%[[NOW:.*]] = %[[LOADED]])
// CHECK: %[[NUMBER:.*]] = arith.addi %[[TRIP]], %{{.*}}
// CHECK: %[[NEXT:.*]] = arith.minsi %[[NUMBER]], %{{.*}}
// CHECK: %[[LATER:.*]] = gdn_warp.array_load %x[%[[NEXT]], %{{.*}}] axes [1]
// CHECK: gdn_warp.array_store %[[NOW]], %y
// CHECK: scf.yield %[[LATER]]
gdn_warp.kernel @constant(%x: memref<8x128xf32>, %y: memref<8x128xf32>) threads(128) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gdn_warp.role "move" warps(0, 1) {
    scf.for %iteration = %c0 to %c8 step %c1 {
      %v = gdn_warp.array_load %x[%iteration, %c0] axes [1] : memref<8x128xf32>
        -> tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 32, warps = 1>, axis = 1>>
      gdn_warp.array_store %v, %y[%iteration, %c0] axes [1]
        : tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 32, warps = 1>, axis = 1>> -> memref<8x128xf32>
    }
  }
}

// CHECK-LABEL: gdn_warp.kernel @endless(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: gdn_warp.array_load
// CHECK-NOT: gdn_warp.unroll
gdn_warp.kernel @endless(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: i64) threads(128) shared(0)
    attributes {gdn_warp.schedule = #ahead} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i64 to index
  gdn_warp.role "move" warps(0, 1) {
    scf.for %iteration = %c0 to %end step %c1 {
      %v = gdn_warp.array_load %x[%iteration, %c0] axes [0] : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%iteration, %c0] axes [0] : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    }
  }
}

// The place of this load depends on memory: nobody knows it iterations before.
// CHECK-LABEL: gdn_warp.kernel @indirect(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: gdn_warp.load
// CHECK: gdn_warp.array_load
// CHECK-NOT: gdn_warp.unroll
gdn_warp.kernel @indirect(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: i64) threads(128) shared(64)
    attributes {gdn_warp.schedule = #ahead} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i64 to index
  %view = gdn_warp.view %c0 : !gdn_warp.view<1xi32>
  gdn_warp.role "move" warps(0, 1) {
    scf.for %iteration = %c0 to %end step %c1 {
      %number = gdn_warp.load %view[%c0] : !gdn_warp.view<1xi32> -> i32
      %at = arith.index_cast %number : i32 to index
      %v = gdn_warp.array_load %x[%at, %c0] axes [0] until(%end, dim = 0) : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%iteration, %c0] axes [0] until(%end, dim = 0) : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    }
  }
}

// Nor in a loop that does not count iterations.
// CHECK-LABEL: gdn_warp.kernel @tokens(
// CHECK-NOT: gdn_warp.array_load
// CHECK: scf.for
// CHECK-NOT: iter_args
gdn_warp.kernel @tokens(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: i64) threads(128) shared(0)
    attributes {gdn_warp.schedule = #ahead} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %end = arith.index_cast %n : i64 to index
  gdn_warp.role "move" warps(0, 1) {
    scf.for %at = %c0 to %end step %c32 {
      %v = gdn_warp.array_load %x[%at, %c0] axes [0] until(%end, dim = 0) : memref<?x4xf32> -> tensor<32xf32, #gdn_warp.lanes>
      gdn_warp.array_store %v, %y[%at, %c0] axes [0] until(%end, dim = 0) : tensor<32xf32, #gdn_warp.lanes> -> memref<?x4xf32>
    }
  }
}
