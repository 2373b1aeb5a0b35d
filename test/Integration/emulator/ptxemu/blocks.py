"""Divides a kernel into blocks."""

from dataclasses import dataclass, field
from functools import lru_cache

from . import effects

#: The addresses at which a CTA sees its shared memory and a kernel its parameters.
SHARED_BASE, PARAM_BASE = 1024, 0x7FFF00000000


@dataclass
class Block:
    index: int
    code: list = field(default_factory=list)
    #: The first instruction wants all lanes.
    whole: bool = False
    #: What ends it: None, "bra" or "ret", with the register of the guard.
    end: str = None
    target: int = None
    guard: str = None
    negated: bool = False
    #: Where lanes that part at its end meet again.
    meet: int = None
    line: int = 0


@lru_cache(None)
def _parts(op):
    """Whether an instruction ends a block, and whether it begins one."""
    waits = effects.waits(op)
    return waits or op.split(".")[0] in ("bra", "ret", "exit"), waits or effects.wants_warp(op)


def divide(kernel):
    """The blocks of a kernel."""
    starts = set(kernel.labels.values()) | {0}
    for i, ins in enumerate(kernel.code):
        ends, begins = _parts(ins.op)
        if ends:
            starts.add(i + 1)
        if begins:
            starts.add(i)
    starts = sorted(s for s in starts if s < len(kernel.code))
    index = {s: i for i, s in enumerate(starts)}
    blocks = []
    for i, start in enumerate(starts):
        stop = starts[i + 1] if i + 1 < len(starts) else len(kernel.code)
        block = Block(i, kernel.code[start:stop], line=kernel.code[start].line)
        first, last = block.code[0], block.code[-1]
        block.whole = effects.wants_warp(first.op)
        if last.op.split(".")[0] == "bra":
            block.end, block.target = "bra", index.get(kernel.labels[last.args[0]], len(starts))
        elif last.op in ("ret", "exit"):
            block.end = "ret"
        if block.end:
            block.code = block.code[:-1]
            block.guard, block.negated = last.guard, last.negated
        blocks.append(block)
    find_meetings(blocks)
    return blocks


def find_following(blocks):
    """The blocks that each block goes on to; len(blocks) is the end."""
    following = []
    for b in blocks:
        targets = [b.target if b.end == "bra" else len(blocks)] if b.end else []
        following.append(targets + ([b.index + 1] if not b.end or b.guard else []))
    return following


def find_meetings(blocks):
    """Gives each block its immediate post-dominator; len(blocks) is the end."""
    end = len(blocks)
    everything = (1 << end + 1) - 1
    after = [everything] * end + [1 << end]
    following = find_following(blocks)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(end)):
            common = everything
            for f in following[i]:
                common &= after[f]
            common |= 1 << i
            changed |= common != after[i]
            after[i] = common
    sizes = [bin(a).count("1") for a in after]
    #: The blocks with so many behind them, as the bits of a number.
    alike = {}
    for i, size in enumerate(sizes):
        alike[size] = alike.get(size, 0) | 1 << i
    for i, b in enumerate(blocks):
        nearest = after[i] & ~(1 << i) & alike.get(sizes[i] - 1, 0)
        b.meet = (nearest & -nearest).bit_length() - 1 if nearest else end
