// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-unroll-chunks),canonicalize)' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-unroll-chunks{factor=1}),canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=ONE
// RUN: not gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-unroll-chunks{factor=0}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NONE -DGOT=0
// RUN: not gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-unroll-chunks{factor=2147483648}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NONE -DGOT=2147483648

// Two chunks an iteration: the second begins a chunk later and takes on what the first carries.
// CHECK-LABEL: gdn_tile.program @sum(
// CHECK-DAG: %[[CHUNK:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[TRIP:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<32xf32>
// CHECK: %[[LAST:.*]] = scf.for %[[T:.*]] = %begin to %end step %[[TRIP]] iter_args(%[[S:.*]] = %[[ZERO]])
// CHECK: %[[X0:.*]] = gdn_tile.load %x[%batch, %[[T]], %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0 : i64, gdn_tile.step = "gates"}
// CHECK: %[[S0:.*]] = arith.addf %[[S]], %[[X0]] {gdn_tile.chunk = 0 : i64, gdn_tile.step = "gates"}
// CHECK: %[[T1:.*]] = arith.addi %[[T]], %[[CHUNK]]
// CHECK: %[[X1:.*]] = gdn_tile.load %x[%batch, %[[T1]], %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1 : i64, gdn_tile.step = "gates"}
// CHECK: %[[S1:.*]] = arith.addf %[[S0]], %[[X1]] {gdn_tile.chunk = 1 : i64, gdn_tile.step = "gates"}
// CHECK: scf.yield %[[S1]]
// What is behind the loop is of no chunk.
// CHECK: gdn_tile.store %[[LAST]], %y[%n, %h, %{{.*}}] axes [2] {gdn_tile.step = "gates"}

// ONE: scf.for %{{.*}} = %begin to %end step %{{.*}} iter_args
// ONE: gdn_tile.chunk = 0
// ONE-NOT: gdn_tile.chunk = 1

// NONE: error: 'gdn_tile.program' op expected factor to be 1 to 64, got [[GOT]]
gdn_tile.program @sum(%x: memref<1x?x4xf32>) outs(%y: memref<1x4x32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%s = %zero) -> (tensor<32xf32>) {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %next = arith.addf %s, %a {gdn_tile.step = "gates"} : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  }
  gdn_tile.store %last, %y[%n, %h, %c0] axes [2] {gdn_tile.step = "gates"} : tensor<32xf32> -> memref<1x4x32xf32>
}
