#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times the Python package on a Hopper GPU, with torch and the package installed.

Usage: python.py check|two|time|host [--only TEXT] [--repeats N]

check: errors against the recurrence in float64, equal bits, memory that may not be touched, CUDA graphs, streams,
refusals. two: calls on the second GPU while the first one is current. time: the first call, the host's cost of a call,
the schedules. host: the host's cost by its parts, and FlashInfer's beside it where that is installed. Each prints a
line a case and fails if one does. A case that hangs ends the process with its traceback.
"""

import argparse
import concurrent.futures
import dataclasses
import faulthandler
import functools
import itertools
import statistics
import sys
import time

#: Seconds that a case may take, and relative errors (docs/Testing.md).
LIMIT = 15
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
    views: bool = False
    max_seqlen: int = 0
    alike: bool = False
    in_place: bool = False
    #: Type of raw gates.
    raw_type: str = "float32"
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
    Case("linear gates, kv", batch=2, tokens=200, options={"gate_domain": "linear"}),
    Case("linear gates with zeros", lengths=(100, 50), v_first=True, gate=float("-inf"),
         options={"gate_domain": "linear"}),
    Case("linear gates", lengths=(100, 50), initial="float32", v_first=True, options={"gate_domain": "linear"}),
    Case("logits of beta", batch=2, tokens=200, options={"use_beta_sigmoid_in_kernel": True}),
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
    if "use_qk_l2norm_in_kernel" not in case.options:
        q, k = (x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6) for x in (q, k))
    g = case.gate * (0.5 + torch.rand(B, T, HV, device="cuda", generator=generator))
    if case.gate == float("-inf"):
        g = torch.where(torch.rand(B, T, HV, device="cuda", generator=generator) < 0.1, g, -0.1)
    if case.options.get("gate_domain") == "linear":
        g = g.exp()
    beta = torch.rand(B, T, HV, device="cuda", generator=generator)
    if case.options.get("use_beta_sigmoid_in_kernel"):
        beta = 4 * beta - 2
    kwargs = dict(case.options, output_final_state=case.final, state_v_first=case.v_first)
    if kwargs.get("gate_domain") == "raw":
        g = normal(B, T, HV).to(getattr(torch, case.raw_type))
        kwargs |= {"A_log": 0.5 * normal(HV), "dt_bias": normal(HV)}
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
    if case.options.get("gate_domain") == "raw":
        bias, rate = (kwargs[name].double() for name in ("dt_bias", "A_log"))
        g = -rate.exp() * torch.nn.functional.softplus(g + bias)
    decay = g if case.options.get("gate_domain") == "linear" else g.exp()
    if case.options.get("use_beta_sigmoid_in_kernel"):
        beta = beta.sigmoid()
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
        state = states[n] * decay[at][..., None, None]
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


def check_case(torch, gdn, case, repeats):
    """Text of the case's errors, and whether it passes."""
    tensors, kwargs = make(torch, case)
    answer = gdn.supported(*tensors, **kwargs)
    if not answer:
        return f"refused: {answer.reasons[0]}", None
    want_o, want_state = reference(torch, case, tensors, kwargs)
    out = torch.full((*tensors[0].shape[:2], case.heads[1], 128), SENTINEL, device="cuda", dtype=tensors[2].dtype)
    more = {"out": out}
    if case.initial and case.final:
        initial = kwargs["initial_state"]
        more["final_state"] = initial.clone() if case.in_place else torch.full_like(initial, float("nan"))
        if case.in_place:
            kwargs["initial_state"] = more["final_state"]
    o, state = gdn.chunk_gated_delta_rule(*tensors, **kwargs, **more)
    torch.cuda.synchronize()
    flat = o.flatten(0, 1)
    used = want_o.shape[0]
    errors = [error_of(flat[:used], want_o)]
    if case.final:
        errors.append(error_of(state, want_state))
    faults = [] if all(e <= TOLERANCE for e in errors) else ["errors"]
    if not bool((flat[used:] == SENTINEL).all()):
        faults.append("wrote beyond the last sequence")
    if not case.in_place:
        for _ in range(repeats):
            again, state_again = gdn.chunk_gated_delta_rule(*tensors, **kwargs)
            equal = torch.equal(again.flatten(0, 1)[:used], flat[:used])
            equal = equal and (state is None or torch.equal(state_again.to(state.dtype), state))
            if not equal:
                faults.append("other bits when run again")
                break
    text = "  ".join(f"{e:.1e}" for e in errors)
    return f"{text}  {'; '.join(faults)}", not faults


def graph_check(torch, gdn):
    """A captured call follows what changes in its inputs: other lengths and values, in the same memory."""
    first = Case("graph", heads=(4, 8), lengths=(70, 1, 32, 97), initial="float32")
    second = dataclasses.replace(first, lengths=(10, 120, 0, 70))
    tensors, kwargs = make(torch, first)
    gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, state = gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    errors = []
    for seed, case in enumerate((first, second)):
        new_tensors, new_kwargs = make(torch, case, seed)
        for old, new in zip(tensors, new_tensors):
            old.copy_(new)
        for name in ("cu_seqlens", "initial_state"):
            kwargs[name].copy_(new_kwargs[name])
        graph.replay()
        torch.cuda.synchronize()
        want_o, want_state = reference(torch, case, new_tensors, new_kwargs)
        errors += [error_of(o[0][: want_o.shape[0]], want_o), error_of(state, want_state)]
    return "  ".join(f"{e:.1e}" for e in errors), all(e <= TOLERANCE for e in errors)


def stream_check(torch, gdn):
    """A call runs behind what its stream does: values that arrive late on another stream."""
    case = Case("stream", heads=(4, 8), batch=2, tokens=300)
    tensors, kwargs = make(torch, case)
    want, _ = reference(torch, case, tensors, kwargs)
    late = [torch.full_like(x, float("nan")) for x in tensors]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(50_000_000)
        for x, y in zip(late, tensors):
            x.copy_(y)
        o, _ = gdn.chunk_gated_delta_rule(*late, **kwargs)
        torch.cuda.current_stream().synchronize()
    error = error_of(o.flatten(0, 1), want)
    return f"{error:.1e}", error <= TOLERANCE


def chain_check(torch, gdn):
    """A call begins before the one before it has ended, and still reads what that wrote: states handed on in place,
    outputs that are the next call's values, inputs that are overwritten behind it. Once as it comes, once captured,
    where two streams join and memory is set in between; bits as with a wait after each call."""
    case = Case("chain", heads=(4, 8), batch=2, tokens=100, initial="float32")
    tensors, kwargs = make(torch, case)
    start = kwargs.pop("initial_state")
    state = torch.empty_like(start)
    q, k, first, *rest = tensors
    buffers, side = [torch.empty_like(first) for _ in range(2)], torch.cuda.Stream()

    def run(wait):
        v, out = buffers
        state.copy_(start)
        v.copy_(first)
        for step in range(8):
            if step == 4:
                # Streams that join, with work of others between two calls.
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    v.mul_(0.5)
                out.zero_()
                torch.cuda.current_stream().wait_stream(side)
            gdn.chunk_gated_delta_rule(q, k, v, *rest, **kwargs, initial_state=state, final_state=state, out=out)
            if wait:
                torch.cuda.synchronize()
            v, out = out, v
        out.fill_(float("nan"))
        return [v.clone(), state.clone()]

    want = run(wait=True)
    equal = all(map(torch.equal, run(wait=False), want))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = run(wait=False)
    for _ in range(3):
        graph.replay()
        torch.cuda.synchronize()
        equal = equal and all(map(torch.equal, got, want))
    finite = all(bool(x.isfinite().all()) for x in want)
    return "the same" if equal else "other bits", equal and finite


def same_graph_check(torch, gdn):
    """What a graph has captured stays, whatever the calls after it bring: other addresses, other lengths."""
    case = Case("graph", heads=(4, 8), batch=2, tokens=100, initial="float32")
    tensors, kwargs = make(torch, case)
    want_o, want_state = reference(torch, case, tensors, kwargs)
    gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, state = gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    for tokens in (100, 100, 70, 130):
        others, more = make(torch, dataclasses.replace(case, tokens=tokens), seed=1)
        gdn.chunk_gated_delta_rule(*others, **more)
    graph.replay()
    torch.cuda.synchronize()
    errors = [error_of(o.flatten(0, 1), want_o), error_of(state, want_state)]
    return "  ".join(f"{e:.1e}" for e in errors), all(e <= TOLERANCE for e in errors)


def moved_check(torch, gdn):
    """The same values at other addresses give the same bits, and other lengths between them change nothing."""
    case = Case("moved", heads=(4, 8), batch=2, tokens=100, initial="float32")
    tensors, kwargs = make(torch, case)
    want = gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    kept, equal = [want], True
    for tokens in (100, 70, 50, 30, 20, 100):
        kept.append([x.clone() for x in tensors])
        state = kwargs["initial_state"].clone()
        got = gdn.chunk_gated_delta_rule(*kept[-1], **{**kwargs, "initial_state": state})
        equal = equal and all(map(torch.equal, got, want))
        gdn.chunk_gated_delta_rule(*(x[:, :tokens] for x in tensors), **kwargs)
        kept.append((state, got))
    return f"{len(kept) // 2} moves", equal


def second_check(torch, gdn, stream, thread):
    """A call on cuda:1 while cuda:0 is current: on a stream on which values arrive late, in a thread of its own."""
    case = Case("second", heads=(4, 8), batch=2, tokens=300, initial="float32")
    first, first_kwargs = make(torch, case)
    first_want, _ = reference(torch, case, first, first_kwargs)
    with torch.cuda.device(1):
        tensors, kwargs = make(torch, case, seed=1)
        want = reference(torch, case, tensors, kwargs)
        late = [torch.full_like(x, float("nan")) for x in tensors]
        streams = torch.cuda.Stream(), torch.cuda.default_stream()
        torch.cuda.synchronize()

    def call():
        with torch.cuda.stream(streams[0] if stream else streams[1]):
            torch.cuda._sleep(50_000_000)
            for x, y in zip(late, tensors):
                x.copy_(y)
            # The stream stays the current one of its device.
            torch.cuda.set_device(0)
            results = gdn.chunk_gated_delta_rule(*late, **kwargs)
            again, _ = gdn.chunk_gated_delta_rule(*first, **first_kwargs)
            return (*results, again, torch.cuda.current_device())

    if thread:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            o, state, again, current = pool.submit(call).result()
    else:
        o, state, again, current = call()
    torch.cuda.synchronize(1)
    torch.cuda.synchronize(0)
    errors = [error_of(again.flatten(0, 1), first_want)]
    with torch.cuda.device(1):
        errors += [error_of(o.flatten(0, 1), want[0]), error_of(state, want[1])]
    text = "  ".join(f"{e:.1e}" for e in errors)
    good = all(e <= TOLERANCE for e in errors) and current == 0 and o.device.index == state.device.index == 1
    return f"{text}  on {o.device}, {current} current", good


def mixed_check(torch, gdn):
    """Tensors of both GPUs are refused."""
    tensors, kwargs = make(torch, Case("mixed", tokens=64))
    tensors[1] = tensors[1].to("cuda:1")
    try:
        gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    except ValueError as error:
        return str(error), str(error) == "k: expected a tensor on cuda:0 as q is, got one on cuda:1"
    return "not refused", False


def run_all(runs, options):
    """Prints a line for each check and returns whether one failed."""
    failed = 0
    for name, run in runs:
        if options.only not in name:
            continue
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        try:
            text, good = run()
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            text, good = f"{type(error).__name__}: {str(error)[:200]}", False
        failed += good is False
        print(f"{name:<30} {'pass' if good else 'FAIL' if good is False else '  - '}  {text}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{failed} failed")
    return failed != 0


def check(options):
    """Runs all cases."""
    import torch

    import gdn

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    runs = [(case.name, lambda case=case: check_case(torch, gdn, case, options.repeats)) for case in CASES]
    runs += [
        ("CUDA graph", lambda: graph_check(torch, gdn)),
        ("CUDA graph, other calls", lambda: same_graph_check(torch, gdn)),
        ("another stream", lambda: stream_check(torch, gdn)),
        ("calls one behind the other", lambda: chain_check(torch, gdn)),
        ("other addresses", lambda: moved_check(torch, gdn)),
    ]
    return run_all(runs, options)


def two(options):
    """Runs what needs two GPUs."""
    import torch

    import gdn

    if (count := torch.cuda.device_count()) < 2:
        print(f"unsupported: expected two GPUs, got {count}")
        return 0
    runs = [
        (f"{name}{', another thread' if thread else ''}",
         functools.partial(second_check, torch, gdn, name == "another stream", thread))
        for name in ("default stream", "another stream") for thread in (False, True)
    ]
    return run_all([*runs, ("both GPUs", lambda: mixed_check(torch, gdn))], options)


def device_seconds(torch, call, launches=20):
    """The median of a call's time on the device, in a CUDA graph of `launches`."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            call()
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / launches * 1e-3)
    return statistics.median(times)


def host_seconds(torch, call, calls=300):
    """The median of a call's time on the host, with an empty queue before each batch."""
    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls // 10):
            call()
        times.append((time.perf_counter() - begin) / (calls // 10))
    torch.cuda.synchronize()
    return statistics.median(times)


def host_parts(torch, gdn, tensors, kwargs):
    """The parts of a call by name, each as something to time; the first one is the whole."""
    from gdn import _api, _library, _torch

    v = tensors[2]
    values = tuple(_api.BUILDERS["chunk_gated_delta_rule"](*tensors, **kwargs))
    (q, *_, initial_state, cu_seqlens), scale, options, wants_state = values[:9], *values[11:14]
    public = functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs)
    o = torch.empty_like(v)
    state = _torch._new_state(q, v, initial_state, cu_seqlens, options) if wants_state else None
    arrays = (*values[:9], o, state)
    forward = _library.load().forward
    rest = (scale, options, 1, 0)

    def in_turn(several):
        turn = itertools.cycle(several)
        return lambda: forward(*next(turn), *rest)

    def copies(arrays):
        return [x if x is None else x.clone() for x in arrays]

    v_tiles = {
        "call": public,
        "call into given outputs": functools.partial(public, out=o, final_state=state),
        "reading arguments": functools.partial(public, **{_api._THEN: lambda *fields: None}),
        "asking torch who has a say": functools.partial(_torch._find_plain, arrays),
        "allocating o": functools.partial(_torch._new_output, v),
        "library": functools.partial(forward, *arrays, *rest),
        "library, other addresses": in_turn([arrays, copies(arrays)]),
    }
    if state is not None:
        parts["allocating the state"] = functools.partial(_torch._new_state, q, v, initial_state, cu_seqlens, options)
    if cu_seqlens is None:
        # More than a kernel remembers; and no sequences, which is everything but the launch.
        lengths = [[x if x is None or x.dim() == 4 and x.shape[1] == v.shape[2] else x[:, :t] for x in arrays]
                   for t in range(v.shape[1] - 7, v.shape[1] + 1)]
        parts["library, other lengths"] = in_turn(lengths)
        parts["library without a launch"] = in_turn([[x if x is None else x[:0] for x in arrays]])
    return parts


def measure(options):
    """First call, host's cost, and the schedules' times."""
    del options
    start = time.perf_counter()
    import gdn

    imported = time.perf_counter() - start
    import torch

    faulthandler.dump_traceback_later(4 * LIMIT, exit=True)
    torch.zeros(1, device="cuda").sum().item()
    case = Case("small", heads=(16, 32), tokens=64, initial="float32")
    tensors, kwargs = make(torch, case)
    torch.cuda.synchronize()
    start = time.perf_counter()
    gdn.chunk_gated_delta_rule(*tensors, **kwargs)
    torch.cuda.synchronize()
    print(f"import gdn {imported:.3f} s; first call {time.perf_counter() - start:.3f} s")
    for name, change in (("fixed, both states", {}), ("fixed, no states", {"initial": "", "final": False}),
                         ("packed, both states", {"lengths": (30, 34)})):
        tensors, kwargs = make(torch, dataclasses.replace(case, **change))
        with torch.inference_mode():
            parts = host_parts(torch, gdn, tensors, kwargs)
            whole, library = (host_seconds(torch, parts[part]) * 1e6 for part in ("call", "library"))
        print(f"host {name:<22} {whole:6.1f} us a call, {library:.1f} of them in the library", flush=True)
    for batch, tokens, heads in ((1, 8192, (16, 64)), (2, 4096, (16, 64)), (4, 8192, (16, 64)), (8, 1024, (16, 64)),
                                 (1, 2048, (16, 64)), (4, 8192, (32, 32)), (1, 8192, (2, 8)), (1, 8192, (4, 32))):
        for hint in (0, 1 << 24):
            case = Case("time", heads=heads, batch=batch, tokens=tokens, initial="float32", max_seqlen=hint)
            tensors, kwargs = make(torch, case)
            choice = gdn.explain(*tensors, **kwargs)
            seconds = device_seconds(torch, functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs))
            chunk = seconds / (tokens // 32)
            print(f"{batch} x {tokens:<6} {heads[0]}/{heads[1]:<4} {choice.schedule:<6} {choice.ctas:>4} CTAs "
                  f"{seconds * 1e3:8.4f} ms  {chunk * 1e6:6.3f} us a chunk of 32 (predicted {choice.seconds * 1e3:.4f})",
                  flush=True)
            if choice.schedule == "cta_per_v_tile" and not hint:
                break
    for name, change in MODEL_CALLS.items():
        case = Case(name, heads=(16, 64), batch=4, tokens=8192, initial="float32", **change)
        tensors, kwargs = make(torch, case)
        seconds = device_seconds(torch, functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs))
        print(f"4 x 8192   16/64   {name:<30} {seconds * 1e3:8.4f} ms", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


def flashinfer_calls(torch, gdn):
    """FlashInfer's call and ours of its kind, on the same tensors."""
    import gdn.flashinfer as ours
    from flashinfer.gdn_prefill import chunk_gated_delta_rule as theirs

    case = Case("FlashInfer", heads=(16, 32), lengths=(64,), initial="float32", v_first=True, boundaries="int64",
                options={"gate_domain": "linear"})
    tensors, kwargs = make(torch, case)
    q, k, v, g, beta = (x[0] for x in tensors)
    arguments = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "scale": 128**-0.5, "cu_seqlens": kwargs["cu_seqlens"],
                 "initial_state": kwargs["initial_state"], "output_final_state": True, "output": torch.empty_like(v),
                 "output_state": torch.empty_like(kwargs["initial_state"])}
    kwargs |= {"out": arguments["output"][None], "final_state": arguments["output_state"]}
    return {
        "flashinfer": functools.partial(theirs, **arguments),
        "gdn.flashinfer": functools.partial(ours.chunk_gated_delta_rule, **arguments),
        "gdn, same tensors": functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs),
    }


def host(options):
    """The host's cost of a call, part by part."""
    del options
    import torch

    import gdn

    faulthandler.dump_traceback_later(4 * LIMIT, exit=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}; us a call, median")
    case = Case("host", heads=(16, 32), tokens=64, initial="float32")
    for name, change in (("fixed, both states", {}), ("fixed, no states", {"initial": "", "final": False}),
                         ("packed, both states", {"lengths": (30, 34)})):
        tensors, kwargs = make(torch, dataclasses.replace(case, **change))
        with torch.inference_mode():
            print(name)
            for part, call in host_parts(torch, gdn, tensors, kwargs).items():
                print(f"  {part:<34} {host_seconds(torch, call) * 1e6:6.2f}", flush=True)
    try:
        calls = flashinfer_calls(torch, gdn)
        next(iter(calls.values()))()
    except Exception as error:
        print(f"flashinfer: not measured: {type(error).__name__}: {str(error)[:200]}")
        return 0
    print("FlashInfer's prefill, one packed sequence of 64 tokens")
    with torch.inference_mode():
        for name, call in calls.items():
            print(f"  {name:<34} {host_seconds(torch, call) * 1e6:6.2f}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "two", "time", "host"])
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--repeats", type=int, default=20, help="calls that must give the same bits")
    options = parser.parse_args()
    return {"check": check, "two": two, "time": measure, "host": host}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
