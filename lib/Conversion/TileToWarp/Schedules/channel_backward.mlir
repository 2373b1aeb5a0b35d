// Schedules of the stages of a backward with a gate a channel (the step `decay`), and of a forward that saves for one.
// docs/Schedules.md has the form.

//===--------------------------------------------------------------------------------------------------------------===//
// The recurrences: the forward's roles of channel_gates.mlir, and tiles of V that go out where its output does
//===--------------------------------------------------------------------------------------------------------------===//

// A state waits for its copy in a slot of its own. The warp that stores has no loop over the chunks of an iteration: what it
// does for them differs.
#prepare = #gdn_warp.role_template<name = "prepare", warps = 4, registers = 200, steps = ["decay", "halves", "scores"], loop_chunks = true>
#gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 96, steps = ["gates"], prefetch_distance = <2 chunks>>
#solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true>
#move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load"], delayed_steps = ["store_state", "store"], delay = <1 iterations>>
#state = #gdn_warp.role_template<name = "state", warps = 4, registers = 208, steps = ["keep", "state"]>

#keys = #gdn_warp.channel_template<name = "keys", depth = <fill 1 to 4 chunks>, from = ["load"], to = ["prepare"], slot_per_chunk = true>
#values = #gdn_warp.channel_template<name = "values", depth = <4 chunks>, from = ["load"], to = ["state"], slot_per_chunk = true>
#vectors = #gdn_warp.channel_template<name = "vectors", depth = <as "values" plus 1>, from = ["gates"], to = ["prepare", "state"]>
#decayed = #gdn_warp.channel_template<name = "decayed", depth = <fill 1 to 4 chunks>, from = ["decay"], to = ["state"], slot_per_chunk = true>
#m = #gdn_warp.channel_template<name = "m", depth = <2 chunks>, from = ["scores"], to = ["solve"], slot_per_chunk = true>
#triangles = #gdn_warp.channel_template<name = "triangles", depth = <4 chunks>, from = ["scores", "solve"], to = ["state"], slot_per_chunk = true>
#kept = #gdn_warp.channel_template<name = "kept", depth = <1 iterations>, from = ["keep"], to = ["move"]>
#output = #gdn_warp.channel_template<name = "output", depth = <2 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

// The CTAs of two V tiles are a cluster, and each makes tiles, scores and inverses of every other iteration for both.
#pair_prepare = #gdn_warp.role_template<name = "prepare", warps = 4, registers = 200, steps = ["decay", "halves", "scores"], loop_chunks = true, alternate_ctas = true>
#pair_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 96, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>
#pair_decayed = #gdn_warp.channel_template<name = "decayed", depth = <4 chunks>, from = ["decay"], to = ["state"], slot_per_chunk = true>

// Loads bind a pair if a bound keeps its gates in range. So one warp stores and nothing else, and loads do not wait for
// stores; values have slots for three iterations.
#store_solve = #gdn_warp.role_template<name = "solve", warps = 1, registers = 96, steps = ["solve"], loop_chunks = true, alternate_ctas = true>
#store_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load"]>
#store = #gdn_warp.role_template<name = "store", warps = 1, registers = 96, steps = ["store_state", "store"]>
#store_values = #gdn_warp.channel_template<name = "values", depth = <6 chunks>, from = ["load"], to = ["state"], slot_per_chunk = true>
#store_kept = #gdn_warp.channel_template<name = "kept", depth = <1 iterations>, from = ["keep"], to = ["store"]>
#store_output = #gdn_warp.channel_template<name = "output", depth = <2 chunks>, from = ["state"], to = ["store"], slot_per_chunk = true>

gdn_warp.schedule_template @recurrence.channel_gates.pair.store schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused", "replay", "adjoint"]
    when <steps = ["decay", "keep"], no_steps = ["halves"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_prepare, #gates, #store_solve, #store_move, #store, #state]
    channels [#keys, #store_values, #vectors, #pair_decayed, #m, #triangles, #store_kept, #store_output]

gdn_warp.schedule_template @recurrence.channel_gates.pair schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused", "replay", "adjoint"]
    when <steps = ["decay", "keep"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_prepare, #gates, #pair_solve, #move, #state]
    channels [#keys, #values, #vectors, #pair_decayed, #m, #triangles, #kept, #output]

gdn_warp.schedule_template @recurrence.channel_gates schedules ["cta_per_head", "cta_per_v_tile"] stages ["fused", "replay", "adjoint"]
    when <steps = ["decay", "keep"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #gates, #solve, #move, #state]
    channels [#keys, #values, #vectors, #decayed, #m, #triangles, #kept, #output]

// gdn.stage.adjoint_pass stores nothing before the end.
#pass_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 96, steps = ["load"]>
#pass_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 208, steps = ["state"]>

gdn_warp.schedule_template @adjoint_pass.channel_gates.pair schedules ["cta_per_head", "cta_per_v_tile"] stages ["adjoint_pass"]
    when <steps = ["decay"], min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_prepare, #gates, #pair_solve, #pass_move, #pass_state]
    channels [#keys, #store_values, #vectors, #pair_decayed, #m, #triangles]

gdn_warp.schedule_template @adjoint_pass.channel_gates schedules ["cta_per_head", "cta_per_v_tile"] stages ["adjoint_pass"]
    when <steps = ["decay"]>
    attributes {chunks_per_iteration = 2 : i64}
    roles [#prepare, #gates, #solve, #pass_move, #pass_state]
    channels [#keys, #values, #vectors, #decayed, #m, #triangles]

//===--------------------------------------------------------------------------------------------------------------===//
// Gradients: chunks of 64 tokens, the value heads of a group one after the other
//===--------------------------------------------------------------------------------------------------------------===//

// The warps of the pairs sum up the gates, and multiply states with their gradients. Those of a half of K make its decayed
// rows, which lie in the place of rows of q and k and in one beside them, and sum up the gradient of its gates. A thread of
// theirs holds the gradient of a row, its inner products and a product, 96 registers: gates, rows and addresses are read or
// made again at each use. With more than 160 registers ptxas loads more ahead, and spills. What sums are carried by from
// reference to reference is made by a warp of its own.
#pairs = #gdn_warp.role_template<name = "pairs", warps = 4, registers = 152, steps = ["decay", "raw_gates", "scores", "sums"], late_addresses = true>
#low_keys = #gdn_warp.role_template<name = "low_keys", warps = 4, registers = 160, steps = ["low_keys"], share_code = true, late_addresses = true>
#high_keys = #gdn_warp.role_template<name = "high_keys", warps = 4, registers = 160, steps = ["high_keys"], share_code = true, late_addresses = true>
#copy = #gdn_warp.role_template<name = "move", warps = 1, registers = 24, steps = ["load", "load_state", "load_gradient", "load_keys"]>
#vectors_of = #gdn_warp.role_template<name = "gates", warps = 1, registers = 24, steps = ["gates"]>
#finish = #gdn_warp.role_template<name = "finish", warps = 1, registers = 24, steps = ["finish"]>
#factors_of = #gdn_warp.role_template<name = "factors", warps = 1, registers = 24, steps = ["factors"]>

#tokens = #gdn_warp.channel_template<name = "values", depth = <1 chunks>, from = ["load"], to = ["pairs", "low_keys", "high_keys"]>
#states = #gdn_warp.channel_template<name = "states", depth = <1 chunks>, from = ["load_state"], to = ["pairs", "low_keys", "high_keys"]>
#adjoints = #gdn_warp.channel_template<name = "adjoints", depth = <1 chunks>, from = ["load_gradient"], to = ["pairs", "low_keys", "high_keys"]>
#rows = #gdn_warp.channel_template<name = "rows", depth = <1 chunks>, from = ["load_keys"], to = ["low_keys", "high_keys"]>
#decays = #gdn_warp.channel_template<name = "gates", depth = <1 chunks>, from = ["decay"], to = ["low_keys", "high_keys"]>
#sums_of = #gdn_warp.channel_template<name = "gates", depth = <1 chunks>, from = ["decay"], to = ["factors", "low_keys", "high_keys"]>
#factors = #gdn_warp.channel_template<name = "factors", depth = <1 chunks>, from = ["factors"], to = ["low_keys", "high_keys"]>
#masks = #gdn_warp.channel_template<name = "vectors", depth = <2 chunks>, from = ["gates"], to = ["pairs", "low_keys", "high_keys"]>
#tiles = #gdn_warp.channel_template<name = "tiles", depth = <1 chunks>, from = ["scores"], to = ["low_keys", "high_keys"]>
#carried = #gdn_warp.channel_template<name = "carried", depth = <1 chunks>, from = ["sums"], to = ["low_keys", "high_keys"]>
#sums = #gdn_warp.channel_template<name = "sums", depth = <2 chunks>, from = ["scores"], to = ["finish"]>

// Gates of any strength have a rare kind of chunk (the steps `low_pairs` and `high_pairs`), whose pieces are half as wide. The
// warps that copy have more addresses of them, for which 24 registers are too few.
#any_pairs = #gdn_warp.role_template<name = "pairs", warps = 4, registers = 104, steps = ["decay", "raw_gates", "scores", "sums"], late_addresses = true>
#any_low_keys = #gdn_warp.role_template<name = "low_keys", warps = 4, registers = 184, steps = ["low_keys", "low_pairs"], share_code = true, late_addresses = true>
#any_high_keys = #gdn_warp.role_template<name = "high_keys", warps = 4, registers = 184, steps = ["high_keys", "high_pairs"], share_code = true, late_addresses = true>
#any_copy = #gdn_warp.role_template<name = "move", warps = 1, registers = 40, steps = ["load", "load_state", "load_gradient", "load_keys"]>
#any_vectors_of = #gdn_warp.role_template<name = "gates", warps = 1, registers = 40, steps = ["gates"]>
#any_finish = #gdn_warp.role_template<name = "finish", warps = 1, registers = 40, steps = ["finish"]>
#any_rest = #gdn_warp.role_template<name = "rest", warps = 1, registers = 40, steps = []>

gdn_warp.schedule_template @gradients.channel_gates.any schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    when <steps = ["load_state", "decay", "low_pairs"]>
    attributes {chunks_per_iteration = 1 : i64}
    roles [#any_pairs, #any_low_keys, #any_high_keys, #any_copy, #any_vectors_of, #any_finish, #any_rest]
    channels [#tokens, #states, #adjoints, #rows, #decays, #masks, #tiles, #carried, #sums]

// Gradients of rows in front of their norm: the halves of K hand each other the row dots of keys, and then those of queries.
#norms_low_keys = #gdn_warp.role_template<name = "low_keys", warps = 4, registers = 160, steps = ["low_keys", "low_queries"], share_code = true, late_addresses = true>
#norms_high_keys = #gdn_warp.role_template<name = "high_keys", warps = 4, registers = 160, steps = ["high_keys", "high_queries"], share_code = true, late_addresses = true>
#low_key_dots = #gdn_warp.channel_template<name = "low_key_dots", depth = <1 chunks>, from = ["low_keys"], to = ["high_keys"]>
#high_key_dots = #gdn_warp.channel_template<name = "high_key_dots", depth = <1 chunks>, from = ["high_keys"], to = ["low_keys"]>
#low_query_dots = #gdn_warp.channel_template<name = "low_query_dots", depth = <1 chunks>, from = ["low_queries"], to = ["high_keys"]>
#high_query_dots = #gdn_warp.channel_template<name = "high_query_dots", depth = <1 chunks>, from = ["high_queries"], to = ["low_keys"]>

gdn_warp.schedule_template @gradients.channel_gates.norms schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    when <steps = ["load_state", "decay", "low_queries"]>
    attributes {chunks_per_iteration = 1 : i64}
    roles [#pairs, #norms_low_keys, #norms_high_keys, #copy, #vectors_of, #finish, #factors_of]
    channels [#tokens, #states, #adjoints, #rows, #sums_of, #factors, #masks, #tiles, #carried, #sums, #low_key_dots, #high_key_dots, #low_query_dots, #high_query_dots]

gdn_warp.schedule_template @gradients.channel_gates schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    when <steps = ["load_state", "decay"]>
    attributes {chunks_per_iteration = 1 : i64}
    roles [#pairs, #low_keys, #high_keys, #copy, #vectors_of, #finish, #factors_of]
    channels [#tokens, #states, #adjoints, #rows, #sums_of, #factors, #masks, #tiles, #carried, #sums]
