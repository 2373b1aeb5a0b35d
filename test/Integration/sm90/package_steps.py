# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speculated tokens on a GPU, for package_checks.py: a call that keeps the states after tokens has the bits of calls of one
token each, from states in a pool of the same type. A captured call follows rows, numbers of accepted tokens and parents that
change, and what they cannot be touches nothing."""

import itertools

#: Rows of the pool that sequences may name, and tokens whose states are kept.
FIRST, STATES, STEPS = 1, 40, 4
#: Tokens of packed sequences; batch rows have STEPS.
LENGTHS = (4, 0, 1, 6, 3, 4)


class Steps:
    """A call, and what differs between calls."""

    def __init__(self, torch, gdn, gate="raw", state="float32", layout="vk", packed=True, tree=False, apart=False, **more):
        self.torch, self.gdn, self.layout, self.packed, self.tree, self.apart = torch, gdn, layout, packed, tree, apart
        random = torch.Generator("cuda").manual_seed(0)
        dtype = getattr(torch, more.get("data", "bfloat16"))

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=random)

        self.lengths = LENGTHS if packed else (STEPS,) * len(LENGTHS)
        self.ends = [0, *itertools.accumulate(self.lengths)]
        tokens, H, HV, N = self.ends[-1], 4, 8, len(LENGTHS)
        channels = (128,) if more.get("channels") else ()
        q, k, v = (normal(tokens, heads, 128).to(dtype) for heads in (H, H, HV))
        g, b = normal(tokens, HV, *channels), normal(tokens, HV)
        self.words = {"use_qk_l2norm_in_kernel": True, "state_layout": layout}
        if gate == "log":
            g, b = -g.abs() * 0.1, b.sigmoid()
        else:
            kind = dtype if dtype is torch.bfloat16 else torch.float32
            g, b = g.to(kind), b.to(kind)
            self.words |= {"A_log": normal(HV), "dt_bias": normal(HV * (channels or (1,))[0]), "use_beta_sigmoid_in_kernel": True}
            self.words |= {"gate_domain": gate} if gate == "bounded" else {"use_gate_in_kernel": True}
        self.tokens = {"q": q, "k": k, "v": v, "g": g, "beta": b}
        size = HV * 128 * 128
        # Slots with gaps.
        memory = [normal(rows, size + 64).to(getattr(torch, state)) for rows in (STATES, STATES + 8)]
        self.pool, self.kept = (x[:, :size].unflatten(1, (HV, 128, 128)) for x in memory)
        if not apart:
            self.kept = self.pool
        cut = (lambda x: x[None]) if packed else (lambda x: x.unflatten(0, (N, STEPS)))
        self.inputs = {name: cut(x) for name, x in self.tokens.items()}
        if packed:
            self.inputs["cu_seqlens"] = torch.tensor(self.ends, device="cuda", dtype=torch.int32)
        self.out = torch.empty_like(self.inputs["v"])

    def draw(self, seed):
        """Rows to begin with, rows that keep states, numbers of accepted tokens and parents: some are none."""
        torch, N = self.torch, len(LENGTHS)
        random = torch.Generator().manual_seed(seed)
        # As many rows as steps and sequences need.
        rows = (torch.randperm(STATES - FIRST, generator=random) + FIRST)[: N * (STEPS + 1)]
        slots, begins = rows[: N * STEPS].reshape(N, STEPS), rows[N * STEPS :]
        wrong = torch.tensor([-1, 0, 1 << 20, 2**31 - 1])
        at = torch.randint(0, N * STEPS, (5,), generator=random)
        slots.view(-1)[at] = wrong[torch.randint(0, 4, (5,), generator=random)]
        begins[seed % N] = wrong[seed % 4]
        accepted = torch.randint(-1, STEPS + 3, (N,), generator=random)
        parents = torch.randint(-1, STEPS + 1, (N, STEPS), generator=random)
        return tuple(x.int().cuda() for x in (begins, slots, accepted, parents))

    def call(self, begins, slots, accepted, parents):
        words = {"parents": parents} if self.tree else {}
        if self.apart:
            words |= {"state_indices": begins, "step_indices": slots, "step_states": self.kept}
        elif self.tree:
            words |= {"state_indices": begins, "step_indices": slots, "final_state": self.pool}
        else:
            words |= {"state_indices": slots, "num_accepted_tokens": accepted, "final_state": self.pool}
        self.gdn.fused_recurrent_gated_delta_rule(
            **self.inputs, **self.words, initial_state=self.pool, first_state=FIRST, out=self.out, **words
        )

    def wanted(self, begins, slots, accepted, parents):
        """Outputs and states by calls of one token of each sequence, over a pool of a row for each."""
        torch, N = self.torch, len(LENGTHS)
        kept, o = self.kept.clone(), torch.zeros_like(self.tokens["v"])
        if not (self.apart or self.tree):
            begins = slots.gather(1, (accepted.clamp(1, STEPS) - 1)[:, None].long())[:, 0]
        named = [FIRST <= int(row) < STATES for row in begins]
        states = torch.stack([self.pool[int(row)] if has else torch.zeros_like(self.pool[0]) for row, has in zip(begins, named)])
        after = {}
        for t in range(max(self.lengths)):
            live = [n for n in range(N) if named[n] and t < self.lengths[n]]
            for n in live if self.tree and t < STEPS else []:
                parent = int(parents[n, t])
                if 0 <= parent < t - 1 and (n, parent) in after:
                    states[n] = after[n, parent]
            at = torch.tensor([self.ends[n] + t for n in live], device="cuda", dtype=torch.int64)
            if not live:
                continue
            given = {name: x[at][:, None].contiguous() for name, x in self.tokens.items()}
            y, _ = self.gdn.fused_recurrent_gated_delta_rule(
                **given, **self.words, initial_state=states, final_state=states,
                state_indices=torch.tensor(live, device="cuda", dtype=torch.int32),
            )  # fmt: skip
            o[at] = y[:, 0]
            for n in live:
                if t < STEPS and FIRST <= (row := int(slots[n, t])) < len(kept):
                    kept[row] = after[n, t] = states[n].clone()
        return o.view_as(self.out), kept

    def check(self, seeds=6):
        torch = self.torch
        given = self.draw(0)
        before = self.kept.clone()
        self.call(*given)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.call(*given)
        self.kept.copy_(before)
        faults = []
        for seed in range(seeds):
            new = self.draw(seed)
            for old, x in zip(given, new):
                old.copy_(x)
            want_o, want_kept = self.wanted(*new)
            # What a token without a state has is written, too.
            self.out.fill_(7)
            graph.replay()
            for name, got, want in (("o", self.out, want_o), ("states", self.kept, want_kept)):
                if not torch.equal(got, want):
                    rows = (got != want).flatten(1).any(1).nonzero()[:, 0].tolist() if name == "states" else ""
                    error = (got.double() - want.double()).abs().max().item()
                    faults.append(f"{name} {seed}: {error:.1e} {rows}")
        return "; ".join(faults) or "equal bits", not faults


def step_runs(torch, gdn):
    """The checks by name."""
    cases = {
        "rows of the pool": {},
        "rows of the pool, bfloat16": {"state": "bfloat16"},
        "rows of the pool [K, V], batch rows": {"layout": "kv", "packed": False},
        "log gates": {"gate": "log"},
        "log gates, bfloat16, batch rows": {"gate": "log", "state": "bfloat16", "packed": False},
        "float16": {"data": "float16", "state": "float16"},
        "apart": {"apart": True},
        "tree": {"tree": True, "apart": True},
        "tree in the pool": {"tree": True},
        "tree, bfloat16, batch rows": {"tree": True, "apart": True, "state": "bfloat16", "packed": False},
        "tree, log gates": {"tree": True, "apart": True, "gate": "log"},
        "gates a channel": {"channels": True},
        "gates a channel, bfloat16, batch rows": {"channels": True, "state": "bfloat16", "packed": False},
        "log gates a channel": {"channels": True, "gate": "log"},
        "bounded gates a channel, bfloat16": {"channels": True, "gate": "bounded", "state": "bfloat16"},
        "gates a channel, tree": {"channels": True, "tree": True, "apart": True},
        "bounded gates a channel, bfloat16, tree": {
            "channels": True, "gate": "bounded", "state": "bfloat16", "tree": True, "apart": True,
        },
    }  # fmt: skip
    return [(f"steps, {name}", lambda words=words: Steps(torch, gdn, **words).check()) for name, words in cases.items()]
