# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the Python package on a GPU, for python.py: each returns a text and whether it is right."""

import concurrent.futures
import dataclasses
import faulthandler
import functools
import pathlib
import sys

from package_cases import Case, CASES, LIMIT, SENTINEL, TOLERANCE, error_of, make, reference
from package_conversions import conversion_runs
from package_gradients import gradient_runs
from package_inside import inside_runs
from package_models import model_runs
from package_pool_times import pool_times
from package_pools import pool_runs
from package_steps import step_runs


def check_case(torch, gdn, case, repeats):
    """Text of the case's errors, and whether it passes."""
    tensors, kwargs = make(torch, case)
    run = functools.partial(getattr(gdn, case.function), **dict(zip(("q", "k", "v", "g", "beta"), tensors)))
    answer = gdn.supported(**run.keywords, **kwargs, function=case.function)
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
    o, state = run(**kwargs, **more)
    torch.cuda.synchronize()
    flat = o.flatten(0, 1)
    used = want_o.shape[0]
    errors = [error_of(flat[:used], want_o)]
    if case.final:
        errors.append(error_of(state, want_state))
    faults = [] if all(e <= TOLERANCE for e in errors) else ["errors"]
    if not bool((flat[used:] == 0).all()):
        faults.append("no zeros behind the last sequence")
    if not case.in_place:
        for _ in range(repeats):
            # The type of the final state can choose the kernel, so a call with one of another type may have other bits.
            given = {"final_state": torch.full_like(state, float("nan"))} if "final_state" in more else {}
            again, state_again = run(**kwargs, **given)
            equal = torch.equal(again.flatten(0, 1)[:used], flat[:used])
            equal = equal and (state is None or torch.equal(state_again, state))
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


def run_all(runs, options, limit=LIMIT):
    """Prints a line for each check, which may take so many seconds, and returns whether one failed."""
    failed = 0
    for name, run in runs:
        if options.only not in name:
            continue
        faulthandler.dump_traceback_later(limit, exit=True)
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
        *pool_runs(torch, gdn),
        *inside_runs(torch, gdn),
        *step_runs(torch, gdn),
    ]
    return run_all(runs, options)


def conversions(options):
    """Calls that the library converts, beside calls that torch has converted."""
    import torch

    import gdn

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    return run_all(conversion_runs(torch, gdn), options)


def pools(options):
    """Times of calls with states in a pool, which must have the bits of calls with the same states in order."""
    import torch

    import gdn

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    return run_all(pool_times(torch, gdn), options)


def gradients(options):
    """Runs what is asked of gradients."""
    import torch

    import gdn

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    return run_all(gradient_runs(torch, gdn, options.repeats), options)


def batches_check(make_batch, check, seeds):
    """Whether sequences of these random batches have the bits that they have alone."""
    faults = []
    for seed in seeds:
        batch = make_batch(seed, "cuda")
        faults += [f"{fault}: {batch}" for fault in check(batch, "cuda")]
    return "; ".join([f"{len(faults)} differ", *faults[:2]]), not faults


def run_batches(options, module, make_batch):
    """Runs the random batches of a CPU's test."""
    import importlib

    import torch

    import gdn

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    cases = importlib.import_module(module)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    parts = [range(first, first + 25) for first in range(0, cases.COUNT, 25)]
    check = functools.partial(batches_check, getattr(cases, make_batch), cases.check)
    return run_all([(f"batches {part[0]} to {part[-1]}", functools.partial(check, part)) for part in parts], options, 4 * LIMIT)


def batches(options):
    """With `segment_length`."""
    return run_batches(options, "batch_cases", "make_batch")


def bitwise(options):
    """With `bitwise`."""
    return run_batches(options, "bitwise_cases", "make_bitwise_batch")


def models(options):
    """Trains models of Transformers."""
    import torch
    import transformers

    import gdn

    print(f"{torch.cuda.get_device_name()}, Transformers {transformers.__version__}, gdn {gdn.__version__}")
    return run_all(model_runs(torch, gdn), options, 4 * LIMIT)


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
