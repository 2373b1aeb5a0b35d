// A kernel with a schedule of its own: a program, and a file of templates.
// RUN: split-file %s %t
// RUN: gdn-opt %t/sum.mlir --gdn-warp-choose-schedule=schedule-file=%t/templates.mlir | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: gdn-opt %t/sum.mlir --gdn-warp-choose-schedule="schedule=sum.three schedule-file=%t/templates.mlir" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: gdn-opt %t/sum.mlir --pass-pipeline="builtin.module(gdn-warp-choose-schedule{schedule-file=%t/templates.mlir},gdn-warp-partition)" | FileCheck %s --check-prefix=KERNEL
// RUN: gdn-opt %t/templates.mlir --verify-roundtrip | FileCheck %s --check-prefix=ROUND
// RUN: gdn-opt %t/sum.mlir --gdn-warp-choose-schedule="schedule=sum.other schedule-file=%t/templates.mlir" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: not gdn-opt %t/sum.mlir --gdn-warp-choose-schedule="schedule=none schedule-file=%t/templates.mlir" 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: not gdn-opt %t/sum.mlir --gdn-warp-choose-schedule=schedule-file=%t/nofile.mlir 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not gdn-opt %t/sum.mlir --gdn-warp-choose-schedule=schedule-file=%t/sum.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not gdn-opt %t/four.mlir --gdn-warp-choose-schedule=schedule=cta_per_head 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: gdn-opt %t/four.mlir --gdn-warp-choose-schedule | FileCheck %s --check-prefix=PAIR

// NAMES: error: expected schedule auto, or one of: mine, cta_per_head, cta_per_v_tile, token, sum.other, sum.one, sum.three, fused.{{.*}}; got none
// FILE: error: expected a readable schedule-file, got cannot open input file '{{.*}}nofile.mlir'
// OTHER: sum.mlir:1:1: error: 'gdn_tile.program' op expected only schedule templates in their file

// A template of other stages leaves the choice for this one.
//
// Of 232448 bytes the tiles of 64 x 64 f16, 8192 bytes each, take as many as fit: 26 with the 2 slots of sums, but no more than
// 24. `late` is as deep as the iterations of the tiles, and one less. The state has at least 64 registers; what is left of 168 a thread at
// launch goes to the roles by weight.
// CHECK-LABEL: gdn_tile.program @sum(
// ONE-SAME: chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "move", warps = 4, registers = 40, steps = ["load"], delayed_steps = ["store"], delay = 23>,
// ONE-SAME: <name = "state", warps = 4, registers = 248, steps = ["state"]>]
// ONE-SAME: channels = [<name = "tiles", depth = 24, from = ["load"], to = ["state"]>, <name = "sums", depth = 2, from = ["state"], to = ["move"]>]
// THREE-SAME: chunks_per_iteration = 3, v_tiles = 1, roles = [<name = "move", warps = 1, registers = 120, steps = ["load"], delayed_steps = ["store"], delay = 1>,
// THREE-SAME: <name = "other", warps = 3, registers = 120, steps = []>
// THREE-SAME: <name = "state", warps = 8, registers = 192, steps = ["state"]>
// THREE-SAME: <name = "tiles", depth = 9, from = ["load"], to = ["state"]>, <name = "sums", depth = 1,
// KERNEL: gdn_warp.channel "tiles" depth(24)
// KERNEL: gdn_warp.channel "sums" depth(2)

// ROUND: gdn_warp.schedule_template @sum.other schedules ["mine"] stages ["other"] when <steps = ["state"], min_v_tiles = 1, max_v_tiles = 2, initial_state = true, max_state_columns = 64, max_state_entries = 4096, max_vectors = 2, max_tile_bytes = 8192, min_chunk_tokens = 32, max_state_bits = 16>
// ROUND: delay = <as "tiles" minus 1>
// ROUND: depth = <fill 2 to 24 chunks>
// ROUND: depth = <2 iterations>

// Four V tiles are no pair, and do not fit a CTA.
// FOUR: error: 'gdn_tile.program' op expected a schedule template that fits the program, got none among {{[0-9]+}}
// FOUR: note: fused.cta_per_head: expected 2 V tiles, got 4
// FOUR: note: fused.cta_per_head.norms: expected a program with step norms
// PAIR: chunks_per_iteration = 2, v_tiles = 1, roles =

//--- sum.mlir
gdn_tile.program @sum(%x: memref<1x?x64xf16>) outs(%y: memref<1x?xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_tile.stage = "sum"} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64xf32>
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %c0] axes [1, 2] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x64xf16> -> tensor<64x64xf16>
    %wide = arith.extf %tile {gdn_tile.step = "state"} : tensor<64x64xf16> to tensor<64x64xf32>
    %sums = linalg.reduce ins(%wide : tensor<64x64xf32>) outs(%zero : tensor<64xf32>) dimensions = [1] {gdn_tile.step = "state"}
      (%a: f32, %b: f32) {
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      }
    gdn_tile.store %sums, %y[%batch, %t] axes [1] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64xf32> -> memref<1x?xf32>
  }
}
func.func @host(%x: memref<1x?x64xf16>, %y: memref<1x?xf32>) {
  %c1 = arith.constant 1 : index
  %t = memref.dim %x, %c1 : memref<1x?x64xf16>
  gdn_tile.launch @sum grid(%c1, %c1, %c1) tokens(%t) ins(%x : memref<1x?x64xf16>) outs(%y : memref<1x?xf32>)
  return
}

//--- templates.mlir
gdn_warp.schedule_template @sum.other schedules ["mine"] stages ["other"]
    when <steps = ["state"], min_v_tiles = 1, max_v_tiles = 2, initial_state = true, max_state_columns = 64, max_state_entries = 4096, max_vectors = 2, max_tile_bytes = 8192, min_chunk_tokens = 32, max_state_bits = 16>
    attributes {chunks_per_iteration = 1 : i64, fold_v_tiles}
    roles [<name = "all", warps = 4, steps = ["load", "state", "store"]>]
    channels []
gdn_warp.schedule_template @sum.one schedules ["mine"] stages ["sum"]
    attributes {chunks_per_iteration = 1 : i64}
    roles [
      <name = "move", warps = 4, registers = 40, steps = ["load"], delayed_steps = ["store"], delay = <as "tiles" minus 1>>,
      <name = "state", warps = 4, min_registers = 64, steps = ["state"]>]
    channels [
      <name = "tiles", depth = <fill 2 to 24 chunks>, from = ["load"], to = ["state"]>,
      <name = "sums", depth = <2 iterations>, from = ["state"], to = ["move"]>]
// Three chunks an iteration: depths of slots for an iteration.
gdn_warp.schedule_template @sum.three schedules ["mine"] stages ["sum"]
    attributes {chunks_per_iteration = 3 : i64}
    roles [
      <name = "move", warps = 1, steps = ["load"], delayed_steps = ["store"], delay = <2 chunks>, min_registers = 40>,
      <name = "other", warps = 3, steps = []>,
      <name = "state", warps = 8, min_registers = 112, steps = ["state"]>]
    channels [
      <name = "tiles", depth = <fill 2 to 100 chunks>, from = ["load"], to = ["state"]>,
      <name = "sums", depth = <3 chunks>, from = ["state"], to = ["move"]>]

//--- four.mlir
gdn_tile.program @four(%x: memref<1x64x2x256xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_tile.stage = "fused"} {
  %c64 = arith.constant 64 : index
  %v = arith.constant dense<1.0> : tensor<32xf32>
  scf.for %t = %begin to %end step %c64 {
    %a = arith.negf %v {gdn_tile.chunk = 0, gdn_tile.step = "gates"} : tensor<32xf32>
    %b = arith.negf %v {gdn_tile.chunk = 1, gdn_tile.step = "gates"} : tensor<32xf32>
  }
}
func.func @host(%t: index, %v: memref<1x64x2x256xbf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @four grid(%c1, %c2, %c4) tokens(%t) ins(%v : memref<1x64x2x256xbf16>)
  return
}
