"""A random tile program as data: what the generator makes, the evaluator runs and the reducer cuts."""

import dataclasses
import json


@dataclasses.dataclass
class Array:
    """An argument or a result of the function. Sizes are numbers or B, T, N, M (most chunks of a sequence)."""

    name: str
    dtype: str
    dims: list
    output: bool = False
    low: float = -1.0  # Inputs are uniform in [low, high).
    high: float = 1.0


@dataclasses.dataclass
class Op:
    """An op of a program. Operands and results are names of tiles."""

    kind: str
    result: str = ""
    operands: list = dataclasses.field(default_factory=list)
    shape: list = dataclasses.field(default_factory=list)
    dtype: str = "f32"
    step: str = ""
    facts: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Loop:
    """A loop over the chunks of the sequence; `carried` has argument, init, yielded value and result of each. A
    counted one runs over the numbers of chunks, others over their first tokens."""

    body: list
    carried: list
    reverse: bool = False
    counted: bool = False


@dataclasses.dataclass
class Role:
    name: str
    warps: int
    registers: int
    steps: list
    options: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Channel:
    name: str
    depth: int
    sources: list
    to: list
    per_chunk: bool = False


@dataclasses.dataclass
class Schedule:
    chunks: int
    v_tiles: int
    roles: list
    channels: list
    persistent: bool = False


@dataclasses.dataclass
class Program:
    """A program, the sizes it is launched on, and its schedule."""

    name: str
    chunk: int  # Tokens of a chunk.
    heads: int
    tiles: int  # V tiles: the last dimension of the grid.
    lengths: list  # Of sequences: packed, or one length for each of a batch.
    packed: bool
    arrays: list
    items: list  # Ops and loops.
    schedule: Schedule
    padding: int = 0  # Tokens of the arrays behind the last packed sequence.
    dynamic: bool = True  # Tokens and sequences are unknown to the compiler.

    def sizes(self):
        """The numbers that the symbols of arrays stand for."""
        return {"B": 1 if self.packed else len(self.lengths), "N": len(self.lengths),
                "T": sum(self.lengths) + self.padding if self.packed else self.lengths[0],
                "M": max([-(-length // self.chunk) for length in self.lengths] + [1])}

    def shape(self, array):
        return [self.sizes().get(dim, dim) for dim in array.dims]

    def is_dynamic(self, dim):
        return self.dynamic and (dim == "T" or (dim == "N" and self.packed))

    def inputs(self):
        return [array for array in self.arrays if not array.output]

    def outputs(self):
        return [array for array in self.arrays if array.output]

    def array(self, name):
        return next(array for array in self.arrays if array.name == name)

    def loops(self):
        return [item for item in self.items if isinstance(item, Loop)]

    def blocks(self):
        """The lists of ops: that of the program and those of its loops."""
        return [self.items] + [loop.body for loop in self.loops()]

    def ops(self):
        return [op for block in self.blocks() for op in block if isinstance(op, Op)]

    def role_of(self, step):
        for role in self.schedule.roles:
            if step in role.steps or step in role.options.get("delayed_steps", []):
                return role.name
        return None

    def to_json(self):
        data = dataclasses.asdict(self)
        data["items"] = [dict(dataclasses.asdict(item), loop=isinstance(item, Loop)) for item in self.items]
        return json.dumps(data)


def from_json(text):
    data = json.loads(text)

    def item(entry):
        if entry.pop("loop"):
            return Loop(**dict(entry, body=[Op(**op) for op in entry["body"]]))
        return Op(**entry)

    schedule = data.pop("schedule")
    roles = [Role(**role) for role in schedule.pop("roles")]
    channels = [Channel(**channel) for channel in schedule.pop("channels")]
    return Program(**dict(data, arrays=[Array(**array) for array in data["arrays"]],
                          items=[item(entry) for entry in data["items"]],
                          schedule=Schedule(roles=roles, channels=channels, **schedule)))


def remove_dead(program):
    """Drops ops whose results nobody takes, and arrays that nobody accesses."""
    while True:
        used = {name for op in program.ops() for name in op.operands}
        for loop in program.loops():
            # A carried tile lives if its result is used or something in the body reads it.
            loop.carried = [entry for entry in loop.carried
                            if entry[3] in used or is_read(loop, entry[0], entry[2])
                            or any(entry[3] == other[1] for later in program.loops() for other in later.carried)]
        used |= {name for loop in program.loops() for entry in loop.carried for name in (entry[1], entry[2])}
        before = len(program.ops())
        for block in program.blocks():
            block[:] = [item for item in block if isinstance(item, Loop) or item.kind == "store" or item.result in used]
        program.items[:] = [item for item in program.items if isinstance(item, Op) or item.body]
        if len(program.ops()) == before:
            break
    accessed = {op.facts["array"] for op in program.ops() if op.kind in ("load", "store")}
    kept = [array for array in program.arrays if array.name in accessed]
    program.arrays = kept


def is_read(loop, argument, yielded):
    """Whether more than the next value of a carried tile depends on it."""
    taken = {argument}
    for op in loop.body:
        if taken & set(op.operands):
            if op.kind == "store":
                return True
            taken.add(op.result)
    return any(entry[2] in taken and entry[0] != argument for entry in loop.carried)
