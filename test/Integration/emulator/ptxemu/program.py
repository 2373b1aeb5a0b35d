"""A kernel as the engine runs it."""

import re

import numpy as np

from . import engine
from .blocks import divide
from .lower import Lowering


class Program:
    """A kernel that the engine can run."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.texts = {ins.line: ins.text for ins in kernel.code}
        lowering = Lowering(kernel, divide(kernel))
        self.frame, self.specials, self.flags = lowering.frame(), lowering.specials, lowering.flags
        self.tracked, self.effects = len(lowering.tracked), dict(lowering.effects)
        self.names = {slot: r for r, slot in lowering.registers.items() if r not in lowering.local}
        self.code = np.array(lowering.code, np.int32).reshape(-1, 8)
        blocks = np.array(lowering.blocks, np.int32)
        lists = np.array(lowering.lists or [0], np.int32)
        self.handle = engine.functions["Program"](
            self.code.ctypes.data, len(self.code), blocks.ctypes.data, len(blocks), lists.ctypes.data, len(lists)
        )

    def line(self, index):
        """The line of the PTX of an instruction of the engine."""
        return int(self.code[index, 1])

    def explain(self, text):
        """A failure of the engine, which names registers by their slots."""
        return re.sub(r"%r\[(\d+)\]", lambda match: self.names[int(match[1])], text)
