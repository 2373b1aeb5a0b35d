"""mbarriers, named barriers and cluster barriers."""

import numpy as np

from .ptx import EmulationError


class Wait:
    """What a warp waits for; the scheduler asks `ready` again."""

    def __init__(self, ready, done, text, line):
        self.ready, self.done, self.text, self.line = ready, done, text, line


class MBarrier:
    """An mbarrier object."""

    def __init__(self, count, clocks, where, line):
        if not 1 <= count < 1 << 20:
            raise EmulationError(f"line {line}: expected a count from 1 to 2^20 - 1 for {where}, got {count}")
        self.count, self.pending, self.bytes, self.phase, self.where = count, count, 0, 0, where
        #: What arrived in this phase, and in the ones before.
        self.clock, self.seen = np.zeros(clocks.size, np.int32), np.zeros(clocks.size, np.int32)

    def arrive(self, arrivals, clock, line):
        if arrivals > self.pending:
            raise EmulationError(
                f"line {line}: expected at most {self.count} arrivals in a phase of {self.where}, "
                f"got {self.count - self.pending + arrivals} ({self.bytes} bytes outstanding)"
            )
        np.maximum(self.clock, clock, out=self.clock)
        self.pending -= arrivals
        self.complete()

    def expect(self, count, line):
        self.bytes += count
        if not -(1 << 20) < self.bytes < 1 << 20:
            raise EmulationError(
                f"line {line}: expected less than 2^20 bytes outstanding at {self.where}, got {self.bytes}"
            )

    def deliver(self, count, clock):
        np.maximum(self.clock, clock, out=self.clock)
        self.bytes -= count
        self.complete()

    def complete(self):
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            np.maximum(self.seen, self.clock, out=self.seen)

    def __str__(self):
        return (
            f"{self.where}: phase {self.phase}, {self.count - self.pending} of {self.count} "
            f"arrivals, {self.bytes} bytes outstanding"
        )


class NamedBarrier:
    """bar.sync of a CTA."""

    def __init__(self, clocks):
        self.expected, self.arrived, self.generation = None, set(), 0
        self.clock, self.seen = np.zeros(clocks.size, np.int32), np.zeros(clocks.size, np.int32)

    def arrive(self, number, warp, count, line):
        if count % 32 or count == 0:
            raise EmulationError(f"line {line}: expected a multiple of 32 threads at barrier {number}, got {count}")
        if self.expected not in (None, count):
            raise EmulationError(
                f"line {line}: expected the {self.expected} threads of the other warps at barrier {number}, got {count}"
            )
        if warp.index in self.arrived:
            raise EmulationError(f"line {line}: warp {warp.index} arrives twice at barrier {number}")
        self.expected = count
        self.arrived.add(warp.index)
        np.maximum(self.clock, warp.clock, out=self.clock)
        if len(self.arrived) * 32 == count:
            self.expected, self.arrived = None, set()
            self.generation += 1
            self.seen = self.clock.copy()


class ClusterBarrier:
    """barrier.cluster of all warps of a cluster."""

    def __init__(self, clocks, warps):
        self.warps, self.arrived, self.generation = warps, 0, 0
        self.clock, self.seen = np.zeros(clocks.size, np.int32), np.zeros(clocks.size, np.int32)

    def arrive(self, clock):
        np.maximum(self.clock, clock, out=self.clock)
        self.arrived += 1
        if self.arrived == self.warps:
            self.arrived = 0
            self.generation += 1
            self.seen = self.clock.copy()


class BarrierOps:
    """A warp's instructions on barriers."""

    def acquire(self, seen):
        np.maximum(self.clock, seen, out=self.clock)

    def release(self):
        """The clock that an arrival hands over."""
        handed = self.clock.copy()
        self.clock[self.thread] += 1
        return handed

    def find_barrier(self, address, line):
        """The mbarrier at an address of shared memory, which may be another CTA's."""
        cta, at = self.cta.cluster.resolve(self.cta, int(address), line)
        barrier = cta.mbarriers.get(at)
        if barrier is None:
            raise EmulationError(
                f"line {line}: expected an mbarrier that mbarrier.init made, got shared memory at {at}"
            )
        if cta.finished:
            raise EmulationError(f"line {line}: {barrier.where} belongs to a CTA that has ended")
        return barrier

    def barrier_init(self, lanes, place, count, line):
        for lane in lanes:
            at = int(place[0][lane]) + place[1]
            if at % 8:
                raise EmulationError(f"line {line}: expected an mbarrier at a multiple of 8 bytes, got {at}")
            shared, byte = self.shared, at - self.shared.base
            if not 0 <= byte <= len(shared.bytes) - 8:
                raise EmulationError(
                    f"line {line}: expected an mbarrier in shared memory of {len(shared.bytes)} bytes, got byte {byte}"
                )
            if at in self.cta.mbarriers:
                raise EmulationError(f"line {line}: {self.cta.mbarriers[at].where} is initialised twice")
            if (shared.state[byte : byte + 8] != 0).any():
                raise EmulationError(f"line {line}: mbarrier.init of shared memory in use at byte {byte}")
            shared.state[byte : byte + 8] = 4
            self.cta.mbarriers[at] = MBarrier(
                int(count[lane]),
                self.cta.clocks,
                f"mbarrier at byte {byte} of CTA {self.cta.rank} of the cluster",
                line,
            )

    def barrier_inval(self, lanes, place, line):
        for lane in lanes:
            at = int(place[0][lane]) + place[1]
            if self.cta.mbarriers.pop(at, None) is None:
                raise EmulationError(f"line {line}: mbarrier.inval of no mbarrier")
            self.shared.state[at - self.shared.base : at - self.shared.base + 8] = 0

    def arrive(self, lanes, place, arrivals, bytes_, line):
        handed = self.release()
        for lane in lanes:
            barrier = self.find_barrier(int(place[0][lane]) + place[1], line)
            barrier.expect(int(bytes_[lane]), line)
            barrier.arrive(int(arrivals[lane]), handed, line)

    def try_wait(self, lanes, predicate, place, parity, line):
        addresses, parities = place[0].tolist(), parity.tolist()
        barriers = {(addresses[lane], parities[lane]) for lane in lanes}
        found = [(self.find_barrier(at + place[1], line), parity) for at, parity in barriers]
        for _, p in found:
            if p not in (0, 1):
                raise EmulationError(f"line {line}: expected parity 0 or 1, got {p}")
        first = found[0]

        def ready():
            return all((barrier.phase & 1) != p for barrier, p in found)

        def done(success=True):
            self.set_predicate(predicate, success)
            if success:
                for barrier, _ in found:
                    self.acquire(barrier.seen)

        if not ready() and self.cta.scheduler.may_fail(self):
            done(False)
            return None
        return Wait(ready, done, lambda: f"{first[0]}; waits for parity {first[1]}", line)

    def bar_sync(self, number, count, line):
        number = int(number[0])
        count = self.cta.threads if count is None else int(count[0])
        barrier = self.cta.named_barrier(number, line)
        generation = barrier.generation
        barrier.arrive(number, self, count, line)
        self.clock[self.thread] += 1
        return Wait(
            lambda: barrier.generation != generation,
            lambda: self.acquire(barrier.seen),
            lambda: f"barrier {number}, {len(barrier.arrived) * 32} of {count} threads",
            line,
        )

    def bar_arrive(self, number, count, line):
        number = int(number[0])
        self.cta.named_barrier(number, line).arrive(number, self, int(count[0]), line)
        self.clock[self.thread] += 1

    def cluster_arrive(self, line):
        barrier = self.cta.cluster.barrier
        if self.cluster_generation is not None:
            raise EmulationError(f"line {line}: a second barrier.cluster.arrive without a wait")
        self.cluster_generation = barrier.generation
        barrier.arrive(self.release())

    def cluster_wait(self, line):
        barrier, generation = self.cta.cluster.barrier, self.cluster_generation
        if generation is None:
            raise EmulationError(f"line {line}: barrier.cluster.wait without an arrive")

        def done():
            self.cluster_generation = None
            self.acquire(barrier.seen)

        return Wait(
            lambda: barrier.generation != generation,
            done,
            lambda: f"cluster barrier, {barrier.arrived} of {barrier.warps} warps",
            line,
        )
