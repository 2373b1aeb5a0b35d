// Schedules of gdn.stage.state_pass, the chunked forward without read-out, and of gdn.stage.segment_map, the same from the
// identity and without values. docs/Schedules.md has the form.
//
// A chunk of the state has two products with 32 columns less than the forward's three with them, and nothing is stored
// before the end. So the state outruns two warps that solve: there are three, and the warp that moves makes the gates too,
// those of an iteration's chunks by turns.

// A state warpgroup's thread holds 64 registers of the state, 32 of its bf16 copy, and one product of 16 at a time.
#scores = #gdn_warp.role_template<name = "scores", warps = 4, min_registers = 72, steps = ["norms", "scores"], loop_chunks = true>
#move = #gdn_warp.role_template<name = "move", warps = 1, min_registers = 104, steps = ["load", "gates"], prefetch_distance = <2 chunks>, interleave_chunks = true>
#solve = #gdn_warp.role_template<name = "solve", warps = 3, min_registers = 104, steps = ["solve"], round_robin = true, loop_chunks = true>
#state = #gdn_warp.role_template<name = "state", warps = 8, min_registers = 160, register_weight = 0, steps = ["state"], warpgroup_per_v_tile = true>

#tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
#vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["scores", "state"]>
#m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores", "norms"], to = ["solve"], slot_per_chunk = true>
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <6 chunks>, from = ["scores", "solve", "norms"], to = ["state"], slot_per_chunk = true>

gdn_warp.schedule_template @state_pass.cta_per_head schedules ["cta_per_head"] stages ["state_pass", "segment_map"]
    when <min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#scores, #move, #solve, #state]
    channels [#tokens, #vectors, #m, #triangles]

// A CTA for a V tile: what fits of registers goes to the state, and a slot for an iteration costs it a wait less. A head of
// one V tile is that by either name.
#tile_scores = #gdn_warp.role_template<name = "scores", warps = 4, min_registers = 120, register_weight = 0, steps = ["norms", "scores"], loop_chunks = true>
#tile_move = #gdn_warp.role_template<name = "move", warps = 1, min_registers = 120, register_weight = 0, steps = ["load", "gates"], prefetch_distance = <2 chunks>, interleave_chunks = true>
#tile_solve = #gdn_warp.role_template<name = "solve", warps = 3, min_registers = 120, register_weight = 0, steps = ["solve"], round_robin = true, loop_chunks = true>
#tile_state = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 168, steps = ["state"]>
#tile_m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores", "norms"], to = ["solve"]>
#tile_triangles = #gdn_warp.channel_template<name = "triangles", depth = <8 chunks>, from = ["scores", "solve", "norms"], to = ["state"]>

gdn_warp.schedule_template @state_pass.cta_per_v_tile.one schedules ["cta_per_head", "cta_per_v_tile"] stages ["state_pass", "segment_map"]
    when <max_v_tiles = 1>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_move, #tile_solve, #tile_state]
    channels [#tokens, #vectors, #tile_m, #tile_triangles]

gdn_warp.schedule_template @state_pass.cta_per_v_tile schedules ["cta_per_v_tile"] stages ["state_pass", "segment_map"]
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_move, #tile_solve, #tile_state]
    channels [#tokens, #vectors, #tile_m, #tile_triangles]
