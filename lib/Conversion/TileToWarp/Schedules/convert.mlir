// Schedules of gdn.convert. docs/Schedules.md has the form.

// Copies: eight warps load a tile each, four copy tiles out. A CTA takes one work item after another; the
// multiprocessor's other CTA loads while the first one waits.
#load = #gdn_warp.role_template<name = "load", warps = 8, registers = 96, steps = ["load"], round_robin = true>
#store = #gdn_warp.role_template<name = "store", warps = 4, registers = 40, steps = ["store"], round_robin = true>
#tiles = #gdn_warp.channel_template<name = "tiles", depth = <12 chunks>, from = ["load"], to = ["store"]>

gdn_warp.schedule_template @convert.tiles schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["convert"]
    attributes {chunks_per_iteration = 1 : i64, min_ctas = 2 : i64, always_persistent}
    roles [#load, #store]
    channels [#tiles]

// A warp takes rows in turn, and loads four at a time.
#cast_rows = #gdn_warp.role_template<name = "rows", warps = 4, registers = 64, steps = ["cast"], round_robin = true>

gdn_warp.schedule_template @convert.cast schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["convert"]
    attributes {chunks_per_iteration = 4 : i64, min_ctas = 8 : i64}
    roles [#cast_rows]
    channels []

// The same in float64, which takes registers.
#rows = #gdn_warp.role_template<name = "rows", warps = 4, registers = 128, steps = ["activate"], round_robin = true>

gdn_warp.schedule_template @convert.activate schedules ["token", "cta_per_head", "cta_per_v_tile"] stages ["convert"]
    attributes {chunks_per_iteration = 4 : i64, min_ctas = 4 : i64}
    roles [#rows]
    channels []
