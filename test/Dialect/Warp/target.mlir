// RUN: gdn-opt %s --split-input-file --verify-roundtrip --verify-diagnostics -o /dev/null

// The innermost target counts; without one the first chip of the table is meant.
module attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_90a">} {
  gdn_warp.kernel @k() threads(1024) shared(0) attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_90a">} {}
}

// -----

// expected-error @below {{expected a target of sm_90a, got sm_80}}
gdn_warp.kernel @chip() threads(128) shared(0) attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_80">} {}

// -----

// expected-error @below {{expected gdn_warp.target to be a #gdn_warp.target, got "sm_90a"}}
module attributes {gdn_warp.target = "sm_90a"} {}

// -----

// A schedule asks for what the chip has.
// expected-error @below {{expected gdn_warp.schedule to be a #gdn_warp.schedule, got 1 : i64}}
gdn_tile.program @kind() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = 1} {}

// -----

// expected-error @below {{expected at most 8 CTAs in a cluster on sm_90a, got 9}}
gdn_tile.program @cluster() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1, cluster = 9, roles = [], channels = []>} {}

// -----

// expected-error @below {{expected at most 1024 threads in all roles on sm_90a, got 1056}}
gdn_tile.program @threads() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
      <name = "a", warps = 33, registers = 96, steps = []>], channels = []>} {}

// -----

// expected-error @below {{expected at most 14528 slots in channel in on sm_90a, got 14529}}
gdn_tile.program @slots() work_item(%n, %h, %vt) tokens(%batch, %begin, %end)
    attributes {gdn_warp.schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = [
      <name = "in", depth = 14529, from = [], to = []>]>} {}
