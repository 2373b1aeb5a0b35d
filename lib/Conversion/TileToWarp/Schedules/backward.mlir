// Schedules of the stages of a backward: gdn.stage.replay, gdn.stage.adjoint, gdn.stage.adjoint_pass and
// gdn.stage.gradients. docs/Schedules.md has the form.

//===--------------------------------------------------------------------------------------------------------------===//
// The two recurrences: the forward's roles. Tiles of V go out where its output does.
//===--------------------------------------------------------------------------------------------------------------===//

// Every second chunk's state is kept, and waits for its copy in slots of its own. The warps of `state` are what a
// recurrence waits for, so they wait once an iteration where they can. A warp that stores has no loop over the chunks of an
// iteration: what it does for them differs.
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
#output = #gdn_warp.channel_template<name = "output", depth = <3 chunks>, from = ["state"], to = ["move"], slot_per_chunk = true>

// The CTAs of two V tiles are a cluster, and each makes scores and inverses of every other iteration for both.
#pair_scores = #gdn_warp.role_template<name = "scores", warps = 4, registers = 120, steps = ["scores"], loop_chunks = true, alternate_ctas = true>
#pair_solve = #gdn_warp.role_template<name = "solve", warps = 2, registers = 120, steps = ["solve"], round_robin = true, loop_chunks = true, alternate_ctas = true>
#pair_tokens = #gdn_warp.channel_template<name = "tokens", depth = <6 chunks>, from = ["load"], to = ["scores", "state"], slot_per_chunk = true>

gdn_warp.schedule_template @recurrence.pair schedules ["cta_per_head", "cta_per_v_tile"] stages ["replay", "adjoint"]
    when <min_v_tiles = 2, max_v_tiles = 2>
    attributes {chunks_per_iteration = 2 : i64, cluster = 2 : i64}
    roles [#pair_scores, #gates, #pair_solve, #move, #state]
    channels [#pair_tokens, #vectors, #m, #triangles, #kept, #output]

gdn_warp.schedule_template @recurrence.cta_per_v_tile schedules ["cta_per_head", "cta_per_v_tile"] stages ["replay", "adjoint"]
    attributes {chunks_per_iteration = 2 : i64}
    roles [#scores, #gates, #solve, #move, #state]
    channels [#tokens, #vectors, #m, #triangles, #kept, #output]

// gdn.stage.adjoint_pass stores nothing before the end.
#pass_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 120, steps = ["load"], loop_chunks = true>
#pass_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 240, steps = ["state"]>

gdn_warp.schedule_template @adjoint_pass.cta_per_v_tile schedules ["cta_per_head", "cta_per_v_tile"] stages ["adjoint_pass"]
    attributes {chunks_per_iteration = 2 : i64}
    roles [#scores, #gates, #solve, #pass_move, #pass_state]
    channels [#tokens, #vectors, #m, #triangles]

//===--------------------------------------------------------------------------------------------------------------===//
// States between those that a forward saved: two CTAs on a multiprocessor
//===--------------------------------------------------------------------------------------------------------------===//

#expand_gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 80, steps = ["gates"], prefetch_distance = <1 chunks>>
#expand_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 80, steps = ["load"], delayed_steps = ["store_state"], delay = <1 chunks>>
#expand_rest = #gdn_warp.role_template<name = "rest", warps = 2, registers = 80, steps = []>
#expand_state = #gdn_warp.role_template<name = "state", warps = 4, registers = 168, steps = ["keep", "state"]>

#expand_tokens = #gdn_warp.channel_template<name = "tokens", depth = <2 chunks>, from = ["load"], to = ["state"], slot_per_chunk = true>
#expand_vectors = #gdn_warp.channel_template<name = "vectors", depth = <3 chunks>, from = ["gates"], to = ["state"]>
#expand_kept = #gdn_warp.channel_template<name = "kept", depth = <2 chunks>, from = ["keep"], to = ["move"]>

gdn_warp.schedule_template @expand.cta_per_v_tile schedules ["cta_per_head", "cta_per_v_tile"] stages ["expand"]
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 2 : i64, in_order}
    roles [#expand_state, #expand_gates, #expand_move, #expand_rest]
    channels [#expand_tokens, #expand_vectors, #expand_kept]

//===--------------------------------------------------------------------------------------------------------------===//
// Gradients: chunks of 64 tokens, the value heads of a group one after the other
//===--------------------------------------------------------------------------------------------------------------===//

// A half of K is 64 channels: its warps hold the sums of dq and dk over a group in 64 registers, and a product in 32.
#pairs = #gdn_warp.role_template<name = "pairs", warps = 4, registers = 120, steps = ["scores", "sums"]>
#low_keys = #gdn_warp.role_template<name = "low_keys", warps = 4, registers = 176, steps = ["low_keys"], share_code = true>
#high_keys = #gdn_warp.role_template<name = "high_keys", warps = 4, registers = 176, steps = ["high_keys"], share_code = true>
#copy = #gdn_warp.role_template<name = "move", warps = 1, registers = 40, steps = ["load", "load_state", "load_gradient", "load_keys"]>
#vectors_of = #gdn_warp.role_template<name = "gates", warps = 1, registers = 40, steps = ["gates"]>
#finish = #gdn_warp.role_template<name = "finish", warps = 1, registers = 40, steps = ["finish"]>
#rest = #gdn_warp.role_template<name = "rest", warps = 1, registers = 40, steps = []>

// Memory is what the kernel waits for: what is done first is loaded first, each in slots of its own.
#values = #gdn_warp.channel_template<name = "values", depth = <2 chunks>, from = ["load"], to = ["pairs", "low_keys", "high_keys"]>
#states = #gdn_warp.channel_template<name = "states", depth = <1 chunks>, from = ["load_state"], to = ["pairs", "low_keys", "high_keys"]>
#adjoints = #gdn_warp.channel_template<name = "adjoints", depth = <1 chunks>, from = ["load_gradient"], to = ["pairs", "low_keys", "high_keys"]>
#rows = #gdn_warp.channel_template<name = "rows", depth = <1 chunks>, from = ["load_keys"], to = ["low_keys", "high_keys"]>
#decays = #gdn_warp.channel_template<name = "vectors", depth = <2 chunks>, from = ["gates"], to = ["pairs", "low_keys", "high_keys", "finish"]>
#tiles = #gdn_warp.channel_template<name = "tiles", depth = <1 chunks>, from = ["scores"], to = ["low_keys", "high_keys"]>
#sums = #gdn_warp.channel_template<name = "sums", depth = <2 chunks>, from = ["scores", "sums", "low_keys", "high_keys"], to = ["finish"]>

gdn_warp.schedule_template @gradients.key_head schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    when <steps = ["load_state"]>
    attributes {chunks_per_iteration = 1 : i64}
    roles [#pairs, #low_keys, #high_keys, #copy, #vectors_of, #finish, #rest]
    channels [#values, #states, #adjoints, #rows, #decays, #tiles, #sums]

// A state is kept before every second chunk. The warps of the pairs make the others while those of a half of K have the
// chunk before: of a kept one, half of which they load themselves, and of what the tokens in between write. So keys begin
// with what needs no state.
#halfway_pairs = #gdn_warp.role_template<name = "pairs", warps = 4, registers = 128, steps = ["low_state", "high_state", "scores"]>
#halfway_copy = #gdn_warp.role_template<name = "move", warps = 1, registers = 32, steps = ["load", "load_write", "load_gradient", "load_output", "load_keys"]>
#halfway_vectors = #gdn_warp.role_template<name = "gates", warps = 1, registers = 32, steps = ["gates"]>
#halfway_finish = #gdn_warp.role_template<name = "finish", warps = 1, registers = 32, steps = ["finish"]>
#halfway_early = #gdn_warp.role_template<name = "early", warps = 1, registers = 32, steps = ["load_between", "load_kept"]>

#halfway_writes = #gdn_warp.channel_template<name = "writes", depth = <1 chunks>, from = ["load_write"], to = ["pairs", "low_keys", "high_keys"]>
#halfway_values = #gdn_warp.channel_template<name = "values", depth = <1 chunks>, from = ["load"], to = ["pairs", "low_keys", "high_keys"]>
#halfway_outputs = #gdn_warp.channel_template<name = "outputs", depth = <1 chunks>, from = ["load_output"], to = ["pairs", "low_keys", "high_keys"]>
#halfway_adjoints = #gdn_warp.channel_template<name = "adjoints", depth = <1 chunks>, from = ["load_gradient"], to = ["low_keys", "high_keys"]>
#between = #gdn_warp.channel_template<name = "between", depth = <1 chunks>, from = ["load_between"], to = ["pairs"]>
#kept_state = #gdn_warp.channel_template<name = "kept", depth = <1 chunks>, from = ["load_kept"], to = ["pairs"]>
#low_states = #gdn_warp.channel_template<name = "low_states", depth = <1 chunks>, from = ["low_state"], to = ["low_keys"]>
#high_states = #gdn_warp.channel_template<name = "high_states", depth = <1 chunks>, from = ["high_state"], to = ["high_keys"]>
#halfway_sums = #gdn_warp.channel_template<name = "sums", depth = <2 chunks>, from = ["scores", "low_keys", "high_keys"], to = ["finish"]>

gdn_warp.schedule_template @gradients.halfway schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    when <steps = ["load_between"]>
    attributes {chunks_per_iteration = 1 : i64}
    roles [#halfway_pairs, #low_keys, #high_keys, #halfway_copy, #halfway_vectors, #halfway_finish, #halfway_early]
    channels [#between, #kept_state, #halfway_writes, #halfway_outputs, #halfway_values, #halfway_adjoints, #rows, #decays, #low_states, #high_states, #tiles, #halfway_sums]

// The state is carried, in 64 registers of each half of K: a kept state is loaded before the loop. CTAs of a cluster have the
// value heads of a group and add up dq and dk.
#carry_pairs = #gdn_warp.role_template<name = "pairs", warps = 4, registers = 104, steps = ["scores"]>
#carry_low = #gdn_warp.role_template<name = "low_keys", warps = 4, registers = 184, steps = ["low_keys"]>
#carry_high = #gdn_warp.role_template<name = "high_keys", warps = 4, registers = 184, steps = ["high_keys"]>
#carry_copy = #gdn_warp.role_template<name = "move", warps = 1, registers = 40, steps = ["load_output", "load", "load_gradient", "load_keys"]>

// The gradient of o is released first: it has one slot.
#carry_outputs = #gdn_warp.channel_template<name = "outputs", depth = <1 chunks>, from = ["load_output"], to = ["pairs", "low_keys", "high_keys"]>
#carry_adjoints = #gdn_warp.channel_template<name = "adjoints", depth = <1 chunks>, from = ["load_gradient"], to = ["low_keys", "high_keys"]>
#carry_sums = #gdn_warp.channel_template<name = "sums", depth = <2 chunks>, from = ["scores", "low_keys", "high_keys"], to = ["finish"]>

gdn_warp.schedule_template @gradients.carry schedules ["cta_per_head", "cta_per_v_tile"] stages ["gradients"]
    attributes {chunks_per_iteration = 1 : i64}
    roles [#carry_pairs, #carry_low, #carry_high, #carry_copy, #vectors_of, #finish, #rest]
    channels [#carry_outputs, #values, #carry_adjoints, #rows, #decays, #tiles, #carry_sums]
