# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of a model's calls with states in a pool, for python.py: Qwen3-Next's 16 and 32 heads, views of one projection,
raw gates and logits in bfloat16, norms, float32 states [V, K] in slots with gaps."""

import itertools

H, HV, D, STATES = 16, 32, 128, 512


class Layer:
    """Inputs of so many batch rows and tokens, and the pool."""

    def __init__(self, torch, batch, tokens):
        torch.manual_seed(0)

        def make(*shape):
            return torch.randn(*shape, device="cuda")

        heads = {"q": H, "k": H, "v": HV}
        parts = make(batch, tokens, sum(heads.values()) * D).bfloat16().split([n * D for n in heads.values()], -1)
        gates, logits = make(batch, tokens, 2 * HV).bfloat16().split([HV, HV], -1)
        step = make(HV).mul(0.6).sub(4.6).exp()
        self.inputs = {
            **{name: part.unflatten(-1, (-1, D)) for name, part in zip(heads, parts)}, "g": gates, "beta": logits,
            "A_log": make(HV).abs().mul(8).add(1).log(), "dt_bias": step + (-(-step).expm1()).log(),
            "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True,
            "state_v_first": True,
        }  # fmt: skip
        size = HV * D * D
        self.pool = (make(STATES, size + 64) * 0.1)[:, :size].unflatten(1, (HV, D, D))
        self.out = torch.empty(batch, tokens, HV, D, device="cuda", dtype=torch.bfloat16)


def seconds(torch, run, count):
    """The median time of a captured call."""
    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    graph.replay()
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / count)
    return sorted(times)[4]


def case(torch, function, layer, sequences, count, **options):
    """A call with a pool, one with a gather and a scatter around it, and one with states in the sequences' order."""
    rows = torch.randperm(STATES - 1, device="cuda")[:sequences] + 1
    narrow, ordered = rows.int(), layer.pool[rows].clone()
    before = ordered.clone()

    def call(state, **others):
        return function(**layer.inputs, **options, initial_state=state, final_state=state, out=layer.out, **others)

    def pooled():
        call(layer.pool, state_indices=narrow, first_state=1)

    def copied():
        given = layer.pool[rows]
        call(given)
        layer.pool[rows] = given

    pooled()
    o = layer.out.clone()
    call(ordered)
    equal = torch.equal(o, layer.out) and torch.equal(layer.pool[rows], ordered)
    layer.pool[rows] = before
    runs = [pooled, copied, lambda: call(ordered)]
    # In turn, so that a clock that changes meets all of them.
    times = [[seconds(torch, run, count) for run in runs] for _ in range(3)]
    pool, copies, order = (sorted(each)[1] * 1e6 for each in zip(*times))
    text = f"pool {pool:.2f} us, copies around a call {copies:.2f}, states in order {order:.2f}: {pool / order:.3f}"
    return f"{text}{'' if equal else '  other bits'}", equal


def inside(torch, gdn, sequences, tokens, every, dtype, count):
    """A prefill that writes a state every so many tokens, and one that writes none."""
    layer = Layer(torch, 1, sequences * tokens)
    pool, before = (layer.pool.to(dtype).contiguous() for _ in range(2))
    number = tokens // every
    rows, ends, starts = (
        torch.arange(sequences + more, device="cuda", dtype=torch.int32) * step for more, step in ((0, 1), (1, tokens), (1, number))
    )
    kept = torch.empty(sequences * number, HV, D, D, device="cuda", dtype=dtype)

    def call(**others):
        gdn.chunk_gated_delta_rule(
            **layer.inputs, initial_state=pool, final_state=pool, state_indices=rows, cu_seqlens=ends, out=layer.out,
            context_parallel=False, **others,
        )  # fmt: skip

    runs = (call, lambda: call(state_checkpoints=kept, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=every))
    results = []
    for run in runs:
        pool.copy_(before)
        run()
        results.append((layer.out.clone(), pool.clone()))
    equal = all(torch.equal(x, y) for x, y in zip(*results))
    times = [[seconds(torch, run, count) for run in runs] for _ in range(3)]
    plain, keeping = (sorted(each)[1] * 1e6 for each in zip(*times))
    return f"{keeping:.2f} us, without {plain:.2f}: {keeping / plain:.3f}{'' if equal else '  other bits'}", equal


def verification(torch, gdn, sequences, tokens, count):
    """Speculated tokens in one call, those tokens in a call each, and FlashInfer's call where that is installed."""
    layer = Layer(torch, sequences, tokens)
    slots = (torch.randperm(STATES - 1, device="cuda")[: sequences * (tokens + 1)] + 1).view(sequences, -1).int()
    begin, slots = slots[:, 0].contiguous(), slots[:, 1:].contiguous()
    words = {name: x for name, x in layer.inputs.items() if not hasattr(x, "shape") or x.ndim == 1}
    each = {name: x for name, x in layer.inputs.items() if name not in words}

    def call(first, last, **others):
        given = {name: x[:, first:last] for name, x in {**each, "out": layer.out}.items()}
        gdn.fused_recurrent_gated_delta_rule(**given, **words, initial_state=layer.pool, final_state=layer.pool, **others)

    def steps():
        for t in range(tokens):
            call(t, t + 1, state_indices=begin)

    kept = layer.pool[begin.long()].clone()
    runs = {"gdn": lambda: call(0, tokens, state_indices=begin, step_indices=slots), "a call a token": steps}
    results = []
    for run in runs.values():
        run()
        results.append((layer.out.clone(), layer.pool[(slots[:, -1] if not results else begin).long()]))
    equal = all(torch.equal(x, y) for x, y in zip(*results))
    layer.pool[begin.long()] = kept
    try:
        from flashinfer.gdn_decode import gated_delta_rule_mtp

        q, k, v = (each[name].contiguous() for name in ("q", "k", "v"))
        pool, out = layer.pool.contiguous(), torch.empty_like(layer.out)
        runs["FlashInfer"] = lambda: gated_delta_rule_mtp(
            q, k, v, pool, begin, words["A_log"], each["g"], words["dt_bias"], each["beta"], output=out,
            ssm_state_indices=slots, disable_state_update=False,
        )  # fmt: skip
    except ImportError:
        pass
    times = [[seconds(torch, run, count) for run in runs.values()] for _ in range(3)]
    text = ", ".join(f"{name} {sorted(of)[1] * 1e6:.2f} us" for name, of in zip(runs, zip(*times)))
    return f"{text}{'' if equal else '  other bits'}", equal


def bitwise_prefill(torch, gdn, batch, tokens, count):
    """A prefill with `bitwise`, and one without."""
    layer = Layer(torch, batch, tokens)
    state = layer.pool[:batch].clone()

    def call(**words):
        gdn.chunk_gated_delta_rule(**layer.inputs, initial_state=state, final_state=state, out=layer.out, **words)

    return ratio(torch, lambda: call(bitwise=True), call, count)


def bitwise_decoding(torch, gdn, sequences, count):
    """A token of each sequence in the middle of its open chunk, and one without `bitwise`."""
    layer = Layer(torch, sequences, 1)
    state = layer.pool[:sequences].clone()
    words = {name: x for name, x in layer.inputs.items() if not hasattr(x, "shape") or x.ndim == 1}
    tokens = [layer.inputs[name] for name in ("q", "k", "v", "g", "beta")]
    chunks = gdn.OpenChunks(state.clone(), **words)
    for _ in range(32):
        chunks.decode(*tokens)

    def plain():
        gdn.fused_recurrent_gated_delta_rule(**layer.inputs, initial_state=state, final_state=state, out=layer.out)

    return ratio(torch, lambda: chunks.decode(*tokens), plain, count)


def ratio(torch, first, second, count):
    """The times of two calls, and the ratio."""
    times = [[seconds(torch, run, count) for run in (first, second)] for _ in range(3)]
    x, y = (sorted(each)[1] * 1e6 for each in zip(*times))
    return f"{x:.2f} us, without {y:.2f}: {x / y:.3f}", True


def pool_times(torch, gdn):
    """The cases by name."""
    for batch, tokens in ((4, 8192), (32, 1024), (1, 8192)):
        yield f"bitwise, prefill of {batch}, {batch * tokens} tokens", lambda batch=batch, tokens=tokens: bitwise_prefill(
            torch, gdn, batch, tokens, 5
        )
    for batch in (1, 8, 32, 64):
        yield f"bitwise, step of {batch} sequences", lambda batch=batch: bitwise_decoding(torch, gdn, batch, 10)
    for batch in (1, 8, 32, 64, 256):
        yield f"step of {batch} sequences", lambda batch=batch: case(
            torch, gdn.fused_recurrent_gated_delta_rule, Layer(torch, batch, 1), batch, 20 if batch < 256 else 8
        )
    for batch in (1, 8, 32, 64):
        yield f"verification of {batch} sequences, 4 tokens", lambda batch=batch: verification(torch, gdn, batch, 4, 10)
    for name in ("float32", "bfloat16"):
        yield f"prefill of 4, 32768 tokens, a state every 1024 in {name}", lambda name=name: inside(
            torch, gdn, 4, 8192, 1024, getattr(torch, name), 5
        )
    torch.manual_seed(0)
    for lengths in ((2048, 100, 700, 500), torch.randint(1, 400, (64,)).tolist(), (8192,)):
        ends = torch.tensor([0, *itertools.accumulate(lengths)], device="cuda", dtype=torch.int32)
        yield f"prefill of {len(lengths)}, {sum(lengths)} tokens", lambda lengths=lengths, ends=ends: case(
            torch, gdn.chunk_gated_delta_rule, Layer(torch, 1, sum(lengths)), len(lengths), 5, cu_seqlens=ends,
            context_parallel=False,
        )  # fmt: skip
