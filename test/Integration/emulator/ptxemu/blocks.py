"""Divides a kernel into blocks and makes a Python function of each.

A register is an array of 32 lanes. The function of a block has a line for each
instruction, so that a traceback names the PTX line. It exists twice: for warps
whose lanes are all here, and for those that have diverged.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from . import arith, definitions, effects, ops
from .ptx import EmulationError, parse_vector

DTYPES = {
    "u": np.uint32,
    "f": np.float32,
    "q": np.uint64,
    "h": np.uint16,
    "p": np.bool_,
    "i": np.int32,
    "l": np.int64,
    "g": np.int16,
}
BITS = {"u": 32, "f": 32, "i": 32, "q": 64, "l": 64, "h": 16, "g": 16, "p": 1}
NAMES = {"u": "U32", "f": "F32", "q": "U64", "h": "U16", "i": "I32", "l": "I64", "g": "np.int16"}
#: The addresses at which a CTA sees its shared memory and a kernel its parameters.
SHARED_BASE, PARAM_BASE = 1024, 0x7FFF00000000


@dataclass
class Block:
    index: int
    code: list = field(default_factory=list)
    #: The first instruction wants all lanes, or may make the warp wait.
    whole: bool = False
    waits: bool = False
    #: What ends it: None, "bra" or "ret", with the register of the guard.
    end: str = None
    target: int = None
    guard: int = None
    negated: bool = False
    #: Where lanes that part at its end meet again.
    meet: int = None
    line: int = 0
    full: object = None
    masked: object = None


def divide(kernel):
    """The blocks of a kernel."""
    starts = set(kernel.labels.values()) | {0}
    for i, ins in enumerate(kernel.code):
        if ins.op.split(".")[0] in ("bra", "ret", "exit") or effects.waits(ins.op):
            starts.add(i + 1)
        if effects.waits(ins.op) or effects.wants_warp(ins.op):
            starts.add(i)
    starts = sorted(s for s in starts if s < len(kernel.code))
    index = {s: i for i, s in enumerate(starts)}
    blocks = []
    for i, start in enumerate(starts):
        stop = starts[i + 1] if i + 1 < len(starts) else len(kernel.code)
        block = Block(i, kernel.code[start:stop], line=kernel.code[start].line)
        first, last = block.code[0], block.code[-1]
        block.waits, block.whole = effects.waits(first.op), effects.wants_warp(first.op)
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
    sizes = [a.bit_count() for a in after]
    for i, b in enumerate(blocks):
        others = after[i] & ~(1 << i)
        b.meet = next((j for j in range(end + 1) if others >> j & 1 and sizes[j] == sizes[i] - 1), end)


class Generator:
    """Writes the functions of a kernel's blocks."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.registers, self.kinds = {}, {}
        self.constants = {}
        #: Reads of registers that some lanes may not have written, and these registers.
        self.uncertain, self.tracked = {}, set()
        self.space = {name: getattr(arith, name) for name in dir(arith) if not name.startswith("__")}
        self.space["c_signs"] = np.full(32, 0x80008000, np.uint32)
        self.params = {p.name: p for p in kernel.params}
        self._infer_kinds()
        self.accumulators = {
            r for ins in kernel.code if ins.op.startswith("wgmma.mma") for r in parse_vector(ins.args[0])
        }

    def _infer_kinds(self):
        """Whether a 32-bit register is kept as f32 or as words, which saves views."""
        votes, parent = {}, {}

        def find(r):
            while parent.get(r, r) != r:
                r = parent[r]
            return r

        for ins in self.kernel.code:
            parts = ins.op.split(".")
            registers = [r for a in ins.args for r in re.findall(r"%r\d+", a)]
            if parts[0] in ("mov", "selp") and parts[-1] in ("b32", "f32", "u32"):
                for r in registers[1:]:
                    parent[find(r)] = find(registers[0])
                weight = 0
            elif parts[0] == "cvt" and registers:
                weight = 0
                votes[registers[0]] = votes.get(registers[0], 0) + (1 if parts[-2] == "f32" else -1)
                for r in registers[1:]:
                    votes[r] = votes.get(r, 0) + (1 if parts[-1] == "f32" else -1)
            elif parts[0] == "wgmma":
                for r in parse_vector(ins.args[0]) if ins.args else []:
                    votes[r] = votes.get(r, 0) + 100
                weight = 0
            elif parts[0] in ("ld", "st", "shfl", "red", "atom"):
                weight = 0
            else:
                weight = 1 if parts[-1] == "f32" else -1
            for r in registers if weight else []:
                votes[r] = votes.get(r, 0) + weight
        total = {}
        for r, v in votes.items():
            total[find(r)] = total.get(find(r), 0) + v
        self._floats = lambda r: total.get(find(r), 0) > 0

    def number(self, register):
        return self.registers.setdefault(register, len(self.registers))

    def kind_of(self, register):
        kind = self.kinds.get(register)
        if kind is None:
            width = self.kernel.width(register)
            kind = {1: "p", 8: "h", 16: "h", 64: "q"}.get(width) or ("f" if self._floats(register) else "u")
            self.kinds[register] = kind
        return kind

    @staticmethod
    def vector(text):
        return parse_vector(text)

    def constant(self, value, kind):
        key = (kind, repr(value))
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = name
            array = np.full(32, value, DTYPES[kind])
            array.flags.writeable = False
            self.space[name] = array
        return self.constants[key]

    def _literal(self, text, kind):
        if text.startswith("0f"):
            bits = np.uint32(int(text[2:], 16))
            return (
                self.constant(bits.view(np.float32) if kind == "f" else bits, kind)
                if kind == "f"
                else self.constant(int(bits), "u")
            )
        value = int(text, 0)
        if kind == "p":
            return self.constant(value != 0, kind)
        if kind == "f":
            return self.constant(np.uint32(value & 0xFFFFFFFF).view(np.float32), kind)
        bits = np.uint64(value & (1 << 64) - 1)
        return self.constant(
            bits.astype(DTYPES["u" if BITS[kind] == 32 else "q" if BITS[kind] == 64 else "h"]).view(DTYPES[kind]), kind
        )

    def symbol(self, text):
        if text in self.params:
            return PARAM_BASE + self.params[text].offset
        if text.split("+")[0] == "__gdn_shared":
            return SHARED_BASE + int((text.split("+") + ["0"])[1])
        raise EmulationError(f"unknown symbol {text}")

    def operand(self, text, kind):
        """An expression of the operand as an array of the kind."""
        text = text.strip()
        if text.startswith("!"):
            return f"~{self.operand(text[1:], kind)}"
        if re.fullmatch(r"-?\d\w*", text):
            return self._literal(text, kind)
        if re.fullmatch(
            r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]"
            r"|%(laneid|warpid|nwarpid|smid|nsmid|gridid|cluster_ctarank|cluster_nctarank|lanemask_\w+)",
            text,
        ):
            return f"w.special['{text[1:]}']" + (".astype(U64)" if BITS[kind] == 64 else "")
        if not text.startswith("%") and text not in self.kernel.widths:
            return self.constant(self.symbol(text), "q" if BITS[kind] == 64 else "u")
        stored = self.kind_of(text)
        value = f"R[{self.number(text)}]"
        if text in self.accumulators:
            value = f"read({value})"
        if stored == kind:
            return value
        if BITS[stored] == BITS[kind]:
            return f"{value}.view({NAMES[kind]})"
        if BITS[stored] > BITS[kind] > 1:
            unsigned = {64: "U64", 32: "U32", 16: "U16"}[BITS[kind]]
            value = f"{value}.view(U32)" if stored == "f" else value
            return f"{value}.astype({unsigned})" + (f".view({NAMES[kind]})" if NAMES[kind] != unsigned else "")
        raise EmulationError(f"expected {kind} of register {text}, got {stored}")

    def assign(self, register, value, kind, mask):
        """The statement that writes a register."""
        if register == "_":
            return value
        n, stored = self.number(register), self.kind_of(register)
        if stored != kind:
            if BITS[stored] == BITS[kind]:
                value = f"({value}).view({NAMES[stored]})"
            elif BITS[stored] > BITS[kind]:
                value = f"({value}).astype({NAMES[stored]})"
            else:
                raise EmulationError(f"expected {stored} for register {register}, got {kind}")
        text = f"R[{n}] = merge({mask}, {value}, R[{n}])" if mask else f"R[{n}] = {value}"
        return text + f"; w.wrote({n}, {mask})" if register in self.tracked else text

    def statement(self, ins, mask):
        """One line of Python for an instruction; `mask` is an expression or None."""
        if ins.guard:
            guard = self.operand(ins.guard, "p")
            guard = f"~{guard}" if ins.negated else guard
            guarded = f"{mask} & {guard}" if mask else guard
            inner = self.statement_inner(ins, "G")
            return f"G = {guarded}; " + inner
        return self.statement_inner(ins, mask)

    def statement_inner(self, ins, mask):
        special = effects.translate(ins, self, mask)
        if special is not None:
            return special
        try:
            writes = ops.translate(ins, self)
        except (ops.Unknown, KeyError, IndexError):
            raise EmulationError(f"line {ins.line}: no emulation of {ins.text}") from None
        return "; ".join(self.assign(d, v, k, mask) for d, v, k in writes)

    def checks(self, block, position, mask, line):
        """Statements that see whether all lanes have written what they read; to move any value is allowed."""
        if position < len(block.code) and block.code[position].op.startswith("mov."):
            return ""
        missing = self.uncertain.get((block.index, position), [])
        return "".join(f"w.check_written({self.number(r)}, {mask}, '{r}', {line}); " for r in missing)

    def compile(self, blocks):
        """Gives blocks their functions."""
        self.uncertain = definitions.uncertain_reads(blocks, find_following(blocks))
        # The warp itself writes these, and checks accumulators.
        own = self.accumulators | {ins.args[0] for ins in self.kernel.code if ins.op.startswith("mbarrier.try_wait")}
        self.uncertain = {at: [r for r in registers if r not in own] for at, registers in self.uncertain.items()}
        self.tracked = {r for registers in self.uncertain.values() for r in registers}
        for block in blocks:
            for name, mask in (("full", None), ("masked", "M")):
                if block.whole and mask:
                    continue
                lines = ["def block(w, M):"] + [" R = w.R"]
                numbers = [0, 0]
                for i, ins in enumerate(block.code):
                    text = self.statement(ins, mask)
                    if block.waits and i == 0:
                        text = "return " + text
                    lines.append(" " + self.checks(block, i, mask, ins.line) + text)
                    numbers.append(ins.line)
                if not block.waits:
                    lines.append(" " + self.checks(block, len(block.code), mask, block.line) + "return None")
                    numbers.append(block.line)
                filename = f"ptx:{self.kernel.name}:{block.index}:{name}"
                space = self.space
                exec(compile("\n".join(lines), filename, "exec"), space)
                function = space["block"]
                setattr(block, name, function)
                self.lines[filename] = numbers
            if block.guard:
                block.guard = self.number(block.guard)
        return blocks

    lines = {}


class Program:
    """A kernel that can run."""

    def __init__(self, kernel):
        self.kernel = kernel
        generator = Generator(kernel)
        self.texts = {ins.line: ins.text for ins in kernel.code}
        self.blocks = generator.compile(divide(kernel))
        #: What registers hold at the start: nothing, or any value where a move may read it first.
        self.start = [None] * len(generator.registers)
        for r in generator.tracked:
            dtype = DTYPES[generator.kind_of(r)]
            ones = np.full(32 * dtype().itemsize, 0xFF, np.uint8)
            self.start[generator.number(r)] = ones > 0 if dtype is np.bool_ else ones.view(dtype)
        self.names = {n: r for r, n in generator.registers.items()}
        self.lines = Generator.lines
