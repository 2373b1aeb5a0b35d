"""The smallest program that fails as a given one does: ops, loops, sizes and options are dropped while it does."""

import copy
import random
import re

from .evaluate import Evaluator, make_inputs
from .numbers import Exact
from .program import Loop, from_json, remove_dead


def kind_of(outcome):
    """What must stay the same: the message without its numbers and names."""
    if outcome.state != "failed":
        return None
    text = re.sub(r"^(in|out)[0-9]+: ", "", outcome.text)
    remark = re.search(r"C75[0-9][0-9]|bytes of stack", text)
    if remark:
        return remark.group()
    return re.sub(r"[0-9][0-9.e+-]*|'[^']*'|\([^)]*\)", "#", text)[:60]


def is_sound(program):
    """Whether all that ops take is made before them, and the values have a meaning."""
    if not program.outputs() or not program.inputs():
        return False
    try:
        Evaluator(program, make_inputs(program), Exact()).run()
    except (KeyError, AssertionError, ValueError, IndexError, ArithmeticError):
        return False
    return True


def without_ops(program):
    """Each op removed: stores as they are, others with an operand of the same type in the place of the result."""
    makers = {op.result: op for op in program.ops() if op.result}
    carried = {entry[0]: entry[2] for loop in program.loops() for entry in loop.carried}
    carried |= {entry[3]: entry[2] for loop in program.loops() for entry in loop.carried}

    def type_of(name):
        op = makers.get(name) or makers[carried[name]]
        return op.shape, op.dtype

    for op in program.ops():
        if op.kind == "store":
            yield f"without a store of {op.operands[0]}", op, None
        for operand in op.operands:
            if op.result and type_of(operand) == (op.shape, op.dtype) and makers.get(operand, op).kind != "constant":
                yield f"{operand} for {op.result}", op, operand


def drop(program, op, operand):
    """The program without `op`."""
    result = from_json(program.to_json())
    for block in result.blocks():
        block[:] = [item for item in block if isinstance(item, Loop)
                    or (item.kind, item.result, item.operands, item.facts.get("array"))
                    != (op.kind, op.result, op.operands, op.facts.get("array"))]
    if operand:
        for other in result.ops():
            other.operands = [operand if name == op.result else name for name in other.operands]
        for loop in result.loops():
            loop.carried = [[operand if name == op.result else name for name in entry] for entry in loop.carried]
    return result


def smaller_sizes(program):
    """Fewer and shorter sequences, fewer heads, simpler schedules."""
    def change(**fields):
        result = copy.deepcopy(program)
        for name, value in fields.items():
            setattr(result, name, value)
        return result

    if len(program.lengths) > 1:
        for place in range(len(program.lengths)):
            yield "fewer sequences", change(lengths=program.lengths[:place] + program.lengths[place + 1:])
    if program.packed:
        for place, length in enumerate(program.lengths):
            for shorter in {0, program.chunk, length - program.chunk, length // 2}:
                if 0 <= shorter < length:
                    yield "shorter", change(lengths=program.lengths[:place] + [shorter] + program.lengths[place + 1:])
    else:
        for shorter in (program.chunk, program.lengths[0] - program.chunk):
            if 0 < shorter < program.lengths[0]:
                yield "shorter", change(lengths=[shorter] * len(program.lengths))
    if program.heads > 1:
        result = change(heads=1)
        for array in result.arrays:
            place = array.dims.index("N") + 1 if "N" in array.dims else 2
            array.dims[place + ("M" in array.dims)] = 1
        yield "one head", result
    if program.padding:
        yield "no padding", change(padding=0)
    yield from simpler_schedules(program)


def simpler_schedules(program):
    def change(edit):
        result = from_json(program.to_json())
        edit(result.schedule)
        return result

    if program.schedule.persistent:
        yield "not persistent", change(lambda s: setattr(s, "persistent", False))
    if program.schedule.chunks > 1:
        yield "one chunk an iteration", change(lambda s: setattr(s, "chunks", 1))
    for place, role in enumerate(program.schedule.roles):
        for option in ("loop_chunks", "prefetch_distance", "interleave_chunks", "loop_pieces", "hand_on_early"):
            if option in role.options:
                yield f"no {option}", change(lambda s: s.roles[place].options.pop(option))
    for place, channel in enumerate(program.schedule.channels):
        if channel.per_chunk:
            yield "a slot an iteration", change(lambda s: setattr(s.channels[place], "per_chunk", False))
        if channel.depth > 1:
            yield "less depth", change(lambda s: setattr(s.channels[place], "depth", s.channels[place].depth - 1))


def simpler_loops(program):
    """Loops that go forward, that carry less, that are not there."""
    for place, loop in enumerate(program.loops()):
        if loop.reverse or loop.counted:
            result = from_json(program.to_json())
            result.loops()[place].reverse = result.loops()[place].counted = False
            yield "forward", result
        for number in range(len(loop.carried)):
            result = from_json(program.to_json())
            other = result.loops()[place]
            entry = other.carried.pop(number)
            for op in result.ops():
                op.operands = [entry[1] if name in (entry[0], entry[3]) else name for name in op.operands]
            for later in result.loops():
                later.carried = [[entry[1] if name in (entry[0], entry[3]) else name for name in others]
                                 for others in later.carried]
            yield "less carried", result
        if len(program.loops()) > 1 and not loop.carried:
            result = from_json(program.to_json())
            result.items.remove(result.loops()[place])
            yield "one loop", result


def candidates(program):
    """Smaller programs, the boldest first."""
    yield from simpler_loops(program)
    for said, op, operand in without_ops(program):
        yield said, drop(program, op, operand)
    yield from smaller_sizes(program)


def variants(program, count):
    """`count` smaller programs for a machine that is elsewhere: all that are one step smaller, then random walks."""
    draw, found = random.Random(program.name), {}

    def add(smaller):
        remove_dead(smaller)
        if is_sound(smaller) and smaller.to_json() != program.to_json():
            found.setdefault(smaller.to_json(), smaller)
            return True
        return False

    for _, smaller in candidates(program):
        add(smaller)
    for _ in range(20 * count):
        if len(found) >= count:
            break
        walk = from_json(program.to_json())
        for _ in range(draw.randrange(2, 12)):
            steps = [smaller for _, smaller in candidates(walk)]
            following = draw.choice(steps) if steps else None
            if not following or not add(following):
                break
            walk = following
    chosen = list(found.values())[:count]
    for number, smaller in enumerate(chosen):
        smaller.name = f"{program.name.split('_v')[0]}_v{number}"
    return [program, *chosen]


def reduce(program, tools, say):
    """The smallest program found that fails on the way that `program` fails on; None if it does not."""
    for way in (tools.compile_gpu, tools.run_cpu):
        wanted = kind_of(way(program))
        if wanted:
            break
    else:
        say(f"{program.name} does not fail")
        return None
    say(f"// {program.name}: {wanted}")
    return shrink(program, lambda smaller: kind_of(way(smaller)) == wanted, say)


def shrink(program, fails, say):
    """Takes the first smaller program that fails, again and again."""
    found = True
    while found:
        found = False
        for said, smaller in candidates(program):
            remove_dead(smaller)
            if smaller.to_json() == program.to_json() or not is_sound(smaller) or not fails(smaller):
                continue
            say(f"// {said}: {len(smaller.ops())} ops")
            program, found = smaller, True
            break
    return program
