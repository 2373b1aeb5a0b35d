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
// Ends cut the loads of chunks past the last one, which the loop says.
// CHECK: } {gdn_tile.cut_past_end}
// What is behind the loop is of no chunk.
// CHECK: gdn_tile.store %[[LAST]], %y[%n, %h, %{{.*}}] axes [2] {gdn_tile.step = "gates"}

// ONE: scf.for %{{.*}} = %begin to %end step %{{.*}} iter_args
// ONE: gdn_tile.chunk = 0
// ONE-NOT: gdn_tile.chunk = 1
// ONE: gdn_tile.program @decays(

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
  } {gdn_tile.neutral_past_end}
  gdn_tile.store %last, %y[%n, %h, %c0] axes [2] {gdn_tile.step = "gates"} : tensor<32xf32> -> memref<1x4x32xf32>
}

// What a chunk past the last one would make of zeros is not what the loop carries.
// CHECK-LABEL: gdn_tile.program @decays(
// CHECK: scf.for %[[T:.*]] = %begin to %end step %{{.*}} iter_args(%[[S:.*]] =
// CHECK: %[[S0:.*]] = arith.mulf %[[S]], %{{.*}} {gdn_tile.chunk = 0 : i64
// CHECK: %[[T1:.*]] = arith.addi %[[T]],
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[T1]], %end
// CHECK: %[[S1:.*]] = arith.mulf %[[S0]], %{{.*}} {gdn_tile.chunk = 1 : i64
// CHECK: %[[KEPT:.*]] = arith.select %[[INSIDE]], %[[S1]], %[[S0]] {gdn_tile.chunk = 1 : i64, gdn_tile.step = "state"}
// CHECK: scf.yield %[[KEPT]]
gdn_tile.program @decays(%y: memref<1x4x32xf32>) outs(%z: memref<1x4x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant dense<1.0> : tensor<32xf32>
  %half = arith.constant dense<0.5> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%s = %one) -> (tensor<32xf32>) {
    %next = arith.mulf %s, %half {gdn_tile.step = "state"} : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  }
  gdn_tile.store %last, %z[%n, %h, %c0] axes [2] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x4x32xf32>
}

// In a reverse loop they lie before the sequence: their accesses move to the loop's first chunk, and they store nothing.
// CHECK-LABEL: gdn_tile.program @reverse(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: scf.for %[[I:.*]] = %[[ZERO]] to %[[UPPER:.*]] step
// CHECK: gdn_tile.store %{{.*}} {gdn_tile.chunk = 0 : i64
// CHECK: %[[I1:.*]] = arith.addi %[[I]],
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I1]], %[[UPPER]]
// CHECK: %[[PLACE:.*]] = arith.select %[[INSIDE]], %[[I1]], %[[ZERO]]
// CHECK: %[[O:.*]] = arith.subi %{{.*}}, %[[PLACE]]
// CHECK: %[[T:.*]] = arith.addi %begin, %[[O]]
// CHECK: gdn_tile.load %x[%batch, %[[T]], %h]
// CHECK: scf.if %[[INSIDE]] {
// CHECK-NEXT: gdn_tile.store %{{.*}}, %y[%batch, %[[T]], %h] {{.*}}gdn_tile.chunk = 1 : i64
// CHECK-NOT: cut_past_end
gdn_tile.program @reverse(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %length = arith.subi %end, %begin : index
  %count = arith.ceildivui %length, %c32 : index
  %upper = arith.muli %count, %c32 : index
  %last = arith.subi %upper, %c32 : index
  scf.for %i = %c0 to %upper step %c32 {
    %o = arith.subi %last, %i : index
    %t = arith.addi %begin, %o : index
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}

// A known number of whole iterations needs no guards, one with a rest does. A schedule says how many chunks.
// CHECK-LABEL: gdn_tile.program @known(
// CHECK: gdn_tile.chunk = 3
// CHECK-NOT: arith.select
// CHECK-NOT: gdn_tile.chunk = 4
// CHECK: scf.for
// CHECK: arith.select
#four = #gdn_warp.schedule<chunks_per_iteration = 4, v_tiles = 1, roles = [
    <name = "all", warps = 4, registers = 96, steps = ["gates"]>], channels = []>
gdn_tile.program @known(%x: memref<21x32xf32>) outs(%y: memref<21x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #four} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c21 = arith.constant 21 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %a = gdn_tile.load %x[%i, %c0] axes [1] {gdn_tile.step = "gates"} : memref<21x32xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%i, %c0] axes [1] {gdn_tile.step = "gates"} : tensor<32xf32> -> memref<21x32xf32>
  }
  scf.for %i = %c16 to %c21 step %c1 {
    %a = gdn_tile.load %x[%i, %c0] axes [1] {gdn_tile.step = "gates"} : memref<21x32xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%i, %c0] axes [1] {gdn_tile.step = "gates"} : tensor<32xf32> -> memref<21x32xf32>
  }
}

// What is done in every second chunk is done in the first one of two, and never past the last one: no guards.
// CHECK-LABEL: gdn_tile.program @every(
// CHECK: scf.for %[[T:.*]] = %begin to %end step
// CHECK: gdn_tile.store %{{.*}}, %z[%{{.*}}] axes [1] {gdn_tile.chunk = 0 : i64
// CHECK-NOT: gdn_tile.store
// CHECK-NOT: arith.select
// CHECK: } {gdn_tile.cut_past_end}
gdn_tile.program @every(%x: memref<1x?x4xf32>) outs(%z: memref<?x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%s = %zero) -> (tensor<32xf32>) {
    %since = arith.subi %t, %begin : index
    %rest = arith.remui %since, %c64 : index
    %first = arith.cmpi eq, %rest, %c0 : index
    scf.if %first {
      %place = arith.divui %since, %c64 : index
      gdn_tile.store %s, %z[%place, %c0] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.every = 2 : i64}
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %next = arith.addf %s, %a {gdn_tile.step = "gates"} : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  } {gdn_tile.neutral_past_end}
}

// A role whose chunks are a loop has one code for all of them: each is asked whether it is the first one of two.
// CHECK-LABEL: gdn_tile.program @every_rolled(
// CHECK: scf.if
// CHECK: gdn_tile.store %{{.*}}, %z[%{{.*}}] axes [1] {gdn_tile.chunk = 0 : i64
// CHECK: scf.if
// CHECK: gdn_tile.store %{{.*}}, %z[%{{.*}}] axes [1] {gdn_tile.chunk = 1 : i64
// CHECK-NOT: arith.select
// CHECK: scf.yield
gdn_tile.program @every_rolled(%x: memref<1x?x4xf32>) outs(%z: memref<?x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
      <name = "sum", warps = 4, registers = 64, steps = ["store", "gates"], loop_chunks = true>], channels = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%s = %zero) -> (tensor<32xf32>) {
    %since = arith.subi %t, %begin : index
    %rest = arith.remui %since, %c64 : index
    %first = arith.cmpi eq, %rest, %c0 : index
    scf.if %first {
      %place = arith.divui %since, %c64 : index
      gdn_tile.store %s, %z[%place, %c0] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.every = 2 : i64}
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %next = arith.addf %s, %a {gdn_tile.step = "gates"} : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  } {gdn_tile.neutral_past_end}
}

// A loop that may begin earlier does, by what completes its first iteration.
// CHECK-LABEL: gdn_tile.program @before(
// CHECK-DAG: %[[TRIP:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[UPPER:.*]] = arith.muli
// CHECK: %[[COUNT:.*]] = arith.ceildivui %[[UPPER]], %[[TRIP]]
// CHECK: %[[LENGTH:.*]] = arith.muli %[[COUNT]], %[[TRIP]]
// CHECK: %[[LOWER:.*]] = arith.subi %[[UPPER]], %[[LENGTH]]
// CHECK: scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]] step %[[TRIP]]
// CHECK-NOT: arith.select
// CHECK-NOT: scf.if
// CHECK: gdn_tile.chunk = 1
// CHECK: }
// A loop with something done in every third chunk may not, and its chunks decide themselves.
// CHECK-LABEL: gdn_tile.program @thirds(
// CHECK: scf.for %{{.*}} = %c0
// CHECK: scf.if
// CHECK: gdn_tile.chunk = 0
// CHECK: scf.if
// CHECK: gdn_tile.chunk = 1
// A loop that stores each chunk where no end cuts it may not, either.
// CHECK-LABEL: gdn_tile.program @each(
// CHECK: scf.for %{{.*}} = %c0
// CHECK: gdn_tile.store {{.*}}gdn_tile.chunk = 0
// CHECK: scf.if
// CHECK: gdn_tile.store {{.*}}gdn_tile.chunk = 1
gdn_tile.program @before(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %length = arith.subi %end, %begin : index
  %count = arith.ceildivui %length, %c32 : index
  %upper = arith.muli %count, %c32 : index
  %last = arith.subi %upper, %c32 : index
  scf.for %i = %c0 to %upper step %c32 {
    %o = arith.subi %last, %i : index
    %t = arith.addi %begin, %o : index
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  } {gdn_tile.neutral_before_first}
}
gdn_tile.program @thirds() outs(%y: memref<?x32xf32>) work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : tensor<32xf32>
  scf.for %i = %c0 to %end step %c1 {
    %rest = arith.remui %i, %c3 : index
    %first = arith.cmpi eq, %rest, %c0 : index
    scf.if %first {
      gdn_tile.store %one, %y[%i, %c0] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.every = 3 : i64}
  } {gdn_tile.neutral_before_first}
}
gdn_tile.program @each() outs(%y: memref<?x32xf32>) work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<32xf32>
  scf.for %i = %c0 to %end step %c1 {
    gdn_tile.store %one, %y[%i, %c0] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<?x32xf32>
  } {gdn_tile.neutral_before_first}
}
