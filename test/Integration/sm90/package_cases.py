# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the Python package on a GPU: their inputs, and what they compute in float64."""

import dataclasses

#: Seconds that a case may take, and relative errors (docs/Testing.md).
LIMIT = 60
TOLERANCE = 6e-3
#: What unwritten memory holds.
SENTINEL = 7.25



@dataclasses.dataclass
class Case:
    """One call. `lengths` packs sequences; `slack` tokens follow the last one."""

    name: str
    heads: tuple = (2, 4)
    batch: int = 1
    tokens: int = 0
    lengths: tuple = ()
    slack: int = 0
    boundaries: str = "int32"
    dtype: str = "bfloat16"
    beta: str = "float32"
    initial: str = ""
    final: bool = True
    v_first: bool = False
    gate: float = -0.05
    #: Heads whose log gates are 0: they keep their states.
    live: int = 0
    views: bool = False
    max_seqlen: int = 0
    alike: bool = False
    in_place: bool = False
    #: Rows of q and k are e^(spread x) times as long, for normal x.
    spread: float = 0.0
    #: Whether there is a gate for each key channel: every seventh keeps what it has, others forget it in a few tokens.
    channels: bool = False
    function: str = "chunk_gated_delta_rule"
    #: Type of raw gates.
    raw_type: str = "float32"
    #: About A_log of all heads, for raw gates that are ordinary ones with it, beside some of 0 to infinity and -1e4.
    log_rate: float = 0.0
    #: Further arguments; what model layers leave to the kernel.
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def sequences(self):
        return len(self.lengths) if self.packed else self.batch

    @property
    def packed(self):
        return bool(self.lengths)

    @property
    def total(self):
        return sum(self.lengths) + self.slack if self.packed else self.tokens


#: What model layers leave to the kernel.
MODEL = {"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True}

CASES = [
    Case("one sequence", tokens=64),
    Case("ragged end", batch=2, tokens=200),
    Case("neither state", batch=2, tokens=77, final=False),
    Case("both states", batch=3, tokens=333, initial="float32"),
    Case("both states, vk", batch=3, tokens=333, initial="float32", v_first=True),
    Case("final state, vk", batch=3, tokens=45, v_first=True),
    Case("state in place", batch=2, tokens=96, initial="float32", in_place=True),
    Case("bf16 states", batch=2, tokens=130, initial="bfloat16"),
    Case("bf16 states, vk", batch=2, tokens=130, initial="bfloat16", v_first=True),
    Case("initial state alone", batch=2, tokens=130, initial="float32", final=False),
    Case("no tokens", batch=2, tokens=0, initial="float32"),
    Case("no sequences", batch=0, tokens=64),
    Case("one token", batch=2, tokens=1, initial="float32"),
    Case("heads 1 and 1", heads=(1, 1), tokens=100),
    Case("heads 3 and 9", heads=(3, 9), tokens=100, initial="float32"),
    Case("heads 16 and 64", heads=(16, 64), tokens=160),
    Case("whole heads", heads=(16, 64), batch=4, tokens=160, initial="float32"),
    Case("whole heads, vk", heads=(16, 64), batch=4, tokens=130, initial="float32", v_first=True),
    Case("heads 16 and 48", heads=(16, 48), batch=4, tokens=160),
    Case("packed", lengths=(70, 1, 32, 200), initial="float32"),
    Case("packed, i64", lengths=(70, 1, 32, 200), boundaries="int64", initial="float32"),
    Case("packed, empty sequences", lengths=(0, 70, 0, 33, 0), initial="float32"),
    Case("packed, slack", lengths=(5, 64, 31), slack=40),
    Case("packed, no states", lengths=(127, 64, 8), final=False),
    Case("packed, whole heads", heads=(16, 64), lengths=(127, 0, 64, 8, 257), initial="float32", slack=3),
    Case("packed, whole heads, i64, vk", heads=(16, 64), lengths=(33, 1, 64), boundaries="int64", v_first=True),
    Case("packed, many sequences", heads=(4, 8), lengths=tuple(range(60))),
    Case("packed, longest known", heads=(16, 64), lengths=(400, 20, 20), max_seqlen=400),
    Case("f16", batch=2, tokens=200, dtype="float16", initial="float32"),
    Case("f16, packed", lengths=(70, 1, 32, 200), dtype="float16", initial="float32"),
    Case("f16, whole heads", heads=(16, 64), batch=4, tokens=160, dtype="float16", initial="float32"),
    Case("beta bf16", batch=2, tokens=200, beta="bfloat16"),
    Case("beta bf16, packed", lengths=(70, 130), beta="bfloat16", initial="float32"),
    Case("views of a projection", batch=2, tokens=200, views=True),
    Case("views of a projection, packed", lengths=(70, 130), views=True, initial="float32"),
    Case("no decay", batch=2, tokens=300, gate=0.0),
    Case("gates of -1.6", batch=2, tokens=300, gate=-1.6),
    Case("gates of -5", batch=2, tokens=300, gate=-5.0),
    Case("gates of -40", lengths=(100, 50), gate=-40.0, initial="float32"),
    Case("gates of -inf", lengths=(100, 50), gate=float("-inf"), initial="float32"),
    Case("keys alike", batch=2, tokens=300, gate=0.0, alike=True),
    Case("scale of 1", batch=2, tokens=100, options={"scale": 1.0}),
    Case("normalised", batch=2, tokens=200, options={"use_qk_l2norm_in_kernel": True}),
    Case("no gates", batch=2, tokens=100, options={"g": None}),
    Case("no beta", batch=2, tokens=100, options={"beta": None}),
    Case("beta f16", batch=2, tokens=100, beta="float16"),
    Case("raw gates", batch=2, tokens=200, options={"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True}),
    Case("normalised, whole heads", heads=(16, 64), batch=4, tokens=160, initial="float32",
         options={"use_qk_l2norm_in_kernel": True}),
    Case("normalised, packed", lengths=(70, 0, 1, 133), initial="float32",
         options={"use_qk_l2norm_in_kernel": True}),
    Case("raw gates, logits, packed", lengths=(70, 0, 130), initial="float32", beta="bfloat16",
         options={"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True}),
    Case("bf16 raw gates and logits", heads=(16, 48), batch=2, tokens=200, beta="bfloat16", raw_type="bfloat16",
         options={"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True}),
    Case("all that a model asks for", heads=(16, 48), lengths=(70, 0, 130), initial="float32", beta="bfloat16",
         raw_type="bfloat16", options=MODEL),
    Case("raw gates, infinite rate", lengths=(70, 0, 130), initial="float32", log_rate=100.0, options=MODEL),
    Case("raw gates, infinite rate, bf16", heads=(16, 48), batch=2, tokens=200, beta="bfloat16", raw_type="bfloat16",
         log_rate=100.0, options={"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True}),
    Case("raw gates, infinite rate, values", batch=2, tokens=100, log_rate=100.0, options={"gate_domain": "raw"}),
    Case("raw gates, rate of 0", batch=2, tokens=100, log_rate=-120.0, options=MODEL),
    Case("linear gates, kv", batch=2, tokens=200, options={"gate_domain": "linear"}),
    Case("linear gates with zeros", lengths=(100, 50), v_first=True, gate=float("-inf"),
         options={"gate_domain": "linear"}),
    Case("linear gates", lengths=(100, 50), initial="float32", v_first=True, options={"gate_domain": "linear"}),
    Case("logits of beta", batch=2, tokens=200, options={"use_beta_sigmoid_in_kernel": True}),
    Case("doubled sigmoid", batch=2, tokens=200,
         options={"use_beta_sigmoid_in_kernel": True, "allow_neg_eigval": True}),
    Case("doubled sigmoid, raw gates, normalised", lengths=(70, 0, 130), options={**MODEL, "allow_neg_eigval": True}),
    Case("bf16 states, all that a model asks for", heads=(16, 48), lengths=(70, 0, 130), initial="bfloat16",
         beta="bfloat16", raw_type="bfloat16", options=MODEL),
    Case("bf16 states, whole heads, normalised", heads=(16, 64), batch=4, tokens=160, initial="bfloat16",
         options={"use_qk_l2norm_in_kernel": True}),
    Case("bf16 states, linear gates, vk", lengths=(100, 50), initial="bfloat16", v_first=True,
         options={"gate_domain": "linear"}),
    Case("f16, normalised", batch=2, tokens=200, dtype="float16", options={"use_qk_l2norm_in_kernel": True}),
    Case("f16, normalised, rows of all lengths", heads=(16, 64), batch=4, tokens=160, dtype="float16", spread=2.0,
         initial="float32", options={"use_qk_l2norm_in_kernel": True}),
    Case("f16, all that a model asks for", heads=(16, 48), lengths=(70, 0, 130), dtype="float16", initial="float16",
         options=MODEL),
    Case("f16 states, linear gates", lengths=(100, 50), dtype="float16", initial="float16",
         options={"gate_domain": "linear"}),
    Case("segments", lengths=(0, 700, 1, 63, 300), slack=20, initial="float32", options={"context_parallel": 4}),
    Case("segments of a length, vk", lengths=(0, 700, 1, 63, 300), initial="float32", v_first=True,
         options={"segment_length": 64}),
    Case("segments of batch rows", batch=3, tokens=333, options={"context_parallel": 2}),
    Case("segments without states", tokens=500, final=False, options={"context_parallel": 3}),
    Case("segments that forget", lengths=(700, 300), initial="float32", gate=-0.5, options={"segment_length": 128}),
    Case("segments, all that a model asks for", heads=(4, 12), lengths=(170, 0, 430), initial="bfloat16",
         beta="bfloat16", raw_type="bfloat16", options={**MODEL, "segment_length": 128}),
    # The model has two lengths for these; the first case takes the shorter one.
    Case("segments of two lengths", heads=(2, 4), lengths=(32768,), initial="float32", live=1),
    Case("segments of two lengths, half of the heads live", heads=(2, 4), lengths=(32768,), initial="float32", live=2),
    Case("segments of two lengths, rows", heads=(2, 4), tokens=32768, initial="float32", v_first=True),
    *(
        Case(f"channels, {function[:5]}, {name}", heads=(4, 8), channels=True, function=function, **sizes)
        for function in ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule")
        for name, sizes in {
            "tokens": {"batch": 3, "tokens": 7, "initial": "float32"},
            "vk": {"batch": 3, "tokens": 70, "initial": "float32", "v_first": True},
            "packed": {"lengths": (70, 0, 1, 33), "slack": 5, "initial": "float32"},
            "bf16 states": {"batch": 2, "tokens": 40, "initial": "bfloat16", "v_first": True},
            "no states": {"batch": 2, "tokens": 40, "final": False},
            "f16": {"batch": 2, "tokens": 40, "dtype": "float16", "initial": "float32"},
            "gates of -40": {"batch": 2, "tokens": 40, "gate": -40.0},
            "normalised": {"batch": 2, "tokens": 40, "options": {"use_qk_l2norm_in_kernel": True}},
            "raw": {"lengths": (20, 30), "beta": "bfloat16", "raw_type": "bfloat16", "v_first": True, "initial": "float32",
                    "options": MODEL},
            "bounded": {"batch": 2, "tokens": 40, "beta": "bfloat16", "raw_type": "bfloat16", "initial": "float32",
                        "options": {**MODEL, "gate_domain": "bounded"}},
            "in place": {"batch": 4, "tokens": 1, "initial": "float32", "v_first": True, "in_place": True},
        }.items()
    ),
    Case("segments, f16", lengths=(170, 430), dtype="float16", initial="float32", v_first=True,
         options={"context_parallel": 3}),
]


#: Calls that do more and more of a model's layer.
MODEL_CALLS = {
    "plain": {},
    "normalised": {"options": {"use_qk_l2norm_in_kernel": True}},
    "all that a model asks for": {
        "beta": "bfloat16",
        "raw_type": "bfloat16",
        "options": MODEL,
    },
}


#: Calls of the table "What options cost" of docs/experiments/results.md.
OPTION_CALLS = {
    "plain": {},
    "use_qk_l2norm_in_kernel": {"options": {"use_qk_l2norm_in_kernel": True}},
    "raw gates and logits, bf16": {
        "beta": "bfloat16",
        "raw_type": "bfloat16",
        "options": {"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True},
    },
    "all three, bf16": MODEL_CALLS["all that a model asks for"],
    "all three, f32": {"options": MODEL},
}


def make(torch, case, seed=0):
    """The arguments of the call, with NaN where nothing may be read."""
    generator = torch.Generator("cuda").manual_seed(seed)
    B, T, (H, HV) = case.batch, case.total, case.heads
    dtype = getattr(torch, case.dtype)

    def normal(*shape):
        return torch.randn(*shape, device="cuda", generator=generator)

    q, k, v = normal(B, T, H, 128), normal(B, T, H, 128), normal(B, T, HV, 128)
    if case.alike:
        k = 0.45 * k + normal(1, 1, H, 128)
    if case.spread:
        q, k = (x * (case.spread * normal(*x.shape[:3], 1)).exp() for x in (q, k))
    if "use_qk_l2norm_in_kernel" not in case.options:
        q, k = (x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6) for x in (q, k))
    gates = (B, T, HV, 128) if case.channels else (B, T, HV)
    g = case.gate * (0.5 + torch.rand(gates, device="cuda", generator=generator))
    if case.channels:
        g[..., ::7], g[..., 3::7] = 0, 30 * g[..., 3::7]
    if case.gate == float("-inf"):
        g = torch.where(torch.rand(gates, device="cuda", generator=generator) < 0.1, g, -0.1)
    g[:, :, : case.live] = 0
    if case.options.get("gate_domain") == "linear":
        g = g.exp()
    beta = torch.rand(B, T, HV, device="cuda", generator=generator)
    if case.options.get("use_beta_sigmoid_in_kernel"):
        beta = 4 * beta - 2
    kwargs = dict(case.options, output_final_state=case.final, state_v_first=case.v_first)
    if kwargs.get("gate_domain") in ("raw", "bounded"):
        g = normal(*gates).to(getattr(torch, case.raw_type))
        kwargs |= {"A_log": 0.5 * normal(HV), "dt_bias": normal(*gates[2:])}
        if case.log_rate:
            kwargs["A_log"] += case.log_rate
            g -= case.log_rate
            for first, value in enumerate((0.0, -1e4, 3e38, float("inf"))):
                g[:, first::16] = value
    q, k, v, beta = q.to(dtype), k.to(dtype), v.to(dtype), beta.to(getattr(torch, case.beta))
    used = sum(case.lengths) if case.packed else T
    for x in (q, k, v, g, beta):
        x[:, used:] = float("nan")
    if case.views:
        row = torch.cat([x.flatten(2) for x in (q, k, v)], -1)
        q, k, v = (x.unflatten(2, (-1, 128)) for x in row.split((H * 128, H * 128, HV * 128), -1))
    if case.packed:
        ends = torch.tensor((0, *case.lengths)).cumsum(0)
        kwargs["cu_seqlens"] = ends.to("cuda", getattr(torch, case.boundaries))
    if case.initial:
        kwargs["initial_state"] = normal(case.sequences, HV, 128, 128).to(getattr(torch, case.initial))
    if case.max_seqlen:
        kwargs["max_seqlen"] = case.max_seqlen
    return [q, k, v, kwargs.pop("g", g), kwargs.pop("beta", beta)], kwargs


def reference(torch, case, tensors, kwargs):
    """o of the tokens in sequences and the final states, in float64, all sequences and heads at once."""
    q, k, v = (x.double() for x in tensors[:3])
    g, beta = (v.new_full(v.shape[:3], full) if x is None else x.double() for x, full in zip(tensors[3:], (0, 1)))
    group = v.shape[2] // q.shape[2]
    if case.packed:
        ends = kwargs["cu_seqlens"].tolist()
    else:
        ends = [b * case.total for b in range(case.batch + 1)]
        q, k, v, g, beta = (x.flatten(0, 1)[None] for x in (q, k, v, g, beta))
    if case.options.get("use_qk_l2norm_in_kernel"):
        q, k = (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
    q, k = (x[0].repeat_interleave(group, 1) for x in (q, k))
    v, g, beta = v[0], g[0], beta[0]
    domain = case.options.get("gate_domain")
    if domain in ("raw", "bounded"):
        bias, rate = (kwargs[name].double() for name in ("dt_bias", "A_log"))
        rate = rate.exp()[:, None] if case.channels else rate.exp()
        soft = torch.nn.functional.softplus(g + bias)
        g = -rate * soft if domain == "raw" else -5 * (rate * (g + bias)).sigmoid()
    decay = g if case.options.get("gate_domain") == "linear" else g.exp()
    if case.options.get("use_beta_sigmoid_in_kernel"):
        beta = beta.sigmoid() * (2 if case.options.get("allow_neg_eigval") else 1)
    scale = case.options.get("scale", 128**-0.5)
    o = torch.zeros_like(v)
    states = torch.zeros(case.sequences, v.shape[1], 128, 128, device="cuda", dtype=torch.float64)
    if case.initial:
        states += kwargs["initial_state"].double().transpose(2, 3) if case.v_first else kwargs["initial_state"]
    lengths = torch.tensor([b - a for a, b in zip(ends, ends[1:])])
    for t in range(int(lengths.max()) if len(lengths) else 0):
        n = torch.nonzero(lengths > t).flatten()
        at = torch.tensor(ends)[n] + t
        n, at = n.cuda(), at.cuda()
        state = states[n] * (decay[at][..., None] if case.channels else decay[at][..., None, None])
        write = beta[at][..., None] * (v[at] - torch.einsum("nhkv,nhk->nhv", state, k[at]))
        state += k[at][..., None] * write[..., None, :]
        states[n] = state
        o[at] = scale * torch.einsum("nhkv,nhk->nhv", state, q[at])
    return o[: ends[-1]], states.transpose(2, 3) if case.v_first else states


def error_of(got, want):
    """Relative rms; the largest of what is not a number."""
    if not want.numel():
        return 0.0
    error = (got.double() - want).square().mean().sqrt() / want.square().mean().sqrt().clamp_min(1e-30)
    return float(error) if error == error else float("inf")
