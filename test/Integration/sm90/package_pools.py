# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States in a pool on a GPU, for package_checks.py: calls with `state_indices` have the bits of calls that are given
their states in the sequences' order. Rows that nobody names stay, and sequences without a row have outputs of zeros. So has
a call in which some sequences begin with zeros the bits of one that is given zeros, whatever their rows hold."""

import itertools

from package_cases import TOLERANCE, error_of

#: Rows of four sequences of which two have a state: rows below FIRST and of STATES and more are none.
FIRST, STATES = 1, 9
ROWS = ((3, 0, 8, 9), (1, -1, 100, 5))
#: Which of them begin with their rows.
FLAGS = ((False, True, True, False), (True, False, True, False))


class Pools:
    """A call of four sequences, and what differs between calls."""

    def __init__(
        self, torch, gdn, name, lengths, state="float32", layout="kv", gate="log", gap=0, index="int32", **options
    ):  # fmt: skip
        self.torch, self.gdn, self.function, self.lengths = torch, gdn, getattr(gdn, name), lengths
        self.layout, self.gate, self.gap, self.options = layout, gate, gap, options
        self.state, self.index = getattr(torch, state), getattr(torch, index)
        random = torch.Generator("cuda").manual_seed(0)

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=random)

        packed = lengths[0] is not None
        rows, tokens, H, HV = (1, sum(lengths), 4, 8) if packed else (4, lengths[1], 4, 8)
        keys = [torch.nn.functional.normalize(normal(rows, tokens, H, 128), dim=-1).bfloat16() for _ in range(2)]
        g = -normal(rows, tokens, HV).abs() * 0.1
        self.inputs = {
            "q": keys[0], "k": keys[1], "v": normal(rows, tokens, HV, 128).bfloat16(),
            "g": g.exp() if gate == "linear" else g, "beta": normal(rows, tokens, HV).sigmoid(),
        }  # fmt: skip
        ends = list(itertools.accumulate(lengths, initial=0)) if packed else None
        if packed:
            self.inputs["cu_seqlens"] = torch.tensor(ends, device="cuda", dtype=torch.int32)
        spans = [(0, slice(a, b)) for a, b in itertools.pairwise(ends)] if packed else None
        self.spans = spans or [(n, slice(None)) for n in range(4)]
        size = HV * 128 * 128
        memory = normal(STATES, size + gap).to(self.state)
        self.pool = memory[:, :size].unflatten(1, (HV, 128, 128))

    def call(self, pool, rows, **others):
        """The call itself; rows are a tensor."""
        return self.function(
            **self.inputs, initial_state=pool, final_state=pool, state_indices=rows, first_state=FIRST,
            state_layout=self.layout, gate_domain=self.gate, **self.options, **others,
        )  # fmt: skip

    def wanted(self, pool, rows, flags=(True,) * 4):
        """Outputs and pool, from a call that is given the states."""
        torch = self.torch
        named = [FIRST <= row < STATES for row in rows]
        begins = [known and flag for known, flag in zip(named, flags)]
        given = torch.stack([pool[row] if has else torch.zeros_like(pool[0]) for row, has in zip(rows, begins)])
        o, final = self.function(
            **self.inputs, initial_state=given, final_state=torch.empty_like(given), state_layout=self.layout,
            gate_domain=self.gate, **self.options,
        )  # fmt: skip
        after = pool.clone()
        for n, (row, known) in enumerate(zip(rows, named)):
            batch, span = self.spans[n]
            if known:
                after[row] = final[n]
            else:
                o[batch, span] = 0
        return o, after

    def equal(self, x, y):
        """torch compares no numbers of 8 bits."""
        return self.torch.equal(*((z.view(self.torch.uint8) if z.element_size() == 1 else z) for z in (x, y)))

    def rows(self, values):
        return self.torch.tensor(values, device="cuda", dtype=self.index)

    def check(self):
        """Two calls, of which the second finds the pool as the first left it. Segments of calls without a pool may
        start on their own, with other roundings."""
        errors, is_cut = [], "segment_length" in self.options
        for values in ROWS:
            want_o, want_pool = self.wanted(self.pool, values)
            o, _ = self.call(self.pool, self.rows(values))
            for got, want in ((o, want_o), (self.pool, want_pool)):
                errors.append(0.0 if self.equal(got, want) else error_of(got, want))
        return "  ".join(f"{e:.1e}" for e in errors), max(errors) <= (TOLERANCE if is_cut else 0.0)

    def check_flags(self):
        """A captured call follows rows and flags that change. Tokens of calls with flags run by chunks."""
        torch, rows, out = self.torch, self.rows(ROWS[0]), self.torch.empty_like(self.inputs["v"])
        flags = torch.tensor(FLAGS[0], device="cuda")
        kept = self.pool.clone()
        self.call(self.pool, rows, out=out, has_initial_state=flags)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.call(self.pool, rows, out=out, has_initial_state=flags)
        self.pool.copy_(kept)
        errors, is_cut = [], "segment_length" in self.options
        for values, begins in zip(ROWS * 2, (*FLAGS, *FLAGS[::-1])):
            want_o, want_pool = self.wanted(self.pool, values, begins)
            for row, has in zip(values, begins):
                if not has and FIRST <= row < STATES:
                    self.pool[row] = torch.nan
            rows.copy_(self.rows(values))
            flags.copy_(torch.tensor(begins))
            graph.replay()
            for got, want in ((out, want_o), (self.pool, want_pool)):
                errors.append(0.0 if torch.equal(got, want) else error_of(got, want))
        return "  ".join(f"{e:.1e}" for e in errors), max(errors) <= (TOLERANCE if is_cut else 0.0)

    def check_inside(self, every=64):
        """States inside a prefill are those of its first tokens; outputs and pool have the bits of a call that keeps none."""
        torch, rows = self.torch, (1, 2, 3, 4)
        want_o, want_pool = self.wanted(self.pool, rows)
        starts = list(itertools.accumulate((length // every for length in self.lengths), initial=1))
        kept = torch.full((starts[-1] + 1, *self.pool.shape[1:]), torch.nan, device="cuda", dtype=self.state)
        before, ends = self.pool.clone(), torch.tensor(starts, device="cuda")
        o, _ = self.call(
            self.pool, self.rows(rows), state_checkpoints=kept, checkpoint_cu_starts=ends, checkpoint_every_n_tokens=every
        )
        errors = [0.0 if torch.equal(got, want) else 1.0 for got, want in ((o, want_o), (self.pool, want_pool))]
        for n, (_, span) in enumerate(self.spans):
            for number in range(starts[n + 1] - starts[n]):
                tokens = slice(span.start, span.start + (number + 1) * every)
                piece = {name: x[:, tokens] for name, x in self.inputs.items() if name != "cu_seqlens"}
                given = before[rows[n]][None].clone()
                self.function(
                    **piece, initial_state=given, final_state=given, state_layout=self.layout, gate_domain=self.gate,
                    context_parallel=False,
                )  # fmt: skip
                errors.append(error_of(kept[starts[n] + number], given[0]))
        stays = bool(kept[[0, -1]].isnan().all())
        return f"{max(errors):.1e} of {len(errors)}", max(errors) <= TOLERANCE and stays

    def check_graph(self):
        """A captured call follows rows that change."""
        torch, rows, out = self.torch, self.rows(ROWS[0]), self.torch.empty_like(self.inputs["v"])
        kept = self.pool.clone()
        self.call(self.pool, rows, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.call(self.pool, rows, out=out)
        self.pool.copy_(kept)
        faults = []
        for values in ROWS * 2:
            want_o, want_pool = self.wanted(self.pool, values)
            rows.copy_(self.rows(values))
            graph.replay()
            faults += [] if torch.equal(out, want_o) and self.equal(self.pool, want_pool) else [str(values)]
        return "; ".join(faults) or "equal bits", not faults


def pool_runs(torch, gdn):
    """The checks by name."""
    packed, step, chunk = (70, 1, 33, 200), (None, 1), "chunk_gated_delta_rule"
    cases = {
        "chunks": (chunk, packed),
        "chunks [V, K], gaps, int64": (chunk, packed, "float32", "vk", "log", 256, "int64"),
        "chunks in bfloat16": (chunk, packed, "bfloat16"),
        "chunks, linear gates [V, K]": (chunk, packed, "float32", "vk", "linear"),
        "batch rows": (chunk, (None, 130)),
        "tokens": ("fused_recurrent_gated_delta_rule", step),
        "tokens [V, K] in bfloat16": ("fused_recurrent_gated_delta_rule", step, "bfloat16", "vk", "log", 64),
        "chunks in float8 [V, K]": (chunk, packed, "float8_e4m3fn", "vk", "log", 64),
        "tokens in float8": ("fused_recurrent_gated_delta_rule", step, "float8_e5m2"),
        "tokens, int64": ("fused_recurrent_gated_delta_rule", step, "float32", "kv", "log", 0, "int64"),
    }
    runs = [(f"pool, {name}", lambda case=case: Pools(torch, gdn, *case).check()) for name, case in cases.items()]
    long = (chunk, (6000, 0, 64, 3000))
    for name in ("chunks", "chunks [V, K], gaps, int64", "chunks in bfloat16", "batch rows"):
        case = cases[name]
        runs.append((f"pool, from zeros, {name}", lambda case=case: Pools(torch, gdn, *case).check_flags()))
    inside = (200, 0, 64, 1000)
    runs += [
        ("pool, states inside", lambda: Pools(torch, gdn, chunk, inside).check_inside()),
        ("pool, states inside, linear gates [V, K] in bfloat16",
         lambda: Pools(torch, gdn, chunk, inside, "bfloat16", "vk", "linear", 256).check_inside(128)),
        ("pool, from zeros, segments", lambda: Pools(torch, gdn, *long, segment_length=512).check_flags()),
        ("pool, segments", lambda: Pools(torch, gdn, *long, segment_length=512).check()),
        ("pool, segments [V, K]", lambda: Pools(torch, gdn, *long, "float32", "vk", segment_length=1024).check()),
        ("pool, CUDA graph of chunks", lambda: Pools(torch, gdn, *cases["chunks"]).check_graph()),
        ("pool, CUDA graph of tokens in float8", lambda: Pools(torch, gdn, *cases["tokens in float8"]).check_graph()),
        ("pool, CUDA graph of tokens", lambda: Pools(torch, gdn, *cases["tokens"]).check_graph()),
    ]
    return runs
