// RUN: gdn-opt %s --split-input-file --gdn-warp-partition --verify-diagnostics

// expected-error @below {{expected a schedule in attribute gdn_warp.schedule}}
gdn_tile.program @no_schedule() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
// expected-error @below {{expected a launch of the program, got none}}
gdn_tile.program @no_launch() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @no_role(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  // expected-error @below {{expected a role for step "load" in the schedule}}
  %tile = gdn_tile.load %x[%batch, %begin, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @no_role grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["move"]>]>
gdn_tile.program @no_channel(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    // expected-error @below {{expected a channel of the schedule from step "load" to role state}}
    %tile = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    // expected-note @below {{role state takes it here}}
    gdn_tile.store %tile, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @no_channel grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// Nothing orders what one role stores and another loads.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
gdn_tile.program @scratch() outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  // expected-note @below {{loaded here}}
  %tile = gdn_tile.load %y[%batch, %begin, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
  // expected-error @below {{expected an array that is not loaded too: nothing orders the accesses of roles}}
  gdn_tile.store %tile, %y[%batch, %begin, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @scratch grid(%n, %n, %n) tokens(%n) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// Every role counts the iterations by itself.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @bounds(%x: memref<8xi64>) outs(%y: memref<8xi64>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %counts = gdn_tile.load %x[%c0] axes [0] {gdn_tile.step = "load"} : memref<8xi64> -> tensor<8xi64>
  // expected-note @below {{made here}}
  %number = tensor.extract %counts[%c0] {gdn_tile.step = "load"} : tensor<8xi64>
  %count = arith.index_cast %number : i64 to index
  // expected-error @below {{expected bounds that follow from the work item, so that each role knows them, got one that a step makes}}
  scf.for %i = %c0 to %count step %c1 {
    gdn_tile.store %counts, %y[%c0] axes [0] {gdn_tile.step = "load"} : tensor<8xi64> -> memref<8xi64>
  }
}
func.func @host(%n: index, %x: memref<8xi64>, %y: memref<8xi64>) {
  gdn_tile.launch @bounds grid(%n, %n, %n) tokens(%n) ins(%x : memref<8xi64>) outs(%y : memref<8xi64>)
  return
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @grid() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
}
func.func @host(%n: index) {
  // expected-error @below {{expected a constant number of V tiles in the grid}}
  gdn_tile.launch @grid grid(%n, %n, %n) tokens(%n)
  return
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @heads() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {
}
func.func @host(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a number of heads in the grid that is a constant or made from extents of inputs}}
  gdn_tile.launch @heads grid(%n, %n, %c1) tokens(%n)
  return
}

// -----

#two = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
gdn_tile.program @tiles() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #two} {
}
func.func @host(%n: index) {
  %c4 = arith.constant 4 : index
  // expected-error @below {{expected 2 V tiles in the grid, as the schedule folds, got 4}}
  gdn_tile.launch @tiles grid(%n, %c4, %c4) tokens(%n)
  return
}

// -----

// Of an iteration of two chunks the first alone hands something on: a slot for one chunk has no place for that.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"], slot_per_chunk = true>]>
// expected-error @below {{expected the same values of each chunk in channel in, whose slots are for one}}
gdn_tile.program @one_chunk(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @one_chunk grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// The second chunk takes what the first one made: no loop over the two.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"], loop_chunks = true>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
gdn_tile.program @other_chunk(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    // expected-note @below {{made here}}
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "load"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    // expected-error @below {{expected values of its own chunk, which is one of a loop in role state}}
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @other_chunk grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// The chunks differ: no loop either.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["state"], loop_chunks = true>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
// expected-error @below {{expected the same ops for each chunk of an iteration in role state, whose chunks are a loop}}
gdn_tile.program @different(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
    %b = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %c = arith.negf %b {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    gdn_tile.store %c, %y[%batch, %t, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "state"}
        : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @different grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// The second chunk takes what the loop carries, and not what the first one made of it.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["state"], loop_chunks = true>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
// expected-error @below {{expected the second chunk of an iteration to take what the first one makes of value 0 of the loop, in role state, whose chunks are a loop}}
gdn_tile.program @not_carried(%x: memref<1x?x4xf32>) outs(%y: memref<1x32x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %zero) -> (tensor<32xf32>) {
    %a = arith.addf %state, %zero {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %b = arith.addf %a, %state {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %c = arith.addf %b, %zero {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    %d = arith.addf %c, %a {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    scf.yield %d : tensor<32xf32>
  }
  gdn_tile.store %last, %y[%n, %c0, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x32x4xf32>
}
func.func @host(%n: index, %x: memref<1x?x4xf32>, %y: memref<1x32x4xf32>) {
  gdn_tile.launch @not_carried grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x32x4xf32>)
  return
}

// -----

// Warps that take the chunks in turn carry nothing from one to the next.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [
    <name = "state", warps = 4, registers = 160, steps = ["state"], round_robin = true>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
// expected-error @below {{expected no values from one chunk to the next in role state, whose warps or CTAs take the chunks in turn}}
gdn_tile.program @in_turn(%x: memref<1x?x4xf32>) outs(%y: memref<1x32x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %last = scf.for %t = %begin to %end step %c64 iter_args(%state = %zero) -> (tensor<32xf32>) {
    %a = arith.addf %state, %zero {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %b = arith.addf %a, %zero {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
    scf.yield %b : tensor<32xf32>
  }
  gdn_tile.store %last, %y[%n, %c0, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x32x4xf32>
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @in_turn grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// A warp that skips a round of a slot does not wait for the next one.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "turns", warps = 3, registers = 96, steps = ["gates"], round_robin = true>,
    <name = "rest", warps = 1, registers = 96, steps = []>,
    <name = "take", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 2, from = ["gates"], to = ["take"]>]>
// expected-error @below {{expected at least 3 slots in channel out, which the 3 warps of role turns use in turn, got 2}}
gdn_tile.program @few_slots(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "gates"} : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @few_slots grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// A slot is filled by one CTA for all, or by each for itself.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "make", warps = 4, registers = 96, steps = ["scores"], loop_chunks = true, alternate_ctas = true>,
    <name = "own", warps = 4, registers = 96, steps = ["norms"]>,
    <name = "take", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 4, from = ["scores", "norms"], to = ["take"]>]>
// expected-error @below {{expected channel out to be filled by roles that CTAs share, or by others, got both}}
gdn_tile.program @mixed(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %b = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %ab = arith.addf %a, %b {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %t1 = arith.addi %t, %c32 : index
    %c = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %d = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %cd = arith.addf %c, %d {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %tiles = arith.constant 2 : index
  gdn_tile.launch @mixed grid(%n, %n, %tiles) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// A slot is always filled by the same CTA.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "make", warps = 4, registers = 96, steps = ["scores", "norms"], loop_chunks = true, alternate_ctas = true>,
    <name = "take", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 3, from = ["scores", "norms"], to = ["take"]>]>
// expected-error @below {{expected a multiple of 2 slots in channel out, which the CTAs of a cluster fill in turn, got 3}}
gdn_tile.program @slots(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %b = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %ab = arith.addf %a, %b {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %t1 = arith.addi %t, %c32 : index
    %c = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %d = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %cd = arith.addf %c, %d {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %tiles = arith.constant 2 : index
  gdn_tile.launch @slots grid(%n, %n, %tiles) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// Slots for a chunk are filled an iteration at a time.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "make", warps = 4, registers = 96, steps = ["scores", "norms"], loop_chunks = true, alternate_ctas = true>,
    <name = "take", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 6, from = ["scores", "norms"], to = ["take"], slot_per_chunk = true>]>
// expected-error @below {{expected a multiple of 4 slots in channel out, which the CTAs of a cluster fill in turn, got 6}}
gdn_tile.program @chunk_slots(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %b = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %ab = arith.addf %a, %b {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %t1 = arith.addi %t, %c32 : index
    %c = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %d = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %cd = arith.addf %c, %d {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %tiles = arith.constant 2 : index
  gdn_tile.launch @chunk_slots grid(%n, %n, %tiles) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

// CTAs of different heads have nothing to share.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [
    <name = "make", warps = 4, registers = 96, steps = ["scores", "norms"], loop_chunks = true, alternate_ctas = true>,
    <name = "take", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "out", depth = 4, from = ["scores", "norms"], to = ["take"]>]>
gdn_tile.program @clusters(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %b = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.chunk = 0, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %ab = arith.addf %a, %b {gdn_tile.chunk = 0, gdn_tile.step = "state"} : tensor<32xf32>
    %t1 = arith.addi %t, %c32 : index
    %c = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "scores"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %d = gdn_tile.load %x[%batch, %t1, %h] axes [1] {gdn_tile.chunk = 1, gdn_tile.step = "norms"}
        : memref<1x?x4xf32> -> tensor<32xf32>
    %cd = arith.addf %c, %d {gdn_tile.chunk = 1, gdn_tile.step = "state"} : tensor<32xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %tiles = arith.constant 3 : index
  // expected-error @below {{expected a multiple of 2 V tiles in the grid, as the schedule makes clusters of them, got 3}}
  gdn_tile.launch @clusters grid(%n, %n, %tiles) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @two_loops(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  // expected-note @below {{the other loop}}
  scf.for %t = %begin to %end step %c32 {
    // expected-error @below {{expected no loop inside of another one, over the work item's chunks}}
    scf.for %u = %begin to %end step %c32 {
      %a = gdn_tile.load %x[%batch, %u, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    }
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @two_loops grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "put", warps = 4, registers = 96, steps = ["store"]>], channels = []>
gdn_tile.program @two_roles(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %none = arith.cmpi eq, %batch, %c0 : index
  // expected-error @below {{expected ops of one role inside, got steps "load" and "store"}}
  scf.if %none {
    %a = gdn_tile.load %x[%batch, %begin, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    // expected-note @below {{the op of step "store"}}
    gdn_tile.store %a, %y[%batch, %begin, %h] axes [1] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @two_roles grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @late_condition(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = gdn_tile.load %x[%batch, %begin, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
  %first = tensor.extract %a[%c0] {gdn_tile.step = "load"} : tensor<32xf32>
  %none = arith.cmpf oeq, %first, %zero : f32
  // expected-error @below {{expected a condition that follows from the work item, got one that a step makes}}
  gdn_tile.leave %none
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @late_condition grid(%n, %c4, %c1) tokens(%n) ins(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @turns(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt, %turn) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{expected cu_seqlens where work items run in turns, got none}}
  gdn_tile.launch @turns grid(%n, %c4, %c1, %c1) tokens(%n) ins(%x : memref<1x?x4xf32>) {gdn_tile.in_turns}
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @turns_of_three(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
}
func.func @host(%n: index, %x: memref<1x?x4xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{expected a grid of four sizes where work items run in turns, got three}}
  gdn_tile.launch @turns_of_three grid(%n, %c4, %c1) tokens(%n) cu_seqlens(%cu : memref<?xi32>) ins(%x : memref<1x?x4xf32>)
      {gdn_tile.in_turns}
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @sums_persistent(%x: memref<1x?x4x128xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %all = arith.constant dense<1.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a CTA for each work item, got a persistent schedule}}
  %own = gdn_tile.cluster_sum %all number %c0 of 2 {gdn_tile.step = "load"} : tensor<64x128xf32> -> tensor<64x64xf32>
}
func.func @host(%n: index, %x: memref<1x?x4x128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @sums_persistent grid(%c4, %c4, %c1) tokens(%n) ins(%x : memref<1x?x4x128xf32>)
  return
}

// -----

// An iteration of one step may meet another iteration of the other step.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "one", warps = 4, registers = 96, steps = ["load"]>,
    <name = "two", warps = 4, registers = 96, steps = ["state"]>], channels = []>
gdn_tile.program @rows(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  %tile = arith.constant dense<1.0> : tensor<64xf32>
  scf.for %t = %begin to %end step %c64 {
    %next = arith.addi %t, %c64 : index
    // expected-note @below {{the other store}}
    gdn_tile.store %tile, %y[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : tensor<64xf32> -> memref<1x?x4xf32>
    // expected-error @below {{expected stores to the same elements in one step, got "state" and "load": nothing orders the accesses of steps}}
    gdn_tile.store %tile, %y[%batch, %next, %h] axes [1] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>) {
  gdn_tile.launch @rows grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%x : memref<1x?x4xf32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @waits(%x: memref<?x4xf32>, %count: memref<?xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %is = arith.cmpi eq, %n, %h : index
  // expected-error @below {{expected a CTA for each work item, got a persistent schedule}}
  gdn_tile.await %count if %is : memref<?xi32>
}
func.func @host(%n: index, %x: memref<?x4xf32>, %count: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @waits grid(%c4, %c4, %c1) tokens(%n) ins(%x, %count : memref<?x4xf32>, memref<?xi32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @late_report(%x: memref<1x?x4xf32>, %progress: memref<?x4x1xi32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%batch, %begin, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
  %first = tensor.extract %a[%c0] {gdn_tile.step = "load"} : tensor<32xf32>
  %whole = arith.fptosi %first : f32 to i32
  %done = arith.index_cast %whole : i32 to index
  // expected-error @below {{expected numbers that follow from the work item, got one that a step makes}}
  gdn_tile.await_report %progress[%n, %h] count %h done %done : memref<?x4x1xi32>
}
func.func @host(%n: index, %x: memref<1x?x4xf32>, %progress: memref<?x4x1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @late_report grid(%n, %c4, %c1) tokens(%n) ins(%x, %progress : memref<1x?x4xf32>, memref<?x4x1xi32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load", "store"], delayed_steps = ["report"], delay = 1>], channels = []>
gdn_tile.program @early_report(%x: memref<1x?x4xf32>) outs(%progress: memref<?x4x1xi32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h] axes [1] {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<64xf32>
    // expected-note @below {{the store}}
    gdn_tile.store %tile, %x[%batch, %t, %h] axes [1] {gdn_tile.step = "store"} : tensor<64xf32> -> memref<1x?x4xf32>
    // expected-error @below {{expected its role to store what is stored before it, and as late, got step "store"}}
    gdn_tile.report %t, %progress[%n, %h, %vt] {gdn_tile.step = "report"} : memref<?x4x1xi32>
  }
}
func.func @host(%n: index, %x: memref<1x?x4xf32>, %progress: memref<?x4x1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @early_report grid(%n, %c4, %c1) tokens(%n) ins(%x : memref<1x?x4xf32>) outs(%progress : memref<?x4x1xi32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["store"]>], channels = []>
gdn_tile.program @reports_persistent() outs(%progress: memref<?x4x1xi32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  // expected-error @below {{expected a CTA for each work item, got a persistent schedule}}
  gdn_tile.report %end, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x1xi32>
}
func.func @host(%n: index, %progress: memref<?x4x1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @reports_persistent grid(%c4, %c4, %c1) tokens(%n) outs(%progress : memref<?x4x1xi32>)
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["store"]>], channels = []>
// expected-error @below {{expected a program that reports not to run beside the one in front}}
gdn_tile.program @reports_beside() outs(%progress: memref<?x4x1xi32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  gdn_tile.report %end, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x1xi32>
}
func.func @host(%n: index, %progress: memref<?x4x1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @reports_beside grid(%n, %c4, %c1) tokens(%n) outs(%progress : memref<?x4x1xi32>)
      {gdn_tile.beside, gdn_tile.first_of_two}
  return
}

// -----

#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["store"]>], channels = []>
gdn_tile.program @reports_elsewhere() outs(%progress: memref<?x4x1xi32>) work_item(%n, %h, %vt)
    tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  // expected-error @below {{expected reports of one entry in a program, got others}}
  gdn_tile.report %begin, %progress[%n, %n, %vt] {gdn_tile.step = "store"} : memref<?x4x1xi32>
  gdn_tile.report %end, %progress[%n, %h, %vt] {gdn_tile.step = "store"} : memref<?x4x1xi32>
}
func.func @host(%n: index, %progress: memref<?x4x1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @reports_elsewhere grid(%n, %c4, %c1) tokens(%n) outs(%progress : memref<?x4x1xi32>)
      {gdn_tile.first_of_two}
  return
}

// -----

// The pass asks by itself what a kernel can have, also where gdn-warp-verify-program did not run.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"]>], channels = []>
// expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, got 'memref<4xindex>'}}
gdn_tile.program @index(%x: memref<4xindex>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #one} {}
func.func @host(%x: memref<4xindex>, %m: index) {
  gdn_tile.launch @index grid(%m, %m, %m) tokens(%m) ins(%x : memref<4xindex>)
  return
}

// -----

// What crosses between roles has a place in memory.
#two = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 64, steps = ["load"]>,
    <name = "state", warps = 4, registers = 64, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>
gdn_tile.program @masks(%x: memref<1x?xi1>) outs(%y: memref<1x?xi1>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #two} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    // expected-error @below {{expected what crosses between roles to be of views, or tiles of one or two dimensions or scalars, whose elements are whole bytes, got 'tensor<32xi1>'}}
    %a = gdn_tile.load %x[%batch, %t] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?xi1> -> tensor<32xi1>
    gdn_tile.store %a, %y[%batch, %t] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32xi1> -> memref<1x?xi1>
  }
}
func.func @host(%x: memref<1x?xi1>, %y: memref<1x?xi1>) {
  %c1 = arith.constant 1 : index
  %t = memref.dim %x, %c1 : memref<1x?xi1>
  gdn_tile.launch @masks grid(%c1, %c1, %c1) tokens(%t) ins(%x : memref<1x?xi1>) outs(%y : memref<1x?xi1>)
  return
}

// -----

// A CTA that takes several work items would clear those of the first one alone.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>], channels = []>
gdn_tile.program @clears(%x: memref<1x?x4x32xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %none = arith.cmpi eq, %n, %c0 : index
  // expected-error @below {{expected a CTA for each work item, got a persistent schedule}}
  gdn_tile.clear %x[%batch, %begin, %h, %c0] until(%end, dim = 1) columns 32 if %none : memref<1x?x4x32xf32>
}
func.func @host(%n: index, %x: memref<1x?x4x32xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @clears grid(%n, %c4, %c1) tokens(%n) ins(%x : memref<1x?x4x32xf32>)
  return
}
