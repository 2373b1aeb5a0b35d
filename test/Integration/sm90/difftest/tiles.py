"""Single ops of a random program: each makes tiles of tiles, with their ranges kept small."""

import dataclasses
import math

from .program import Array, Op
from .schedule import ORDER, role_of

ROWS = 64  # Of a product of a warpgroup.


@dataclasses.dataclass
class Value:
    """A tile and what is known of it."""

    name: str
    shape: list
    dtype: str
    step: str
    bound: float  # No element is larger.
    rms: float  # About how large they are.
    axes: str  # What each axis runs along: t(okens), v, k, or x for a mixture.
    carried: bool = False  # Depends on what a loop carries.
    constant: bool = False
    of_tile: bool = False  # Depends on the V tile of the work item.
    kind: str = ""  # Of the op that makes it.


class Tiles:
    """Ops into a block, and the values that they may take."""

    def __init__(self, draw, shape, program):
        self.draw, self.shape, self.program = draw, shape, program
        self.block, self.values, self.count = program.items, [], 0

    def chance(self, probability):
        return self.draw.random() < probability

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, kind, taken, shape, dtype, step, bound, rms, along, **facts):
        """Appends an op and remembers its result."""
        op = Op(kind, self.name(kind[0]), [value.name for value in taken], list(shape), dtype, step, facts)
        self.block.append(op)
        value = Value(op.result, list(shape), dtype, step, bound, rms, along,
                      carried=any(v.carried for v in taken), of_tile=any(v.of_tile for v in taken), kind=kind)
        self.values.append(value)
        return value

    #===--------------------------------------------------------------------===#
    # What there is
    #===--------------------------------------------------------------------===#

    def role(self, step):
        return role_of(self.shape.kind, step)

    def is_own(self, value, step):
        return self.role(value.step) == self.role(step)

    def visible(self, step, rank, dtypes=("f32", "bf16", "f16")):
        """Values that `step` may take: its own and those of steps before it."""
        return [v for v in self.values if len(v.shape) == rank and v.dtype in dtypes and not v.constant
                and ORDER.index(v.step) <= ORDER.index(step)]

    def pick(self, values):
        """One of `values`, rather one of the last."""
        if not values:
            return None
        return self.draw.choice(values[-6:])

    def fits_registers(self, value):
        return self.shape.odd or value.shape[0] == ROWS

    def registers(self, step, shape=None):
        """An f32 tile in the registers of `step`, widened if need be; None if there is none."""
        known = [v for v in self.visible(step, 2) if self.fits_registers(v) and (not shape or v.shape == list(shape))]
        wide = [v for v in known if v.dtype == "f32" and (self.is_own(v, step) or self.chance(0.3))]
        if wide and self.chance(0.75):
            return self.pick(wide)
        narrow = [v for v in known if v.dtype != "f32"]
        if narrow:
            source = self.pick(narrow)
            return self.emit("extf", [source], source.shape, "f32", step, source.bound, source.rms, source.axes,
                             **{"from": source.dtype})
        return self.pick(wide)

    #===--------------------------------------------------------------------===#
    # Constants, roundings, scales
    #===--------------------------------------------------------------------===#

    def constant(self, number, shape, step, dtype="f32"):
        value = self.emit("constant", [], shape, dtype, step, abs(number), abs(number), "x" * len(shape), value=number)
        value.constant = True
        return value

    def binary(self, kind, left, right, step, axes=None):
        # MLIR makes x * y of -x * -y, without a step.
        kind = "addf" if kind == "mulf" and left.kind == right.kind == "negf" else kind
        rms = left.rms * right.rms if kind == "mulf" else math.hypot(left.rms, right.rms)
        bound = left.bound * right.bound if kind == "mulf" else left.bound + right.bound
        if kind in ("maximumf", "minimumf"):
            rms, bound = max(left.rms, right.rms), max(left.bound, right.bound)
        flags = {"contract": True} if kind in ("addf", "subf", "mulf") and self.chance(0.5) else {}
        return self.emit(kind, [left, right], left.shape, "f32", step, bound, rms, axes or left.axes, **flags)

    def scaled(self, value, factor, step):
        return self.binary("mulf", value, self.constant(factor, value.shape, step), step)

    def tamed(self, value, step, rms=1.0):
        """The value, times a power of two if it is large."""
        if value.rms <= 2 * rms:
            return value
        return self.scaled(value, 2.0 ** -math.ceil(math.log2(value.rms / rms)), step)

    def rounded(self, value, dtype, step):
        if value.kind == "extf":  # To round it would be nothing.
            value = self.unary(value, step)
        return self.emit("truncf", [value], value.shape, dtype, step, value.bound * 1.01, value.rms, value.axes,
                         **{"from": "f32"})

    #===--------------------------------------------------------------------===#
    # Loads
    #===--------------------------------------------------------------------===#

    def new_array(self, dtype, dims, low, high, output=False):
        prefix = "out" if output else "in"
        array = Array(f"{prefix}{len(self.program.arrays)}", dtype, dims, output, low, high)
        self.program.arrays.append(array)
        return array

    def token_end(self):
        """Whether an access says where tokens end: it may go without only where all chunks are whole."""
        whole = all(length % self.shape.chunk == 0 for length in self.shape.lengths)
        return {} if whole and self.chance(0.3) else {"end": 1}

    def load(self, step, shape, axes, dtype, scale=0.5):
        """A tile whose axes run along tokens (t), the V tile (v) or K (k)."""
        facts, tile = {}, self.shape.tiles * ROWS
        if "t" in axes:
            width = shape[1 - axes.index("t")]
            of_tile = "v" in axes
            grouped = self.shape.heads == 2 and not of_tile and self.chance(0.5)
            dims = ["B", "T", 1 if grouped else self.shape.heads,
                    tile if of_tile else width + self.draw.choice([0, 0, 64])]
            facts = {"at": ["batch", "t", "half h" if grouped else "h", "v" if of_tile else 0],
                     "axes": [1, 3] if axes[0] == "t" else [3, 1], **self.token_end()}
        else:
            of_tile = axes[0] == "v"
            per_chunk = self.block is not self.program.items and self.chance(0.7)
            rows = tile if self.shape.tiles > 1 else shape[0]
            dims = ["N", *(["M"] if per_chunk else []), self.shape.heads, rows, shape[1]]
            facts = {"at": ["n", *(["c"] if per_chunk else []), "h", "v" if of_tile else 0, 0],
                     "axes": [len(dims) - 2, len(dims) - 1]}
        array = self.new_array(dtype, dims, -scale, scale)
        value = self.emit("load", [], shape, dtype, step, scale, scale / math.sqrt(3), axes, array=array.name, **facts)
        value.of_tile = of_tile
        return value

    def load_vector(self, step, low, high):
        """A number for each token of a chunk."""
        array = self.new_array("f32", ["B", "T", self.shape.heads], low, high)
        bound = max(abs(low), abs(high))
        return self.emit("load", [], [self.shape.chunk], "f32", step, bound, bound / math.sqrt(3), "t",
                         array=array.name, at=["batch", "t", "h"], axes=[1], **self.token_end())

    #===--------------------------------------------------------------------===#
    # Work
    #===--------------------------------------------------------------------===#

    def exp2(self, value, step):
        """2 to the power of what is cut to [-8, 1]."""
        if value.bound > 8:
            low, high = (self.constant(number, value.shape, step) for number in (-8.0, 1.0))
            value = self.binary("minimumf", self.binary("maximumf", value, low, step), high, step)
            value.bound, value.rms = 8.0, min(value.rms, 4.0)
        elif value.rms > 1:
            value = self.scaled(value, 0.25, step)
        return self.emit("exp2", [value], value.shape, "f32", step, 2.0 ** min(value.bound, 8), 1.5, value.axes)

    def unary(self, value, step):
        kind = self.draw.choice(["negf", "exp2", "scale", "maximumf"])
        if kind == "exp2":
            return self.exp2(value, step)
        if kind == "negf":
            return self.emit("negf", [value], value.shape, "f32", step, value.bound, value.rms, value.axes)
        number = self.draw.choice([0.25, -0.5, 1.5, 0.125])
        if kind == "maximumf":
            return self.binary("maximumf", value, self.constant(number, value.shape, step), step)
        return self.scaled(value, number, step)

    def broadcast(self, vector, tile, step):
        """The vector along an axis of `tile` that is as long; None if there is no such axis."""
        fitting = [dim for dim in (0, 1) if vector.shape[0] == tile.shape[dim]]
        if not fitting:
            return None
        dim = self.draw.choice(fitting)
        return self.emit("broadcast", [vector], tile.shape, "f32", step, vector.bound, vector.rms, tile.axes,
                         dim=1 - dim)

    def contract(self, left, right, turn_left, turn_right, into, step):
        m, k = left.shape[::-1] if turn_left else left.shape
        n = right.shape[0] if turn_right else right.shape[1]
        rms, bound = math.sqrt(k) * left.rms * right.rms, k * left.bound * right.bound
        axes = left.axes[1 if turn_left else 0] + right.axes[0 if turn_right else 1]
        # Products of tiles that are alike grow faster.
        if into:
            rms, bound, axes = math.hypot(rms, into.rms), bound + into.bound, into.axes
        start = into or self.constant(0.0, [m, n], step)
        return self.emit("contract", [left, right, start], [m, n], "f32", step, bound, rms, axes, depth=k,
                         transpose_left=turn_left, transpose_right=turn_right, **{"from": left.dtype})

    def row(self, tile, step):
        number = self.draw.choice([tile.shape[0] - 1, tile.shape[0] - 1, 0])
        return self.emit("row", [tile], tile.shape[1:], tile.dtype, step, tile.bound, tile.rms, tile.axes[1],
                         row=number, source=list(tile.shape))

    def reduce(self, tile, step, dim=1):
        count = tile.shape[dim]
        return self.emit("reduce", [tile], [tile.shape[1 - dim]], "f32", step, tile.bound * count,
                         tile.rms * math.sqrt(count), tile.axes[1 - dim], dim=dim, source=list(tile.shape))

    def scan(self, value, step, axis=0):
        count = value.shape[axis]
        return self.emit("scan", [value], value.shape, "f32", step, value.bound * count,
                         2 * value.rms * math.sqrt(count), value.axes, axis=axis, reverse=self.chance(0.3))

    #===--------------------------------------------------------------------===#
    # Stores
    #===--------------------------------------------------------------------===#

    def store(self, value, step, late):
        """Stores a tile of the loop where it belongs; `late` in a step of its own, in 16 bits."""
        # Work items of several V tiles have no place of their own for what has no axis of V.
        if self.shape.tiles > 1 and (not value.of_tile or (len(value.shape) == 1 and value.shape[0] != ROWS)):
            return False
        dtype = self.draw.choice(["bf16", "f16"]) if late or self.chance(0.4) else "f32"
        if value.dtype == "f32" and dtype != "f32":
            value = self.rounded(self.tamed(value, step), dtype, step)
        tile, in_loop = self.shape.tiles * ROWS, self.block is not self.program.items
        rank, heads = len(value.shape), self.shape.heads
        # Where there is no axis of tokens: an array of the sequence, or of its chunks.
        outer, place = (["N", "M", heads], ["n", "c", "h"]) if in_loop else (["N", heads], ["n", "h"])
        tokens = value.axes.find("t") if in_loop else -1
        if rank == 1 and tokens == 0 and self.shape.tiles == 1 and value.shape[0] == self.shape.chunk:
            dims, at, axes, end = ["B", "T", heads], ["batch", "t", "h"], [1], {"end": 1}
        elif rank == 1:
            dims, at, axes, end = [*outer, tile], [*place, "v"], [len(outer)], {}
            if value.shape[0] != ROWS:
                dims[-1], at[-1] = value.shape[0], 0
        elif tokens >= 0 and value.shape[tokens] == self.shape.chunk and (value.axes == "vt" or self.shape.tiles == 1):
            width = value.shape[1 - tokens]
            dims = ["B", "T", heads, tile if self.shape.tiles > 1 else width]
            at, axes, end = ["batch", "t", "h", "v"], [1, 3] if tokens == 0 else [3, 1], {"end": 1}
        else:
            rows = tile if self.shape.tiles > 1 else value.shape[0]
            dims, at = [*outer, rows, value.shape[1]], [*place, "v", 0]
            axes, end = [len(dims) - 2, len(dims) - 1], {}
        array = self.new_array(value.dtype, dims, 0, 0, output=True)
        self.block.append(Op("store", "", [value.name], list(value.shape), value.dtype, "store" if late else step,
                             {"array": array.name, "at": at, "axes": axes, **end}))
        return True
