// RUN: gdn-opt %s --split-input-file --verify-diagnostics

gdn_warp.kernel @k() threads(128) shared(0) {
  // expected-error @below {{expected 1 to 14528 slots, got 0}}
  %in = gdn_warp.channel "in" depth(0) : <f32>
}

// -----

gdn_warp.kernel @k() threads(128) shared(0) cluster(2) {
  // expected-error @below {{expected a CTA to fill at least one slot in its turn, got 0}}
  %in = gdn_warp.channel "in" depth(2) turn(0) : <f32>
}

// -----

gdn_warp.kernel @k() threads(128) shared(64) {
  // expected-error @below {{expected the place of each of 2 fields, got 1}}
  %in = gdn_warp.channel "in" depth(1) {offset = 0, places = array<i64: 0>, slot_bytes = 32, barriers = 32} : <f32, f32>
}

// -----

// Who fills or takes is a role.
gdn_warp.kernel @k(%f: f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) : <f32>
  // expected-error @below {{expected to stand in a role}}
  gdn_warp.put %f, %in[0] at %c0 : f32, <f32>
}

// -----

gdn_warp.kernel @k(%f: f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) : <f32>
  gdn_warp.role "a" warps(0, 1) {
    // expected-error @below {{expected a field of '!gdn_warp.channel<f32>', got number 1}}
    gdn_warp.put %f, %in[1] at %c0 : f32, <f32>
  }
}

// -----

gdn_warp.kernel @k() threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) : <f32>
  gdn_warp.role "a" warps(0, 1) {
    // expected-error @below {{expected the type of field 0, 'f32', got 'i32'}}
    %i = gdn_warp.get %in[0] at %c0 : <f32> -> i32
  }
}

// -----

// The V tiles of a field follow each other.
gdn_warp.kernel @k() threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) : <f32, i32>
  gdn_warp.role "a" warps(0, 1) {
    // expected-error @below {{expected a field for each V tile, got none of 'f32' behind field 0}}
    %i = gdn_warp.get %in[0 + %c0] at %c0 : <f32, i32> -> f32
  }
}

// -----

// expected-error @below {{expected 1 to 64 chunks an iteration and V tiles, got 0 and 1}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 0, v_tiles = 1, roles = [], channels = []>

// -----

// expected-error @below {{expected roles of different names, got two of a}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = []>,
    <name = "a", warps = 1, registers = 96, steps = []>], channels = []>

// -----

// expected-error @below {{expected 8 warps in role a, a warpgroup a V tile, got 4}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 2, roles = [<name = "a", warps = 4, registers = 96, steps = [], warpgroup_per_v_tile = true>], channels = []>

// -----

// expected-error @below {{expected a step in one role, got "load" in two}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = ["load"]>,
    <name = "b", warps = 1, registers = 96, steps = [], delayed_steps = ["load"], delay = 1>], channels = []>

// -----

// expected-error @below {{expected 1 to 1048576 slots in channel in, got 0}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = [<name = "in", depth = 0, from = ["load"], to = ["a"]>]>

// -----

// A product is of a whole warpgroup, whichever of the roles that share code it has.
// expected-error @below {{expected whole warpgroups of 4 warps in role a, which shares its code, got 2}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 2, registers = 96, steps = ["load"], share_code = true>], channels = []>

// -----

// A cluster is of V tiles that have a CTA each.
// expected-error @below {{expected a cluster of 1 to 64 CTAs, of V tiles that are not folded, got 2 CTAs of 2 V tiles}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 2, cluster = 2, roles = [], channels = []>

// -----

// expected-error @below {{expected a cluster of 1 to 64 CTAs, of V tiles that are not folded, got 65 CTAs of 1 V tiles}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 65, roles = [], channels = []>

// -----

// expected-error @below {{expected a cluster of 1 to 64 CTAs, of V tiles that are not folded, got 0 CTAs of 1 V tiles}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 0, roles = [], channels = []>

// -----

// Without a cluster nobody shares.
// expected-error @below {{expected a cluster, chunks in a loop, and nothing delayed or ahead of its iteration in role a, which CTAs share}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = ["solve"], loop_chunks = true, alternate_ctas = true>], channels = []>

// -----

// The first own chunk of the third warp would be in a slot that another one had before.
// expected-error @below {{expected warps that take turns and divide the 2 chunks of an iteration in role a, which CTAs share, got 3}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "a", warps = 3, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>], channels = []>

// -----

// A turn is a warp's or a warpgroup's.
// expected-error @below {{expected warps_per_turn of 1, or of 4 with round_robin and whole warpgroups, in role a, got 2 of 4 warps}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [<name = "a", warps = 4, registers = 96, steps = ["solve"], round_robin = true, warps_per_turn = 2>], channels = []>

// -----

// expected-error @below {{expected warps_per_turn of 1, or of 4 with round_robin and whole warpgroups, in role a, got 4 of 6 warps}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, roles = [<name = "a", warps = 6, registers = 96, steps = ["solve"], round_robin = true, warps_per_turn = 4>], channels = []>

// -----

// The CTAs share a loop over chunks.
// expected-error @below {{expected a cluster, chunks in a loop, and nothing delayed or ahead of its iteration in role a, which CTAs share}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "a", warps = 1, registers = 96, steps = ["solve"], alternate_ctas = true>], channels = []>

// -----

// An iteration of one chunk has no such loop.
// expected-error @below {{expected a cluster, chunks in a loop, and nothing delayed or ahead of its iteration in role a, which CTAs share}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, cluster = 2, roles = [<name = "a", warps = 1, registers = 96, steps = ["solve"], loop_chunks = true, alternate_ctas = true>], channels = []>

// -----

// What is delayed is of another iteration, maybe of the other CTA.
// expected-error @below {{expected a cluster, chunks in a loop, and nothing delayed or ahead of its iteration in role a, which CTAs share}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "a", warps = 1, registers = 96, steps = ["solve"], delayed_steps = ["store"], delay = 1, loop_chunks = true, alternate_ctas = true>], channels = []>

// -----

// So is what is loaded ahead.
// expected-error @below {{expected a cluster, chunks in a loop, and nothing delayed or ahead of its iteration in role a, which CTAs share}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 2, roles = [<name = "a", warps = 1, registers = 96, steps = ["solve"], prefetch_distance = 1, loop_chunks = true, alternate_ctas = true>], channels = []>

// -----

// Numbers that nothing could be written for.
gdn_warp.kernel @depth() threads(128) shared(0) {
  // expected-error @below {{expected 1 to 14528 slots, got 1152921504606846976}}
  %in = gdn_warp.channel "in" depth(1152921504606846976) : <f32>
}

// -----

// expected-error @below {{expected delay of 0 to 64 iterations in role a, got -1}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = [], delay = -1>], channels = []>

// -----

// expected-error @below {{expected prefetch_distance of 0 to 64 iterations in role a, got 65}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = [], prefetch_distance = 65>], channels = []>

// -----

// expected-error @below {{expected 1 to 1024 warps in role a, got 1025}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1025, registers = 96, steps = []>], channels = []>

// -----

// A chunk is one of several.
gdn_warp.kernel @chunk() threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) : <f32, f32>
  gdn_warp.role "a" warps(0, 1) {
    // expected-error @below {{expected a chunk only where the channel has fields for several, got one of channel "in", which has them for one}}
    %i = gdn_warp.get %in[0] chunk %c0 at %c0 : <f32, f32> -> f32
  }
}

// -----

gdn_warp.kernel @second() threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(1) chunks(2) : <f32, f32>
  gdn_warp.role "a" warps(0, 1) {
    // expected-error @below {{expected a field of the first chunk, below 1, and the chunk's number, got number 1}}
    %i = gdn_warp.get %in[1] chunk %c0 at %c0 : <f32, f32> -> f32
  }
}

// -----

// expected-error @below {{expected a delay of at least 1 iteration for the delayed steps of role a, got 0}}
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "a", warps = 1, registers = 96, steps = [], delayed_steps = ["store"]>], channels = []>

// -----

gdn_warp.kernel @k() threads(128) shared(0) {
  // expected-error @below {{expected 1 to 14528 slots, got -1}}
  %in = gdn_warp.channel "in" depth(-1) : <f32>
}

// -----

gdn_warp.kernel @k() threads(128) shared(0) {
  // expected-error @below {{expected fields of views, or tiles of one or two dimensions or scalars, whose elements are whole bytes, got 'index'}}
  %in = gdn_warp.channel "in" depth(1) : <f32, index>
}

// -----

gdn_warp.kernel @k() threads(128) shared(0) {
  // expected-error @below {{whose elements are whole bytes, got 'tensor<8x8x8xf32>'}}
  %in = gdn_warp.channel "in" depth(1) : <tensor<8x8x8xf32>>
}

// -----

gdn_warp.kernel @k() threads(128) shared(0) {
  // expected-error @below {{whose elements are whole bytes, got 'tensor<8x8xi1>'}}
  %in = gdn_warp.channel "in" depth(1) : <tensor<8x8xi1>>
}

// -----

gdn_warp.kernel @turns_of_two() threads(128) shared(0) {
  // expected-error @below {{expected turns of one warp, or of whole warpgroups that divide the role's, got turns of 2 of 4 warps}}
  gdn_warp.role "make" warps(0, 4) attributes {gdn_warp.round_robin = 2 : i64} {
  }
}
