"""Reads PTX: a module's kernels as lists of instructions with their lines."""

import re
from dataclasses import dataclass, field


class EmulationError(Exception):
    """What a kernel does and the hardware does not define."""


@dataclass
class Instruction:
    line: int
    op: str
    args: list
    #: The register of the guard, and whether its negation guards.
    guard: str = None
    negated: bool = False
    text: str = ""
    #: The registers that it reads and writes (definitions.py).
    registers: tuple = None


@dataclass
class Param:
    name: str
    offset: int
    size: int
    align: int


@dataclass
class Kernel:
    name: str
    params: list = field(default_factory=list)
    code: list = field(default_factory=list)
    #: The index of the instruction behind each label.
    labels: dict = field(default_factory=dict)
    #: The width in bits of registers, by the prefix of their names; 1 is a predicate.
    widths: dict = field(default_factory=dict)
    max_threads: int = 0
    #: CTAs that share the registers of a multiprocessor.
    min_ctas: int = 1
    cluster: tuple = (1, 1, 1)

    def width(self, register):
        prefix = register.rstrip("0123456789")
        if prefix not in self.widths:
            raise EmulationError(f"expected a declared register, got {register}")
        return self.widths[prefix]


TYPES = {
    "pred": 1,
    "b8": 8,
    "b16": 16,
    "b32": 32,
    "b64": 64,
    "u16": 16,
    "u32": 32,
    "u64": 64,
    "s32": 32,
    "s64": 64,
    "f32": 32,
    "f64": 64,
}


_OPERAND = r"(?:[^][{},]|\[[^][]*\]|\{[^][{}]*\})+"
_OPERANDS = re.compile(rf"{_OPERAND}(?:,{_OPERAND})*")
_OPERAND = re.compile(_OPERAND)


def split_operands(text):
    """Splits at the commas outside of brackets."""
    if "[" not in text and "{" not in text:
        return [part.strip() for part in text.split(",")] if text.strip() else []
    if _OPERANDS.fullmatch(text):
        parts = [part.strip() for part in _OPERAND.findall(text)]
        return parts if parts[-1] else parts[:-1]
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "[{") - (c in "]}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    if part.strip():
        parts.append(part.strip())
    return parts


def parse_vector(text):
    """The operands in braces, or the one operand."""
    return split_operands(text.strip()[1:-1]) if text.strip().startswith("{") else [text.strip()]


def parse_address(text):
    """[base+offset] as (base, offset); the base may be a number."""
    inner = text.strip()[1:-1].strip()
    match = re.fullmatch(r"([%$\w.]+)\s*(?:\+\s*(-?\w+))?", inner)
    if not match:
        raise EmulationError(f"expected [base+offset], got {text}")
    return match[1], int(match[2], 0) if match[2] else 0


_STATEMENT = re.compile(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
#: A line that is a statement, as most are.
_PLAIN = re.compile(r"\s*(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*([^;{}]*);\s*")
_LABEL = re.compile(r"([$\w]+):(?!:)")
_SEMICOLON = re.compile(r"(;)")


def _parse_statement(kernel, text, line):
    if text.startswith("."):
        if text.startswith(".reg"):
            _, kind, names = text.split(None, 2)
            for name in names.split(","):
                kernel.widths[re.sub(r"<\d+>", "", name.strip())] = TYPES[kind[1:]]
        elif not text.startswith((".pragma", ".loc")):
            raise EmulationError(f"line {line}: unknown directive {text}")
        return
    match = _STATEMENT.fullmatch(text)
    if not match:
        raise EmulationError(f"line {line}: expected an instruction, got {text}")
    kernel.code.append(
        Instruction(line, match[3], split_operands(match[4]), match[2], match[1] == "!", " ".join(text.split()))
    )


def _parse_body(kernel, lines, start):
    """Reads instructions from line `start` (just behind the opening brace)."""
    depth, pending, begin = 1, "", 0
    for number in range(start, len(lines) + 1):
        text = lines[number - 1].split("//")[0]
        plain = _PLAIN.fullmatch(text) if not pending.strip() else None
        if plain and not (":" in plain[3] and _LABEL.match(text.strip())):
            pending = ""
            statement = " ".join(text.replace(";", " ").split())
            kernel.code.append(
                Instruction(number, plain[3], split_operands(plain[4]), plain[2], plain[1] == "!", statement)
            )
            continue
        for piece in _SEMICOLON.split(text):
            if piece == ";":
                _parse_statement(kernel, pending.strip(), begin)
                pending = ""
                continue
            while not pending.strip():
                piece = piece.strip()
                label = _LABEL.match(piece)
                if label:
                    kernel.labels[label[1]] = len(kernel.code)
                    piece = piece[label.end() :]
                elif piece[:1] in ("{", "}") and piece:
                    depth += 1 if piece[0] == "{" else -1
                    piece = piece[1:]
                    if depth == 0:
                        return number
                else:
                    break
            if piece.strip() and not pending.strip():
                begin = number
            pending += piece + "\n"
    raise EmulationError(f"kernel {kernel.name} has no end")


def _parse_params(kernel, text):
    offset = 0
    for part in split_operands(text):
        match = re.fullmatch(
            r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
            r"(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?(\w+)(?:\[(\d+)\])?",
            part.strip(),
        )
        if not match:
            raise EmulationError(f"expected a parameter, got {part}")
        size = int(match[4] or 1) * (TYPES[match[2]] // 8)
        align = int(match[1] or size)
        offset = (offset + align - 1) // align * align
        kernel.params.append(Param(match[3], offset, size, align))
        offset += size


def parse(text):
    """The kernels of a module by name."""
    lines, kernels, number = text.splitlines(), {}, 1
    while number <= len(lines):
        line = lines[number - 1].split("//")[0]
        match = re.search(r"\.entry\s+(\w+)\s*\(?(.*)", line)
        if not match:
            if re.match(r"\s*(\.visible\s+)?\.func|\s*\.(global|const)\b", line):
                raise EmulationError(f"line {number}: no emulation of {line.strip()}")
            number += 1
            continue
        kernel, header = Kernel(match[1]), match[2]
        while not header.rstrip().endswith("{"):
            number += 1
            header += " " + lines[number - 1].split("//")[0]
        params, _, directives = header.rpartition(")")
        _parse_params(kernel, params)
        limit = re.search(r"\.(?:max|req)ntid\s+(\d+)", directives)
        kernel.max_threads = int(limit[1]) if limit else 1024
        shared = re.search(r"\.minnctapersm\s+(\d+)", directives)
        kernel.min_ctas = int(shared[1]) if shared else 1
        cluster = re.search(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directives)
        if cluster:
            kernel.cluster = tuple(int(x or 1) for x in cluster.groups())
        number = _parse_body(kernel, lines, number + 1) + 1
        kernels[kernel.name] = kernel
    return kernels
