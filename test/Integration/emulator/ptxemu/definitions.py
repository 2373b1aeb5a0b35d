"""Which registers may be read before all lanes have written them.

A thread goes its own way through the blocks, so a register that is written on
every way to a use is written in every lane. Where that is not certain, the
generated code keeps the lanes that have written the register (Warp.wrote).
"""

import re

_REGISTER = re.compile(r"%(?:p|rs|r|rd|f|fd)\d+|\bp\b")


def reads_and_writes(ins):
    """The registers that an instruction reads, and those that it writes."""
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
    written = []
    for block in blocks:
        now = set()
        for ins in block.code:
            # What a guarded instruction writes, other lanes may not have.
            if not ins.guard:
                now.update(reads_and_writes(ins)[1])
        written.append(now)
    before = [set() if b.index == 0 else None for b in blocks]
    work = [0]
    while work:
        i = work.pop()
        after = before[i] | written[i]
        for f in following[i]:
            if f >= len(blocks):
                continue
            new = after if before[f] is None else before[f] & after
            if before[f] is None or new != before[f]:
                before[f] = set(new)
                work.append(f)
    found = {}
    for block in blocks:
        known = before[block.index]
        if known is None:
            continue
        known = set(known)
        for position, ins in enumerate(block.code):
            reads, writes = reads_and_writes(ins)
            missing = [r for r in reads if r not in known]
            if missing:
                found[block.index, position] = sorted(set(missing))
            if not ins.guard:
                known.update(writes)
        if block.guard and block.guard not in known:
            found[block.index, len(block.code)] = [block.guard]
    return found
