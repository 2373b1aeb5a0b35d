// Schedules of gdn.stage.fused with state_interval: a forward that stores what tokens write and states, for its backward.
// docs/Schedules.md has the form. Programs of other forwards have no step "keep", so they never get one of these.
//
// Registers and slots are those of fused.mlir for a CTA of two V tiles, and of backward.mlir for a CTA of one: there it is the
// program of a recurrence with an output.
//
// On an H200 a CTA a head is faster where its heads fill the machine: 16 and 32 heads, 32768 tokens in 8 sequences take 0.51 ms,
// and 0.63 in clusters of V tiles; in one sequence it is 1.30 and 1.05.

//===--------------------------------------------------------------------------------------------------------------===//
// A CTA for a head of two V tiles
//===--------------------------------------------------------------------------------------------------------------===//

#head_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 72, steps = ["scores"], loop_chunks = true>
#head_gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 104, steps = ["gates"], prefetch_distance = <2 chunks>>
#head_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 104, steps = ["solve"], round_robin = true, loop_chunks = true>
#head_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 104, steps = ["load"], delayed_steps = ["store_state", "store"], delay = <as "tokens" minus 1>>
#head_state = #gdn_warp.role_template<name = "state", warps = 8, registers = 168, steps = ["keep", "state"], warpgroup_per_v_tile = true>

// Two V tiles of states, outputs and writes leave room for no more of the others.
#head_tokens = #gdn_warp.channel_template<name = "tokens", depth = <4 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
#head_vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["scores", "state"]>
#head_m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores"], to = ["solve"], slot_per_chunk = true>
#head_triangles = #gdn_warp.channel_template<name = "triangles", depth = <6 chunks>, from = ["scores", "solve"], to = ["state"], slot_per_chunk = true>
#head_kept = #gdn_warp.channel_template<name = "kept", depth = <1 iterations>, from = ["keep"], to = ["move"]>
#head_output = #gdn_warp.channel_template<name = "output", depth = <2 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

gdn_warp.schedule_template @saving.cta_per_head schedules ["cta_per_head"] stages ["fused"]
    when <steps = ["keep"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#head_scores, #head_gates, #head_solve, #head_move, #head_state]
    channels [#head_tokens, #head_vectors, #head_m, #head_triangles, #head_kept, #head_output]

// The adjoint of such a forward is the same recurrence in reverse. On an H200, with 16 q/k and 32 value heads and 32768 tokens,
// it takes 41 us less than clusters of V tiles (464 us) in 8 sequences, and 1.18 ms for 0.81 in one. The grid alone does not
// tell which is faster, so callers ask for this template by its name.
gdn_warp.schedule_template @adjoint.cta_per_head schedules [] stages ["adjoint"]
    when <min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles}
    roles [#head_scores, #head_gates, #head_solve, #head_move, #head_state]
    channels [#head_tokens, #head_vectors, #head_m, #head_triangles, #head_kept, #head_output]

//===--------------------------------------------------------------------------------------------------------------===//
// A CTA for a V tile. A head of one V tile is that by either name.
//===--------------------------------------------------------------------------------------------------------------===//

#scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 120, steps = ["scores"], loop_chunks = true>
#gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 120, steps = ["gates"], prefetch_distance = <2 chunks>>
#solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true>
#move = #gdn_warp.role_template<name = "move", warps = 1, registers = 120, steps = ["load"], delayed_steps = ["store_state", "store"], delay = <as "tokens" minus 1>>
#state = #gdn_warp.role_template<name = "state", warps = 4, registers = 240, steps = ["keep", "state"]>

#tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
#vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["scores", "state"]>
#m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores"], to = ["solve"]>
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <8 chunks>, from = ["scores", "solve"], to = ["state"]>
#kept = #gdn_warp.channel_template<name = "kept", depth = <2 iterations>, from = ["keep"], to = ["move"]>
// The output of a chunk and what its tokens write.
#output = #gdn_warp.channel_template<name = "output", depth = <3 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

// The CTAs of two V tiles are a cluster, and each makes scores and inverses of every other iteration for both.
#pair_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 120, steps = ["scores"], loop_chunks = true, alternate_ctas = true>
#pair_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>

gdn_warp.schedule_template @saving.pair schedules ["cta_per_v_tile"] stages ["fused"]
    when <steps = ["keep"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_scores, #gates, #pair_solve, #move, #state]
    channels [#tokens, #vectors, #m, #triangles, #kept, #output]

gdn_warp.schedule_template @saving.cta_per_v_tile schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["keep"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#scores, #gates, #solve, #move, #state]
    channels [#tokens, #vectors, #m, #triangles, #kept, #output]
