"""Global and shared memory: arrays that the engine and the copies work on, with what a kernel may touch and when."""

import numpy as np

from . import engine
from .blocks import SHARED_BASE
from .ptx import EmulationError

VIEWS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
#: Words of which the engine keeps in a byte whether a fence has to look at them.
PAGE_WORDS = 64


class Memory:
    """Bytes at addresses from `base` on."""

    name = "memory"

    def __init__(self, base, data):
        self.base, self.bytes = base, data
        self.views = {size: data[: len(data) // 8 * 8].view(dtype) for size, dtype in VIEWS.items()}


class GlobalMemory(Memory):
    """The device's memory: only what was allocated."""

    name = "global memory"

    def __init__(self, base, data):
        super().__init__(base, data)
        self.allocated = np.zeros(len(data), np.uint8)
        self.struct = engine.GlobalStruct(base, data.ctypes.data, len(data), self.allocated.ctypes.data)

    def check(self, at, size, line):
        """Whether accesses of a copy, from the start of the memory, are in arrays."""
        if len(at) and not (self.allocated[at].all() and self.allocated[at + (size - 1)].all()):
            bad = at[~(self.allocated[at] & self.allocated[at + (size - 1)]).astype(bool)][0]
            raise EmulationError(
                f"line {line}: expected an address in an array, got {size} bytes at {self.base + bad:#x}, "
                + self.describe(int(bad))
            )

    def describe(self, at):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.allocated, [0]]).astype(np.int8)))
        near = [
            (abs(at - e), f"{abs(at - e)} bytes {'behind the end' if i % 2 else 'before the start'} of array {i // 2}")
            for i, e in enumerate(edges)
        ]
        return min(near)[1] if near else "no array"


class SharedMemory(Memory):
    """A CTA's shared memory.

    Each byte has a state. Each word has the clock of the last write and, by
    warp, of the last read: two accesses of which one writes must be ordered by
    barriers, whatever order they happen to run in (clocks.py). The engine checks
    them (Engine/Checks.cpp).
    """

    name = "shared memory"

    def __init__(self, size, clocks):
        size = (size + 15) // 16 * 16
        data = np.full(size, 0xFF, np.uint8)
        super().__init__(SHARED_BASE, data)
        words = size // 4
        #: 0 unwritten, 1 written, 2 a copy writes it, 4 an mbarrier.
        self.state = np.zeros(size, np.uint8)
        self.word_states = self.state.view(np.uint32)
        #: Who wrote a word last, when, and in which line.
        self.writer, self.written, self.written_line = (np.zeros(words, np.int32) for _ in range(3))
        self.read, self.read_line = np.zeros((words, clocks.size), np.int32), np.zeros(words, np.int32)
        #: Reads of copies and products in flight.
        self.reading = np.zeros(words, np.int32)
        #: The warp (from 1 on) whose ordinary store the asynchronous proxy does not see yet.
        self.unfenced = np.zeros(words, np.int32)
        #: The warps (a bit each) whose ordinary loads a copy into the word may overtake.
        self.loaded = np.zeros(words, np.uint64)
        self.dirty = np.zeros(words // PAGE_WORDS + 1, np.uint8)
        arrays = (self.state, self.writer, self.written, self.written_line, self.read, self.read_line)
        arrays += (self.reading, self.unfenced, self.loaded, self.dirty)
        self.struct = engine.SharedStruct(
            SHARED_BASE, data.ctypes.data, size, *(a.ctypes.data for a in arrays), clocks.size, clocks.warps_per_cta
        )
