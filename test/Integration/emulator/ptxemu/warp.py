"""A warp: what the engine runs, and what Python does for it between."""

import ctypes
from functools import lru_cache

import numpy as np

from . import engine
from .barriers import BarrierOps, Wait
from .copies import CopyOps
from .ptx import EmulationError

ALL_LANES = 0xFFFFFFFF
MODES = ("eager", "lazy", "random")


@lru_cache(4096)
def lanes_of(mask):
    """The lanes of a mask, which has a bit for each."""
    return tuple(lane for lane in range(32) if mask >> lane & 1)


class Warp(BarrierOps, CopyOps):
    def __init__(self, cta, index):
        self.cta, self.index = cta, index
        self.shared, self.memory = cta.shared, cta.launch.memory
        self.thread = cta.rank * cta.warps_count + index
        self.clock = cta.clocks.start(self.thread)
        self.bulk_open, self.bulk_groups = [], []
        self.cluster_generation = None
        self.registers_per_thread = cta.registers_at_start
        self.waiting = None
        program = cta.launch.program
        self.program, self.frame = program, program.frame.copy()
        #: The same as words of 64 bits, 16 to a slot.
        self.doubles = self.frame.reshape(-1).view(np.uint64)
        for name, slot in program.specials.items():
            self.frame[slot] = cta.special(name[1:], index)
        #: The instruction that Python executes, and its lanes.
        self.stop = np.zeros(2, np.int32)
        self.active = ALL_LANES
        self.handle = engine.functions["Warp"](
            program.handle,
            ctypes.addressof(self.memory.struct),
            ctypes.addressof(self.shared.struct),
            cta.warpgroup_log(index // 4),
            self.frame.ctypes.data,
            self.clock.ctypes.data,
            cta.launch.params_address,
            self.thread,
            index,
            MODES.index(cta.scheduler.mode),
            cta.scheduler.random.getrandbits(64),
            program.tracked,
            program.flags.ctypes.data,
            len(program.flags),
        )

    # The operands of an instruction.

    def words(self, slot):
        return self.frame[slot]

    def longs(self, slot):
        return self.doubles[16 * slot : 16 * slot + 32]

    def place(self, at):
        """Addresses of lanes, and what is added to them."""
        return self.longs(at[0]), at[1]

    def set_predicate(self, slot, value):
        """Writes the predicate of the lanes that execute an instruction."""
        before = int(self.frame[slot, 0])
        self.frame[slot, 0] = before & ~self.active & ALL_LANES | (self.active if value else 0)

    def fail(self):
        """Raises what the engine found."""
        raise EmulationError(self.program.explain(engine.functions["Failure"](self.handle).decode()))

    def has_products(self):
        return engine.functions["HasProducts"](self.handle)

    def set_registers(self, direction, count, line):
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
        run, handle, stop, at = engine.functions["Run"], self.handle, self.stop, self.stop.ctypes.data
        effects = self.program.effects
        while True:
            status = run(handle, at)
            if status == engine.EFFECT:
                self.active = int(stop[1]) & ALL_LANES
                wait = effects[int(stop[0])](self, lanes_of(self.active))
                if wait is not None:
                    if not wait.ready():
                        self.waiting = wait
                        while not wait.ready():
                            yield wait
                        self.waiting = None
                    wait.done()
            elif status == engine.PREEMPTED:
                yield None
            elif status == engine.ENDED:
                return
            else:
                self.fail()
