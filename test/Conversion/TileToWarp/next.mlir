// What a work item loads before its loop comes near while the one before it is in its last iteration, by the role that loads
// for the loop.
// RUN: gdn-opt %s --split-input-file --gdn-warp-partition --canonicalize --cse | FileCheck %s

// One item a CTA: the one that comes next is as many CTAs on as the chip runs at a time. Parts that share a CTA, all.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 8, registers = 160, steps = ["state"], warpgroup_per_v_tile = true>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @packed(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[WIDTH:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[CHIP:.*]] = arith.constant 132 : i32
// CHECK: gdn_warp.role "move"
// CHECK: scf.for %[[TRIP:[a-z0-9]+]] =
// CHECK: gdn_tile.load %x
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %[[CHIP]]
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[NEXT]],
// CHECK: %[[AFTER:.*]] = arith.addi %[[TRIP]],
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[AFTER]],
// CHECK: %[[BOTH:.*]] = arith.andi %[[LAST]], %[[THERE]]
// CHECK: scf.if %[[BOTH]] {
// CHECK: arith.remui %[[NEXT]]
// CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = gdn_warp.sequence_by_rank %cu_seqlens,
// CHECK: gdn_warp.prefetch %s[%[[N]], %{{.*}}, %[[ZERO]], %[[ZERO]]] axes [3, 2] sizes [64, 128]
// CHECK: gdn_warp.prefetch %s[%[[N]], %{{.*}}, %[[ZERO]], %[[WIDTH]]] axes [3, 2] sizes [64, 128]
// CHECK: gdn_tile.store
// CHECK: gdn_warp.role "state"
// CHECK-NOT: gdn_warp.prefetch
gdn_tile.program @packed(%x: memref<1x?x4x128xf32>, %s: memref<?x4x128x128xf32>) outs(%y: memref<1x?x4x128xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %column = arith.muli %vt, %c64 : index
  %first = gdn_tile.load %s[%n, %h, %c0, %column] axes [3, 2] {gdn_tile.step = "state"}
      : memref<?x4x128x128xf32> -> tensor<64x128xf32>
  %last = scf.for %t = %begin to %end step %c128 iter_args(%state = %first) -> tensor<64x128xf32> {
    %tile = gdn_tile.load %x[%batch, %t, %h, %column] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x128xf32> -> tensor<64x128xf32>
    %sum = arith.addf %tile, %state {gdn_tile.step = "state"} : tensor<64x128xf32>
    gdn_tile.store %sum, %y[%batch, %t, %h, %column] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x128xf32> -> memref<1x?x4x128xf32>
    scf.yield %sum : tensor<64x128xf32>
  }
}
func.func @host(%n: index, %t: index, %x: memref<1x?x4x128xf32>, %s: memref<?x4x128x128xf32>,
                %y: memref<1x?x4x128xf32>, %cu: memref<?xi32>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @packed grid(%n, %c4, %c2) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x, %s : memref<1x?x4x128xf32>, memref<?x4x128x128xf32>) outs(%y : memref<1x?x4x128xf32>)
  return
}

// -----

// A tile that a call has or not comes near if the call has it. What a work item decides is not looked at.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @optional(
// CHECK: gdn_warp.role "move"
// CHECK: %[[ROWS:.*]] = memref.dim %s,
// CHECK: %[[HERE:.*]] = arith.cmpi ne, %[[ROWS]],
// CHECK: scf.if %[[HERE]] {
// CHECK-NEXT: gdn_warp.prefetch %s[
// CHECK-NEXT: }
// CHECK-NOT: gdn_warp.prefetch
gdn_tile.program @optional(%x: memref<1x?x4x64xf32>, %s: memref<?x4x64x64xf32>, %r: memref<?x4x64x64xf32>)
    outs(%y: memref<1x?x4x64xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %s, %c0 : memref<?x4x64x64xf32>
  %there = arith.cmpi ne, %rows, %c0 : index
  %first = scf.if %there -> tensor<64x64xf32> {
    %loaded = gdn_tile.load %s[%n, %h, %c0, %c0] axes [3, 2] {gdn_tile.step = "state"} : memref<?x4x64x64xf32> -> tensor<64x64xf32>
    scf.yield %loaded : tensor<64x64xf32>
  } else {
    %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64x64xf32>
    scf.yield %zero : tensor<64x64xf32>
  }
  %is_first = arith.cmpi eq, %n, %c0 : index
  %second = scf.if %is_first -> tensor<64x64xf32> {
    %loaded = gdn_tile.load %r[%n, %h, %c0, %c0] axes [3, 2] {gdn_tile.step = "state"} : memref<?x4x64x64xf32> -> tensor<64x64xf32>
    scf.yield %loaded : tensor<64x64xf32>
  } else {
    scf.yield %first : tensor<64x64xf32>
  }
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %second) -> tensor<64x64xf32> {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xf32> -> tensor<64x64xf32>
    %sum = arith.addf %tile, %state {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %sum, %y[%batch, %t, %h, %c0] axes [3, 1] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xf32> -> memref<1x?x4x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  }
}
func.func @host(%n: index, %t: index, %x: memref<1x?x4x64xf32>, %s: memref<?x4x64x64xf32>, %r: memref<?x4x64x64xf32>,
                %y: memref<1x?x4x64xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @optional grid(%n, %c4, %c1) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x, %s, %r : memref<1x?x4x64xf32>, memref<?x4x64x64xf32>, memref<?x4x64x64xf32>) outs(%y : memref<1x?x4x64xf32>)
  return
}

// -----

// In turns: the CTA's own next one. A vector is not worth it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @turns(
// CHECK: gdn_warp.role "move"
// CHECK: %[[COUNT:.*]] = gdn_warp.id cta_count
// CHECK: %[[CTAS:.*]] = arith.index_castui %[[COUNT]]
// CHECK: scf.for %[[ITEM:[a-z0-9]+]] = %{{.*}} to %[[ITEMS:[a-z0-9]+]] step %[[CTAS]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[ITEM]], %[[CTAS]]
// CHECK: arith.cmpi ult, %[[NEXT]], %[[ITEMS]]
// CHECK: gdn_warp.prefetch %s[
// CHECK-NOT: gdn_warp.prefetch
gdn_tile.program @turns(%x: memref<?x?x4x64xf32>, %s: memref<?x4x64x64xf32>, %b: memref<4x64xf32>)
    outs(%y: memref<?x?x4x64xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %first = gdn_tile.load %s[%n, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"}
      : memref<?x4x64x64xf32> -> tensor<64x64xf32>
  %bias = gdn_tile.load %b[%h, %c0] axes [1] {gdn_tile.step = "state"} : memref<4x64xf32> -> tensor<64xf32>
  %none = tensor.empty() {gdn_tile.step = "state"} : tensor<64x64xf32>
  %rows = linalg.broadcast ins(%bias : tensor<64xf32>) outs(%none : tensor<64x64xf32>) dimensions = [0] {gdn_tile.step = "state"}
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %first) -> tensor<64x64xf32> {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<?x?x4x64xf32> -> tensor<64x64xf32>
    %more = arith.addf %tile, %rows {gdn_tile.step = "state"} : tensor<64x64xf32>
    %sum = arith.addf %more, %state {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %sum, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xf32> -> memref<?x?x4x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  }
}
func.func @host(%t: index, %x: tensor<?x?x4x64xf32>, %s: tensor<?x4x64x64xf32>, %b: tensor<4x64xf32>,
                %y: tensor<?x?x4x64xf32>) -> tensor<?x?x4x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4x64xf32>
  %r = gdn_tile.launch @turns grid(%n, %c4, %c1) tokens(%t)
      ins(%x, %s, %b : tensor<?x?x4x64xf32>, tensor<?x4x64x64xf32>, tensor<4x64xf32>)
      outs(%y : tensor<?x?x4x64xf32>) -> tensor<?x?x4x64xf32>
  return %r : tensor<?x?x4x64xf32>
}

// -----

// A role that loads its first tile itself, with several CTAs a multiprocessor: the first warp asks for the tile of the work
// item that comes when all of these are done, behind its own load. An index that the work item decides is read for it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, min_ctas = 3, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["load", "state", "store"], lanes_per_row = 16>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @following(
// CHECK-DAG: %[[CTAS:.*]] = arith.constant 396 : i32
// CHECK: gdn_warp.role "state"
// CHECK: gdn_tile.load %pool[
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %[[CTAS]]
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[NEXT]],
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: %[[BOTH:.*]] = arith.andi %[[FIRST]], %[[THERE]]
// CHECK: scf.if %[[BOTH]] {
// CHECK: %[[INDEX:.*]] = memref.load %indices[
// CHECK: %[[ROW:.*]] = arith.index_cast %[[INDEX]]
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: gdn_warp.prefetch %pool[%[[ROW]], %{{.*}}, %c0, %c0] axes [2, 3] sizes [64, 64]
// CHECK: scf.for
// CHECK-NOT: gdn_warp.prefetch
gdn_tile.program @following(%x: memref<?x?x4x64xf32>, %pool: memref<?x4x64x64xf32>, %indices: memref<?xi32>)
    outs(%y: memref<?x?x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zeros = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64x64xf32>
  %rows = memref.dim %pool, %c0 : memref<?x4x64x64xf32>
  %index = memref.load %indices[%n] : memref<?xi32>
  %row = arith.index_cast %index : i32 to index
  %there = arith.cmpi ult, %row, %rows : index
  %first = scf.if %there -> tensor<64x64xf32> {
    %tile = gdn_tile.load %pool[%row, %h, %c0, %c0] axes [2, 3] {gdn_tile.step = "state"} : memref<?x4x64x64xf32> -> tensor<64x64xf32>
    scf.yield %tile : tensor<64x64xf32>
  } else {
    scf.yield %zeros : tensor<64x64xf32>
  } {gdn_tile.step = "state"}
  %last = scf.for %t = %begin to %end step %c1 iter_args(%state = %first) -> tensor<64x64xf32> {
    %k = gdn_tile.load %x[%batch, %t, %h, %c0] axes [3] {gdn_tile.step = "load"} : memref<?x?x4x64xf32> -> tensor<64xf32>
    gdn_tile.store %k, %y[%batch, %t, %h, %c0] axes [3] {gdn_tile.step = "store"} : tensor<64xf32> -> memref<?x?x4x64xf32>
    %sum = arith.addf %state, %state {gdn_tile.step = "state"} : tensor<64x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  }
}
func.func @host(%n: index, %t: index, %x: memref<?x?x4x64xf32>, %pool: memref<?x4x64x64xf32>, %indices: memref<?xi32>,
                %y: memref<?x?x4x64xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @following grid(%n, %c4, %c1) tokens(%t)
      ins(%x, %pool, %indices : memref<?x?x4x64xf32>, memref<?x4x64x64xf32>, memref<?xi32>) outs(%y : memref<?x?x4x64xf32>)
  return
}
