// Schedules of gdn.stage.fused, the forward of Gated DeltaNet and DeltaNet in one kernel. docs/Schedules.md has the form.
//
// The order of roles decides which warps share a scheduler: warp w has scheduler w mod 4. Warps 0 and 1 of the scores,
// which hold keys, have the most to do. The warp that makes gates stands between them and the warps that solve.
//
// All roles but the state loop over the chunks of an iteration: two copies of everything do not fit the instruction
// cache, and the state is what the others wait for. With norms the state is a loop, too. Two warps keep up with the solves, a third gains nothing.
//
// A layer gets the first template of its schedule whose `when` holds; docs/Schedules.md has the list. Prefixes of aliases:
// `norms_` with qk_l2norm, `half_` with qk_l2norm and K of at most 64, `tile_` for a CTA of one V tile, `pair_` for one in
// a cluster. Aliases without a prefix are for a CTA of two V tiles, and for all where there is no other.
//
// docs/Contributing.md says what follows a change of a depth or of registers.

//===--------------------------------------------------------------------------------------------------------------===//
// A CTA for a head of two V tiles, which prepares each chunk once for both
//===--------------------------------------------------------------------------------------------------------------===//

// A thread of a state warpgroup holds 64 registers of the state, 32 of its bf16 copy and two products of 16: with vectors
// and addresses that is 168. The others have what is left, and the solve more of it, since its lanes hold columns.
#scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 72, steps = ["norms", "scores"], loop_chunks = true>
// A gather of gates takes longer than the chunk that it is for.
#gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 104, steps = ["gates"], prefetch_distance = <2 chunks>>
#solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 104, steps = ["solve"], round_robin = true, loop_chunks = true>
// Stores stand behind the loads that the state waits for.
#move = #gdn_warp.role_template<name = "move", warps = 1, registers = 104, steps = ["load"], delayed_steps = ["store"], delay = <as "tokens" minus 1>, loop_chunks = true>
#state = #gdn_warp.role_template<name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true>

// More loads in flight than 8 hide nothing more. Gates run ahead of the tokens.
#tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>
#vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["scores", "state"]>
// The solve of a chunk takes as long as a chunk of the state or longer, so it must be ahead. A slot for one chunk lets the
// state begin earlier.
#m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores", "norms"], to = ["solve"], slot_per_chunk = true>
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <6 chunks>, from = ["scores", "solve", "norms", "query_norms"], to = ["state"], slot_per_chunk = true>
#output = #gdn_warp.channel_template<name = "output", depth = <3 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

gdn_warp.schedule_template @fused.cta_per_head schedules ["cta_per_head"] stages ["fused"]
    when <no_steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#scores, #gates, #solve, #move, #state]
    channels [#tokens, #vectors, #m, #triangles, #output]

//===--------------------------------------------------------------------------------------------------------------===//
// The same for rows that are normed
//===--------------------------------------------------------------------------------------------------------------===//

// The warp that makes gates elsewhere sums the squares of queries. The warp that moves makes the gates, those of an
// iteration's chunks by turns, and stores an iteration at a time: nothing that it stores is waited for before it loads.
#norms_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 104, steps = ["load", "gates"], delayed_steps = ["store"], delay = <as "tokens">, prefetch_distance = <2 chunks>, interleave_chunks = true>
#norms_queries = #gdn_warp.role_template<name = "queries", warps = 1, registers = 104, steps = ["query_norms"], loop_chunks = true>

// With norms more instructions run than the instruction cache holds unless the state's chunks are a loop.
#norms_state = #gdn_warp.role_template<name = "state", warps = 8, registers = 168, steps = ["state"], warpgroup_per_v_tile = true, loop_chunks = true>
#norms_tokens = #gdn_warp.channel_template<name = "tokens", depth = <fill 4 to 8 chunks>, from = ["load"], to = ["scores", "queries", "state"], slot_per_chunk = true>
#norms_vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "tokens" plus 1>, from = ["gates"], to = ["scores", "queries", "state"]>
// M is f32 with norms, and there is no room for four.
#norms_m = #gdn_warp.channel_template<name = "m", depth = <3 chunks>, from = ["scores", "norms"], to = ["solve"], slot_per_chunk = true>
// In f16 scores are made with the norms of queries.
#norms_lengths = #gdn_warp.channel_template<name = "lengths", depth = <2 chunks>, from = ["query_norms"], to = ["scores"], slot_per_chunk = true>
#norms_output = #gdn_warp.channel_template<name = "output", depth = <4 chunks>, from = ["state"], to = ["move"]>

// Half a state leaves some registers for norms.
#half_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 80, steps = ["norms", "scores"], loop_chunks = true>
#half_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 112, steps = ["load", "gates"], delayed_steps = ["store"], delay = <as "tokens">, prefetch_distance = <2 chunks>, interleave_chunks = true>
#half_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 112, steps = ["solve"], round_robin = true, loop_chunks = true>
#half_queries = #gdn_warp.role_template<name = "queries", warps = 1, registers = 112, steps = ["query_norms"], loop_chunks = true>
#half_state = #gdn_warp.role_template<name = "state", warps = 8, registers = 160, steps = ["state"], warpgroup_per_v_tile = true, loop_chunks = true>

gdn_warp.schedule_template @fused.cta_per_head.half_norms schedules ["cta_per_head"] stages ["fused"]
    when <steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2, max_state_columns = 64>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#half_scores, #half_move, #half_solve, #half_queries, #half_state]
    channels [#norms_tokens, #norms_vectors, #norms_m, #norms_lengths, #triangles, #norms_output]

gdn_warp.schedule_template @fused.cta_per_head.norms schedules ["cta_per_head"] stages ["fused"]
    when <steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, fold_v_tiles, persistent}
    roles [#scores, #norms_move, #solve, #norms_queries, #norms_state]
    channels [#norms_tokens, #norms_vectors, #norms_m, #norms_lengths, #triangles, #norms_output]

//===--------------------------------------------------------------------------------------------------------------===//
// A CTA for a V tile. A head of one V tile is that by either name.
//===--------------------------------------------------------------------------------------------------------------===//

// With one state warpgroup there are more registers for all, and the solve keeps more loads in flight.
#tile_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 120, steps = ["norms", "scores"], loop_chunks = true>
#tile_gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 120, steps = ["gates"], prefetch_distance = <2 chunks>>
#tile_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true>
#tile_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 120, steps = ["load"], delayed_steps = ["store"], delay = <as "tokens" minus 1>, loop_chunks = true>
#tile_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 240, steps = ["state"]>

// A slot for an iteration costs the state a wait less than one for a chunk, which counts where the state is alone.
#tile_m = #gdn_warp.channel_template<name = "m", depth = <4 chunks>, from = ["scores", "norms"], to = ["solve"]>
#tile_triangles = #gdn_warp.channel_template<name = "triangles", depth = <8 chunks>, from = ["scores", "solve", "norms", "query_norms"], to = ["state"]>

// The CTAs of two V tiles are a cluster. Scores and inverses do not depend on the tile, so each CTA makes those of every
// other iteration for both.
#pair_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 120, steps = ["norms", "scores"], loop_chunks = true, alternate_ctas = true>
#pair_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>

gdn_warp.schedule_template @fused.cta_per_v_tile.pair schedules ["cta_per_v_tile"] stages ["fused"]
    when <no_steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_scores, #tile_gates, #pair_solve, #tile_move, #tile_state]
    channels [#tokens, #vectors, #tile_m, #tile_triangles, #output]

gdn_warp.schedule_template @fused.cta_per_v_tile.one schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <no_steps = ["norms"], max_v_tiles = 1>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_gates, #tile_solve, #tile_move, #tile_state]
    channels [#tokens, #vectors, #tile_m, #tile_triangles, #output]

gdn_warp.schedule_template @fused.cta_per_v_tile schedules ["cta_per_v_tile"] stages ["fused"]
    when <no_steps = ["norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_gates, #tile_solve, #tile_move, #tile_state]
    channels [#tokens, #vectors, #tile_m, #tile_triangles, #output]

// With norms and gates of any strength more instructions run than the instruction cache holds, if the state has a copy of
// its code for each chunk. So its chunks are a loop (docs/experiments/instructions.md, "Strong gates").
#norms_tile_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 240, steps = ["state"], loop_chunks = true>
#tile_norms_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 120, steps = ["load", "gates"], delayed_steps = ["store"], delay = <as "tokens">, prefetch_distance = <2 chunks>, interleave_chunks = true>
#tile_queries = #gdn_warp.role_template<name = "queries", warps = 1, registers = 120, steps = ["query_norms"], loop_chunks = true>
#tile_norms_m = #gdn_warp.channel_template<name = "m", depth = <3 chunks>, from = ["scores", "norms"], to = ["solve"]>
#pair_queries = #gdn_warp.role_template<name = "queries", warps = 1, registers = 120, steps = ["query_norms"], loop_chunks = true, alternate_ctas = true>

gdn_warp.schedule_template @fused.cta_per_v_tile.pair_norms schedules ["cta_per_v_tile"] stages ["fused"]
    when <steps = ["norms"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_scores, #tile_norms_move, #pair_solve, #pair_queries, #norms_tile_state]
    channels [#norms_tokens, #norms_vectors, #tile_norms_m, #norms_lengths, #tile_triangles, #norms_output]

gdn_warp.schedule_template @fused.cta_per_v_tile.one_norms schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused"]
    when <steps = ["norms"], max_v_tiles = 1>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_norms_move, #tile_solve, #tile_queries, #norms_tile_state]
    channels [#norms_tokens, #norms_vectors, #tile_norms_m, #norms_lengths, #tile_triangles, #norms_output]

gdn_warp.schedule_template @fused.cta_per_v_tile.norms schedules ["cta_per_v_tile"] stages ["fused"]
    when <steps = ["norms"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#tile_scores, #tile_norms_move, #tile_solve, #tile_queries, #norms_tile_state]
    channels [#norms_tokens, #norms_vectors, #tile_norms_m, #norms_lengths, #tile_triangles, #norms_output]
