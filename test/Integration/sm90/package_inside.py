# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside a prefill in rows that sequences name, on a GPU, for package_checks.py. A sequence's first kept state has the
bits of a prefill of the tokens before it, and so have all others, outputs and final states those of a call that keeps none,
if no chunk is cut."""

import itertools

from package_cases import TOLERANCE, error_of

#: Rows that have a state; those below FIRST and of STATES and more are none.
FIRST, STATES = 1, 24
LENGTHS, ROWS = (200, 0, 64, 1000, 40), (1, 2, 3, 4, 0)
#: Of each sequence. Some are none, and of the last sequence, which has no row, nothing is kept.
SLOTS = ((5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16), (17, -1, 0, 18), (19, 20, 21, 22))


class Inside:
    """A call of five packed sequences with raw gates, of a head or, with a `bound` or None, of a channel."""

    def __init__(self, torch, gdn, every, state="float32", layout="vk", gap=0, channels=False, bound=None):
        self.torch, self.layout, self.every, self.channels = torch, layout, every, channels
        self.function = gdn.chunk_kda if channels else gdn.chunk_gated_delta_rule
        random, H, HV = torch.Generator("cuda").manual_seed(0), 4, 8
        H = HV if channels else H

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=random)

        tokens, gates = sum(LENGTHS), (128,) * channels
        self.ends = list(itertools.accumulate(LENGTHS, initial=0))
        self.inputs = {
            "q": normal(1, tokens, H, 128).bfloat16(), "k": normal(1, tokens, H, 128).bfloat16(),
            "v": normal(1, tokens, HV, 128).bfloat16(), "g": normal(1, tokens, HV, *gates).bfloat16(),
            "beta": normal(1, tokens, HV).bfloat16(),
        }  # fmt: skip
        self.words = {
            "A_log": normal(HV), "dt_bias": normal(HV, *gates) - 3, "use_gate_in_kernel": True,
            "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True, "state_v_first": layout == "vk",
            **({"lower_bound": bound} if channels else {}),
        }  # fmt: skip
        size = HV * 128 * 128
        self.pool = normal(STATES, size + gap)[:, :size].unflatten(1, (HV, 128, 128)).to(getattr(torch, state))
        if gap:
            memory = torch.empty(STATES, size + gap, device="cuda", dtype=self.pool.dtype)[:, :size]
            self.pool = memory.unflatten(1, (HV, 128, 128)).copy_(self.pool)

    def integers(self, values):
        return self.torch.tensor(values, device="cuda", dtype=self.torch.int32)

    def call(self, pool, tokens, ends, rows, **others):
        inputs = {name: x[:, tokens] for name, x in self.inputs.items()}
        return self.function(
            **inputs, **self.words, cu_seqlens=self.integers(ends), initial_state=pool, final_state=pool,
            state_indices=self.integers(rows), first_state=FIRST, context_parallel=False, **others,
        )[0]  # fmt: skip

    def check(self, apart=False):
        torch, every = self.torch, self.every
        pool, plain = self.pool.clone(), self.pool.clone()
        if self.pool.stride(0) != pool.stride(0):
            pool = self.pool
        before = self.pool.clone()
        states = torch.full_like(pool, torch.nan) if apart else pool
        o = self.call(
            pool, slice(None), self.ends, ROWS, checkpoint_state_indices=self.integers(SLOTS),
            checkpoint_every_n_tokens=self.integers([every] * len(LENGTHS)), state_checkpoints=states if apart else None,
        )  # fmt: skip
        want = self.call(plain, slice(None), self.ends, ROWS)
        is_cut, faults, errors, written = every % 64 != 0, [], [], set()
        for what, x, y in (("o", o, want), ("states", pool[list(ROWS)], plain[list(ROWS)])):
            errors.append(error_of(x, y))
            faults += [what] if errors[-1] > (TOLERANCE if is_cut else 0.0) or not x.isfinite().all() else []
        for n, slots in enumerate(SLOTS):
            for number, slot in enumerate(slots, 1):
                tokens = number * every
                if ROWS[n] < FIRST or not FIRST <= slot < STATES or tokens > LENGTHS[n]:
                    continue
                written.add(slot)
                given, span = before.clone(), slice(self.ends[n], self.ends[n] + tokens)
                self.call(given, span, [0, tokens], ROWS[n : n + 1])
                errors.append(error_of(states[slot], given[ROWS[n]]))
                faults += [f"row {slot}"] if errors[-1] > (TOLERANCE if is_cut and number > 1 else 0.0) else []
        for row in set(range(STATES)) - written - (set() if apart else set(ROWS)):
            stays = states[row].isnan().all() if apart else torch.equal(states[row], before[row])
            faults += [] if stays else [f"row {row} is written"]
        return f"{max(errors):.1e} of {len(written)} {' '.join(faults[:6])}", not faults


def inside_runs(torch, gdn):
    """The checks by name."""
    cases = {
        "a head": {"every": 64}, "a head, [K, V], gaps": {"every": 128, "layout": "kv", "gap": 256},
        "a head, bfloat16": {"every": 64, "state": "bfloat16"},
        "a head, bfloat16 [K, V]": {"every": 64, "state": "bfloat16", "layout": "kv"},
        **{f"a channel, {every} tokens, bound {bound}": {"every": every, "channels": True, "bound": bound, "gap": 64}
           for every in (16, 48, 64, 80, 192) for bound in (-5.0, None)},
    }  # fmt: skip
    return [
        (f"inside, {name}{', apart' * apart}", lambda case=case, apart=apart: Inside(torch, gdn, **case).check(apart))
        for name, case in cases.items()
        for apart in (False, True)
    ]
