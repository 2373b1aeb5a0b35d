// RUN: gdn-opt %s --split-input-file --gdn-warp-partition --canonicalize --cse | FileCheck %s

// Each role has the ops of its steps. What one makes and another takes goes through a channel of the
// schedule; constants, addresses and widening are copied. The mover stores two iterations late.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @double(
// CHECK-SAME: %x: memref<1x?x4x64xbf16>, %y: {{.*}}, %tokens: i64) threads(256)
// The item of a CTA: heads next to each other.
// CHECK-DAG: %[[HEADS:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[DELAY:.*]] = arith.constant 2 : i32
// CHECK: gdn_warp.grid_dependency_wait
// CHECK: %[[ID:.*]] = gdn_warp.id cta
// CHECK: %[[CTA:.*]] = arith.index_castui %[[ID]] : index to i32
// CHECK: %[[REST:.*]] = arith.remui %[[CTA]], %[[HEADS]]
// CHECK: %[[QUOTIENT:.*]] = arith.divui %[[CTA]], %[[HEADS]]
// CHECK: %[[HEAD:.*]] = arith.index_castui %[[REST]]
// CHECK: %[[SEQUENCE:.*]] = arith.index_castui %[[QUOTIENT]]
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(3) : <tensor<64x64xbf16>>
// CHECK: %[[OUT:.*]] = gdn_warp.channel "out" depth(2) : <tensor<64x64xbf16>>

// CHECK: gdn_warp.role "move" warps(0, 4) registers(96)
// CHECK: %[[CHUNKS:.*]] = arith.ceildivui
// CHECK: %[[COUNT:.*]] = arith.index_castui %[[CHUNKS]]
// CHECK: %[[ROUNDS:.*]] = arith.addi %[[COUNT]], %[[DELAY]]
// CHECK: scf.for %[[ROUND:.*]] = %{{.*}} to %[[ROUNDS]]
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[ROUND]], %[[COUNT]]
// CHECK: scf.if %[[MORE]] {
// CHECK: %[[X:.*]] = gdn_tile.load %x[%[[SEQUENCE]], %{{.*}}, %[[HEAD]],
// CHECK: gdn_warp.put %[[X]], %[[IN]][0] at %[[TRIP]] :
// CHECK: }
// CHECK: %[[STARTED:.*]] = arith.cmpi uge, %[[ROUND]], %[[DELAY]]
// CHECK: scf.if %[[STARTED]] {
// CHECK: %[[PAST:.*]] = arith.subi %[[ROUND]], %[[DELAY]]
// CHECK: %[[LATE:.*]] = arith.index_castui %[[PAST]]
// CHECK: %[[Y:.*]] = gdn_warp.get %[[OUT]][0] at %[[LATE]] :
// CHECK: gdn_tile.store %[[Y]], %y

// CHECK: gdn_warp.role "state" warps(4, 4) registers(160)
// CHECK-NOT: gdn_tile.load
// CHECK: scf.for %[[ROUND:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: %[[GOT:.*]] = gdn_warp.get %[[IN]][0] at %[[TRIP]] :
// CHECK: %[[WIDE:.*]] = arith.extf %[[GOT]]
// CHECK: %[[SUM:.*]] = arith.addf %[[WIDE]], %[[WIDE]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK: gdn_warp.put %[[ROUNDED]], %[[OUT]][0] at %[[TRIP]] :
// CHECK-NOT: gdn_tile.program
// CHECK: gdn_tile.launch @double
gdn_tile.program @double(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %wide = arith.extf %tile {gdn_tile.step = "load"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %sum = arith.addf %wide, %wide {gdn_tile.step = "state"} : tensor<64x64xf32>
    %rounded = arith.truncf %sum {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    gdn_tile.store %rounded, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @host(%t: index, %x: memref<1x?x4x64xbf16>, %y: memref<1x?x4x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @double grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4x64xbf16>)
      outs(%y : memref<1x?x4x64xbf16>)
  return
}

// -----

// Two V tiles folded into a CTA: the role that splits them takes its warpgroup's, the other makes both,
// and the grid has one CTA a head. Packed: tokens come from the sequence's bounds.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 8, registers = 160, steps = ["state"], warpgroup_per_v_tile = true>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @tiles_of_v(
// CHECK-SAME: %tokens: i64, %cu_seqlens: memref<?xi32, strided<[?]>>) threads(384)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[WIDTH:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[TOKENS:.*]] = arith.index_cast %tokens
// CHECK: %[[N:.*]], %[[FIRST:.*]], %[[END:.*]] = gdn_warp.sequence_by_rank %cu_seqlens, %{{.*}} tokens(%[[TOKENS]])
// Wrong boundaries may end a sequence before it begins.
// CHECK: %[[BEGIN:.*]] = arith.minsi %[[FIRST]], %[[END]]
// Tokens in front of the first sequence and behind the last one are zeros, in both V tiles; the second store writes
// the same columns at other tokens.
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}}
// CHECK: %[[ISFIRST:.*]] = arith.cmpi eq, %[[N]], %[[ZERO]]
// CHECK: %[[FRONT:.*]] = arith.select %[[ISFIRST]], %[[FIRST]], %[[ZERO]]
// CHECK: %[[ISLAST:.*]] = arith.cmpi eq, %[[N]], %[[LAST]]
// CHECK: %[[BEHIND:.*]] = arith.select %[[ISLAST]], %[[END]], %[[TOKENS]]
// CHECK: arith.cmpi sgt, %[[FRONT]], %[[ZERO]]
// CHECK: arith.cmpi slt, %[[BEHIND]], %[[TOKENS]]
// CHECK: scf.if
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %[[ZERO]], %{{.*}}, %[[ZERO]]] until(%[[FRONT]], dim = 1) columns 64
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %[[BEHIND]], %{{.*}}, %[[ZERO]]] until(%[[TOKENS]], dim = 1) columns 64
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %[[ZERO]], %{{.*}}, %[[WIDTH]]] until(%[[FRONT]], dim = 1) columns 64
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %[[BEHIND]], %{{.*}}, %[[WIDTH]]] until(%[[TOKENS]], dim = 1) columns 64
// CHECK-NEXT: } {gdn_warp.likely = false}
// CHECK-NOT: gdn_warp.array_clear
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(3) : <tensor<64x64xbf16>, tensor<64x64xbf16>>
// CHECK: gdn_warp.role "move"
// CHECK: arith.subi %[[END]], %[[BEGIN]]
// CHECK: %[[X0:.*]] = gdn_tile.load %x[%[[ZERO]], %{{.*}}, %{{.*}}, %[[ZERO]]] axes [1, 3] until(%[[END]], dim = 1)
// CHECK: gdn_warp.put %[[X0]], %[[IN]][0 + %[[ZERO]]] at
// CHECK: %[[X1:.*]] = gdn_tile.load %x[%[[ZERO]], %{{.*}}, %{{.*}}, %[[WIDTH]]]
// CHECK: gdn_warp.put %[[X1]], %[[IN]][0 + %[[ONE]]] at
// CHECK: gdn_warp.role "state" warps(4, 8)
// CHECK: %[[WARP:.*]] = gdn_warp.id warp
// CHECK: %[[NUMBER:.*]] = arith.subi %[[WARP]], %[[FOUR]]
// CHECK: %[[PART:.*]] = arith.divui %[[NUMBER]], %[[FOUR]]
// CHECK: gdn_warp.get %[[IN]][0 + %[[PART]]] at
// CHECK-NOT: gdn_warp.get
// CHECK: %[[COLUMN:.*]] = arith.muli %[[PART]], %[[WIDTH]]
// CHECK: gdn_tile.store %{{.*}}, %y[%{{.*}}, %{{.*}}, %{{.*}}, %[[COLUMN]]]
// CHECK: func.func @host
// CHECK: %[[CTAS:.*]] = arith.constant 1 : index
// CHECK: gdn_tile.launch @tiles_of_v grid(%{{.*}}, %{{.*}}, %[[CTAS]])
gdn_tile.program @tiles_of_v(%x: memref<1x?x4x128xbf16>) outs(%y: memref<1x?x4x128xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  %column = arith.muli %vt, %c64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %column] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x128xbf16> -> tensor<64x64xbf16>
    %minus = arith.negf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
    gdn_tile.store %minus, %y[%batch, %t, %h, %column] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"}
        : tensor<64x64xbf16> -> memref<1x?x4x128xbf16>
  }
}
func.func @host(%n: index, %t: index, %x: memref<1x?x4x128xbf16>, %y: memref<1x?x4x128xbf16>, %cu: memref<?xi32>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @tiles_of_v grid(%n, %c4, %c2) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x : memref<1x?x4x128xbf16>) outs(%y : memref<1x?x4x128xbf16>)
  return
}

// -----

// The chunks of an iteration are a loop. Of "turns" each is one warp's: (2 iteration + chunk) mod 3. A slot of "in" is for both
// chunks, one of "out" for one.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "turns", warps = 3, registers = 96, steps = ["gates"], round_robin = true>,
    <name = "load", warps = 1, registers = 96, steps = ["load"], loop_chunks = true>,
    <name = "store", warps = 4, registers = 96, steps = ["store"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["turns"]>,
    <name = "out", depth = 6, from = ["gates"], to = ["store"], slot_per_chunk = true>]>

// CHECK-LABEL: gdn_warp.kernel @turns(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(3) chunks(2) : <tensor<32xf32>, tensor<32xf32>>
// CHECK: %[[OUT:.*]] = gdn_warp.channel "out" depth(6) : <tensor<32xf32>>
// CHECK: gdn_warp.role "turns" warps(0, 3) registers(96) attributes {gdn_warp.round_robin}
// CHECK: %[[WARP:.*]] = gdn_warp.id warp
// CHECK: scf.for %[[ROUND:.*]] =
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: scf.for %[[CHUNK:.*]] = %{{.*}} to %[[TWO]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[TRIP]], %[[TWO]]
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[CHUNK]]
// CHECK: %[[TURN:.*]] = arith.remui %[[NUMBER]], %[[THREE]]
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[TURN]], %[[WARP]]
// CHECK: scf.if %[[MINE]] {
// CHECK: %[[X:.*]] = gdn_warp.get %[[IN]][0] chunk %[[CHUNK]] at %[[TRIP]] :
// CHECK: %[[Y:.*]] = arith.negf %[[X]] {gdn_tile.chunk = 0
// CHECK: gdn_warp.put %[[Y]], %[[OUT]][0] at %[[NUMBER]]
// CHECK-NOT: arith.negf
// CHECK: } {gdn_warp.chunks = 2 : i64}
// CHECK: gdn_warp.role "load" warps(3, 1) registers(96) {
// CHECK: scf.for %[[CHUNK:.*]] = %{{.*}} to %[[TWO]]
// CHECK: gdn_warp.put %{{.*}}, %[[IN]][0] chunk %[[CHUNK]] at
// CHECK: gdn_warp.role "store" warps(4, 4) registers(96) {
// CHECK: scf.for %[[ROUND:.*]] =
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[TRIP]], %[[TWO]]
// CHECK: gdn_warp.get %[[OUT]][0] at %[[FIRST]]
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[ONE]]
// CHECK: gdn_warp.get %[[OUT]][0] at %[[SECOND]]
gdn_tile.program @turns(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %x0 = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %y0 = arith.negf %x0 {gdn_tile.chunk = 0, gdn_tile.step = "gates"} : tensor<32xf32>
    gdn_tile.store %y0, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "store"}
        : tensor<32xf32> -> memref<1x?x4xf32>
    %t1 = arith.addi %t, %c32 : index
    %x1 = gdn_tile.load %x[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %y1 = arith.negf %x1 {gdn_tile.chunk = 1, gdn_tile.step = "gates"} : tensor<32xf32>
    gdn_tile.store %y1, %y[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "store"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%t: index, %x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @turns grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}

// -----

// Heads that are known when running alone are an extent of an input.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 1, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @heads(
// CHECK-DAG: %[[CTA:.*]] = gdn_warp.id cta
// CHECK-DAG: %[[H:.*]] = memref.dim %x, %c2
// CHECK-DAG: %[[CTA32:.*]] = arith.index_castui %[[CTA]] : index to i32
// CHECK-DAG: %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG: %[[QUOTIENT:.*]] = arith.divui %[[CTA32]], %[[H32]] : i32
// CHECK-DAG: %[[REST:.*]] = arith.remui %[[CTA32]], %[[H32]] : i32
// CHECK-DAG: %[[SEQUENCE:.*]] = arith.index_castui %[[QUOTIENT]] : i32 to index
// CHECK-DAG: %[[HEAD:.*]] = arith.index_castui %[[REST]] : i32 to index
// CHECK: gdn_tile.load %x[%[[SEQUENCE]], %{{.*}}, %[[HEAD]]]
gdn_tile.program @heads(%x: memref<?x32x?xf32>) outs(%y: memref<?x32x?xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %tile = gdn_tile.load %x[%batch, %begin, %h] axes [1] {gdn_tile.step = "state"} : memref<?x32x?xf32> -> tensor<32xf32>
  gdn_tile.store %tile, %y[%batch, %begin, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<?x32x?xf32>
}
func.func @host(%x: tensor<?x32x?xf32>, %y: tensor<?x32x?xf32>) -> tensor<?x32x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %n = tensor.dim %x, %c0 : tensor<?x32x?xf32>
  %h = tensor.dim %x, %c2 : tensor<?x32x?xf32>
  %r = gdn_tile.launch @heads grid(%n, %h, %c1) tokens(%c32) ins(%x : tensor<?x32x?xf32>)
      outs(%y : tensor<?x32x?xf32>) -> tensor<?x32x?xf32>
  return %r : tensor<?x32x?xf32>
}

// -----

// A persistent CTA takes work items in turn, and iterations are numbered on from one to the next. What is late may be of
// a work item before: its sequence, head and first token are remembered for two iterations.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 2, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @turns(
// CHECK-SAME: persistent
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[DELAY:.*]] = arith.constant 2 : i32
// CHECK: %[[BATCHES:.*]] = memref.dim %x, %{{.*}}
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[BATCHES]], %{{.*}} : index
// CHECK: %[[ITEMS:.*]] = arith.index_castui %[[PRODUCT]]
// CHECK: gdn_warp.role "move"
// CHECK: %[[ID:.*]] = gdn_warp.id cta
// CHECK: %[[CTA:.*]] = arith.index_castui %[[ID]]
// CHECK: %[[COUNT:.*]] = gdn_warp.id cta_count
// CHECK: %[[CTAS:.*]] = arith.index_castui %[[COUNT]]
// CHECK: %[[LEFT:.*]]:11 = scf.for %[[ITEM:.*]] = %[[CTA]] to %[[ITEMS]] step %[[CTAS]] iter_args(%[[TRIPS:[a-z0-9]+]] = %[[ZERO]],
// CHECK: arith.remui %[[ITEM]]
// CHECK: %[[END:.*]] = arith.addi %[[TRIPS]],
// Sequence, head, V tile, batch and first token of an iteration.
// CHECK: %[[LATER:.*]]:10 = scf.for %[[TRIP:.*]] = %[[TRIPS]] to %[[END]] step %{{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %[[HEAD:[a-z0-9]+]] = %{{[a-z0-9]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %[[BATCH:[a-z0-9]+]] = %{{[a-z0-9]+}}, %[[TOKEN:[a-z0-9]+]] =
// CHECK: gdn_tile.load %x
// CHECK: %[[STARTED:.*]] = arith.cmpi uge, %[[TRIP]], %[[DELAY]]
// CHECK: scf.if %[[STARTED]] {
// CHECK: gdn_tile.store %{{.*}}, %y[%[[BATCH]], %[[TOKEN]], %[[HEAD]],
// CHECK: scf.yield %[[END]], %[[LATER]]#0,
// The stores of the last two iterations.
// CHECK: %[[LAST:.*]] = arith.addi %[[LEFT]]#0, %[[DELAY]]
// CHECK: scf.for %{{.*}} = %[[LEFT]]#0 to %[[LAST]]
// CHECK-NOT: gdn_tile.load
// CHECK: gdn_tile.store
// CHECK: gdn_warp.role "state"
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ITEMS]] step %{{.*}} iter_args(%[[TRIPS:.*]] = %[[ZERO]]) -> (i32)
// CHECK: scf.for %{{.*}} = %[[TRIPS]] to
gdn_tile.program @turns(%x: memref<?x?x4x64xbf16>) outs(%y: memref<?x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<?x?x4x64xbf16> -> tensor<64x64xbf16>
    %negated = arith.negf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16>
    gdn_tile.store %negated, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<?x?x4x64xbf16>
  }
}
func.func @host(%t: index, %x: tensor<?x?x4x64xbf16>, %y: tensor<?x?x4x64xbf16>) -> tensor<?x?x4x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4x64xbf16>
  %r = gdn_tile.launch @turns grid(%n, %c4, %c1) tokens(%t) ins(%x : tensor<?x?x4x64xbf16>)
      outs(%y : tensor<?x?x4x64xbf16>) -> tensor<?x?x4x64xbf16>
  return %r : tensor<?x?x4x64xbf16>
}

// -----

// Two CTAs, a cluster, share two roles: iteration t is of CTA t mod 2, which lets the slots of the other one's iterations pass.
// What stays between shared roles ("m") has slots by the CTA's own iterations. What "take" needs of every iteration goes to both
// CTAs: copied by the last role that fills it, when the last chunk of a slot is there, by one of its warps.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "take", warps = 4, registers = 160, steps = ["state"]>,
    <name = "make", warps = 4, registers = 96, steps = ["scores", "norms"], loop_chunks = true, alternate_ctas = true>,
    <name = "turns", warps = 2, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>,
    <name = "load", warps = 2, registers = 96, steps = ["load"], loop_chunks = true>], channels = [
    <name = "in", depth = 4, from = ["load"], to = ["make", "take"], slot_per_chunk = true>,
    <name = "m", depth = 2, from = ["scores"], to = ["turns"]>,
    <name = "iteration", depth = 4, from = ["scores", "solve"], to = ["take"]>,
    <name = "chunk", depth = 8, from = ["norms"], to = ["take"], slot_per_chunk = true>]>

// CHECK-LABEL: gdn_warp.kernel @cluster(
// CHECK-SAME: threads(384) shared(0) cluster(2)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(4) : <
// CHECK: %[[M:.*]] = gdn_warp.channel "m" depth(2) chunks(2) : <
// CHECK: %[[BY_ITERATION:.*]] = gdn_warp.channel "iteration" depth(4) chunks(2) turn(1) : <
// CHECK: %[[BY_CHUNK:.*]] = gdn_warp.channel "chunk" depth(8) turn(2) : <

// What each CTA does alone takes all iterations.
// CHECK: gdn_warp.role "take" warps(0, 4) registers(160) {
// CHECK-NOT: gdn_warp.id
// CHECK: scf.for %[[ROUND:.*]] =
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK-NOT: gdn_warp.id
// CHECK: gdn_warp.get %[[BY_ITERATION]][{{[0-3]}}] at %[[TRIP]] :
// CHECK: gdn_tile.store
// CHECK: gdn_tile.store

// CHECK: gdn_warp.role "make" warps(4, 4) registers(96) attributes {gdn_warp.alternate_ctas} {
// CHECK: scf.for %[[ROUND:.*]] =
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: %[[OWN:.*]] = arith.divui %[[TRIP]], %[[TWO]]
// CHECK: scf.for %[[CHUNK:.*]] = %[[ZERO]] to %[[TWO]]
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK: %[[OWNER:.*]] = arith.remui %[[TRIP]], %[[TWO]]
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]], %[[RANK]]
// CHECK: scf.if %[[MINE]] {
// CHECK: %[[FIRST:.*]] = arith.muli %[[TRIP]], %[[TWO]]
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[CHUNK]]
// CHECK: gdn_warp.get %[[IN]][0] at %[[NUMBER]] :
// CHECK: gdn_warp.put %{{.*}}, %[[M]][0] chunk %[[CHUNK]] at %[[OWN]] :
// CHECK: gdn_warp.put %{{.*}}, %[[BY_ITERATION]][0] chunk %[[CHUNK]] at %[[TRIP]] :
// CHECK: gdn_warp.put %{{.*}}, %[[BY_CHUNK]][0] at %[[NUMBER]] :
// CHECK: %[[WARP:.*]] = gdn_warp.id warp
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[WARP]], %[[FOUR]]
// CHECK-NEXT: scf.if %[[IS_FIRST]] {
// CHECK-NEXT: gdn_warp.copy_to_cluster %[[BY_CHUNK]] at %[[NUMBER]] :
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK: %[[PASSED:.*]] = arith.addi %{{.*}}, %[[CHUNK]]
// CHECK-NEXT: gdn_warp.release_unused %[[IN]] at %[[PASSED]] :
// CHECK-NEXT: }
// CHECK-NEXT: } {gdn_warp.chunks = 2 : i64}

// CHECK: gdn_warp.role "turns" warps(8, 2) registers(96) attributes {gdn_warp.alternate_ctas, gdn_warp.round_robin} {
// CHECK: scf.for %[[ROUND:.*]] =
// CHECK: %[[TRIP:.*]] = arith.index_castui %[[ROUND]]
// CHECK: %[[OWN:.*]] = arith.divui %[[TRIP]], %[[TWO]]
// CHECK: scf.for %[[CHUNK:.*]] = %[[ZERO]] to %[[TWO]]
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK: %[[OWNER:.*]] = arith.remui %[[TRIP]], %[[TWO]]
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]], %[[RANK]]
// CHECK: scf.if %[[MINE]] {
// CHECK: gdn_warp.get %[[M]][0] chunk %[[CHUNK]] at %[[OWN]] :
// CHECK: gdn_warp.put %{{.*}}, %[[BY_ITERATION]][1] chunk %[[CHUNK]] at %[[TRIP]] :
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[CHUNK]], %[[ONE]]
// CHECK-NEXT: scf.if %[[IS_LAST]] {
// CHECK-NEXT: gdn_warp.copy_to_cluster %[[BY_ITERATION]] at %[[TRIP]] :
// CHECK-NEXT: }
// CHECK-NOT: gdn_warp.release_unused
// CHECK: gdn_warp.role "load"
// CHECK-NOT: gdn_warp.{{release_unused|copy_to_cluster|id}}
// CHECK: gdn_tile.launch @cluster
gdn_tile.program @cluster(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %x0 = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %m0 = arith.negf %x0 {gdn_tile.chunk = 0, gdn_tile.step = "scores"} : tensor<32xf32>
    %d0 = arith.addf %x0, %x0 {gdn_tile.chunk = 0, gdn_tile.step = "scores"} : tensor<32xf32>
    %s0 = math.exp %m0 {gdn_tile.chunk = 0, gdn_tile.step = "solve"} : tensor<32xf32>
    %n0 = arith.mulf %x0, %x0 {gdn_tile.chunk = 0, gdn_tile.step = "norms"} : tensor<32xf32>
    %a0 = arith.addf %s0, %x0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %b0 = arith.addf %d0, %n0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %y0 = arith.addf %a0, %b0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %y0, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
    %t1 = arith.addi %t, %c32 : index
    %x1 = gdn_tile.load %x[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %m1 = arith.negf %x1 {gdn_tile.chunk = 1, gdn_tile.step = "scores"} : tensor<32xf32>
    %d1 = arith.addf %x1, %x1 {gdn_tile.chunk = 1, gdn_tile.step = "scores"} : tensor<32xf32>
    %s1 = math.exp %m1 {gdn_tile.chunk = 1, gdn_tile.step = "solve"} : tensor<32xf32>
    %n1 = arith.mulf %x1, %x1 {gdn_tile.chunk = 1, gdn_tile.step = "norms"} : tensor<32xf32>
    %a1 = arith.addf %s1, %x1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    %b1 = arith.addf %d1, %n1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    %y1 = arith.addf %a1, %b1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %y1, %y[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%t: index, %x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @cluster grid(%c1, %c4, %c2) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}

// -----

// No channel goes to both takers: each has a copy of the value by its own. The chunks of an iteration take turns where the
// schedule says so.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "gates", warps = 1, registers = 96, steps = ["gates"], interleave_chunks = true>,
    <name = "scores", warps = 1, registers = 96, steps = ["scores"]>,
    <name = "state", warps = 2, registers = 96, steps = ["state"]>], channels = [
    <name = "early", depth = 2, from = ["gates"], to = ["scores"]>,
    <name = "late", depth = 4, from = ["gates"], to = ["state"]>]>
// CHECK-LABEL: gdn_warp.kernel @both(
// CHECK: %[[EARLY:.*]] = gdn_warp.channel "early" depth(2) chunks(2) : <tensor<32xf32>, tensor<32xf32>>
// CHECK: %[[LATE:.*]] = gdn_warp.channel "late" depth(4) chunks(2) : <tensor<32xf32>, tensor<32xf32>>
// CHECK: gdn_warp.role "gates"
// CHECK: gdn_tile.load
// CHECK: gdn_tile.load
// CHECK: %[[A:.*]] = arith.negf
// CHECK: gdn_warp.put %[[A]], %[[EARLY]][0]
// CHECK: gdn_warp.put %[[A]], %[[LATE]][0]
// CHECK: %[[B:.*]] = arith.negf
// CHECK: gdn_warp.put %[[B]], %[[EARLY]][1]
// CHECK: gdn_warp.put %[[B]], %[[LATE]][1]
// CHECK: gdn_warp.role "scores"
// CHECK: gdn_warp.get %[[EARLY]][0]
// CHECK: gdn_warp.get %[[EARLY]][1]
// CHECK: gdn_warp.role "state"
// CHECK: gdn_warp.get %[[LATE]][0]
// CHECK: gdn_warp.get %[[LATE]][1]
gdn_tile.program @both(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>, %z: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %next = arith.addi %t, %c32 : index
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "gates", gdn_tile.chunk = 0} : memref<1x?x4xf32> -> tensor<32xf32>
    %ma = arith.negf %a {gdn_tile.step = "gates", gdn_tile.chunk = 0} : tensor<32xf32>
    gdn_tile.store %ma, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "scores", gdn_tile.chunk = 0} : tensor<32xf32> -> memref<1x?x4xf32>
    gdn_tile.store %ma, %z[%batch, %t, %h] axes [1] {gdn_tile.step = "state", gdn_tile.chunk = 0} : tensor<32xf32> -> memref<1x?x4xf32>
    %b = gdn_tile.load %x[%batch, %next, %h] axes [1] {gdn_tile.step = "gates", gdn_tile.chunk = 1} : memref<1x?x4xf32> -> tensor<32xf32>
    %mb = arith.negf %b {gdn_tile.step = "gates", gdn_tile.chunk = 1} : tensor<32xf32>
    gdn_tile.store %mb, %y[%batch, %next, %h] axes [1] {gdn_tile.step = "scores", gdn_tile.chunk = 1} : tensor<32xf32> -> memref<1x?x4xf32>
    gdn_tile.store %mb, %z[%batch, %next, %h] axes [1] {gdn_tile.step = "state", gdn_tile.chunk = 1} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%t: index, %x: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @both grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%x, %x : memref<1x?x4xf32>, memref<1x?x4xf32>)
  return
}

// -----

// A number of an array that says where a loop begins is loaded by each role. Of two launches side by side the second one
// waits for the first at its end, in one CTA.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>,
    <name = "out", depth = 1, from = ["state"], to = ["move"]>]>

// CHECK-LABEL: gdn_warp.kernel @from(
// CHECK: gdn_warp.launch_dependents
// CHECK-NOT: gdn_warp.grid_dependency_wait
// CHECK: gdn_warp.role "move"
// CHECK: %[[FROM:.*]] = memref.load %starts[%{{.*}}, %{{.*}}] : memref<2x4xi32>
// CHECK: arith.index_cast %[[FROM]]
// CHECK: gdn_warp.role "state"
// CHECK: %[[FROM:.*]] = memref.load %starts[%{{.*}}, %{{.*}}] : memref<2x4xi32>
// CHECK: arith.index_cast %[[FROM]]
// CHECK: }
// CHECK: gdn_warp.grid_dependency_wait last_cta
gdn_tile.program @from(%x: memref<1x?x4x64xbf16>, %starts: memref<2x4xi32>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %number = memref.load %starts[%n, %h] : memref<2x4xi32>
  %start = arith.index_cast %number : i32 to index
  scf.for %t = %start to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %wide = arith.extf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %twice = arith.addf %wide, %wide {gdn_tile.step = "state"} : tensor<64x64xf32>
    %rounded = arith.truncf %twice {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    gdn_tile.store %rounded, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %starts: tensor<2x4xi32>, %cu: tensor<3xi32>) -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @from grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x, %starts : tensor<1x?x4x64xbf16>, tensor<2x4xi32>) outs(%y : tensor<1x?x4x64xbf16>) {gdn_tile.beside}
      -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}

// -----

// In clusters it waits first if both do not fit, which is so if it has more CTAs than half of the multiprocessors.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, cluster = 2, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @pairs(
// CHECK-DAG: %[[HALF:.*]] = arith.constant 66 : index
// CHECK: gdn_warp.launch_dependents
// CHECK: %[[CTAS:.*]] = gdn_warp.id cta_count
// CHECK: %[[LARGE:.*]] = arith.cmpi ugt, %[[CTAS]], %[[HALF]] : index
// CHECK: scf.if %[[LARGE]] {
// CHECK-NEXT: gdn_warp.grid_dependency_wait{{$}}
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.grid_dependency_wait last_cta
gdn_tile.program @pairs(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %cu: tensor<3xi32>) -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @pairs grid(%c2, %c4, %c2) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x : tensor<1x?x4x64xbf16>) outs(%y : tensor<1x?x4x64xbf16>) {gdn_tile.beside} -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}

// -----

// The first of the two begins when what is before it has ended, so that multiprocessors are free in pairs. Where a kernel
// cuts the sequences, it begins earlier.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, cluster = 2, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @first(
// CHECK-NOT: gdn_warp.grid_dependency_wait
// CHECK: gdn_warp.launch_dependents
// CHECK-NOT: gdn_warp.grid_dependency_wait
// CHECK-LABEL: gdn_warp.kernel @of_segments(
// CHECK-NOT: gdn_warp.launch_dependents
// CHECK: gdn_warp.grid_dependency_wait then_launch
gdn_tile.program @first(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
gdn_tile.program @of_segments(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
#cut = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["store"]>], channels = []>
gdn_tile.program @cut(%x: memref<1x?x4x64xbf16>) outs(%bounds: memref<3xi32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #cut} {
  %c0 = arith.constant 0 : i32
  %one = tensor.splat %c0 {gdn_tile.step = "store"} : tensor<1xi32>
  gdn_tile.store %one, %bounds[%n] axes [0] {gdn_tile.step = "store"} : tensor<1xi32> -> memref<3xi32>
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %cu: tensor<3xi32>) -> (tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %b = tensor.empty() : tensor<3xi32>
  %bounds = gdn_tile.launch @cut grid(%c1, %c1, %c1) tokens(%t)
      ins(%x : tensor<1x?x4x64xbf16>) outs(%b : tensor<3xi32>) -> tensor<3xi32>
  %r = gdn_tile.launch @first grid(%c2, %c4, %c2) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x : tensor<1x?x4x64xbf16>) outs(%y : tensor<1x?x4x64xbf16>) {gdn_tile.first_of_two} -> tensor<1x?x4x64xbf16>
  %s = gdn_tile.launch @of_segments grid(%c2, %c4, %c2) tokens(%t) cu_seqlens(%bounds : tensor<3xi32>)
      ins(%x : tensor<1x?x4x64xbf16>) outs(%y : tensor<1x?x4x64xbf16>) {gdn_tile.first_of_two} -> tensor<1x?x4x64xbf16>
  return %r, %s : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>
}

// -----

// What a loop carries goes around the loop over the chunks of an iteration, too.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "load", warps = 4, registers = 96, steps = ["load"], loop_chunks = true>,
    <name = "state", warps = 4, registers = 96, steps = ["state"], loop_chunks = true>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @carried(
// CHECK: gdn_warp.role "state"
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}}) -> (tensor<32xf32>)
// CHECK: %[[NEXT:.*]] = scf.for %[[CHUNK:.*]] = {{.*}} iter_args(%[[NOW:.*]] = %[[STATE]]) -> (tensor<32xf32>) {
// CHECK: %[[X:.*]] = gdn_warp.get %{{.*}}[0] chunk %[[CHUNK]]
// CHECK: %[[SUM:.*]] = arith.addf %[[NOW]], %[[X]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK-NEXT: } {gdn_warp.chunks = 2 : i64}
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: gdn_tile.store %[[LAST]]
gdn_tile.program @carried(%x: memref<1x?x4xf32>) outs(%y: memref<1x32x4xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %zero) -> (tensor<32xf32>) {
    %x0 = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %s0 = arith.addf %state, %x0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %t1 = arith.addi %t, %c32 : index
    %x1 = gdn_tile.load %x[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %s1 = arith.addf %s0, %x1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    scf.yield %s1 : tensor<32xf32>
  }
  gdn_tile.store %last, %y[%n, %c0, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x32x4xf32>
}
func.func @host(%t: index, %x: memref<1x?x4xf32>, %y: memref<1x32x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @carried grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x32x4xf32>)
  return
}

// -----

// What only the first chunk of an iteration does stands in front of the loop over chunks, where it needs nothing of a chunk. What
// does stays, under its condition.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 96, steps = ["load", "state"], loop_chunks = true>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @leading(
// CHECK: gdn_warp.role "state"
// CHECK: scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}}) -> (tensor<32xf32>)
// CHECK-NOT: scf.if
// CHECK: gdn_tile.store %[[STATE]], %z[
// CHECK: scf.for %[[CHUNK:.*]] = {{.*}} iter_args(%[[NOW:.*]] = %[[STATE]]) -> (tensor<32xf32>) {
// CHECK-NOT: gdn_tile.store %[[NOW]]
// CHECK: %[[SUM:.*]] = arith.addf %[[NOW]],
// CHECK: %[[FIRST:.*]] = arith.cmpi eq,
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: gdn_tile.store %[[SUM]], %y[
// CHECK-NEXT: } {gdn_tile.chunk = 0 : i64, gdn_tile.every = 2 : i64}
// CHECK-NOT: gdn_tile.store
// CHECK: } {gdn_warp.chunks = 2 : i64}
gdn_tile.program @leading(%x: memref<1x?x4xf32>) outs(%y: memref<?x32xf32>, %z: memref<?x32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %zero) -> (tensor<32xf32>) {
    %since = arith.subi %t, %begin : index
    %rest = arith.remui %since, %c64 : index
    %first = arith.cmpi eq, %rest, %c0 : index
    scf.if %first {
      %place = arith.divui %since, %c64 : index
      gdn_tile.store %state, %z[%place, %c0] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.chunk = 0, gdn_tile.every = 2}
    %x0 = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %s0 = arith.addf %state, %x0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    scf.if %first {
      gdn_tile.store %s0, %y[%since, %c0] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.chunk = 0, gdn_tile.every = 2}
    %t1 = arith.addi %t, %c32 : index
    %since1 = arith.subi %t1, %begin : index
    %rest1 = arith.remui %since1, %c64 : index
    %first1 = arith.cmpi eq, %rest1, %c0 : index
    scf.if %first1 {
      %place = arith.divui %since1, %c64 : index
      gdn_tile.store %s0, %z[%place, %c0] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.chunk = 1, gdn_tile.every = 2}
    %x1 = gdn_tile.load %x[%batch, %t1, %h] axes [1] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %s1 = arith.addf %s0, %x1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    scf.if %first1 {
      gdn_tile.store %s1, %y[%since1, %c0] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<?x32xf32>
    } {gdn_tile.chunk = 1, gdn_tile.every = 2}
    scf.yield %s1 : tensor<32xf32>
  }
}
func.func @host(%t: index, %x: memref<1x?x4xf32>, %y: memref<?x32xf32>, %z: memref<?x32xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @leading grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y, %z : memref<?x32xf32>, memref<?x32xf32>)
  return
}

// -----

// What several work items of a sequence may clear, one clears: tiles that take the chunks in turn, and heads that a loop
// goes over, whose part of an array without channels is all of it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @chunks_in_turn(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: gdn_warp.sequence_by_rank
// CHECK: scf.if
// CHECK-NEXT: %[[FIRSTTILE:.*]] = arith.cmpi eq, %{{.*}}, %[[ZERO]]
// CHECK-NEXT: %[[FIRSTHEAD:.*]] = arith.cmpi eq, %{{.*}}, %[[ZERO]]
// CHECK-NEXT: %[[ISONE:.*]] = arith.andi %[[FIRSTTILE]], %[[FIRSTHEAD]]
// CHECK-NEXT: scf.if %[[ISONE]]
// CHECK-NEXT: scf.for %[[H:.*]] = %[[ZERO]] to %[[FOUR]]
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %[[ZERO]], %[[H]]] until({{.*}}, dim = 1) columns 1
// CHECK: scf.for %[[H:.*]] = %[[ZERO]] to %[[FOUR]]
// CHECK-NEXT: gdn_warp.array_clear %y[%[[ZERO]], %{{.*}}, %[[H]]] until({{.*}}, dim = 1) columns 1
// CHECK-NOT: gdn_warp.array_clear
gdn_tile.program @chunks_in_turn(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %own = arith.muli %v, %c32 : index
  %first = arith.addi %begin, %own : index
  %left = arith.subi %end, %first : index
  %chunks = arith.ceildivui %left, %c64 : index
  %upper = arith.muli %chunks, %c2 : index
  scf.for %number = %c0 to %upper step %c1 {
    %chunk = arith.divui %number, %c2 : index
    %member = arith.remui %number, %c2 : index
    %since = arith.muli %chunk, %c64 : index
    %t = arith.addi %first, %since : index
    %a = gdn_tile.load %x[%batch, %t, %member] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %member] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @chunks_in_turn grid(%c2, %c2, %c2) tokens(%t) cu_seqlens(%cu : memref<?xi32>) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}

// -----

// A CTA without work writes the zeros that it owes, and ends; the last one waits for the kernel before this one all the
// same. Work items of the second turn wait for another program, and come behind all of the first.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @two_turns(
// CHECK: gdn_warp.launch_dependents
// CHECK-NOT: gdn_warp.grid_dependency_wait
// CHECK: %[[BY_HEAD:.*]] = arith.divui %{{.*}}, %c4_i32 : i32
// CHECK: arith.remui %[[BY_HEAD]], %c2_i32 : i32
// CHECK: %[[BY_SEQUENCE:.*]] = arith.divui %[[BY_HEAD]], %c2_i32 : i32
// CHECK: %[[TURN:.*]] = arith.index_castui %[[BY_SEQUENCE]] : i32 to index
// CHECK: %[[NUMBER:.*]] = memref.load %starts[%[[N:.*]], %[[H:.*]]] : memref<2x4xi32>
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: gdn_warp.array_clear %z[%[[N]], %[[H]], %{{.*}}, %{{.*}}] until(%{{.*}}, dim = 2) columns 64
// CHECK-NEXT: gdn_warp.grid_dependency_wait last_cta
// CHECK-NEXT: gdn_warp.count_down
// CHECK-NEXT: gdn_warp.exit
// CHECK: %[[LATE:.*]] = arith.cmpi ne, %[[TURN]], %c0
// CHECK: scf.if %[[LATE]] {
// CHECK-NEXT: gdn_warp.await %count : memref<?xi32>
// CHECK: gdn_warp.role "move"
// CHECK: gdn_warp.count_down %count : memref<?xi32>
// CHECK-NEXT: gdn_warp.grid_dependency_wait last_cta
gdn_tile.program @two_turns(%x: memref<1x?x4x64xbf16>, %starts: memref<2x4xi32>, %count: memref<?xi32>)
    outs(%y: memref<1x?x4x64xbf16>, %z: memref<2x4x64x64xf32>)
    work_item(%n, %h, %vt, %turn) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %number = memref.load %starts[%n, %h] : memref<2x4xi32>
  %start = arith.index_cast %number : i32 to index
  %empty = arith.cmpi uge, %start, %end : index
  gdn_tile.leave %empty clears(%z : memref<2x4x64x64xf32>)
  %late = arith.cmpi ne, %turn, %c0 : index
  gdn_tile.await %count if %late : memref<?xi32>
  scf.for %t = %start to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
  gdn_tile.count_down %count : memref<?xi32>
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %starts: tensor<2x4xi32>, %cu: tensor<3xi32>, %count: tensor<?xi32>)
    -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %z = tensor.empty() : tensor<2x4x64x64xf32>
  %r:2 = gdn_tile.launch @two_turns grid(%c2, %c4, %c1, %c2) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x, %starts, %count : tensor<1x?x4x64xbf16>, tensor<2x4xi32>, tensor<?xi32>)
      outs(%y, %z : tensor<1x?x4x64xbf16>, tensor<2x4x64x64xf32>) {gdn_tile.beside, gdn_tile.in_turns}
      -> tensor<1x?x4x64xbf16>, tensor<2x4x64x64xf32>
  return %r#0 : tensor<1x?x4x64xbf16>
}

// -----

// A CTA that does not need the kernel before this one to know that it has nothing to do ends before it waits, and is counted.
// The last one waits all the same. What a loop makes of numbers is a number.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @early(
// CHECK: gdn_warp.launch_dependents
// CHECK: %[[NONE:.*]] = scf.for
// CHECK-NEXT: memref.load %starts[
// CHECK: scf.if %[[NONE]] {
// CHECK-NEXT: gdn_warp.grid_dependency_wait last_cta
// CHECK-NEXT: gdn_warp.count_down %count
// CHECK-NEXT: gdn_warp.exit
// CHECK: gdn_warp.grid_dependency_wait{{$}}
// CHECK: gdn_warp.role "move"
gdn_tile.program @early(%x: memref<1x?x4x64xbf16>, %starts: memref<2x4xi32>, %count: memref<?xi32>)
    outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %none = scf.for %s = %c0 to %c2 step %c1 iter_args(%so_far = %true) -> (i1) {
    %number = memref.load %starts[%s, %h] : memref<2x4xi32>
    %start = arith.index_cast %number : i32 to index
    %empty = arith.cmpi uge, %start, %end : index
    %all = arith.andi %so_far, %empty : i1
    scf.yield %all : i1
  }
  gdn_tile.leave %none {early}
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
  gdn_tile.count_down %count : memref<?xi32>
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %starts: tensor<2x4xi32>, %cu: tensor<3xi32>, %count: tensor<?xi32>)
    -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @early grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x, %starts, %count : tensor<1x?x4x64xbf16>, tensor<2x4xi32>, tensor<?xi32>) outs(%y : tensor<1x?x4x64xbf16>)
      -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}

// -----

// The same where a work item may hold back the kernel that runs beside it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @held(
// CHECK: %[[FAR:.*]] = arith.cmpi ugt
// CHECK-NEXT: scf.if %[[FAR]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: gdn_warp.launch_dependents
// CHECK-NEXT: }
// CHECK: gdn_warp.grid_dependency_wait last_cta
// CHECK-NEXT: gdn_warp.count_down %count
// CHECK-NEXT: gdn_warp.exit
// CHECK: gdn_warp.grid_dependency_wait then_launch
// CHECK: gdn_warp.role "move"
gdn_tile.program @held(%x: memref<1x?x4x64xbf16>, %starts: memref<2x4xi32>, %count: memref<?xi32>)
    outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %none = scf.for %s = %c0 to %c2 step %c1 iter_args(%so_far = %true) -> (i1) {
    %number = memref.load %starts[%s, %h] : memref<2x4xi32>
    %start = arith.index_cast %number : i32 to index
    %empty = arith.cmpi uge, %start, %end : index
    %all = arith.andi %so_far, %empty : i1
    scf.yield %all : i1
  }
  gdn_tile.leave %none {early}
  %is_far = arith.cmpi ugt, %end, %c64 : index
  gdn_tile.hold_back if %is_far
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
  gdn_tile.count_down %count : memref<?xi32>
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %starts: tensor<2x4xi32>, %cu: tensor<3xi32>, %count: tensor<?xi32>)
    -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @held grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x, %starts, %count : tensor<1x?x4x64xbf16>, tensor<2x4xi32>, tensor<?xi32>) outs(%y : tensor<1x?x4x64xbf16>)
      -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}

// -----

// The same where the kernel behind it begins when the ones in front are done.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"]>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @late(
// CHECK-NOT: gdn_warp.launch_dependents
// CHECK: gdn_warp.exit
// CHECK: gdn_warp.grid_dependency_wait then_launch
// CHECK: gdn_warp.role "move"
gdn_tile.program @late(%x: memref<1x?x4x64xbf16>, %starts: memref<2x4xi32>, %count: memref<?xi32>)
    outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %none:2 = scf.for %s = %c0 to %c2 step %c1 iter_args(%last = %c0, %so_far = %true) -> (index, i1) {
    %number = memref.load %starts[%s, %h] : memref<2x4xi32>
    %start = arith.index_cast %number : i32 to index
    %empty = arith.cmpi uge, %start, %end : index
    %all = arith.andi %so_far, %empty : i1
    scf.yield %start, %all : index, i1
  }
  gdn_tile.leave %none#1 {early}
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    gdn_tile.store %tile, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
  gdn_tile.count_down %count : memref<?xi32>
}
func.func @call(%x: tensor<1x?x4x64xbf16>, %starts: tensor<2x4xi32>, %cu: tensor<3xi32>, %count: tensor<?xi32>)
    -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @late grid(%c2, %c4, %c1) tokens(%t) cu_seqlens(%cu : tensor<3xi32>)
      ins(%x, %starts, %count : tensor<1x?x4x64xbf16>, tensor<2x4xi32>, tensor<?xi32>) outs(%y : tensor<1x?x4x64xbf16>)
      {gdn_tile.first_of_two} -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}

// -----

// A tile that shared roles alone take ("k") is loaded in the iterations of the CTA, into slots by these. One that another role takes,
// too ("v"), or that the role which loads it takes itself ("w"), is loaded in all.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "take", warps = 4, registers = 160, steps = ["state"]>,
    <name = "make", warps = 4, registers = 96, steps = ["scores"], loop_chunks = true, alternate_ctas = true>,
    <name = "move", warps = 1, registers = 96, steps = ["load", "gates", "norms"]>,
    <name = "rest", warps = 3, registers = 96, steps = []>], channels = [
    <name = "k", depth = 2, from = ["load"], to = ["make"], slot_per_chunk = true>,
    <name = "v", depth = 4, from = ["load"], to = ["take"], slot_per_chunk = true>,
    <name = "w", depth = 4, from = ["gates"], to = ["make"], slot_per_chunk = true>,
    <name = "n", depth = 4, from = ["norms"], to = ["make"], slot_per_chunk = true>,
    <name = "made", depth = 4, from = ["scores"], to = ["take"], slot_per_chunk = true>]>

// CHECK-LABEL: gdn_warp.kernel @loads(
// CHECK: %[[K:.*]] = gdn_warp.channel "k" depth(2) :
// CHECK: %[[V:.*]] = gdn_warp.channel "v" depth(4) :
// CHECK: %[[W:.*]] = gdn_warp.channel "w" depth(4) :
// CHECK: gdn_warp.role "make"
// CHECK: %[[OWN:.*]] = arith.divui
// CHECK: scf.if
// CHECK: gdn_warp.get %[[K]][0]
// CHECK: } else {
// CHECK-NOT: release_unused %[[K]]
// CHECK: gdn_warp.release_unused %[[W]]
// CHECK: gdn_warp.role "move"
// CHECK: %[[RANK:.*]] = gdn_warp.id cluster_rank
// CHECK: %[[OWNER:.*]] = arith.remui
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]], %[[RANK]]
// CHECK: scf.if %[[MINE]] {
// CHECK-COUNT-2: gdn_warp.put %{{.*}}, %[[K]][0]
// CHECK: }
// CHECK-NOT: scf.if
// CHECK: gdn_warp.put %{{.*}}, %[[V]][0]
// CHECK-NOT: scf.if
// CHECK: gdn_warp.put %{{.*}}, %[[W]][0]
// CHECK: gdn_tile.launch @loads
gdn_tile.program @loads(%k: memref<1x?x4x64xbf16>, %v: memref<1x?x4x64xbf16>, %w: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %k0 = gdn_tile.load %k[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %v0 = gdn_tile.load %v[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %w0 = gdn_tile.load %w[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "gates"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %n0 = arith.negf %w0 {gdn_tile.chunk = 0, gdn_tile.step = "norms"} : tensor<32x64xbf16>
    %s0 = arith.addf %k0, %w0 {gdn_tile.chunk = 0, gdn_tile.step = "scores"} : tensor<32x64xbf16>
    %p0 = arith.addf %s0, %n0 {gdn_tile.chunk = 0, gdn_tile.step = "scores"} : tensor<32x64xbf16>
    %a0 = arith.addf %v0, %p0 {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32x64xbf16>
    gdn_tile.store %a0, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : tensor<32x64xbf16> -> memref<1x?x4x64xbf16>
    %t1 = arith.addi %t, %c32 : index
    %k1 = gdn_tile.load %k[%batch, %t1, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %v1 = gdn_tile.load %v[%batch, %t1, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %w1 = gdn_tile.load %w[%batch, %t1, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "gates"}
        : memref<1x?x4x64xbf16> -> tensor<32x64xbf16>
    %n1 = arith.negf %w1 {gdn_tile.chunk = 1, gdn_tile.step = "norms"} : tensor<32x64xbf16>
    %s1 = arith.addf %k1, %w1 {gdn_tile.chunk = 1, gdn_tile.step = "scores"} : tensor<32x64xbf16>
    %p1 = arith.addf %s1, %n1 {gdn_tile.chunk = 1, gdn_tile.step = "scores"} : tensor<32x64xbf16>
    %a1 = arith.addf %v1, %p1 {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32x64xbf16>
    gdn_tile.store %a1, %y[%batch, %t1, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : tensor<32x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @call(%x: tensor<1x?x4x64xbf16>) -> tensor<1x?x4x64xbf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4x64xbf16>
  %y = tensor.empty(%t) : tensor<1x?x4x64xbf16>
  %r = gdn_tile.launch @loads grid(%c1, %c4, %c2) tokens(%t) ins(%x, %x, %x : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>)
      outs(%y : tensor<1x?x4x64xbf16>) -> tensor<1x?x4x64xbf16>
  return %r : tensor<1x?x4x64xbf16>
}
