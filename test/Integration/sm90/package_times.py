# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of the Python package on a GPU, for python.py: first call, schedules, options, the host's cost by its parts."""

import dataclasses
import faulthandler
import functools
import itertools
import statistics
import time

from package_cases import Case, LIMIT, MODEL_CALLS, OPTION_CALLS, make


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


def rested_seconds(torch, call, launches=30):
    """The mean of a call's time on the device, of `launches` that follow 0.2 s without work."""
    torch.cuda.synchronize()
    time.sleep(0.2)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(launches):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / launches * 1e-3


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

    q, v = tensors[0], tensors[2]
    made = _api.BUILDERS["chunk_gated_delta_rule"](*tensors, **kwargs)
    initial_state, cu_seqlens, options = made.initial_state, made.cu_seqlens, made.options
    public = functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs)
    o = torch.empty_like(v)
    state = _torch._new_state(q, v, initial_state, cu_seqlens, options) if made.output_final_state else None
    arrays = made._replace(out=o, final_state=state).tensors
    forward = _library.load().forward
    rest = (made.scale, options, 1, 0)

    def in_turn(several):
        turn = itertools.cycle(several)
        return lambda: forward(*next(turn), *rest)

    def copies(arrays):
        return [x if x is None else x.clone() for x in arrays]

    parts = {
        "call": public,
        "call into given outputs": functools.partial(public, out=o, final_state=state),
        "reading arguments": functools.partial(public, **{_api._THEN: lambda *fields: None}),
        "asking torch who has a say": functools.partial(_torch.is_plain, arrays),
        "allocating o": functools.partial(_torch._new_output, q, v, options),
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


def options_cost(options):
    """The times of docs/experiments/results.md, "What options cost": plain calls, and the ratios of calls with options."""
    del options
    import torch

    import gdn

    faulthandler.dump_traceback_later(4 * LIMIT, exit=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}; 4 x 8192, 16/64 heads")
    print(f"{'':<26}{'; '.join(OPTION_CALLS)}")
    for layout, shape in {"fixed length": {"batch": 4, "tokens": 8192}, "packed": {"lengths": (8192,) * 4}}.items():
        for states, ends in {"no states": {"final": False}, "both states": {"initial": "float32"}}.items():
            calls = []
            for name, change in OPTION_CALLS.items():
                tensors, kwargs = make(torch, Case(name, heads=(16, 64), **shape, **ends, **change))
                calls.append(functools.partial(gdn.chunk_gated_delta_rule, *tensors, **kwargs))
                calls[-1]()
            rounds = [[rested_seconds(torch, call) for call in calls] for _ in range(3)]
            plain, *others = (statistics.median(times) for times in zip(*rounds))
            ratios = "; ".join(f"{seconds / plain:.3f}" for seconds in others)
            print(f"{layout + ', ' + states:<26}{plain * 1e3:.4f}; {ratios}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


def token_calls(torch, gdn):
    """One token of 8 sequences, in place and with `out` given, as a model has it: states in their order, and in a pool."""
    random = torch.Generator("cuda").manual_seed(0)

    def normal(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", generator=random).to(dtype)

    N, H, HV = 8, 16, 32
    v, pool, rows = normal(N, 1, HV, 128), normal(64, HV, 128, 128, dtype=torch.float32), torch.arange(N, 0, -1, device="cuda")
    words = {
        "q": normal(N, 1, H, 128), "k": normal(N, 1, H, 128), "v": v, "g": normal(N, 1, HV), "beta": normal(N, 1, HV),
        "A_log": normal(HV, dtype=torch.float32), "dt_bias": normal(HV, dtype=torch.float32), "out": torch.empty_like(v),
        "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True, "state_layout": "vk",
    }  # fmt: skip
    states = pool[:N].clone()
    function = gdn.fused_recurrent_gated_delta_rule
    return {
        "states in their order": functools.partial(function, **words, initial_state=states, final_state=states),
        "a pool": functools.partial(function, **words, initial_state=pool, final_state=pool, state_indices=rows.int()),
    }


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
    print("one token, in place, `out` given")
    with torch.inference_mode():
        calls = token_calls(torch, gdn)
        # In turn, so that a clock that changes is in both.
        rounds = [[host_seconds(torch, call) for call in calls.values()] for _ in range(9)]
        for name, times in zip(calls, zip(*rounds)):
            print(f"  {name:<34} {statistics.median(times) * 1e6:6.2f}", flush=True)
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
