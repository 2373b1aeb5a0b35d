// Schedules of gdn.stage.recurrent, the delta rule token by token. docs/Schedules.md has the form.
//
// The work is to read and write the state once, so the kernel has one role, whose warps hold a V tile in registers, and as
// many CTAs as wait for memory at a time. Of states [K, V], which are contiguous along V, the warps share K and add up
// through shared memory.

// States [V, K] of 16 bits: 64 registers of the state, 32 of a key, a query and what waits for them. A warp alone waits for
// no other one's registers when it begins, and as many as a scheduler has registers for wait for memory at a time.
#alone = #gdn_warp.role_template<name = "state", warps = 1, min_registers = 168, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token.half schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <max_state_columns = 128, max_state_entries = 2048, max_state_bits = 16>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 12 : i64, in_order}
    roles [#alone]
    channels []

// States [V, K]: 16 registers of the state, 16 of a key and a query.
#short_lanes = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 64, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token.short schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <no_steps = ["keep"], max_state_columns = 128, max_state_entries = 2048>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 8 : i64, in_order}
    roles [#short_lanes]
    channels []

// The same of programs that keep states after tokens, with a gate a head.
gdn_warp.schedule_template @recurrent.token.short.kept schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <max_state_columns = 128, max_state_entries = 2048, max_vectors = 3>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 8 : i64, in_order}
    roles [#short_lanes]
    channels []

// With a gate for each channel, and states that are kept after tokens: registers have both at a time. Every warp makes the
// gates of all channels, so few warps have many rows each.
#wide_alone = #gdn_warp.role_template<name = "state", warps = 1, min_registers = 168, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token.short.wide schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <steps = ["keep"], max_state_columns = 128, max_state_entries = 2048>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 12 : i64, in_order}
    roles [#wide_alone]
    channels []

// States [K, V]: 32 registers of the state, 16 of a key and a query.
#lanes = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 96, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <max_state_columns = 128, max_state_entries = 4096, max_vectors = 3>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 5 : i64, in_order}
    roles [#lanes]
    channels []

// The same with a gate for each channel: 16 registers more.
#wide_lanes = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 128, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token.wide schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    when <max_state_columns = 128, max_state_entries = 4096>
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 4 : i64, in_order}
    roles [#wide_lanes]
    channels []

// K of 256: 64 registers of the state, 32 of a key and a query.
#long_lanes = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 168, steps = ["load", "gates", "norms", "state", "keep", "store"], lanes_per_row = 16>

gdn_warp.schedule_template @recurrent.token.long schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["recurrent"]
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 3 : i64, in_order}
    roles [#long_lanes]
    channels []
