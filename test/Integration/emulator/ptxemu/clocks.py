"""Vector clocks: which accesses barriers order.

Every warp of a cluster is a thread of its own, and so are the asynchronous
copies of the cluster together. A warp's clock says, for each thread, up to
which point it has seen the other's work. Lanes of a warp are not told apart.
"""

import numpy as np


class Clocks:
    def __init__(self, warps_per_cta, ctas):
        self.warps_per_cta, self.size = warps_per_cta, warps_per_cta * ctas + 1
        #: The asynchronous copies.
        self.copies = self.size - 1
        self.ticks = 0

    def name(self, thread):
        if thread == self.copies:
            return "a copy"
        return f"warp {thread % self.warps_per_cta} of CTA {thread // self.warps_per_cta} of the cluster"

    def start(self, thread):
        clock = np.zeros(self.size, np.int32)
        clock[thread] = 1
        return clock

    def copy(self, clock):
        """The clock of a copy that a warp issues now."""
        self.ticks += 1
        mine = clock.copy()
        mine[self.copies] = self.ticks
        return mine
