"""A warp: 32 lanes, their registers, and the blocks at which they are."""

import numpy as np

from .arith import LANE, U32, U64
from .barriers import BarrierOps, Wait
from .copies import CopyOps
from .ptx import EmulationError
from .tensorcore import TensorCoreOps

TRUE = np.ones(32, bool)


class Warp(BarrierOps, CopyOps, TensorCoreOps):
    first_lane = LANE == 0

    def __init__(self, cta, index):
        self.cta, self.index = cta, index
        self.shared, self.memory = cta.shared, cta.launch.memory
        self.thread = cta.rank * cta.warps_count + index
        self.clock = cta.clocks.start(self.thread)
        self.R = list(cta.launch.program.start)
        self.warpgroup_log, self.log_position = cta.warpgroup_log(index // 4), 0
        self.written = {}
        self.fenced, self.accumulating = False, {}
        self.products_open, self.product_groups = [], []
        self.bulk_open, self.bulk_groups = [], []
        self.cluster_generation = None
        self.registers_per_thread = cta.registers_at_start
        self.special = cta.special_values(index)
        self.waiting = None
        self.block = 0

    def wrote(self, register, mask):
        """Keeps the lanes that have written a register that not every way writes."""
        before = self.written.get(register)
        self.written[register] = TRUE if mask is None else mask if before is None else before | mask

    def check_written(self, register, mask, name, line):
        written = self.written.get(register, ~TRUE)
        if not (written.all() if mask is None else written[mask].all()):
            raise EmulationError(f"line {line}: {name} is not written on every way here")

    # Warp-wide instructions.

    def sync_warp(self, line):
        pass

    def shuffle(self, mode, value, b, c):
        clamp, segment = int(c[0]) & 31, int(c[0]) >> 8 & 31
        b = b.astype(np.int64)
        top = (LANE & segment) | (clamp & ~segment)
        bottom = LANE & segment
        source = {
            "up": LANE - (b & 31),
            "down": LANE + (b & 31),
            "bfly": LANE ^ (b & 31),
            "idx": bottom | (b & 31 & ~segment),
        }[mode]
        valid = source >= top if mode == "up" else source <= top
        return value[np.where(valid, source, LANE)], valid

    def reduce(self, operation, value, members):
        if (members != 0xFFFFFFFF).any():
            raise TypeError("redux of some lanes")
        if operation == "add":
            result = value.sum(dtype=value.dtype)
        else:
            result = {
                "min": np.min,
                "max": np.max,
                "and": np.bitwise_and.reduce,
                "or": np.bitwise_or.reduce,
                "xor": np.bitwise_xor.reduce,
            }[operation](value)
        return np.full(32, result, value.dtype).view(U32)

    def vote(self, mode, predicate):
        if mode == "ballot":
            return np.full(32, int((predicate.astype(U64) << LANE.astype(U64)).sum()), U32)
        return np.full(
            32, {"any": predicate.any(), "all": predicate.all(), "uni": predicate.all() or not predicate.any()}[mode]
        )

    def active(self, mask):
        return self.vote("ballot", TRUE if mask is None else mask)

    def param(self, offset, size, kind):
        return self.cta.launch.param(offset, size, kind)

    def map_address(self, address, rank, line):
        size = len(self.cta.cluster.ctas)
        if (rank >= size).any():
            raise EmulationError(f"line {line}: expected a rank below {size}, got {int(rank.max())}")
        return (address & U64(0xFFFFFF)) | ((rank.astype(U64) + U64(1)) << U64(24))

    def fence(self, mask, op, line):
        if "proxy.async" in op:
            self.shared.fence(self)

    def trap(self, line):
        raise EmulationError(f"line {line}: trap")

    def set_registers(self, direction, count, line):
        self.collective(line)
        if count % 8 or not 24 <= count <= 256:
            raise EmulationError(f"line {line}: expected a multiple of 8 from 24 to 256 registers, got {count}")
        if count > self.registers_per_thread if direction == "dec" else count < self.registers_per_thread:
            raise EmulationError(
                f"line {line}: setmaxnreg.{direction} from {self.registers_per_thread} to {count} registers"
            )
        cta = self.cta

        def ready():
            return sum(w.registers_per_thread for w in cta.warps) - self.registers_per_thread + count <= cta.registers

        def done():
            self.registers_per_thread = count

        return Wait(ready, done, lambda: f"{count} registers a thread", line)

    # The run.

    def run(self):
        """Runs until the lanes have ended, yielding what the warp waits for."""
        blocks, last = self.cta.launch.program.blocks, len(self.cta.launch.program.blocks)
        scheduler = self.cta.scheduler
        # Each branch at which lanes part has an entry: the block at which they
        # meet again, and the lanes on the way by the block where they are.
        paths = [(last, {0: None})]
        while True:
            meet, groups = paths[-1]
            index = next(iter(groups)) if len(groups) == 1 else self._choose(groups, blocks, meet)
            if index is None or index == meet:
                if len(paths) == 1:
                    if index == meet:
                        raise EmulationError("a warp runs past the end of the kernel")
                    return
                paths.pop()
                if index == meet:
                    self._join(paths[-1][1], meet, groups[meet])
                continue
            mask = groups.pop(index)
            block = blocks[index]
            self.block = index
            if block.whole and mask is not None:
                if len(paths) == 1:
                    self._divergence(block, mask, groups)
                # The others may come here without the way that all must go.
                paths.pop()
                for at, lanes in [(index, mask), *groups.items()]:
                    self._join(paths[-1][1], at, lanes)
                continue
            if block.waits:
                wait = (block.full if mask is None else block.masked)(self, mask)
                if wait is not None:
                    if not wait.ready():
                        self.waiting = wait
                        while not wait.ready():
                            yield wait
                        self.waiting = None
                    wait.done()
            elif mask is None:
                block.full(self, None)
            else:
                block.masked(self, mask)
            self._leave(block, mask, paths)
            if scheduler.preempts():
                yield None

    @staticmethod
    def _choose(groups, blocks, meet):
        """The lanes that go on: those furthest behind, but for those that want the whole warp or have arrived."""
        under_way = [g for g in groups if g != meet]
        free = [g for g in under_way if g >= len(blocks) or not blocks[g].whole]
        return min(free or under_way or groups, default=None)

    def _leave(self, block, mask, paths):
        """Moves lanes from the end of a block on."""
        meet, groups = paths[-1]
        if block.end is None:
            self._join(groups, block.index + 1, mask)
            return
        target = block.target if block.end == "bra" else None
        if block.guard is None:
            if target is not None:
                self._join(groups, target, mask)
            return
        guard = self.R[block.guard]
        if guard is None:
            raise EmulationError(f"line {block.line}: a branch on a register that was never written")
        taken = ~guard if block.negated else guard
        taken = taken if mask is None else taken & mask
        if taken.any():
            everything = taken.all() if mask is None else (taken == mask).all()
            if everything:
                if target is not None:
                    self._join(groups, target, mask)
                return
            if block.meet != meet:
                groups = {}
                paths.append((block.meet, groups))
            if target is not None:
                self._join(groups, target, taken)
            self._join(groups, block.index + 1, ~taken if mask is None else mask & ~taken)
        else:
            self._join(groups, block.index + 1, mask)

    @staticmethod
    def _join(groups, index, mask):
        if index not in groups:
            groups[index] = mask
            return
        both = groups[index] | mask
        groups[index] = None if both.all() else both

    def _divergence(self, block, mask, groups):
        lanes = int(np.count_nonzero(mask))
        others = ", ".join(f"line {self.cta.launch.program.blocks[g].line}" for g in groups) or "the end"
        raise EmulationError(
            f"line {block.line}: expected all lanes of the warp, got {lanes}; the others are "
            f"at {others}: {self.cta.launch.program.texts[block.line]}"
        )
