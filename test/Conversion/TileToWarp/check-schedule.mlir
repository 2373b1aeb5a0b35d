// Launches and schedules that would give a kernel that is wrong or hangs.
// RUN: gdn-opt %s --split-input-file --gdn-warp-choose-schedule --gdn-warp-partition --verify-diagnostics

// A kernel is made for one grid.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @twice() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #one} {
}
func.func @host(%n: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-note @below {{the other launch}}
  gdn_tile.launch @twice grid(%n, %c8, %c1) tokens(%n)
  // expected-error @below {{expected one launch of program @twice, whose kernel is made for its grid and tokens, got two; give each one a program of its own}}
  gdn_tile.launch @twice grid(%n, %c1, %c1) tokens(%n)
  return
}

// -----

// Copies end with their array. The first launch is right, and so would an array be of which nothing is known.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @right(%x: memref<8x40xf32>, %z: memref<8x?xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %a = gdn_tile.load %x[%n, %begin] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<8x40xf32> -> tensor<32xf32>
  %b = gdn_tile.load %z[%n, %begin] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<8x?xf32> -> tensor<32xf32>
}
gdn_tile.program @fewer(%x: memref<8x40xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %a = gdn_tile.load %x[%n, %begin] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<8x40xf32> -> tensor<32xf32>
}
func.func @host(%x: memref<8x40xf32>, %z: memref<8x?xf32>) {
  %c1 = arith.constant 1 : index
  %c39 = arith.constant 39 : index
  %c40 = arith.constant 40 : index
  gdn_tile.launch @right grid(%c1, %c1, %c1) tokens(%c40) ins(%x, %z : memref<8x40xf32>, memref<8x?xf32>)
  // expected-error @below {{expected as many tokens as the arrays have that end there, since copies do: the extent of one of them (a tensor.dim, or the constant), got 39}}
  gdn_tile.launch @fewer grid(%c1, %c1, %c1) tokens(%c39) ins(%x : memref<8x40xf32>)
  return
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @axis(%x: memref<?x?xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %a = gdn_tile.load %x[%n, %begin] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<?x?xf32> -> tensor<32xf32>
}
func.func @host(%x: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  // expected-error @below {{(a tensor.dim, or the constant), got another value}}
  gdn_tile.launch @axis grid(%c1, %c1, %c1) tokens(%rows) ins(%x : memref<?x?xf32>)
  return
}

// -----

// An iteration has chunks of the numbers that the schedule says.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @label(%x: memref<8x40xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  // expected-error @below {{expected gdn_tile.chunk in [0, 1), the chunks that the schedule has an iteration (gdn-tile-unroll-chunks), got 9223372036854775807}}
  %a = gdn_tile.load %x[%n, %begin] axes [1] {gdn_tile.step = "load", gdn_tile.chunk = 9223372036854775807} : memref<8x40xf32> -> tensor<32xf32>
}
func.func @host(%n: index, %x: memref<8x40xf32>) {
  gdn_tile.launch @label grid(%n, %n, %n) tokens(%n) ins(%x : memref<8x40xf32>)
  return
}

// -----

// "move" fills three slots, and one comes back: in its fourth round, its first late one, all that were filled wait.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 4>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["state"]>,
    <name = "out", depth = 1, from = ["state"], to = ["move"]>]>
// expected-error @below {{expected slots for at least 5 chunks in the channels from role move back to its steps that are delayed by 4 iterations (in, out), or it waits for ever, got 4; give them more slots or delay less}}
gdn_tile.program @late(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    %b = arith.negf %a {gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %b, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @late grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// Two steps may store parts of an array that do not overlap, by constant offsets.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "low", warps = 4, registers = 96, steps = ["low_keys"]>, <name = "high", warps = 4, registers = 96, steps = ["high_keys"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["low", "high"]>]>
gdn_tile.program @apart(%x: memref<?x64xf32>) outs(%y: memref<?x128xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%t, %c0] axes [1] {gdn_tile.step = "load"} : memref<?x64xf32> -> tensor<64xf32>
    %b = arith.negf %a {gdn_tile.step = "low_keys"} : tensor<64xf32>
    gdn_tile.store %b, %y[%t, %c0] axes [1] {gdn_tile.step = "low_keys"} : tensor<64xf32> -> memref<?x128xf32>
    gdn_tile.store %a, %y[%t, %c64] axes [1] {gdn_tile.step = "high_keys"} : tensor<64xf32> -> memref<?x128xf32>
  }
}
gdn_tile.program @overlap(%x: memref<?x64xf32>) outs(%y: memref<?x128xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%t, %c0] axes [1] {gdn_tile.step = "load"} : memref<?x64xf32> -> tensor<64xf32>
    %b = arith.negf %a {gdn_tile.step = "low_keys"} : tensor<64xf32>
    // expected-note @below {{the other store}}
    gdn_tile.store %b, %y[%t, %c0] axes [1] {gdn_tile.step = "low_keys"} : tensor<64xf32> -> memref<?x128xf32>
    // expected-error @below {{expected stores to the same elements in one step, got "high_keys" and "low_keys": nothing orders the accesses of steps}}
    gdn_tile.store %a, %y[%t, %c32] axes [1] {gdn_tile.step = "high_keys"} : tensor<64xf32> -> memref<?x128xf32>
  }
}
func.func @host(%n: index, %x: memref<?x64xf32>, %y: memref<?x128xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @apart grid(%n, %c1, %c1) tokens(%n) ins(%x : memref<?x64xf32>) outs(%y : memref<?x128xf32>)
  gdn_tile.launch @overlap grid(%n, %c1, %c1) tokens(%n) ins(%x : memref<?x64xf32>) outs(%y : memref<?x128xf32>)
  return
}

// -----

// A role keeps nothing for its late steps.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2>], channels = []>
gdn_tile.program @kept(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    // expected-note @below {{made here}}
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    // expected-error @below {{expected values through a channel between steps that are delayed and others, got one that role move makes itself}}
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @kept grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 2>], channels = []>
gdn_tile.program @carried(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %none = arith.constant dense<0.0> : tensor<32xf32>
  // expected-note @below {{carried here}}
  %last = scf.for %t = %begin to %end step %c32 iter_args(%before = %none) -> tensor<32xf32> {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    // expected-error @below {{got one that role move carries from iteration to iteration}}
    gdn_tile.store %before, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
    scf.yield %a : tensor<32xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @carried grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// More chunks than anything could be written for (gdn-tile-unroll-chunks=factor=71).
// expected-note @below {{the schedule is of template @fused.cta_per_v_tile.one}}
// expected-error @below {{expected 1 to 64 chunks an iteration and V tiles, got 71 and 1}}
gdn_tile.program @many(%x: memref<8x40xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %a = gdn_tile.load %x[%n, %begin] axes [1] {gdn_tile.step = "load", gdn_tile.chunk = 70} : memref<8x40xf32> -> tensor<32xf32>
}
func.func @host(%n: index, %x: memref<8x40xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @many grid(%n, %n, %c1) tokens(%n) ins(%x : memref<8x40xf32>)
  return
}

// -----

// A slot has one visit of a role: now or late.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = 1>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 3, from = ["state"], to = ["move"]>]>
// expected-error @below {{expected role move to take channel out either in steps that are delayed or in others, got both; use two channels}}
gdn_tile.program @both(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "state"} : memref<1x?x4xf32> -> tensor<32xf32>
    %b = arith.negf %a {gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : tensor<32xf32> -> memref<1x?x4xf32>
    gdn_tile.store %b, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @both grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// A step may update an array that it has loaded: the threads that hold an element load and store it.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["state"]>], channels = []>
gdn_tile.program @updated() outs(%y: memref<?x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %y[%n, %c0] axes [1] {gdn_tile.step = "state"} : memref<?x64xf32> -> tensor<64xf32>
  %b = arith.negf %a {gdn_tile.step = "state"} : tensor<64xf32>
  gdn_tile.store %b, %y[%n, %c0] axes [1] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<?x64xf32>
}
func.func @host(%n: index, %y: memref<?x64xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @updated grid(%n, %c1, %c1) tokens(%n) outs(%y : memref<?x64xf32>)
  return
}

// -----

// Not other elements: who holds these may not have loaded them yet.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["state"]>], channels = []>
gdn_tile.program @moved() outs(%y: memref<?x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{loaded here}}
  %a = gdn_tile.load %y[%n, %c0] axes [1] {gdn_tile.step = "state"} : memref<?x64xf32> -> tensor<64xf32>
  // expected-error @below {{expected an array that is not loaded too: nothing orders the accesses of roles}}
  gdn_tile.store %a, %y[%h, %c0] axes [1] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<?x64xf32>
}
func.func @host(%n: index, %y: memref<?x64xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @moved grid(%n, %c1, %c1) tokens(%n) outs(%y : memref<?x64xf32>)
  return
}

// -----

// Rows of its own are a step's, whichever it stores and loads: no other work item, and no other thread, has elements of these.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["state"]>], channels = []>
gdn_tile.program @own() outs(%y: memref<?x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %y[%n, %c0] axes [1] {gdn_tile.step = "state"} : memref<?x64xf32> -> tensor<64xf32>
  gdn_tile.store %a, %y[%h, %c0] axes [1] {gdn_tile.own_rows, gdn_tile.step = "state"} : tensor<64xf32> -> memref<?x64xf32>
}
func.func @host(%n: index, %y: memref<?x64xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @own grid(%n, %c1, %c1) tokens(%n) outs(%y : memref<?x64xf32>)
  return
}

// -----

// Other elements of a row are other threads'.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "all", warps = 4, registers = 96, steps = ["state"]>], channels = []>
gdn_tile.program @shifted() outs(%y: memref<?x128xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{loaded here}}
  %a = gdn_tile.load %y[%n, %h] axes [1] {gdn_tile.step = "state"} : memref<?x128xf32> -> tensor<64xf32>
  // expected-error @below {{expected an array that is not loaded too: nothing orders the accesses of roles}}
  gdn_tile.store %a, %y[%n, %c0] axes [1] {gdn_tile.own_rows, gdn_tile.step = "state"} : tensor<64xf32> -> memref<?x128xf32>
}
func.func @host(%n: index, %y: memref<?x128xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @shifted grid(%n, %c1, %c1) tokens(%n) outs(%y : memref<?x128xf32>)
  return
}
