"""A program's outputs in float64, with the roundings that its text asks for, from its data alone."""

import zlib

import numpy as np

from .numbers import LARGEST, Exact, Noisy, from_bits, round_to, to_bits, ulp
from .program import Loop


def make_inputs(program):
    """Bits of each input by name, from the name of the program. Tokens of no sequence are NaN."""
    random = np.random.default_rng(zlib.crc32(program.name.split("_v")[0].encode()))
    inputs = {}
    for array in program.inputs():
        values = random.uniform(array.low, array.high, program.shape(array))
        if program.packed and program.padding and "T" in array.dims:
            index = [slice(None)] * values.ndim
            index[array.dims.index("T")] = slice(sum(program.lengths), None)
            values[tuple(index)] = np.nan
        inputs[array.name] = to_bits(values, array.dtype)
    if program.packed:
        inputs["cu"] = np.concatenate([[0], np.cumsum(program.lengths)]).astype(np.int32)
    return inputs


class Overflow(Exception):
    """A value left the range of its type."""


class Evaluator:
    """Runs the program for every item of the grid."""

    def __init__(self, program, inputs, arithmetic):
        self.program, self.arithmetic, self.largest = program, arithmetic, 0.0
        self.arrays = {a.name: from_bits(inputs[a.name], a.dtype) for a in program.inputs()}
        for a in program.outputs():
            self.arrays[a.name] = np.full(program.shape(a), np.nan)

    def run(self):
        for n, length in enumerate(self.program.lengths):
            first = sum(self.program.lengths[:n]) if self.program.packed else 0
            for h in range(self.program.heads):
                for p in range(self.program.tiles):
                    self.item = {"n": n, "h": h, "half h": h // 2, "v": 64 * p,
                                 "batch": 0 if self.program.packed else n}
                    self.begin, self.end = first, first + length
                    self.run_item()
        return {a.name: self.arrays[a.name] for a in self.program.outputs()}

    def run_item(self):
        self.tiles = {}
        for item in self.program.items:
            if isinstance(item, Loop):
                self.run_loop(item)
            else:
                self.run_op(item)

    def run_loop(self, loop):
        chunks = -(-(self.end - self.begin) // self.program.chunk)
        carried = [self.tiles[init] for _, init, _, _ in loop.carried]
        for chunk in reversed(range(chunks)) if loop.reverse else range(chunks):
            self.item.update(c=chunk, t=self.begin + chunk * self.program.chunk)
            for entry, value in zip(loop.carried, carried):
                self.tiles[entry[0]] = value
            for op in loop.body:
                self.run_op(op)
            carried = [self.tiles[entry[2]] for entry in loop.carried]
        for entry, value in zip(loop.carried, carried):
            self.tiles[entry[3]] = value

    def place(self, op):
        """The part of an array that an op accesses with the tile's axes in the array's order, and how much of it."""
        array = self.arrays[op.facts["array"]]
        index, inside = [], []
        for dim, at in enumerate(op.facts["at"]):
            first = at if isinstance(at, int) else self.item[at]
            if dim not in op.facts["axes"]:
                index.append(slice(first, first + 1))
                continue
            size = op.shape[op.facts["axes"].index(dim)]
            last = first + size
            if op.facts.get("end") == dim:
                last = min(last, self.end)
            assert 0 <= first and last <= array.shape[dim], "an access in bounds"
            index.append(slice(first, max(first, last)))
            inside.append(index[-1].stop - first)
        turned = op.facts["axes"] != sorted(op.facts["axes"])
        return array, tuple(index), tuple(slice(0, size) for size in inside), turned

    def run_op(self, op):
        taken = [self.tiles[name] for name in op.operands]
        if op.kind == "load":
            array, index, inside, turned = self.place(op)
            shape = op.shape[::-1] if turned else op.shape
            tile = np.zeros(shape)
            tile[inside] = array[index].reshape([s.stop for s in inside])
            self.tiles[op.result] = tile.T if turned else tile
        elif op.kind == "store":
            array, index, inside, turned = self.place(op)
            tile = (taken[0].T if turned else taken[0])[inside]
            array[index] = tile.reshape(array[index].shape)
        else:
            value = self.compute(op, taken)
            top = float(np.max(np.abs(value), initial=0.0))
            self.largest = max(self.largest, top)
            if not top < LARGEST[op.dtype]:
                raise Overflow(f"{op.kind} {op.result} of {self.program.name}")
            self.tiles[op.result] = value

    def compute(self, op, taken):
        simple = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maximumf": np.maximum,
                  "minimumf": np.minimum}
        if op.kind in simple:
            value = simple[op.kind](*taken)
            return self.arithmetic.done(value) if op.kind in ("addf", "subf", "mulf") else value
        if op.kind == "contract":
            left = taken[0].T if op.facts["transpose_left"] else taken[0]
            right = taken[1].T if op.facts["transpose_right"] else taken[1]
            return self.arithmetic.done(taken[2] + self.arithmetic.product(left, right))
        return getattr(self, op.kind)(op, *taken)

    def constant(self, op):
        return np.full(op.shape, round_to(op.facts["value"], op.dtype))

    def extf(self, op, tile):
        return tile

    def truncf(self, op, tile):
        return round_to(tile, op.dtype)

    def negf(self, op, tile):
        return -tile

    def exp2(self, op, tile):
        return self.arithmetic.function(2.0 ** tile)

    def broadcast(self, op, vector):
        return np.broadcast_to(np.expand_dims(vector, op.facts["dim"]), op.shape)

    def reduce(self, op, tile):
        return self.arithmetic.done(tile.sum(axis=op.facts["dim"]))

    def scan(self, op, tile):
        axis = op.facts["axis"]
        if op.facts["reverse"]:
            return self.arithmetic.done(np.flip(np.cumsum(np.flip(tile, axis), axis), axis))
        return self.arithmetic.done(np.cumsum(tile, axis))

    def causal(self, op, tile):
        return np.tril(tile, -1 if op.facts["strict"] else 0)

    def row(self, op, tile):
        return tile[op.facts["row"]].copy()

    def diagonal(self, op, tile):
        return np.diagonal(tile).copy()


class Expected:
    """What each output should be, and how far from it a result may be."""

    def __init__(self, program, inputs):
        exact = Evaluator(program, inputs, Exact())
        self.values = exact.run()
        self.largest = exact.largest
        others = [Evaluator(program, inputs, Noisy(seed)).run() for seed in (1, 2)]
        self.deviation = {name: [other[name] - value for other in others] for name, value in self.values.items()}
        self.program = program

    def check(self, name, got):
        """None, or what is wrong with the values of output `name`."""
        want, dtype = self.values[name], self.program.array(name).dtype
        written = ~np.isnan(want)
        if list(got.shape) != list(want.shape):
            return f"expected shape {want.shape}, got {got.shape}"
        bad = written & ~np.isfinite(got)
        if bad.any():
            return f"{bad.sum()} of {written.sum()} values missing or not finite, first at {first(bad)}"
        if not written.any():
            return None
        error = np.where(written, np.abs(got - want), 0.0)
        far = error > self.bound(name)
        if far.any():
            at = first(far)
            return (f"{far.sum()} of {written.sum()} values are wrong, first at {at}: expected {want[at]:.6g}, "
                    f"got {got[at]:.6g} (bound {self.bound(name)[at]:.2g})")
        size = np.sqrt(np.mean(want[written] ** 2))
        allowed = 10 * self.rms(name) + size * (2.0 ** -10 if self.is_rounded() else 1e-5) + 1e-7
        if dtype != "f32":
            allowed += np.sqrt(np.mean(np.where(written, ulp(np.nan_to_num(want), dtype), 0) ** 2)) / 4
        root = np.sqrt(np.mean(error[written] ** 2))
        return None if root <= allowed else f"rms error {root:.3g} of values of {size:.3g}, expected {allowed:.3g}"

    def is_rounded(self):
        """Whether a value may be rounded to a neighbour and then go into others."""
        return any(op.kind == "truncf" for op in self.program.ops())

    def rms(self, name):
        return max(np.sqrt(np.nanmean(d ** 2)) if d.size and not np.isnan(d).all() else 0.0
                   for d in self.deviation[name])

    def bound(self, name):
        """How far each value may be off: a neighbour of its type, and what its terms may bring along."""
        want, dtype = np.nan_to_num(self.values[name]), self.program.array(name).dtype
        top = np.max(np.abs(want), initial=0.0)
        drift = max(np.nanmax(np.abs(d)) if d.size and not np.isnan(d).all() else 0.0 for d in self.deviation[name])
        slack = 12 * drift + top * (2.0 ** -6 if self.is_rounded() else 2e-5) + 1e-6
        return slack + (1.01 * ulp(want, dtype) if dtype != "f32" else np.zeros_like(want))


def first(mask):
    return tuple(int(i) for i in np.argwhere(mask)[0])
