"""Which registers may be read before all lanes have written them.

A thread goes its own way through the blocks, so a register that is written on
every way to a use is written in every lane. Where that is not certain, the
engine keeps the lanes that have written the register (Warp::wrote).
"""

import re
from functools import lru_cache

_REGISTER = re.compile(r"%(?:p|rs|r|rd|f|fd)\d+|\bp\b")


def reads_and_writes(ins):
    """The registers that an instruction reads, and those that it writes."""
    if ins.registers is None:
        ins.registers = _find_registers(ins)
    return ins.registers


@lru_cache(None)
def _registers_of(argument):
    return tuple(_REGISTER.findall(argument))


def _find_registers(ins):
    names = [_registers_of(a) for a in ins.args]
    op = ins.op
    guard = [ins.guard] if ins.guard else []
    if op.startswith("wgmma.mma"):
        # The scale says whether accumulators are read, and the emulator checks them.
        return guard + [r for a in names[1:] for r in a], names[0]
    stores = op.startswith(("st.", "red.", "cp.", "prefetch", "bar.", "barrier.", "fence", "stmatrix", "mbarrier.init"))
    if stores or op.startswith(("bra", "ret", "wgmma", "setmaxnreg", "griddepcontrol")) or not names:
        return guard + [r for a in names for r in a], []
    return guard + [r for a in names[1:] for r in a], names[0]


def uncertain_reads(blocks, following):
    """For each block and instruction the registers that may not have been written, by (block, position)."""
    #: A number with one bit for each register: sets of registers are sums of them.
    bits = {}
    written = []
    for block in blocks:
        now = 0
        for ins in block.code:
            registers = reads_and_writes(ins)
            # What a guarded instruction writes, other lanes may not have.
            for r in () if ins.guard else registers[1]:
                if r not in bits:
                    bits[r] = 1 << len(bits)
                now |= bits[r]
        written.append(now)
    before = [0 if b.index == 0 else None for b in blocks]
    work = [0]
    while work:
        i = work.pop()
        after = before[i] | written[i]
        for f in following[i]:
            if f >= len(blocks):
                continue
            new = after if before[f] is None else before[f] & after
            if new != before[f]:
                before[f] = new
                work.append(f)
    found = {}
    for block, known in zip(blocks, before):
        if known is None:
            continue
        here = set()
        steps = [(ins.registers, ins.guard) for ins in block.code] + [(([block.guard] if block.guard else [], []), None)]
        for position, ((reads, writes), guard) in enumerate(steps):
            missing = {r for r in reads if r not in here and not known & bits.get(r, 0)}
            if missing:
                found[block.index, position] = sorted(missing)
            if not guard:
                here.update(writes)
    return found
