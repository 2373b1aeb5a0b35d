"""Which registers may be read before all lanes have written them.

A thread goes its own way through the blocks, so a register that is written on
every way to a use is written in every lane. Where that is not certain, the
engine keeps the lanes that have written the register (Warp::wrote).
"""

import re

_REGISTER = re.compile(r"%(?:p|rs|r|rd|f|fd)\d+|\bp\b")


def reads_and_writes(ins):
    """The registers that an instruction reads, and those that it writes."""
    if ins.registers is None:
        ins.registers = _find_registers(ins)
    return ins.registers


def _find_registers(ins):
    names = [_REGISTER.findall(a) for a in ins.args]
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
    numbers = {}

    def bits(registers):
        """A set of registers, as the bits of a number."""
        found = 0
        for r in registers:
            found |= 1 << numbers.setdefault(r, len(numbers))
        return found

    # By block: what each instruction reads and writes. What a guarded instruction writes, other lanes may not have.
    steps = []
    for block in blocks:
        pairs = [reads_and_writes(ins) for ins in block.code]
        steps.append([(bits(r), 0 if i.guard else bits(w)) for (r, w), i in zip(pairs, block.code)])
        steps[-1].append((bits([block.guard] if block.guard else []), 0))
    written = []
    for step in steps:
        now = 0
        for _, writes in step:
            now |= writes
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
    names = {n: r for r, n in numbers.items()}
    found = {}
    for block, known in zip(blocks, before):
        if known is None:
            continue
        for position, (reads, writes) in enumerate(steps[block.index]):
            missing = reads & ~known
            if missing:
                found[block.index, position] = sorted(names[n] for n in range(missing.bit_length()) if missing >> n & 1)
            known |= writes
    return found
