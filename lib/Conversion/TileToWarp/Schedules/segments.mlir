// Schedules of the stages that split sequences into segments. docs/Schedules.md has the form. gdn.stage.segment_map has
// those of the state pass.

// gdn.stage.segment_scan: a state warpgroup's thread holds 16 registers of the state, which go through shared memory to be the
// right operand of each map. Maps of the next segments are on their way; the warps that copy take turns, so each map is
// copied once.
#scan_move = #gdn_warp.role_template<name = "move", warps = 1, registers = 72, steps = ["load"], delayed_steps = ["store"], delay = <as "maps" minus 1>>
#scan_gates = #gdn_warp.role_template<name = "gates", warps = 1, registers = 72, steps = ["gates"], prefetch_distance = <2 chunks>>
#scan_rest = #gdn_warp.role_template<name = "rest", warps = 2, registers = 72, steps = []>
#scan_state = #gdn_warp.role_template<name = "state", warps = 4, min_registers = 96, steps = ["state"]>
#maps = #gdn_warp.channel_template<name = "maps", depth = <fill 2 to 4 chunks>, from = ["load"], to = ["state"]>
#decays = #gdn_warp.channel_template<name = "decays", depth = <as "maps" plus 1>, from = ["gates"], to = ["state"]>
#entries = #gdn_warp.channel_template<name = "entries", depth = <2 chunks>, from = ["state"], to = ["move"]>

gdn_warp.schedule_template @segment_scan.cta_per_v_tile schedules ["cta_per_head", "cta_per_v_tile"] stages ["segment_scan"]
    attributes {chunks_per_iteration = 1 : i64}
    roles [#scan_move, #scan_gates, #scan_rest, #scan_state]
    channels [#maps, #decays, #entries]

// gdn.stage.segment_starts: 16 warps take turns to sum the gates of some chunks, and one walks over the sums.
#sum = #gdn_warp.role_template<name = "sum", warps = 16, registers = 64, steps = ["gates"], round_robin = true>
#walk = #gdn_warp.role_template<name = "walk", warps = 1, registers = 64, steps = ["state"]>
#rest = #gdn_warp.role_template<name = "rest", warps = 3, registers = 64, steps = []>
#sums = #gdn_warp.channel_template<name = "sums", depth = <16 chunks>, from = ["gates"], to = ["walk"]>

gdn_warp.schedule_template @segment_starts.walk schedules ["cta_per_head", "cta_per_v_tile"] stages ["segment_starts"]
    attributes {chunks_per_iteration = 1 : i64, in_order}
    roles [#sum, #walk, #rest]
    channels [#sums]

// The same with a gate a channel: a warp has the channels, and walks over the tokens, whose loads it begins eight at a time.
#others = #gdn_warp.role_template<name = "rest", warps = 3, min_registers = 120, steps = []>
#channels = #gdn_warp.role_template<name = "walk", warps = 1, min_registers = 120, steps = ["load", "norms", "decay", "gates", "state"], lanes_per_row = 32>

gdn_warp.schedule_template @segment_starts.channels schedules ["cta_per_head", "cta_per_v_tile"] stages ["segment_starts"]
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 3 : i64, in_order}
    roles [#channels, #others]
    channels []

// gdn.stage.gate_bound: memory binds, so warps have the channels of some tokens each, and a multiprocessor many of them.
#look = #gdn_warp.role_template<name = "look", warps = 4, registers = 64, steps = ["load", "gates"], round_robin = true, lanes_per_row = 32>

gdn_warp.schedule_template @gate_bound.channels schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["gate_bound"]
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 8 : i64, in_order}
    roles [#look]
    channels []

// gdn.stage.segment_boundaries: some numbers a sequence.
#cut = #gdn_warp.role_template<name = "cut", warps = 4, registers = 96, steps = ["store"]>

gdn_warp.schedule_template @segment_boundaries.sequence schedules ["cta_per_head", "cta_per_v_tile"] stages ["segment_boundaries"]
    attributes {chunks_per_iteration = 1 : i64}
    roles [#cut]
    channels []
