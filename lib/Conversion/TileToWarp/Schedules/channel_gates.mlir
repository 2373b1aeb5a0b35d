// Schedules of gdn.stage.fused with a gate a channel (the step `decay`), the forward of Kimi Delta Attention. A layer gets
// the first template whose `when` holds; `norms_` is with qk_l2norm, `pair_` for a CTA of one V tile in a cluster of two.
//
// One role makes the decayed tiles and the scores of them: what it makes for its own products goes through shared memory
// without a channel. It has the most to do, and gates of any strength need the most registers, so it has what the state
// leaves. A CTA has one V tile: beside two state warpgroups there would be 96 registers, which the tiles of a chunk do not
// fit yet. Tiles do not depend on V, so each CTA of a pair makes those of every other iteration for both (times in
// docs/experiments/kda.md). Gates that no lower bound keeps in range have a rare kind of chunk (the step `halves`), which
// needs 200 registers.

#prepare = #gdn_warp.role_template<name = "prepare", warps = 4, registers = 200, steps = ["decay", "halves", "scores"], loop_chunks = true>
#gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 96, steps = ["gates"], prefetch_distance = <2 chunks>>
#solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true>
#move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load"], delayed_steps = ["store"], delay = <2 iterations>, loop_chunks = true>
#state = #gdn_warp.role_template<name = "state", warps = 4, registers = 208, steps = ["state"], loop_chunks = true>

// What the tiles are made of is read early, values late: in one channel, keys would stay until the state has read the
// values, and leave no room for tiles that are ahead.
#keys = #gdn_warp.channel_template<name = "keys", depth = <fill 1 to 4 chunks>, from = ["load"], to = ["prepare"], slot_per_chunk = true>
#values = #gdn_warp.channel_template<name = "values", depth = <fill 4 to 6 chunks>, from = ["load"], to = ["state"], slot_per_chunk = true>
#vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "values" plus 1>, from = ["gates"], to = ["prepare", "state"]>
#decayed = #gdn_warp.channel_template<name = "decayed", depth = <fill 1 to 4 chunks>, from = ["decay"], to = ["state"], slot_per_chunk = true>
#m = #gdn_warp.channel_template<name = "m", depth = <2 chunks>, from = ["scores"], to = ["solve"], slot_per_chunk = true>
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <4 chunks>, from = ["scores", "solve"], to = ["state"], slot_per_chunk = true>
#output = #gdn_warp.channel_template<name = "output", depth = <2 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

// A turn of a CTA is an iteration, whose tiles have a slot each.
#pair_prepare = #gdn_warp.role_template<name = "prepare", warps = 4, registers = 200, steps = ["decay", "halves", "scores"], loop_chunks = true, alternate_ctas = true>
#pair_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>
#pair_decayed = #gdn_warp.channel_template<name = "decayed", depth = <4 chunks>, from = ["decay"], to = ["state"], slot_per_chunk = true>

gdn_warp.schedule_template @fused.channel_gates.pair schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["decay"], no_steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_prepare, #gates, #pair_solve, #move, #state]
    channels [#keys, #values, #vectors, #pair_decayed, #m, #triangles, #output]

gdn_warp.schedule_template @fused.channel_gates schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["decay"], no_steps = ["norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #gates, #solve, #move, #state]
    channels [#keys, #values, #vectors, #decayed, #m, #triangles, #output]

// The warp that makes gates elsewhere sums the squares of rows; the one that moves makes beta and masks.
#norms_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load", "gates"], delayed_steps = ["store"], delay = <2 iterations>, prefetch_distance = <2 chunks>, interleave_chunks = true>
#norms = #gdn_warp.role_template<name = "norms", warps = 1, registers = 96, steps = ["norms", "query_norms"], loop_chunks = true>
#pair_norms = #gdn_warp.role_template<name = "norms", warps = 1, registers = 96, steps = ["norms", "query_norms"], loop_chunks = true, alternate_ctas = true>
#norms_keys = #gdn_warp.channel_template<name = "keys", depth = <fill 1 to 4 chunks>, from = ["load"], to = ["norms", "prepare"], slot_per_chunk = true>
#norms_lengths = #gdn_warp.channel_template<name = "lengths", depth = <2 chunks>, from = ["norms", "query_norms"], to = ["prepare"], slot_per_chunk = true>
#norms_output = #gdn_warp.channel_template<name = "output", depth = <2 chunks>, from = ["state"], to = ["move"]>

// Bounded gates in 16 bits and chunks of 32 tokens: a chunk is short enough for 136 registers, so two warpgroups
// make tiles in turn. They loop over the pieces of their tiles: so all loops fit the instruction cache. What a loop makes
// is late, so it goes to the state before the products of this role. What loads stays three iterations ahead of what
// stores: the keys of an iteration are loaded, summed, decayed and solved while the state is at the two before it. Two warps
// sum squares, so that both chunks have theirs as soon. The loads of a chunk stand together: mixed with those of the next
// chunk, they would wait until that one's slot is free.
#piece_prepare = #gdn_warp.role_template<name = "prepare", warps = 8, registers = 136, steps = ["decay", "scores"], round_robin = true, warps_per_turn = 4, loop_chunks = true, alternate_ctas = true, loop_pieces = true, hand_on_early = true>
#piece_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 56, steps = ["load", "gates"], delayed_steps = ["store"], delay = <3 iterations>, prefetch_distance = <2 chunks>>
#piece_solve = #gdn_warp.role_template<name = "solve", warps = 1, registers = 56, steps = ["solve"], loop_chunks = true, alternate_ctas = true>
#piece_norms = #gdn_warp.role_template<name = "norms", warps = 2, registers = 56, steps = ["norms", "query_norms"], round_robin = true, loop_chunks = true, alternate_ctas = true>
#piece_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 184, steps = ["state"], loop_chunks = true>
#piece_keys = #gdn_warp.channel_template<name = "keys", depth = <2 chunks>, from = ["load"], to = ["norms", "prepare"], slot_per_chunk = true>
// As many as what loads is ahead.
#piece_values = #gdn_warp.channel_template<name = "values", depth = <6 chunks>, from = ["load"], to = ["state"], slot_per_chunk = true>

gdn_warp.schedule_template @fused.channel_gates.pair_norms.pieces schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["decay", "norms"], no_steps = ["halves"], min_v_tiles = 2, max_v_tiles = 2, max_tile_bytes = 8192, min_chunk_tokens = 32>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#piece_prepare, #piece_move, #piece_solve, #piece_norms, #piece_state]
    channels [#piece_keys, #piece_values, #vectors, #norms_lengths, #pair_decayed, #m, #triangles, #norms_output]

gdn_warp.schedule_template @fused.channel_gates.pair_norms schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["decay", "norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_prepare, #norms_move, #pair_solve, #pair_norms, #state]
    channels [#norms_keys, #values, #vectors, #norms_lengths, #pair_decayed, #m, #triangles, #norms_output]

gdn_warp.schedule_template @fused.channel_gates.norms schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["decay", "norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #norms_move, #solve, #norms, #state]
    channels [#norms_keys, #values, #vectors, #norms_lengths, #decayed, #m, #triangles, #norms_output]

// gdn.stage.state_pass and gdn.stage.segment_map with a gate a channel: the same without queries, so one CTA has registers
// for both V tiles beside the tiles of a chunk of 32 tokens, and prepares each chunk once. Nothing is stored before the end,
// so the warp that moves makes beta and masks, too. Warps that solve in turn need a slot each.
#pass_prepare = #gdn_warp.role_template<name = "prepare", warps = 4, registers = 120, steps = ["decay", "scores"], loop_chunks = true>
#pass_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 72, steps = ["load", "gates"], prefetch_distance = <2 chunks>, interleave_chunks = true>
#pass_solve = #gdn_warp.role_template<name = "solve", warps = 3, registers = 72, steps = ["solve"], round_robin = true, loop_chunks = true>
#pass_state = #gdn_warp.role_template<name = "state", warps = 8, registers = 160, steps = ["state"], warpgroup_per_v_tile = true, loop_chunks = true>
// Keys and values in one channel: with two, the maps of both V tiles spill.
#pass_tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 6 chunks>, from = ["load"], to = ["prepare", "state"], slot_per_chunk = true>
#pass_norms_tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 6 chunks>, from = ["load"], to = ["norms", "prepare", "state"], slot_per_chunk = true>
#pass_vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["prepare", "state"]>
#pass_decayed = #gdn_warp.channel_template<name = "decayed", depth = <fill 1 to 2 chunks>, from = ["decay"], to = ["state"], slot_per_chunk = true>
#pass_m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores"], to = ["solve"], slot_per_chunk = true>
#pass_triangles = #gdn_warp.channel_template<name = "triangles", depth = <4 chunks>, from = ["scores", "solve"], to = ["state"], slot_per_chunk = true>

gdn_warp.schedule_template @state_pass.channel_gates.cta_per_head schedules ["cta_per_head"] stages ["state_pass", "segment_map"]
    when <steps = ["decay"], no_steps = ["halves", "norms"], min_v_tiles = 2, max_v_tiles = 2, min_chunk_tokens = 32>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles}
    roles [#pass_prepare, #pass_move, #pass_solve, #pass_state]
    channels [#pass_tokens, #pass_vectors, #pass_decayed, #pass_m, #pass_triangles]

// Gates in float32 and norms do not fit together.
#pass_norms_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 72, steps = ["solve"], round_robin = true, loop_chunks = true>
#pass_norms = #gdn_warp.role_template<name = "norms", warps = 1, registers = 72, steps = ["norms"], loop_chunks = true>
#pass_lengths = #gdn_warp.channel_template<name = "lengths", depth = <2 chunks>, from = ["norms"], to = ["prepare"], slot_per_chunk = true>

gdn_warp.schedule_template @state_pass.channel_gates.cta_per_head.norms schedules ["cta_per_head"] stages ["state_pass", "segment_map"]
    when <steps = ["decay", "norms"], no_steps = ["halves"], min_v_tiles = 2, max_v_tiles = 2, max_tile_bytes = 8192, min_chunk_tokens = 32>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles}
    roles [#pass_prepare, #pass_move, #pass_norms_solve, #pass_norms, #pass_state]
    channels [#pass_norms_tokens, #pass_vectors, #pass_lengths, #pass_decayed, #pass_m, #pass_triangles]

// A CTA for a V tile: what fits no CTA of two, heads of one tile or of many.
#tile_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load", "gates"], prefetch_distance = <2 chunks>, interleave_chunks = true>
#tile_solve = #gdn_warp.role_template<name = "solve", warps = 3, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true>
#tile_norms = #gdn_warp.role_template<name = "norms", warps = 1, registers = 96, steps = ["norms"], loop_chunks = true>

gdn_warp.schedule_template @state_pass.channel_gates schedules ["cta_per_head", "cta_per_v_tile"] stages ["state_pass", "segment_map"]
    when <steps = ["decay"], no_steps = ["norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #tile_move, #tile_solve, #state]
    channels [#pass_tokens, #pass_vectors, #pass_decayed, #pass_m, #pass_triangles]

gdn_warp.schedule_template @state_pass.channel_gates.norms schedules ["cta_per_head", "cta_per_v_tile"] stages ["state_pass", "segment_map"]
    when <steps = ["decay", "norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #tile_move, #solve, #tile_norms, #state]
    channels [#pass_norms_tokens, #pass_vectors, #pass_lengths, #pass_decayed, #pass_m, #pass_triangles]
