// RUN: gdn-opt %s --gdn-warp-choose-schedule | FileCheck %s --check-prefixes=CHECK,AUTO
// RUN: gdn-opt %s --gdn-warp-choose-schedule=sequences=64 | FileCheck %s --check-prefixes=CHECK,MANY
// RUN: gdn-opt %s --gdn-warp-choose-schedule=schedule=cta_per_head | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: gdn-opt %s --gdn-warp-choose-schedule=schedule=cta_per_v_tile | FileCheck %s --check-prefixes=CHECK,SPLIT
// RUN: gdn-opt %s --gdn-warp-choose-schedule="sequences=2 tokens=32768" | FileCheck %s --check-prefixes=CHECK,GUESS
// RUN: gdn-opt %s --gdn-warp-choose-schedule="sequences=2 tokens=32768 longest=16384" | FileCheck %s --check-prefixes=CHECK,EQUAL
// RUN: gdn-opt %s --gdn-warp-choose-schedule="sequences=4 tokens=32768 longest=30000" | FileCheck %s --check-prefixes=CHECK,LONG
// RUN: not gdn-opt %s --gdn-warp-choose-schedule=schedule=half 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not gdn-opt %s --gdn-warp-choose-schedule=sequences=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not gdn-opt %s --gdn-warp-choose-schedule=tokens=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not gdn-opt %s --gdn-warp-choose-schedule=longest=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NEGATIVE: error: expected {{sequences|tokens|longest}} of at least 0, got -1
// WRONG: error: expected schedule auto, or one of: cta_per_head, cta_per_v_tile, token, fused.cta_per_head, {{.*}}; got half

// Two work items of two V tiles: too few for the chip, so a V tile has a CTA. The warp that makes the gates stands between the
// scores and those that solve.
// CHECK-LABEL: gdn_tile.program @few(
// AUTO-SAME: chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "scores", warps = 4, registers = 120, steps = ["norms", "scores"], loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "gates", warps = 1, registers = 120, steps = ["gates"], prefetch_distance = 1>
// AUTO-SAME: <name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "move", warps = 1, registers = 120, steps = ["load"], delayed_steps = ["store"], delay = 3, loop_chunks = true>
// AUTO-SAME: <name = "state", warps = 4, registers = 240, steps = ["state"]>
// MANY-SAME: v_tiles = 1,
// WHOLE-SAME: v_tiles = 2, persistent = true, roles = [<name = "scores", warps = 4, registers = 72, steps = ["norms", "scores"], loop_chunks = true>
// WHOLE-SAME: <name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true>
// SPLIT-SAME: v_tiles = 1,
gdn_tile.program @few(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}

// As many as keep it busy: 67 work items of two V tiles are more than 132 multiprocessors.
// CHECK-LABEL: gdn_tile.program @many(
// AUTO-SAME: v_tiles = 2,
gdn_tile.program @many(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}

// An unknown number of sequences is many, or what the option says.
// CHECK-LABEL: gdn_tile.program @unknown(
// AUTO-SAME: v_tiles = 2,
// MANY-SAME: v_tiles = 1,
gdn_tile.program @unknown(%x: memref<1x64x1x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}

// Packed sequences: many are whole; two are taken for unequal unless the longest is told, which decides.
// CHECK-LABEL: gdn_tile.program @packed(
// AUTO-SAME: v_tiles = 2,
// GUESS-SAME: v_tiles = 1,
// EQUAL-SAME: v_tiles = 2,
// LONG-SAME: v_tiles = 1,
gdn_tile.program @packed(%x: memref<1x?x64x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}

// A schedule that a program has stays.
// CHECK-LABEL: gdn_tile.program @given(
// CHECK-SAME: gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @given(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>} {
}

// Two chunks an iteration, and a CTA for each of two V tiles: they are a cluster, and share what does not depend on the tile.
// CHECK-LABEL: gdn_tile.program @pair(
// AUTO-SAME: chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "scores", warps = 4, registers = 120, steps = ["norms", "scores"], loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "gates", warps = 1, registers = 120, steps = ["gates"], prefetch_distance = 1>
// AUTO-SAME: <name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "move", warps = 1, registers = 120, steps = ["load"], delayed_steps = ["store"], delay = 3, loop_chunks = true>
// AUTO-SAME: <name = "state", warps = 4, registers = 240, steps = ["state"]>
// AUTO-SAME: <name = "triangles", depth = 4, from = ["scores", "solve", "norms", "query_norms"], to = ["state"]>
// WHOLE-SAME: v_tiles = 2, persistent = true, roles = [<name = "scores", warps = 4, registers = 72, steps = ["norms", "scores"], loop_chunks = true>
gdn_tile.program @pair(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x64x2x128xbf16> -> tensor<32x64xbf16>
    %b = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.chunk = 1, gdn_tile.step = "load"}
        : memref<1x64x2x128xbf16> -> tensor<32x64xbf16>
  }
}

// In a program that norms rows, a warp sums the squares of queries, and the one that moves makes the gates. The chunks of
// the state are a loop.
// CHECK-LABEL: gdn_tile.program @norms(
// AUTO-SAME: chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "scores", warps = 4, registers = 120, steps = ["norms", "scores"], loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "move", warps = 1, registers = 120, steps = ["load", "gates"], delayed_steps = ["store"], delay = 4, prefetch_distance = 1, interleave_chunks = true>
// AUTO-SAME: <name = "solve", warps = 2, registers = 120,
// AUTO-SAME: <name = "queries", warps = 1, registers = 120, steps = ["query_norms"], loop_chunks = true, alternate_ctas = true>
// AUTO-SAME: <name = "state", warps = 4, registers = 240, steps = ["state"], loop_chunks = true>
// AUTO-SAME: <name = "tokens", depth = 8, from = ["load"], to = ["scores", "queries", "state"], slot_per_chunk = true>
// AUTO-SAME: <name = "m", depth = 2, from = ["scores", "norms"], to = ["solve"]>
// WHOLE-SAME: <name = "scores", warps = 4, registers = 72, steps = ["norms", "scores"], loop_chunks = true>, <name = "move", warps = 1, registers = 104,
// WHOLE-SAME: <name = "m", depth = 3, from = ["scores", "norms"], to = ["solve"], slot_per_chunk = true>
gdn_tile.program @norms(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c64 = arith.constant 64 : index
  %v = arith.constant dense<1.0> : tensor<32xf32>
  %s = arith.constant dense<1.0> : tensor<64x128xf32>
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %s) -> (tensor<64x128xf32>) {
    %a = arith.negf %v {gdn_tile.chunk = 0, gdn_tile.step = "norms"} : tensor<32xf32>
    %b = arith.negf %v {gdn_tile.chunk = 1, gdn_tile.step = "norms"} : tensor<32xf32>
    %next = arith.negf %state {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
}

// Half a state leaves registers to those that solve.
// CHECK-LABEL: gdn_tile.program @half(
// WHOLE-SAME: <name = "scores", warps = 4, registers = 80, steps = ["norms", "scores"], loop_chunks = true>, <name = "move", warps = 1, registers = 112,
// WHOLE-SAME: <name = "state", warps = 8, registers = 160, steps = ["state"], warpgroup_per_v_tile = true, loop_chunks = true>
gdn_tile.program @half(%x: memref<1x64x2x128xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c32 = arith.constant 32 : index
  %s = arith.constant dense<1.0> : tensor<64x64xf32>
  %last = scf.for %t = %begin to %end step %c32 iter_args(%state = %s) -> (tensor<64x64xf32>) {
    %a = arith.negf %s {gdn_tile.step = "norms"} : tensor<64x64xf32>
    %next = arith.negf %state {gdn_tile.step = "state"} : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
}

// The loads have as many slots as fit beside the rest: an iteration of large tiles has fewer.
// CHECK-LABEL: gdn_tile.program @large(
// CHECK-SAME: <name = "tokens", depth = 7, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
gdn_tile.program @large(%x: memref<1x?x2x256xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x2x256xbf16> -> tensor<64x256xbf16>
    %minus = arith.negf %tile {gdn_tile.step = "state"} : tensor<64x256xbf16>
  }
}

func.func @host(%n: index, %t: index, %x: memref<1x64x2x128xbf16>, %y: memref<1x64x1x128xbf16>,
    %z: memref<1x?x2x256xbf16>, %w: memref<1x?x64x128xbf16>,
    %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c67 = arith.constant 67 : index
  gdn_tile.launch @few grid(%c1, %c2, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @many grid(%c67, %c1, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @unknown grid(%n, %c1, %c2) tokens(%t) ins(%y : memref<1x64x1x128xbf16>)
  gdn_tile.launch @packed grid(%n, %c64, %c2) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%w : memref<1x?x64x128xbf16>)
  gdn_tile.launch @given grid(%c1, %c2, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @pair grid(%c1, %c2, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @norms grid(%c1, %c2, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @half grid(%c1, %c2, %c2) tokens(%t) ins(%x : memref<1x64x2x128xbf16>)
  gdn_tile.launch @large grid(%c1, %c2, %c1) tokens(%t) ins(%z : memref<1x?x2x256xbf16>)
  return
}
