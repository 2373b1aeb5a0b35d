"""Runs launches: clusters of CTAs of warps, and the scheduler between them."""

import ctypes
import math
import random

import numpy as np

from . import engine
from .barriers import ClusterBarrier, NamedBarrier
from .clocks import Clocks
from .memory import SharedMemory
from .ptx import EmulationError
from .warp import Warp

#: Registers of a multiprocessor, by which setmaxnreg divides.
REGISTERS = 65536


class Scheduler:
    """Says which warp runs next, and when copies and products end.

    mode: eager (at once), lazy (when every warp waits), random (any time).
    """

    def __init__(self, mode, seed):
        self.mode, self.random = mode, random.Random(seed)
        self.copies, self.failed = [], set()

    def issue(self, copy):
        if self.mode == "eager":
            copy.finish()
        else:
            self.copies.append(copy)

    def may_fail(self, warp):
        """try_wait may return false at any time; here never twice in a row."""
        if self.mode != "random" or warp.thread in self.failed:
            self.failed.discard(warp.thread)
            return False
        if self.random.random() < 0.2:
            self.failed.add(warp.thread)
            return True
        return False

    def finish_some(self, stuck):
        """Ends copies; says whether any ended."""
        if not self.copies:
            return False
        if stuck or self.mode == "random" and self.random.random() < 0.3:
            self.copies.pop(self.random.randrange(len(self.copies))).finish()
            return True
        return False


class CTA:
    def __init__(self, launch, cluster, number, rank):
        self.launch, self.cluster, self.number, self.rank = launch, cluster, number, rank
        self.threads = launch.threads
        self.warps_count = self.threads // 32
        self.clocks, self.scheduler = cluster.clocks, cluster.scheduler
        self.shared = SharedMemory(launch.shared_bytes, self.clocks)
        self.mbarriers, self.named, self.logs, self.specials = {}, {}, {}, {}
        self.finished = False
        available = REGISTERS // launch.program.kernel.min_ctas
        self.registers_at_start = min(available // self.threads // 8 * 8, 255 // 8 * 8)
        self.registers = available // 32
        self.warps = [Warp(self, i) for i in range(self.warps_count)]

    def warpgroup_log(self, index):
        """What the warps of a warpgroup execute in common; the engine's."""
        if index not in self.logs:
            self.logs[index] = engine.functions["Log"]()
        return self.logs[index]

    def named_barrier(self, number, line):
        if not 0 <= number < 16:
            raise EmulationError(f"line {line}: expected a barrier from 0 to 15, got {number}")
        return self.named.setdefault(number, NamedBarrier(self.clocks))

    def special(self, name, warp):
        """A special register of a warp: a number, or those of its lanes."""
        if name not in self.specials:
            self.specials[name] = self._special(name)
        value = self.specials[name]
        return value(warp) if callable(value) else value

    def _special(self, name):
        """A special register, or a function of the warp that gives it."""
        launch, lane = self.launch, np.arange(32, dtype=np.uint32)
        grid, block, cluster, number = launch.grid, launch.block, launch.cluster, self.number
        name, _, axis = name.partition(".")
        if axis:
            i = "xyz".index(axis)
            before = math.prod(block[:i])
            ctaid = number // math.prod(grid[:i]) % grid[i]
            return {
                "tid": lambda warp: (warp * 32 + lane) // before % block[i],
                "ntid": block[i],
                "ctaid": ctaid,
                "nctaid": grid[i],
                "cluster_ctaid": ctaid % cluster[i],
                "cluster_nctaid": cluster[i],
                "clusterid": ctaid // cluster[i],
                "nclusterid": grid[i] // cluster[i],
            }[name]
        bit = np.uint32(1) << lane
        return {
            "laneid": lane,
            "warpid": lambda warp: warp,
            "nwarpid": self.warps_count,
            "smid": number % 132,
            "nsmid": 132,
            "gridid": 0,
            "cluster_ctarank": self.rank,
            "cluster_nctarank": math.prod(cluster),
            "lanemask_eq": bit,
            "lanemask_lt": bit - np.uint32(1),
        }[name]

    def check_end(self):
        """What a CTA must not leave behind."""
        for warp in self.warps:
            if warp.has_products():
                raise EmulationError(f"warp {warp.index} of CTA {self.number} ends with a wgmma in flight")
            pending = [c for g in [*warp.bulk_groups, warp.bulk_open] for c, _, _ in g]
            if pending:
                raise EmulationError(
                    f"warp {warp.index} of CTA {self.number} ends with a bulk copy that reads its "
                    f"shared memory: {pending[0].text}"
                )
        for barrier in self.mbarriers.values():
            if barrier.bytes:
                raise EmulationError(f"CTA {self.number} ends while copies into it are in flight: {barrier}")


    def close(self):
        """Frees what the engine has of it, and all arrays: warps and their CTA name each other."""
        for warp in self.warps:
            engine.functions["FreeWarp"](warp.handle)
        for log in self.logs.values():
            engine.functions["FreeLog"](log)
        self.warps, self.shared = [], None


class Cluster:
    def __init__(self, launch, first, scheduler):
        size = math.prod(launch.cluster)
        self.scheduler = scheduler
        self.clocks = Clocks(launch.threads // 32, size)
        self.barrier = ClusterBarrier(self.clocks, size * launch.threads // 32)
        self.launch = launch
        self.ctas = []
        for rank in range(size):
            self.ctas.append(CTA(launch, self, first + rank, rank))

    def resolve(self, cta, address, line):
        """The CTA whose shared memory an address is in, and the place there."""
        rank = address >> 24
        if rank > len(self.ctas):
            raise EmulationError(f"line {line}: expected an address of shared memory, got {address:#x}")
        return (self.ctas[rank - 1] if rank else cta), address & 0xFFFFFF

    def run(self):
        scheduler, live = self.scheduler, {}
        for cta in self.ctas:
            for warp in cta.warps:
                live[warp.thread] = (warp, warp.run())
        order = list(live)
        while live:
            ran = False
            if scheduler.mode == "random":
                scheduler.random.shuffle(order)
            for thread in order:
                if thread not in live:
                    continue
                warp, steps = live[thread]
                if warp.waiting is not None and not warp.waiting.ready():
                    continue
                ran = True
                self._advance(warp, steps, live)
                scheduler.finish_some(False)
            order = [t for t in order if t in live]
            if not ran and live and not scheduler.finish_some(True):
                self._deadlock(live)
        while scheduler.finish_some(True):
            pass
        for cta in self.ctas:
            cta.check_end()
        for cta in self.ctas:
            cta.close()

    def _advance(self, warp, steps, live):
        try:
            next(steps)
        except StopIteration:
            del live[warp.thread]
            if not any(w.thread in live for w in warp.cta.warps):
                warp.cta.finished = True
        except EmulationError as error:
            raise EmulationError(f"{self._where(warp)}: {error}") from None
        except (TypeError, AttributeError, IndexError, KeyError) as error:
            line = warp.program.line(int(warp.stop[0]))
            raise EmulationError(f"{self._where(warp)}: line {line}: {warp.program.texts[line]}: {error}") from error

    def _where(self, warp):
        return f"kernel {self.launch.program.kernel.name}, CTA {warp.cta.number}, warp {warp.index}"

    def _deadlock(self, live):
        lines = [
            f"  CTA {w.cta.number} warp {w.index}: line {w.waiting.line}, {w.waiting.text()}"
            for w, _ in live.values()
            if w.waiting
        ]
        raise EmulationError(f"kernel {self.launch.program.kernel.name}: no warp can go on\n" + "\n".join(lines))


class Launch:
    """One launch of a kernel."""

    def __init__(self, program, memory, grid, block, cluster, shared_bytes, params):
        self.program, self.memory, self.grid, self.block, self.cluster = program, memory, grid, block, cluster
        self.shared_bytes, self.params = shared_bytes, params
        self.threads = math.prod(block)
        self._params = ctypes.create_string_buffer(bytes(params), max(len(params), 1))
        self.params_address = ctypes.addressof(self._params)
        kernel = program.kernel
        if self.threads % 32 or self.threads > kernel.max_threads:
            raise EmulationError(f"expected at most {kernel.max_threads} threads in whole warps, got {self.threads}")
        if cluster != kernel.cluster and kernel.cluster != (1, 1, 1):
            raise EmulationError(f"expected clusters of {kernel.cluster}, got {cluster}")
        if any(g % c for g, c in zip(grid, cluster)) or cluster[1:] != (1, 1):
            raise EmulationError(f"expected a grid of whole clusters {cluster}, got {grid}")

    def run(self, mode="random", seed=0, ctas=None):
        count, size = math.prod(self.grid), math.prod(self.cluster)
        rng = random.Random(seed)
        firsts = list(range(0, count, size))
        if mode == "random":
            rng.shuffle(firsts)
        for first in firsts:
            Cluster(self, first, Scheduler(mode, rng.random())).run()
