"""A schedule for a random program: its roles, and the channels that its values need."""

from .numbers import BYTES
from .program import Channel, Loop, Role, Schedule

SHARED_BYTES = 232448 - 4096  # Of a CTA, with room for barriers and alignment.
WARP_REGISTERS = 2048  # Registers of a multiprocessor over threads of a warp.
# The steps in the order in which values go from role to role.
ORDER = ["load", "gates", "scores", "state", "store"]
# Steps of each role, by the kind of the program.
STEPS = {"one": {"all": ["load", "gates", "scores", "state"]},
         "move": {"move": ["load"], "state": ["gates", "scores", "state"]},
         "prepare": {"move": ["load"], "prepare": ["gates", "scores"], "state": ["state"]},
         "vectors": {"move": ["load"], "vectors": ["gates"], "state": ["scores", "state"]},
         "prepare and vectors": {"move": ["load"], "vectors": ["gates"], "prepare": ["scores"], "state": ["state"]}}


def role_of(kind, step):
    """The role of a step while the program is drawn; `store` is settled by the schedule."""
    for role, steps in STEPS[kind].items():
        if step in steps:
            return role
    return "state" if kind != "one" else "all"


def make_roles(draw, shape, program, late):
    """Roles whose warpgroups are whole and whose registers fit."""
    used = {op.step for op in program.ops()}
    roles = []
    for name, steps in STEPS[shape.kind].items():
        steps = [step for step in steps if step in used or name in ("all", "state", "move")]
        if steps and any(step in used for step in steps) or name in ("state", "all"):
            roles.append(Role(name, {"move": 1, "vectors": 1}.get(name, 4), 0, steps))
    by_name = {role.name: role for role in roles}
    last = by_name.get("state") or by_name["all"]
    if shape.folded and "state" in by_name:
        last.warps = 4 * shape.tiles
        last.options["warpgroup_per_v_tile"] = True
    move = by_name.get("move")
    if "store" in used:
        if late and move:
            move.options.update(delayed_steps=["store"], delay=draw.choice([1, 1, 2]))
        elif move and draw.random() < 0.3:
            move.steps.append("store")
        else:
            last.steps.append("store")
    if move and draw.random() < 0.3 and "delay" not in move.options:
        move.options["loop_chunks"] = True
    if "vectors" in by_name:
        if draw.random() < 0.3:
            by_name["vectors"].options["prefetch_distance"] = draw.choice([1, 2])
        elif draw.random() < 0.2:
            by_name["vectors"].options["loop_chunks"] = True
        elif draw.random() < 0.2:
            by_name["vectors"].options["interleave_chunks"] = True
    roles.sort(key=lambda role: role.warps != 1)
    small = [role for role in roles if role.warps == 1]
    if small:
        roles.insert(len(small), Role("idle", 4 - len(small), 0, []))
    return share_registers(roles)


def share_registers(roles):
    """Small warps get 96, the others what is left."""
    warps = sum(role.warps for role in roles)
    total = min(255, WARP_REGISTERS // warps) // 8 * 8 * warps
    first = sum(role.warps for role in roles if role.name in ("move", "vectors", "idle"))
    large = [role for role in roles if role.name not in ("move", "vectors", "idle")]
    each = (total - 96 * first) // sum(role.warps for role in large) if large else 0
    for role in roles:
        role.registers = min(240, each // 8 * 8) if role in large else 96
    return roles


def find_crossing(program, roles):
    """(step of the maker, taking role) -> sizes in bytes of the values that go there, those of a chunk each."""
    owner = {step: role.name for role in roles for step in role.steps + role.options.get("delayed_steps", [])}
    makers = {op.result: op for op in program.ops() if op.result}
    crossing = {}
    for op in program.ops():
        for name in op.operands:
            maker = makers.get(name)
            # What is only wider is made again by its taker.
            while maker and maker.kind == "extf":
                name = maker.operands[0]
                maker = makers.get(name)
            if op.kind == "extf" or not maker or maker.kind == "constant" or owner[maker.step] == owner[op.step]:
                continue
            size = BYTES[maker.dtype]
            for extent in maker.shape:
                size *= extent
            crossing.setdefault((maker.step, owner[op.step]), {})[name] = size
    return crossing, owner


def make_channels(draw, shape, crossing, late):
    """Channels for what crosses: one for each pair or one for several takers, with slots that fit."""
    channels, sizes = [], []
    for maker in ORDER:
        takers = [taker for step, taker in crossing if step == maker]
        groups = [takers] if draw.random() < 0.5 else [[taker] for taker in takers]
        for group in groups:
            if not group:
                continue
            values = {name: size for taker in group for name, size in crossing[maker, taker].items()}
            channels.append(Channel(f"from_{maker}" + (f"_to_{group[0]}" if len(groups) > 1 else ""), 1, [maker], group,
                                    draw.random() < 0.25))
            sizes.append(sum(values.values()) * (shape.tiles if shape.folded else 1))
    merge(draw, channels, sizes)
    wanted = draw.choice([1, 2, 2, 3, 4])
    for depth in range(wanted, 0, -1):
        used = 0
        for channel, size in zip(channels, sizes):
            channel.depth = depth * (shape.per_iteration if channel.per_chunk and draw.random() < 0.8 else 1)
            if late:
                channel.depth = max(channel.depth, (late + 1) * (shape.per_iteration if channel.per_chunk else 1))
            used += channel.depth * size * (1 if channel.per_chunk else shape.per_iteration)
        if used <= SHARED_BYTES:
            break
    return channels


def merge(draw, channels, sizes):
    """Some channels to the same roles become one."""
    for first in range(len(channels) - 1, 0, -1):
        other = channels[first - 1]
        if other.to == channels[first].to and draw.random() < 0.3:
            other.sources += channels[first].sources
            sizes[first - 1] += sizes.pop(first)
            channels.pop(first)


def make_schedule(draw, shape, program):
    late = "store" in {op.step for op in program.ops()} and shape.kind != "one" and draw.random() < 0.5
    roles = make_roles(draw, shape, program, late)
    crossing, _ = find_crossing(program, roles)
    delay = max(role.options.get("delay", 0) for role in roles)
    # Now and then too few slots for a delay: refused.
    channels = make_channels(draw, shape, crossing, delay if draw.random() < 0.9 else 0)
    has_loop = any(isinstance(item, Loop) for item in program.items)
    schedule = Schedule(chunks=shape.per_iteration if has_loop else 1, v_tiles=shape.tiles if shape.folded else 1,
                        roles=roles, channels=channels, persistent=draw.random() < 0.15)
    for role in roles:
        for option in ("loop_pieces", "hand_on_early"):
            if role.warps >= 4 and draw.random() < 0.4:
                role.options[option] = True
    return schedule


def registers_of(op):
    """Registers of a thread that a tile takes where it is made in registers."""
    if len(op.shape) < 2 or op.kind == "constant":
        return 1
    return max(1, op.shape[0] * op.shape[1] * BYTES[op.dtype] // 4 // 128)


def pressure(program):
    """The largest part of a role's registers that its tiles take at a time."""
    worst = 0.0
    for role in program.schedule.roles:
        if role.name not in ("move", "idle", "vectors"):
            most = max([pressure_of(block, program, role) for block in program.blocks()] or [0])
            worst = max(worst, most / role.registers)
    return worst


def pressure_of(block, program, role):
    """Registers of the tiles of `role` that live at a time in a block."""
    mine = lambda op: op.step in role.steps
    loops = {id(loop.body): loop for loop in program.loops()}
    sizes = {op.result: registers_of(op) for op in program.ops() if op.result and mine(op)
             and (op.kind != "load" or op.step != "load")}
    for loop in program.loops():
        for argument, _, yielded, result in loop.carried:
            sizes[argument] = sizes[result] = sizes.get(yielded, 0)
    ops = [item for item in block if not isinstance(item, Loop)]
    last = {name: place for place, op in enumerate(ops) if mine(op) for name in op.operands if name in sizes}
    live, most = set(), 0
    if id(block) in loops:
        live |= {entry[0] for entry in loops[id(block)].carried}
        last.update({entry[2]: len(ops) for entry in loops[id(block)].carried})
    for place, op in enumerate(ops):
        if not mine(op):
            continue
        # A store takes addresses, a product its left operand and accumulator.
        if op.result in sizes:
            live.add(op.result)
        most = max(most, sum(sizes.get(name, 0) for name in live))
        live = {name for name in live if last.get(name, -1) > place or name == op.result and name in last}
    return most
