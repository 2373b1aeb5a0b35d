"""Bulk copies: between arrays and shared memory by tensor maps, and of bytes."""

import ctypes
import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from . import engine
from .barriers import Wait
from .blocks import PARAM_BASE, SHARED_BASE
from .ptx import EmulationError

#: The state of a word that is written (memory.py).
WORD_WRITTEN = 0x01010101
#: Bytes of an element by CUtensorMapDataType.
ELEMENT_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
#: Bytes of a row of a swizzle; shorter rows of a box have that pitch, too.
SPANS = {0: 0, 1: 32, 2: 64, 3: 128}
#: Address bits 7 and up that a swizzle adds to bits 4 and up, by CUtensorMapSwizzle.
SWIZZLE_MASK = {0: 0, 1: 1, 2: 3, 3: 7}


def swizzle(address, mask):
    return address ^ (((address >> 7) & mask) << 4) if mask else address


@dataclass(frozen=True)
class TensorMap:
    """A tensor map as the emulated driver writes it (Driver.cpp)."""

    address: int
    type: int
    rank: int
    swizzle: int
    extents: tuple
    strides: tuple
    box: tuple

    @property
    def element(self):
        return ELEMENT_BYTES[self.type]

    @property
    def bytes(self):
        return int(np.prod(self.box)) * self.element


@lru_cache(1024)
def decode(raw):
    magic, kind, rank, mode, interleave = struct.unpack_from("<4sBBBB", raw, 0)
    if magic != b"gdnT":
        raise EmulationError("expected a tensor map that the host encoded, got other bytes")
    (address,) = struct.unpack_from("<Q", raw, 8)
    extents, strides, box = (
        struct.unpack_from("<5Q", raw, 16),
        struct.unpack_from("<4Q", raw, 56),
        struct.unpack_from("<5H", raw, 88),
    )
    steps = struct.unpack_from("<5B", raw, 98)
    result = TensorMap(address, kind, rank, mode, extents[:rank], strides[: rank - 1], box[:rank])
    inner = box[0] * result.element
    rules = [
        (not interleave and set(steps[:rank]) == {1}, "no interleave and steps of 1"),
        (address % 16 == 0, "an address in multiples of 16 bytes"),
        (all(s % 16 == 0 and s < 1 << 40 for s in strides[: rank - 1]), "strides in multiples of 16 bytes below 2^40"),
        (all(1 <= b <= 256 for b in box[:rank]), "a box of 1 to 256 elements"),
        (all(1 <= e <= 1 << 32 for e in extents[:rank]), "extents from 1 to 2^32"),
        (inner % 16 == 0, "a box whose rows are multiples of 16 bytes"),
        (mode in SPANS and inner <= (SPANS[mode] or inner), "rows of a box within the swizzle's span"),
    ]
    for holds, rule in rules:
        if not holds:
            raise EmulationError(f"expected a tensor map with {rule}, got {result}")
    return result


@lru_cache(1024)
def box_places(box, element, mode, place):
    """Where the elements of a box at a place of shared memory lie, the words of these, and their coordinates."""
    coordinates = np.indices(box[::-1]).reshape(len(box), -1)[::-1].astype(np.int64)
    rows = np.arange(coordinates.shape[1], dtype=np.int64) // box[0]
    linear = rows * (SPANS[mode] or box[0] * element) + coordinates[0] * element
    at = swizzle(linear + place, SWIZZLE_MASK[mode]) - SHARED_BASE
    return at, np.unique(at >> 2).astype(np.int32), coordinates


class Copy:
    """A copy between its issue and its end."""

    def __init__(self, run, text, line):
        self.run, self.text, self.line, self.done = run, text, line, False

    def finish(self):
        if not self.done:
            self.done = True
            self.run()


class CopyOps:
    """A warp's copies."""

    def begin_async_read(self, words, line, unwritten=False):
        """What a copy reads of the CTA's shared memory, from its issue on."""
        words = np.ascontiguousarray(words, np.int32)
        if not engine.functions["BeginAsyncRead"](self.handle, words.ctypes.data, len(words), line, unwritten):
            self.fail()

    def end_async_read(self, words):
        words = np.ascontiguousarray(words, np.int32)
        engine.functions["EndAsyncRead"](self.handle, words.ctypes.data, len(words))

    def tensor_copy(self, lanes, to_shared, descriptor, coordinates, shared, barrier, line):
        for lane in lanes:
            at = int(descriptor[lane]) - PARAM_BASE
            if at % 64 or not 0 <= at <= len(self.cta.launch.params) - 128:
                raise EmulationError(
                    f"line {line}: expected a tensor map among the parameters, got address {at + PARAM_BASE:#x}"
                )
            try:
                tensor = decode(bytes(self.cta.launch.params[at : at + 128]))
            except EmulationError as error:
                raise EmulationError(f"line {line}: {error}") from None
            start = [int(c[lane]) for c in coordinates]
            if len(start) != tensor.rank:
                raise EmulationError(f"line {line}: expected {tensor.rank} coordinates, got {len(start)}")
            place = int(shared[0][lane]) + shared[1]
            where = int(barrier[0][lane]) + barrier[1] if barrier else None
            self._tensor_copy(tensor, start, to_shared, place, where, line)

    def _tensor_places(self, tensor, start, place, line):
        """Bytes and words of shared memory, which elements lie in the array, and where these do."""
        if place % 128:
            raise EmulationError(f"line {line}: expected a place in multiples of 128 bytes for a box, got {place}")
        at, words, coordinates = box_places(tensor.box, tensor.element, tensor.swizzle, place)
        memory, element = self.memory, tensor.element
        inside, address = np.ones(len(at), bool), np.full(len(at), tensor.address - memory.base, np.int64)
        for i in range(tensor.rank):
            c = coordinates[i] + start[i]
            inside &= (c >= 0) & (c < tensor.extents[i])
            with np.errstate(over="ignore"):
                address += c * (tensor.strides[i - 1] if i else element)
        address = address[inside]
        if len(address) and (address.min() < 0 or address.max() + element > len(memory.bytes)):
            bad = address[(address < 0) | (address + element > len(memory.bytes))][0]
            raise EmulationError(
                f"line {line}: a copy of {tensor} from {start} touches address {memory.base + int(bad):#x} "
                "outside of the device's memory"
            )
        memory.check(address, element, line)
        return at, words, inside, address

    def _tensor_copy(self, tensor, start, to_shared, place, where, line):
        shared, element = self.shared, tensor.element
        at, words, inside, address = self._tensor_places(tensor, start, place, line)
        if at.min() < 0 or at.max() + element > len(shared.bytes):
            raise EmulationError(
                f"line {line}: a box of {tensor.bytes} bytes at byte {place - shared.base} leaves "
                f"shared memory of {len(shared.bytes)} bytes"
            )
        view, array = shared.views[element], self.memory.views[element]
        text = f"copy of {tensor.bytes} bytes {'to' if to_shared else 'from'} byte {place - shared.base}, line {line}"
        if to_shared:
            barrier = self.find_barrier(where, line)

            def run():
                value = np.zeros(len(at), view.dtype)
                value[inside] = array[address // element]
                view[at // element] = value

            self._begin_load(shared, words, tensor.bytes, barrier, run, text, line)
            return

        def run():
            array[address // element] = view[at[inside] // element]

        self.begin_async_read(words, line)
        self.bulk_open.append((Copy(run, text, line), shared, words))
        self.cta.scheduler.issue(self.bulk_open[-1][0])

    def _begin_load(self, shared, words, size, barrier, run, text, line, ordinary=False):
        """Marks what a copy will write, and lets the scheduler end it at some time. An ordinary one is not of the
        asynchronous proxy."""
        clock = self.cta.clocks.copy(self.clock)
        self.clock[self.thread] += 1
        words = np.ascontiguousarray(words, np.int32)
        begun = engine.functions["BeginCopy"](
            self.handle,
            ctypes.addressof(shared.struct),
            words.ctypes.data,
            len(words),
            line,
            clock.ctypes.data,
            self.cta.clocks.copies,
            ordinary,
        )
        if not begun:
            self.fail()

        def finish():
            shared.word_states[words] = WORD_WRITTEN
            run()
            barrier.deliver(size, clock)

        self.cta.scheduler.issue(Copy(finish, text, line))

    def bulk_copy(self, lanes, target, source, to, come, size, barrier, line):
        for lane in lanes:
            count = int(size[lane])
            a, b = int(to[0][lane]) + to[1], int(come[0][lane]) + come[1]
            if count % 16 or a % 16 or b % 16:
                raise EmulationError(
                    f"line {line}: expected multiples of 16 for a bulk copy, got {count} bytes from {b:#x} to {a:#x}"
                )
            where = int(barrier[0][lane]) + barrier[1] if barrier else None
            self._bulk_copy(target, source, a, b, count, where, line)

    def _range(self, memory, at, count, line):
        start = at - memory.base
        if not 0 <= start <= len(memory.bytes) - count:
            raise EmulationError(
                f"line {line}: a copy of {count} bytes at {start:+d} leaves {memory.name} of {len(memory.bytes)} bytes"
            )
        return start

    def _bulk_copy(self, target, source, a, b, count, where, line):
        text = f"copy of {count} bytes from {source} to {target}, line {line}"
        if target.startswith("shared"):
            cta, a = self.cta.cluster.resolve(self.cta, a, line)
            into = cta.shared
            start = self._range(into, a, count, line)
            barrier = self.find_barrier(where, line)
            words = np.arange(start // 4, (start + count) // 4)
            if source == "global":
                origin = self._range(self.memory, b, count, line)
                self.memory.check(np.arange(origin, origin + count), 1, line)
                data = self.memory.bytes

                def run():
                    into.bytes[start : start + count] = data[origin : origin + count]
            else:
                origin = self._range(self.shared, b, count, line)
                read = np.arange(origin // 4, (origin + count) // 4)
                shared, warp = self.shared, self
                # A slot may have gaps that nothing writes; they stay unwritten in the copy.
                self.begin_async_read(read, line, unwritten=True)
                gaps = words[shared.word_states[read] == 0]
                epoch = self.clock.copy()

                def run():
                    into.bytes[start : start + count] = shared.bytes[origin : origin + count]
                    into.word_states[gaps] = 0
                    shared.reading[read] -= 1
                    # Whoever waits for the bytes knows that they have been read.
                    shared.read[read, warp.thread] = epoch[warp.thread]

            self._begin_load(into, words, count, barrier, run, text, line)
            return
        start, origin = self._range(self.memory, a, count, line), self._range(self.shared, b, count, line)
        self.memory.check(np.arange(start, start + count), 1, line)
        words = np.arange(origin // 4, (origin + count) // 4)
        self.begin_async_read(words, line)

        def run():
            self.memory.bytes[start : start + count] = self.shared.bytes[origin : origin + count]

        self.bulk_open.append((Copy(run, text, line), self.shared, words))
        self.cta.scheduler.issue(self.bulk_open[-1][0])

    def async_store(self, lanes, to, values, barrier, line):
        """st.async: words of registers go to another CTA's shared memory, and count at its barrier when they are in."""
        lanes, size = list(lanes), 4 * len(values)
        places = [self.cta.cluster.resolve(self.cta, int(to[0][lane]) + to[1], line) for lane in lanes]
        barriers = {int(barrier[0][lane]) + barrier[1] for lane in lanes}
        if len({id(cta) for cta, _ in places}) != 1 or len(barriers) != 1:
            raise EmulationError(f"line {line}: no emulation of st.async to several CTAs or barriers by one warp")
        into = places[0][0].shared
        starts = np.array([self._range(into, at, size, line) for _, at in places])
        if (starts % size).any():
            raise EmulationError(f"line {line}: expected an address in multiples of {size} bytes for st.async")
        words = (starts[:, None] // 4 + np.arange(len(values))).reshape(-1)
        data = np.stack([np.asarray(value)[lanes] for value in values], axis=1).reshape(-1).view(np.uint32)
        view = into.views[4]

        def run():
            view[words] = data

        text = f"st.async of {size * len(lanes)} bytes, line {line}"
        arrival = self.find_barrier(barriers.pop(), line)
        self._begin_load(into, words, size * len(lanes), arrival, run, text, line, ordinary=True)

    def bulk_commit(self):
        self.bulk_groups.append(self.bulk_open)
        self.bulk_open = []

    def bulk_wait(self, count, read, line):
        groups = self.bulk_groups[: len(self.bulk_groups) - count] if count else list(self.bulk_groups)

        def done():
            for group in groups:
                for copy, shared, words in group:
                    if not read or not getattr(copy, "released", False):
                        if not getattr(copy, "released", False):
                            self.end_async_read(words)
                        copy.released = True
            del self.bulk_groups[: len(groups)]

        return Wait(
            lambda: all(copy.done for group in groups for copy, _, _ in group),
            done,
            lambda: f"{len(groups)} groups of copies",
            line,
        )
