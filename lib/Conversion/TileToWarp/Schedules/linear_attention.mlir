// Schedules of gdn.stage.linear_attention: no gates, and nothing is solved. docs/Schedules.md has the form.

#scores = #gdn_warp.role_template<name = "scores", warps = 4, min_registers = 88, steps = ["scores"], loop_chunks = true>
// Three warps complete the warpgroup of the one that moves, which needs few registers.
#move = #gdn_warp.role_template<name = "move", warps = 1, min_registers = 40, register_weight = 0, steps = ["load"], delayed_steps = ["store"], delay = <as "tokens" minus 1>, loop_chunks = true>
#rest = #gdn_warp.role_template<name = "rest", warps = 3, min_registers = 40, register_weight = 0, steps = []>
#state = #gdn_warp.role_template<name = "state", warps = 8, min_registers = 168, steps = ["state"], warpgroup_per_v_tile = true>

#tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
// Scores take less time than a chunk of the state, so a few are enough.
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <4 chunks>, from = ["scores"], to = ["state"], slot_per_chunk = true>
#output = #gdn_warp.channel_template<name = "output", depth = <3 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

gdn_warp.schedule_template @linear_attention.cta_per_head schedules ["cta_per_head"] stages ["linear_attention"]
    when <min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#scores, #move, #rest, #state]
    channels [#tokens, #triangles, #output]

// A CTA for a V tile. A head of one V tile is that by either name.
#tile_state = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 168, steps = ["state"]>
#tile_triangles = #gdn_warp.channel_template<name = "triangles", depth = <8 chunks>, from = ["scores"], to = ["state"]>

gdn_warp.schedule_template @linear_attention.cta_per_v_tile.one schedules ["cta_per_head", "cta_per_v_tile"] stages ["linear_attention"]
    when <max_v_tiles = 1>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#scores, #move, #rest, #tile_state]
    channels [#tokens, #tile_triangles, #output]

gdn_warp.schedule_template @linear_attention.cta_per_v_tile schedules ["cta_per_v_tile"] stages ["linear_attention"]
    attributes {chunks_per_iteration = 2 : i64}
    roles [#scores, #move, #rest, #tile_state]
    channels [#tokens, #tile_triangles, #output]
