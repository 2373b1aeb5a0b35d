// Loops one after the other, and values that cross outside of them.
// RUN: gdn-opt %s --split-input-file --gdn-warp-partition --canonicalize --cse | FileCheck %s

// Loops that hand over the same values use a channel in turn: numbers of iterations go on.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @twice(
// CHECK: %[[SLOTS:.*]] = gdn_warp.channel "in" depth(2)
// CHECK-NOT: gdn_warp.channel
// CHECK: gdn_warp.role "move"
// CHECK: %[[FIRST:.*]] = arith.index_castui
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[FIRST]]
// CHECK: %[[SLOT:.*]] = arith.index_castui %[[I]]
// CHECK: gdn_warp.put %{{.*}}, %[[SLOTS]][0] at %[[SLOT]]
// CHECK: %[[BOTH:.*]] = arith.addi %[[FIRST]],
// CHECK: scf.for %[[J:.*]] = %[[FIRST]] to %[[BOTH]]
// CHECK: %[[NEXT:.*]] = arith.index_castui %[[J]]
// CHECK: gdn_warp.put %{{.*}}, %[[SLOTS]][0] at %[[NEXT]]
// CHECK: gdn_warp.role "state"
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[FIRST:[0-9a-z]+]]
// CHECK: gdn_warp.get %[[SLOTS]][0]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: gdn_warp.get %[[SLOTS]][0]
gdn_tile.program @twice(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%t: index, %x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t1 = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @twice grid(%c1, %c4, %c1) tokens(%t1) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}

// -----

// Loops that hand over other values have channels of their own, whose iterations have their own numbers. With work
// items in turn each role counts both on, and what is late ends with its loop.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @others(
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(2) : <tensor<32xf32>>
// CHECK: %[[OUT:.*]] = gdn_warp.channel "out" depth(2) : <tensor<32xf32>>
// CHECK: %[[IN1:.*]] = gdn_warp.channel "in_1" depth(2) : <tensor<64xf32>>
// CHECK: gdn_warp.role "move"
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %c0_i32, %[[B:.*]] = %c0_i32) -> (i32, i32)
// CHECK: %[[LAST:.*]] = arith.addi %[[A]],
// CHECK: %[[END:.*]] = arith.addi %[[LAST]], %c1_i32
// CHECK: scf.for %[[I:.*]] = %[[A]] to %[[END]]
// CHECK: arith.cmpi ult, %[[I]], %[[LAST]]
// CHECK: gdn_warp.put %{{.*}}, %[[IN]][0]
// CHECK: gdn_warp.get %[[OUT]][0]
// CHECK: %[[LASTB:.*]] = arith.addi %[[B]],
// CHECK: scf.for %{{.*}} = %[[B]] to
// CHECK: gdn_warp.put %{{.*}}, %[[IN1]][0]
// CHECK: scf.yield %[[LAST]], %[[LASTB]]
gdn_tile.program @others(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>, %z: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    %b = arith.negf %a {gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %b, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<64xf32>
    gdn_tile.store %a, %z[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<64xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>, %z: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @others grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y, %z : memref<1x?x4xf32>, memref<1x?x4xf32>)
  return
}

// -----

// What is made before a loop is taken once, before the loop, from a channel of its own; what the loop carried goes to
// another role behind it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @outside(
// CHECK: %[[SCALE:.*]] = gdn_warp.channel "in" depth(1) : <tensor<32xf32>>
// CHECK: %[[IN:.*]] = gdn_warp.channel "in_1" depth(2) : <tensor<32xf32>>
// CHECK: %[[SUM:.*]] = gdn_warp.channel "out" depth(1) : <tensor<32xf32>>
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.put %{{.*}}, %[[SCALE]][0] at %c0
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: gdn_warp.put %{{.*}}, %[[IN]][0] at
// CHECK: %[[TAKEN:.*]] = gdn_warp.get %[[SUM]][0] at %c0
// CHECK: gdn_tile.store %[[TAKEN]]
// CHECK: gdn_warp.role "state"
// CHECK: %[[S:.*]] = gdn_warp.get %[[SCALE]][0] at %c0
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args
// CHECK: gdn_warp.get %[[IN]][0]
// CHECK: arith.mulf %{{.*}}, %[[S]]
// CHECK: gdn_warp.put %[[LAST]], %[[SUM]][0] at %c0
gdn_tile.program @outside(%x: memref<1x?x4xf32>, %w: memref<32xf32>) outs(%y: memref<4x32xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %scale = gdn_tile.load %w[%c0] axes [0] {gdn_tile.step = "load"} : memref<32xf32> -> tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%s = %zero) -> tensor<32xf32> {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    %b = arith.mulf %a, %scale {gdn_tile.step = "state"} : tensor<32xf32>
    %next = arith.addf %s, %b {gdn_tile.step = "state"} : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  }
  gdn_tile.store %last, %y[%h, %c0] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<4x32xf32>
}
func.func @host(%x: memref<1x?x4xf32>, %w: memref<32xf32>, %y: memref<4x32xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @outside grid(%c1, %c4, %c1) tokens(%t) ins(%x, %w : memref<1x?x4xf32>, memref<32xf32>) outs(%y : memref<4x32xf32>)
  return
}
