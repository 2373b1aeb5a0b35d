// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected roles of different names, got two of a}}
gdn_warp.schedule_template @roles schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 4, steps = []>, <name = "a", warps = 4, steps = []>] channels []

// -----

// expected-error @below {{expected at least 1 warp in role a, got 0}}
gdn_warp.schedule_template @warps schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 0, steps = []>] channels []

// -----

// expected-error @below {{expected channel c to go to roles of the template, got "b"}}
gdn_warp.schedule_template @taker schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 4, steps = []>] channels [<name = "c", depth = <1 chunks>, from = [], to = ["b"]>]

// -----

// expected-error @below {{expected channels of different names, got two of c}}
gdn_warp.schedule_template @channels schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 4, steps = []>]
    channels [<name = "c", depth = <1 chunks>, from = [], to = []>, <name = "c", depth = <1 chunks>, from = [], to = []>]

// -----

// expected-error @below {{expected an amount as that of a channel of the template, whose depth is a number or fills, got "d"}}
gdn_warp.schedule_template @followed schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 4, steps = [], delay = <as "d">>]
    channels [<name = "c", depth = <1 chunks>, from = [], to = []>, <name = "d", depth = <as "c" plus 1>, from = [], to = []>]

// -----

// expected-error @below {{expected 1 to 65536 chunks an iteration and CTAs of a cluster, got 0 and 1}}
gdn_warp.schedule_template @chunks schedules ["x"] attributes {chunks_per_iteration = 0 : i64} roles [] channels []

// -----

gdn_warp.schedule_template @fill schedules ["x"] attributes {chunks_per_iteration = 1 : i64} roles []
    // expected-error @below {{failed to parse Warp_ChannelTemplateAttr parameter 'depth'}}
    // expected-error @below {{expected to fill with 1 chunk or more, up to a maximum that is not less, got 4 to 2}}
    channels [<name = "c", depth = <fill 4 to 2 chunks>, from = [], to = []>]

// -----

gdn_warp.schedule_template @delay schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    // expected-error @below {{expected a depth to fill shared memory, got a delay or distance of role a}}
    roles [<name = "a", warps = 4, steps = [], delay = <fill 1 to 2 chunks>>] channels []

// -----

gdn_warp.schedule_template @registers schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    // expected-error @below {{expected registers or min_registers in role a, got both}}
    roles [<name = "a", warps = 4, registers = 40, min_registers = 40, steps = []>] channels []

// -----

gdn_warp.schedule_template @steps schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    // expected-error @below {{expected a list of strings, got 1 : i64}}
    roles [<name = "a", warps = 4, steps = [1]>] channels []

// -----

// expected-error @below {{expected 1 to 65536 chunks an iteration and CTAs of a cluster, got -1 and 1}}
gdn_warp.schedule_template @negative schedules ["x"] attributes {chunks_per_iteration = -1 : i64} roles [] channels []

// -----

// expected-error @below {{expected 1 to 65536 CTAs on a multiprocessor, got -1}}
gdn_warp.schedule_template @ctas schedules ["x"] attributes {chunks_per_iteration = 1 : i64, min_ctas = -1 : i64} roles [] channels []

// -----

// expected-error @below {{expected attributes of the op, or under a dialect's name, got 'persistant'}}
gdn_warp.schedule_template @misspelled schedules ["x"] attributes {chunks_per_iteration = 1 : i64, persistant} roles [] channels []

// -----

// The number that is wrong is the one that is printed.
gdn_warp.schedule_template @maximum schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    roles [<name = "a", warps = 4, steps = []>]
    // expected-error @+2 {{expected an amount of 0 to 65536, got -1}}
    // expected-error @below {{failed to parse Warp_ChannelTemplateAttr parameter 'depth'}}
    channels [<name = "c", depth = <fill 2 to -1 chunks>, from = [], to = ["a"]>]

// -----

gdn_warp.schedule_template @registers schedules ["x"] attributes {chunks_per_iteration = 1 : i64}
    // expected-error @below {{expected numbers of registers of 0 to 65536 in role a, got -5}}
    roles [<name = "a", warps = 4, min_registers = -5, steps = []>] channels []
