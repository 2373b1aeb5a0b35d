"""Random tile programs: small ones of the kind that split, backward, KDA and decoding are made of."""

import dataclasses
import random

from .body import Body
from .evaluate import Evaluator, Overflow, make_inputs
from .numbers import Exact
from .program import Program, remove_dead
from .schedule import make_schedule, pressure

# A program whose values grow beyond this, or whose lengths hide its loops, is drawn again.
LARGEST = 2000.0
ATTEMPTS = 60
# Of a role's registers the part that its tiles may fill: ptxas needs the rest for addresses and products.
PRESSURE = 0.6
# The roles of a program by their steps, and how often they are drawn.
ROLES = {"one": 3, "move": 8, "prepare": 6, "vectors": 4, "prepare and vectors": 2}


@dataclasses.dataclass
class Shape:
    """What is drawn first: everything else has to go with it."""

    kind: str
    chunk: int
    width: int  # Columns of a state: K.
    heads: int
    tiles: int
    folded: bool  # V tiles share a CTA.
    lengths: list
    packed: bool
    padding: int
    dynamic: bool
    per_iteration: int
    odd: bool  # Tiles of other rows than the 64 of a product.


def weighted(draw, weights):
    return draw.choices(list(weights), list(weights.values()))[0]


def draw_lengths(draw, chunk, packed):
    """Lengths of sequences around multiples of the chunk; those of a batch are one."""
    def one():
        return draw.choice([0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 3, 3 * chunk, 3 * chunk - 1,
                            5 * chunk - 7, draw.randrange(1, 5 * chunk), draw.randrange(1, 3 * chunk)])
    if packed:
        lengths = [one() for _ in range(draw.choice([1, 2, 3, 4]))]
        return lengths if sum(lengths) else lengths + [chunk + 1]
    return [max(1, one())] * draw.choice([1, 2])


def draw_shape(draw):
    kind = weighted(draw, ROLES)
    chunk = weighted(draw, {16: 1, 32: 5, 64: 5})
    packed = draw.random() < 0.6
    tiles = weighted(draw, {1: 7, 2: 3})
    odd = tiles == 1 and draw.random() < 0.12
    return Shape(kind=kind, chunk=chunk, width=weighted(draw, {16: 1, 32: 2, 64: 6, 128: 5}),
                 heads=draw.choice([1, 1, 2, 3]), tiles=tiles,
                 folded=tiles > 1 and kind != "one" and draw.random() < 0.5,
                 lengths=draw_lengths(draw, chunk, packed), packed=packed,
                 padding=draw.choice([0, 0, 5, 70]) if packed else 0, dynamic=draw.random() < 0.8,
                 per_iteration=weighted(draw, {1: 3, 2: 5, 4: 2}), odd=odd)


def draw_program(draw, name):
    """One attempt: a program that may still have no outputs or grow too much."""
    shape = draw_shape(draw)
    program = Program(name=name, chunk=shape.chunk, heads=shape.heads, tiles=shape.tiles, lengths=shape.lengths,
                      packed=shape.packed, arrays=[], items=[], schedule=None, padding=shape.padding,
                      dynamic=shape.dynamic)
    Body(draw, shape, program).write()
    remove_dead(program)
    program.schedule = make_schedule(draw, shape, program)
    return program


def is_tame(program):
    """Whether it has work and its values stay small."""
    if not program.outputs() or not program.inputs() or not any(op.kind == "store" for op in program.ops()):
        return False
    try:
        evaluator = Evaluator(program, make_inputs(program), Exact())
        evaluator.run()
    except Overflow:
        return False
    return evaluator.largest < LARGEST


def generate(seed, index):
    """Program `index` of `seed`: always the same."""
    draw = random.Random(f"gdn {seed} {index}")
    for _ in range(ATTEMPTS):
        program = draw_program(draw, f"d{seed}_{index}")
        if is_tame(program) and pressure(program) < PRESSURE:
            return program
    raise RuntimeError(f"expected a program within {ATTEMPTS} attempts, got none for {seed} {index}")
