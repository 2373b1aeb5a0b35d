"""Writes a kernel as the engine's instructions (Engine/Engine.h): registers become slots of a warp's frame."""

import re

import numpy as np

from . import definitions, effects, engine, ops
from .blocks import PARAM_BASE, SHARED_BASE, find_following
from .ptx import EmulationError, parse_vector

_NUMBER = re.compile(r"-?\d\w*")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]"
    r"|%(laneid|warpid|nwarpid|smid|nsmid|gridid|cluster_ctarank|cluster_nctarank|lanemask_\w+)"
)


class Lowering:
    """The code of a kernel, its frame, and what Python does for it."""

    def __init__(self, kernel, blocks):
        self.kernel = kernel
        self.params = {p.name: p for p in kernel.params}
        self.code, self.lists, self.effects = [], [], []
        self.slots, self.registers, self.constants, self.specials = 0, {}, {}, {}
        self._interned, self._widths = {}, {}
        #: Free slots of registers that are used in one block, by their number; and those for the current instruction.
        self._free, self._temporary = {1: [], 2: []}, []
        #: What follows the instruction: writes to wider registers, and what keeps track of registers.
        self._behind = []
        self._find_flagged()
        self.uncertain = definitions.uncertain_reads(blocks, find_following(blocks))
        # The engine checks accumulators, and the warp itself writes what try_wait does.
        own = self.accumulators | {ins.args[0] for ins in kernel.code if ins.op.startswith("mbarrier.try_wait")}
        self.uncertain = {at: [r for r in registers if r not in own] for at, registers in self.uncertain.items()}
        tracked = sorted({r for registers in self.uncertain.values() for r in registers})
        self.tracked = {r: n for n, r in enumerate(tracked)}
        # Where a move may read it first, a register has any value at the start.
        self.flags = np.array([r in self.tracked for r in self.flagged], np.uint8)
        self._find_local(blocks)
        self.blocks = [self._block(b) for b in blocks]

    def _find_flagged(self):
        """Registers that a wgmma may write, and those that they are moved to; each has a state in the engine."""
        code = self.kernel.code
        self.accumulators = {r for ins in code if ins.op.startswith("wgmma.mma") for r in parse_vector(ins.args[0])}
        moves = [ins.args for ins in code if ins.op.startswith("mov.") and not ins.args[0].startswith("{")]
        found, more = set(self.accumulators), True
        while more:
            more = {to for to, value in moves if value in found} - found
            found |= more
        self.flagged = {r: n for n, r in enumerate(sorted(found))}

    def _find_local(self, blocks):
        """Registers of one block, which share slots with others: by block and position, those that are not used again.

        Not those with a state, and not those that a wgmma reads until its wait."""
        kept = self.flagged.keys() | self.tracked.keys()
        kept |= {r for ins in self.kernel.code if ins.op.startswith("wgmma.mma") for r in parse_vector(ins.args[1])}
        last = {}
        for block in blocks:
            steps = [ins.registers for ins in block.code] + [([block.guard] if block.guard else [], [])]
            for position, (reads, writes) in enumerate(steps):
                at = block.index, position
                for r in (*reads, *writes):
                    if r in last and last[r][0] != block.index:
                        kept.add(r)
                    last[r] = at
        self.local, self._last_uses = last.keys() - kept, {}
        for r in self.local:
            self._last_uses.setdefault(last[r], []).append(r)

    # What instructions name.

    def allocate(self, width, shared=False):
        """A slot, or two, of its own, or one that others have at other times."""
        count = 2 if width == 64 else 1
        if shared and self._free[count]:
            return self._free[count].pop()
        self.slots += count
        return self.slots - count

    def temporary(self, width):
        """A slot for the current instruction."""
        slot = self.allocate(width, True)
        self._temporary.append((2 if width == 64 else 1, slot))
        return slot

    def width_of(self, register):
        width = self._widths.get(register)
        if width is None:
            width = self.kernel.width(register)
            # The least of a frame has 16 bits.
            width = self._widths[register] = 16 if width == 8 else width
        return width

    def slot_of(self, register):
        slot = self.registers.get(register)
        if slot is None:
            slot = self.registers[register] = self.allocate(self.width_of(register), register in self.local)
        return slot

    def constant(self, value, width):
        value = value & 1 if width == 1 else value & (1 << width) - 1
        if (value, width) not in self.constants:
            self.constants[value, width] = self.allocate(width)
        return self.constants[value, width]

    def list_of(self, numbers):
        """Where a list of slots begins; equal lists are one."""
        key = tuple(numbers)
        if key not in self._interned:
            self._interned[key] = len(self.lists)
            self.lists += key
        return self._interned[key]

    def symbol(self, text):
        if text in self.params:
            return PARAM_BASE + self.params[text].offset
        if text.split("+")[0] == "__gdn_shared":
            return SHARED_BASE + int((text.split("+") + ["0"])[1])
        raise EmulationError(f"unknown symbol {text}")

    def operand(self, text, width):
        """The slot of an operand of 1 (a predicate), 16, 32 or 64 bits."""
        known = self.registers.get(text)
        if known is not None and self._widths[text] == width:
            return known
        text = text.strip()
        if text.startswith("!"):
            slot = self.temporary(1)
            self.emit("not_1", d=slot, a=self.operand(text[1:], 1))
            return slot
        if _NUMBER.fullmatch(text):
            value = int(text[2:], 16) if text[:2] in ("0f", "0d") else int(text, 0)
            return self.constant(value != 0 if width == 1 else value, width)
        if _SPECIAL.fullmatch(text):
            if text not in self.specials:
                self.specials[text] = self.allocate(32)
            return self.specials[text] if width == 32 else self._convert(self.specials[text], 32, width)
        if not text.startswith("%") and text not in self.kernel.widths:
            return self.constant(self.symbol(text), width)
        stored = self.width_of(text)
        if stored == width:
            return self.slot_of(text)
        if not stored > width > 1:
            raise EmulationError(f"expected {width} bits of register {text}, got {stored}")
        return self._convert(self.slot_of(text), stored, width)

    def _convert(self, slot, stored, width):
        """The low bits of a register, or those of a narrower one with zeros in front."""
        to = self.temporary(width)
        self.emit(f"cvt_{width}_u{stored}", d=to, a=slot)
        return to

    def result(self, register, width, signed=False):
        """The slot that an instruction of `width` bits writes its result to."""
        if register == "_":
            return self.temporary(width)
        stored, slot = self.width_of(register), self.slot_of(register)
        to = slot
        if stored != width:
            if stored < width or width == 1:
                raise EmulationError(f"expected {stored} bits for register {register}, got {width}")
            to = self.temporary(width)
            self._behind.append((f"cvt_{stored}_{'s' if signed else 'u'}{width}", {"d": slot, "a": to}))
        self._track(register)
        return to

    def _track(self, register):
        if register in self.flagged:
            self._behind.append(("mark_value", {"d": self.flagged[register]}))
        if register in self.tracked:
            self._behind.append(("wrote", {"d": self.tracked[register]}))

    @staticmethod
    def vector(text):
        return parse_vector(text)

    # Instructions.

    def emit(self, name, d=0, a=0, b=0, c=0, i=0, j=0):
        number = engine.operation(name)
        if number < 0:
            raise ops.Unknown
        self.code.append((number, self.line, d, a, b, c, i, j))

    def effect(self, function):
        """An instruction that Python executes: function(warp, lanes)."""
        self.emit("effect")
        self.effects.append((len(self.code) - 1, function))

    def _block(self, block):
        begin = len(self.code)
        for position, ins in enumerate(block.code):
            self.line = ins.line
            if not ins.op.startswith("mov."):
                self._check_written(self.uncertain.get((block.index, position), ()))
            try:
                self._instruction(ins)
            except (ops.Unknown, KeyError, IndexError, ValueError):
                raise EmulationError(f"line {ins.line}: no emulation of {ins.text}") from None
            self._release(block.index, position)
        self.line = block.line
        self._check_written(self.uncertain.get((block.index, len(block.code)), ()))
        target = {None: engine.NO_BRANCH, "ret": engine.ENDS_LANES}.get(block.end, block.target)
        guard = self.slot_of(block.guard) if block.guard else -1
        self._release(block.index, len(block.code))
        return begin, len(self.code), block.line, target, guard, block.negated, block.meet, block.whole

    def _release(self, block, position):
        """Frees the slots that nothing uses behind an instruction."""
        for r in self._last_uses.get((block, position), ()):
            if r in self.registers:
                self._free[2 if self.width_of(r) == 64 else 1].append(self.registers[r])
        for count, slot in self._temporary:
            self._free[count].append(slot)
        self._temporary = []

    def _check_written(self, registers):
        for r in registers:
            self.emit("check_written", d=self.tracked[r], a=self.slot_of(r))

    def _check_values(self, ins):
        reads = [r for r in definitions.reads_and_writes(ins)[0] if r in self.flagged]
        if not reads:
            return
        if ins.op.startswith("mov.") and not ins.args[0].startswith("{") and ins.args[1] == reads[-1]:
            self._flag_moves = self.flagged[reads[-1]], self.slot_of(reads[-1])
            return
        numbers = [self.slot_of(r) for r in reads] + [self.flagged[r] for r in reads]
        self.emit("check_values", a=self.list_of(numbers), i=len(reads))

    def _instruction(self, ins):
        self._flag_moves = None
        self._check_values(ins)
        if ins.guard:
            self.emit("guard", a=self.operand(ins.guard, 1), i=ins.negated)
        if not effects.lower(ins, self):
            ops.lower(ins, self)
        for name, fields in self._behind:
            if name == "mark_value" and self._flag_moves:
                flag, slot = self._flag_moves
                self.emit("move_flag", d=fields["d"], a=flag, b=slot)
            else:
                self.emit(name, **fields)
        self._behind = []
        if ins.guard:
            self.emit("end_guard")

    # The start of a warp.

    def frame(self):
        """Registers at the start: constants, and else bits that are no number."""
        frame = np.full((self.slots, engine.SLOT_WORDS), 0xFFFFFFFF, np.uint32)
        for (value, width), slot in self.constants.items():
            if width == 64:
                frame[slot : slot + 2].reshape(-1).view(np.uint64)[:] = value
            elif width == 16:
                frame[slot].view(np.uint16)[:] = value
            else:
                frame[slot] = (0xFFFFFFFF if value else 0) if width == 1 else value
        return frame
