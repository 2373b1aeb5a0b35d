"""Global and shared memory, with what a kernel may touch and when."""

import numpy as np

from .arith import ALL, I32, I64, LANES, U16, U32, U64
from .blocks import SHARED_BASE
from .ptx import EmulationError

VIEWS = {1: np.uint8, 2: U16, 4: U32, 8: U64}
#: The registers that values of a size are loaded into.
REGISTERS = {1: U16, 2: U16, 4: U32, 8: U64}
#: States of a byte of shared memory.
UNWRITTEN, WRITTEN, ARRIVING, BARRIER = 0, 1, 2, 4
STATE_NAMES = {
    0: "shared memory that nothing has written",
    2: "shared memory that a copy in flight writes",
    4: "an mbarrier",
}

ATOMICS = {
    "add": lambda was, value: was + value,
    "max": max,
    "min": min,
    "exch": lambda was, value: value,
    "or": lambda was, value: was | value,
    "and": lambda was, value: was & value,
    "cas": lambda was, expected, value: value if was == expected else was,
    "dec": lambda was, most: most if was == 0 or was > most else was - 1,
}


class Memory:
    """Bytes at addresses from `base` on."""

    name = "memory"

    def __init__(self, base, data):
        self.base, self.bytes = base, data
        self.views = {size: data[: len(data) // 8 * 8].view(dtype) for size, dtype in VIEWS.items()}

    def fail(self, line, text):
        raise EmulationError(f"line {line}: {text}")

    def place(self, mask, address, offset, size, line):
        """Where the lanes access `size` bytes, from the start of the memory."""
        at = (address + U64((offset - self.base) & (1 << 64) - 1)).view(I64)
        if mask is not None:
            at = at[mask]
        if not len(at):
            return at
        if np.bitwise_or.reduce(at + self.base) & (size - 1):
            bad = at[(at & (size - 1)) != 0][0] + self.base
            self.fail(line, f"expected an address in multiples of {size} bytes, got {bad:#x} in {self.name}")
        low, high = at.min(), at.max() + size
        if low < 0 or high > len(self.bytes):
            bad = low if low < 0 else high - size
            self.fail(
                line, f"expected an address in {self.name} of {len(self.bytes)} bytes, got {size} bytes at {bad:+d}"
            )
        return at

    def load(self, warp, mask, address, offset, size, count, line, signed=False):
        at = self.place(mask, address, offset, size * count, line)
        self.check_read(warp, at, size * count, line)
        view, index = self.views[size], at // size
        dtype = REGISTERS[size]
        out = []
        for i in range(count):
            value = view[index + i] if i else view[index]
            if signed:
                value = value.view(np.dtype(f"i{size}")).astype(np.int16).view(U16)
            if mask is not None:
                wide = np.zeros(LANES, dtype)
                wide[mask] = value
                value = wide
            out.append(value if value.dtype == dtype else value.astype(dtype))
        return out

    def store(self, warp, mask, address, offset, size, count, line, values):
        at = self.place(mask, address, offset, size * count, line)
        self.check_write(warp, at, size * count, line)
        view, index = self.views[size], at // size
        for i, value in enumerate(values):
            value = value if value.dtype == view.dtype else value.astype(view.dtype)
            view[index + i] = value if mask is None else value[mask]

    def atomic(self, warp, mask, address, offset, operation, values, line):
        size = values[0].dtype.itemsize
        at = self.place(mask, address, offset, size, line)
        self.check_read(warp, at, size, line)
        view = self.bytes[: len(self.bytes) // 8 * 8].view(values[0].dtype)
        old = np.zeros(LANES, values[0].dtype)
        for lane, place in zip(np.flatnonzero(ALL if mask is None else mask), at // size):
            was = view[place]
            old[lane] = was
            new = ATOMICS[operation](was, *(v[lane] for v in values))
            view[place] = new
        return old.view(U32) if old.dtype == I32 else old

    def check_read(self, warp, at, size, line):
        pass

    def check_write(self, warp, at, size, line):
        pass


class GlobalMemory(Memory):
    """The device's memory: only what was allocated."""

    name = "global memory"

    def __init__(self, base, data):
        super().__init__(base, data)
        self.allocated = np.zeros(len(data), np.uint8)

    def check_read(self, warp, at, size, line):
        if len(at) and not (self.allocated[at].all() and self.allocated[at + (size - 1)].all()):
            bad = at[~(self.allocated[at] & self.allocated[at + (size - 1)]).astype(bool)][0]
            self.fail(
                line,
                f"expected an address in an array, got {size} bytes at {self.base + bad:#x}, {self.describe(int(bad))}",
            )

    check_write = check_read

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
    barriers, whatever order they happen to run in (clocks.py).
    """

    name = "shared memory"

    def __init__(self, size, clocks, cta):
        size = (size + 15) // 16 * 16
        data = np.full(size, 0xFF, np.uint8)
        super().__init__(SHARED_BASE, data)
        self.clocks, self.cta = clocks, cta
        self.state = np.zeros(size, np.uint8)
        self.state_views = {n: self.state.view(VIEWS[n]) for n in (1, 2, 4, 8)}
        self.good = {1: 0x1, 2: 0x101, 4: 0x01010101, 8: 0x0101010101010101}
        words = size // 4
        #: Who wrote a word last, when, and in which line.
        self.writer, self.written, self.written_line = (
            np.zeros(words, np.int16),
            np.zeros(words, I32),
            np.zeros(words, I32),
        )
        self.read = np.zeros((clocks.size, words), I32)
        self.read_line = np.zeros(words, I32)
        #: Reads of copies and products in flight.
        self.reading = np.zeros(words, np.int16)
        #: The warp (from 1 on) whose ordinary store the asynchronous proxy does not see yet.
        self.unfenced = np.zeros(words, np.int16)
        #: The warps (a bit each) whose ordinary loads a copy into the word may overtake.
        self.loaded = np.zeros(words, U64)

    def spans(self, at, size):
        """The words of accesses of `size` bytes."""
        words = at >> 2
        return words if size <= 4 else (words[:, None] + np.arange(size // 4)).ravel()

    def check_state(self, at, size, line, write):
        unit = min(size, 8)
        for i in range(0, size, unit):
            state = self.state_views[unit][(at + i) // unit]
            if not write:
                bad = state != self.good[unit]
            else:
                bad = (state & state.dtype.type(self.good[unit] * (ARRIVING | BARRIER))) != 0
            if bad.any():
                where = int((at + i)[bad][0])
                found = (
                    int(self.state[where : where + unit].max())
                    if write
                    else [s for s in self.state[where : where + unit] if s != WRITTEN][0]
                )
                found = 4 if found & 4 else 2 if found & 2 else 0
                self.fail(
                    line,
                    f"{'write to' if write else 'read of'} {STATE_NAMES[found]}, at byte {where}"
                    + self.history(where >> 2),
                )

    def history(self, word):
        return f" (line {self.written_line[word]} wrote it last)" if self.written_line[word] else ""

    def check_read(self, warp, at, size, line):
        if not len(at):
            return
        self.check_state(at, size, line, False)
        words = self.spans(at, size)
        self.order_read(warp, words, line)
        self.read[warp.thread, words] = warp.clock[warp.thread]
        self.read_line[words] = line
        self.loaded[words] |= U64(1 << warp.thread % 64)

    def check_write(self, warp, at, size, line):
        if not len(at):
            return
        self.check_state(at, size, line, True)
        words = self.spans(at, size)
        self.order_write(warp.clock, warp.thread, words, line)
        self.unfenced[words] = warp.thread + 1
        self.mark_written(warp.clock, warp.thread, words, line)
        if size >= 8:
            for i in range(0, size, 8):
                self.state_views[8][(at + i) >> 3] = self.good[8]
        else:
            self.state_views[size][at // size] = self.good[size]

    def order_behind_writes(self, what, clock, words, line):
        late = self.written[words] > clock[self.writer[words]]
        if late.any():
            word = words[late][0]
            self.fail(
                line,
                f"race: {what} byte {word * 4} of shared memory, which line "
                f"{self.written_line[word]} wrote ({self.clocks.name(self.writer[word])}); no "
                "barrier orders them",
            )

    def order_read(self, warp, words, line):
        self.order_behind_writes("read of", warp.clock, words, line)

    def order_write(self, clock, thread, words, line):
        self.order_behind_writes("write to", clock, words, line)
        late = self.read[:, words] > clock[:, None]
        if late.any():
            who, column = np.argwhere(late)[0]
            self.fail(
                line,
                f"race: write to byte {words[column] * 4} of shared memory, which "
                f"{self.clocks.name(who)} reads (line {self.read_line[words[column]]}); no barrier "
                "orders them",
            )
        if self.reading[words].any():
            word = words[self.reading[words] > 0][0]
            self.fail(
                line,
                f"write to byte {word * 4} of shared memory, which a product or copy in flight "
                f"reads (line {self.read_line[word]})",
            )

    def mark_written(self, clock, thread, words, line):
        self.writer[words] = thread
        self.written[words] = clock[thread]
        self.written_line[words] = line

    def begin_async_read(self, warp, words, line, unwritten=False):
        """What a product or copy of the asynchronous proxy reads, from its issue on."""
        state = self.state_views[4][words]
        bad = (state != self.good[4]) & ((state != 0) | (not unwritten))
        if bad.any():
            word = words[bad][0]
            found = int(self.state[word * 4 : word * 4 + 4].max())
            found = 4 if found & 4 else 2 if found & 2 else 0
            self.fail(line, f"asynchronous read of {STATE_NAMES[found]}, at byte {word * 4}" + self.history(word))
        self.order_read(warp, words, line)
        if self.unfenced[words].any():
            word = words[self.unfenced[words] != 0][0]
            self.fail(
                line,
                f"asynchronous read of byte {word * 4} of shared memory, which line "
                f"{self.written_line[word]} wrote ({self.clocks.name(self.unfenced[word] - 1)}) "
                "without a fence.proxy.async behind it",
            )
        self.reading[words] += 1
        self.read_line[words] = line

    def end_async_read(self, warp, words):
        self.reading[words] -= 1
        self.read[warp.thread, words] = warp.clock[warp.thread]

    def fence(self, warp):
        """Shows the asynchronous proxy the stores that the warp has seen, its own and those ordered before."""
        words = np.flatnonzero(self.unfenced)
        seen = self.written[words] <= warp.clock[self.writer[words]]
        self.unfenced[words[seen]] = 0
        words = np.flatnonzero(self.loaded)
        seen = self.read[:, words] <= warp.clock[:, None]
        bits = U64(1) << (np.arange(len(seen), dtype=U64) % U64(64))
        self.loaded[words] &= ~np.bitwise_or.reduce(np.where(seen, bits[:, None], U64(0)), axis=0)

    def products_took(self, warp):
        """A product that took registers has waited for the loads that made them."""
        self.loaded &= ~U64(1 << warp.thread % 64)

    def check_overtaken(self, words, line):
        """Before a copy writes words: an arrival does not order loads of the ordinary proxy before it."""
        if self.loaded[words].any():
            word = words[self.loaded[words] != 0][0]
            who = int(self.loaded[word]).bit_length() - 1
            self.fail(
                line,
                f"a copy to byte {word * 4} of shared memory, which line {self.read_line[word]} reads "
                f"({self.clocks.name(who)}) without a fence.proxy.async behind it",
            )
