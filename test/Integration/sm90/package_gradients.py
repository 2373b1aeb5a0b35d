# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of the Python package on a GPU, for python.py: against the recurrence in float64, against a CPU's, and by the
ways to ask torch for them. Inputs and recurrence are those of test/python/gradient_cases.py."""

import contextlib
import faulthandler
import functools
import pathlib
import sys
import time
import unittest.mock

from package_cases import LIMIT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

#: Relative errors: of what tokens have, and of A_log and dt_bias, whose sums over tokens cancel.
TOLERANCE, OF_SUMS = 1.2e-2, 4e-2
BF16 = {"dtype": "bfloat16"}
#: Sizes of `make`; what is not named is a head of 64 channels, 2 query/key heads, 4 value heads, 70 tokens.
CASES = {
    "plain": {"K": 128, "V": 128, "T": 200},
    "without states, 64 channels": {},
    "states": {"K": 128, "V": 128, "state": True},
    "states [V, K]": {"K": 128, "V": 128, "state": True, "v_first": True, "T": 131},
    "states, batch rows": {"B": 3, "T": 67, "K": 128, "V": 128, "state": True, "H": 3, "HV": 9},
    "packed": {"cu_seqlens": [0, 64, 64, 65, 200], "N": 4, "T": 200, "K": 128, "V": 128, "state": True},
    "packed, slack": {"cu_seqlens": [0, 20, 57], "N": 2, "K": 128, "V": 128},
    "one token": {"T": 1, "B": 2, "K": 128, "V": 128, "state": True},
    "heads 16 and 32": {"H": 16, "HV": 32, "K": 128, "V": 128},
    "heads 4 and 4": {"H": 4, "HV": 4, "K": 128, "V": 128},
    "norms": {"l2norm": True, "K": 128, "V": 128},
    "norms, 64 channels": {"l2norm": True, "state": True},
    "norms, odd channels": {"l2norm": True, "K": 40, "V": 24, "T": 131, "scale": 0.3},
    "norms, odd channels, f16": {"l2norm": True, "dtype": "float16", "K": 48, "V": 64, "B": 2},
    "raw, logits, norms": {"gate": "raw", "logits": 1, "l2norm": True, "B": 2, "K": 128, "V": 128, "gates": "bfloat16"},
    "raw, packed, slack": {"gate": "raw", "logits": 1, "l2norm": True, "cu_seqlens": [0, 20, 60], "N": 2},
    "norms, states, slack": {"l2norm": True, "K": 128, "V": 128, "state": True, "T": 300, "cu_seqlens": [0, 70, 170], "N": 2},
    "model": {"gate": "raw", "logits": 1, "l2norm": True, "K": 128, "V": 128, "T": 131, "state": True, "v_first": True},
    "model, packed, slack": {
        "gate": "raw", "logits": 1, "l2norm": True, "K": 128, "V": 128, "T": 300, "cu_seqlens": [0, 20, 160], "N": 2,
        "gates": "bfloat16", "H": 4, "HV": 12,
    },
    "model, doubled logits, scale": {"gate": "raw", "logits": 2, "l2norm": True, "K": 120, "V": 128, "bias": False, "scale": 0.3},
    "linear gates, norms": {"gate": "linear", "l2norm": True, "K": 128, "V": 128, "state": True},
    "raw, infinite rate": {"gate": "raw", "log_rate": 100.0},
    "model, infinite rate": {"gate": "raw", "logits": 1, "l2norm": True, "K": 128, "V": 128, "B": 2, "log_rate": 100.0},
    "raw without a bias": {"gate": "raw", "bias": False},
    "doubled logits": {"logits": 2, "state": True},
    "linear, with zeros": {"gate": "linear", "K": 128, "V": 128, "state": True},
    "no gates": {"absent": ("g", "beta")},
    "scale": {"scale": -1.5, "state": True},
    "odd channels": {"K": 40, "V": 24, "state": True, "v_first": True},
    "V wider than K": {"K": 48, "V": 96},
    "f16": {"dtype": "float16", "K": 128, "V": 128, "state": True},
    "f16, raw, norms": {"dtype": "float16", "l2norm": True, "gate": "raw", "logits": 1},
    "f16, model": {"dtype": "float16", "l2norm": True, "gate": "raw", "logits": 1, "K": 128, "V": 128, "B": 2, "state": True},
}
#: With gates a channel, which a bound keeps in range.
_CHANNELS = {"channels": True, "gate": "bounded", "K": 128, "V": 128}
CASES |= {
    "channels": {**_CHANNELS, "T": 200},
    "channels, states [V, K]": {**_CHANNELS, "state": True, "v_first": True, "T": 131},
    "channels, as many heads": {**_CHANNELS, "H": 4, "HV": 4, "state": True, "T": 131},
    "channels, batch rows": {**_CHANNELS, "B": 3, "T": 67, "state": True, "H": 3, "HV": 9},
    "channels, packed": {**_CHANNELS, "cu_seqlens": [0, 64, 64, 65, 200], "N": 4, "T": 200, "state": True},
    "channels, one token": {**_CHANNELS, "T": 1, "B": 2, "state": True},
    "channels, heads 16 and 32": {**_CHANNELS, "H": 16, "HV": 32},
    "channels, no bias, scale": {**_CHANNELS, "bias": False, "scale": -1.5},
    "channels, 64": {**_CHANNELS, "K": 64, "V": 64, "state": True},
    "channels, odd": {**_CHANNELS, "K": 40, "V": 24, "state": True},
    "channels, model": {
        **_CHANNELS, "logits": 1, "l2norm": True, "T": 131, "state": True, "v_first": True, "gates": "bfloat16",
        "bias": "rows",
    },
    "channels, model, packed, slack": {
        **_CHANNELS, "logits": 1, "l2norm": True, "T": 300, "cu_seqlens": [0, 20, 160], "N": 2, "H": 4, "HV": 12,
        "gates": "bfloat16",
    },
    "channels, model, infinite rate": {**_CHANNELS, "logits": 2, "l2norm": True, "log_rate": 100.0},
    "channels, logarithms, f16": {**_CHANNELS, "gate": "log", "dtype": "float16", "T": 200, "state": True},
    "channels, logarithms, f16, packed, norms": {
        **_CHANNELS, "gate": "log", "dtype": "float16", "cu_seqlens": [0, 64, 64, 65, 200], "N": 4, "T": 200, "l2norm": True,
        "H": 3, "HV": 9,
    },
    "channels, f16, model": {
        **_CHANNELS, "gate": "raw", "dtype": "float16", "logits": 1, "l2norm": True, "B": 2, "T": 131, "state": True,
    },
    "channels, f16, bounded": {**_CHANNELS, "dtype": "float16", "T": 131, "state": True},
    "channels, f16, bounded, model": {**_CHANNELS, "dtype": "float16", "logits": 1, "l2norm": True, "T": 131, "state": True},
}  # fmt: skip
#: The same with `save_for_backward="states"`.
CASES |= {
    f"{name}, saved": {**CASES[name], "saves": "states"}
    for name in (
        "plain", "states", "states, batch rows", "packed", "packed, slack", "norms", "raw, logits, norms",
        "model, infinite rate", "f16", "f16, model", "channels, logarithms, f16", "channels, logarithms, f16, packed, norms",
        "channels, f16, model",
    )
}
NAMES = ("q", "k", "v", "g", "beta", "A_log", "dt_bias", "initial_state")

#: Log gates of `strong`, and how far dg of one that decays may be off: of all tokens, and of sequences' last ones alone.
#: Where its size is below the other number there is nothing to compare.
STRENGTHS, OF_STRONG, LEAST = (0, -1, -5, -10, -20, -30, -45, -60), 5e-3, 1e-30
#: Sequences that end within a chunk, one token among them, and one that does not.
UNEVEN = [0, 70, 71, 104, 168, 205]
STRONG = {
    "fixed": {"T": 70, "B": 3},
    "fixed, 64 channels": {"T": 37, "B": 3, "K": 64, "V": 64},
    "packed": {"T": 205, "cu_seqlens": UNEVEN, "N": 5},
    "packed, raw": {"T": 205, "cu_seqlens": UNEVEN, "N": 5, "gate": "raw"},
    "packed, raw, norms, logits": {"T": 205, "cu_seqlens": UNEVEN, "N": 5, "gate": "raw", "logits": 1, "l2norm": True},
    "packed, saved": {"T": 205, "cu_seqlens": UNEVEN, "N": 5, "saves": "states"},
}


def build(torch, tests, sizes):
    """The inputs by name, the call's words, and the recurrence's."""
    sizes = {"dtype": "bfloat16", **sizes}
    cu_seqlens, scale, saves = (sizes.pop(name, None) for name in ("cu_seqlens", "scale", "saves"))
    for name in ("dtype", "gates"):
        if name in sizes:
            sizes[name] = getattr(torch, sizes[name])
    given = tests.make(**sizes)
    form = {"l2norm": False, "gate": "log", "logits": 0, "v_first": False}
    form |= {name: value for name, value in sizes.items() if name in form}
    words = {
        "scale": scale, "use_qk_l2norm_in_kernel": form["l2norm"], "gate_domain": form["gate"],
        "use_beta_sigmoid_in_kernel": form["logits"] > 0, "allow_neg_eigval": form["logits"] == 2,
        "state_v_first": form["v_first"], "output_final_state": True, "save_for_backward": saves or "inputs",
        "cu_seqlens": None if cu_seqlens is None else torch.tensor(cu_seqlens, dtype=torch.int32),
    }  # fmt: skip
    form |= {"cu_seqlens": cu_seqlens, "scale": given["q"].shape[-1] ** -0.5 if scale is None else scale}
    return given, words, form


def call(gdn, given, words):
    """A call; one that asks for states saves them whatever a cost model says of such small sizes."""
    from gdn import _torch_saved

    asks = words.get("save_for_backward") == "states"
    with unittest.mock.patch.object(_torch_saved, "_pays", lambda *_: True) if asks else contextlib.nullcontext():
        results = gdn.chunk_gated_delta_rule(**{name: given.get(name) for name in NAMES}, **words)
    saves = len(results[0].grad_fn.saved_tensors) == 10
    if saves != (asks and given["q"].is_cuda):
        raise RuntimeError(f"expected a forward that saves {'states' if asks else 'inputs'}, got {type(results[0].grad_fn)}")
    return results


def errors_of(found, wanted, names):
    return {
        name: float((x.double() - y.double()).norm() / y.double().norm().clamp_min(1e-6))
        for name, x, y in zip(names, found, wanted)
    }


def judge(errors):
    wrong = [
        name for name, error in errors.items()
        if not error <= (OF_SUMS if name in ("A_log", "dt_bias") else TOLERANCE)
    ]
    text = "  ".join(f"{name} {error:.1e}" for name, error in errors.items())
    return text + (f"  wrong: {', '.join(wrong)}" if wrong else ""), not wrong


def fill_outside(torch, cu_seqlens, tensors):
    """NaN in tokens that no sequence has."""
    with torch.no_grad():
        for x in tensors if cu_seqlens else ():
            x[:, cu_seqlens[-1] :] = float("nan")


def values(torch, gdn, tests, sizes, repeats):
    """Against the recurrence in float64, and against gdn on a CPU; equal bits again."""
    with torch.device("cuda"):
        given, words, form = build(torch, tests, sizes)
        exact = {name: x.detach().double().requires_grad_() for name, x in given.items()}
        results = tests.recurrence(**{**dict.fromkeys(NAMES), **exact}, **form)
        weights = torch.randn(results[0].shape).to(given["q"].dtype), torch.randn(results[1].shape)
        fill_outside(torch, form["cu_seqlens"], [*(given[name] for name in NAMES[:5] if name in given), weights[0]])
        o, state = call(gdn, given, words)
        ask = functools.partial(torch.autograd.grad, (o, state), list(given.values()), weights, retain_graph=True)
        found = ask()
        wanted = torch.autograd.grad(results, list(exact.values()), [x.double().nan_to_num() for x in weights])
    errors = errors_of(found, wanted, given)
    text, right = judge(errors)
    for _ in range(repeats):
        if not all(map(torch.equal, found, ask())):
            return f"{text}  other bits when run again", False
    there = {name: x.detach().cpu().requires_grad_() for name, x in given.items()}
    at_home = {name: x.cpu() if isinstance(x, torch.Tensor) else x for name, x in words.items()}
    by_cpu = torch.autograd.grad(call(gdn, there, at_home), list(there.values()), [x.cpu() for x in weights])
    apart, near = judge(errors_of([x.cpu() for x in found], by_cpu, given))
    return (text if near else f"{text}  against a CPU: {apart}"), right and near


def strong(torch, gdn, tests, sizes):
    """dg of heads whose gates are all of one strength, by a gradient of the final state, of o, and of both."""
    each = 32  # So many that what is rounded in the last tokens, a few a head, averages out.
    sizes = {"K": 128, "V": 128, "state": True, **sizes, "H": 2 * len(STRENGTHS), "HV": each * len(STRENGTHS)}
    with torch.device("cuda"):
        given, words, form = build(torch, tests, sizes)
        g = torch.tensor(STRENGTHS, dtype=torch.float32).repeat_interleave(each)
        if form["gate"] == "raw":
            # What softplus takes to these; to 0 it takes nothing, and -2 to a weak one.
            given["A_log"].detach().zero_()
            given["dt_bias"].detach().zero_()
            g = torch.expm1(-g.double()).log().clamp_min(-2).float()
        given["g"].detach().copy_(g.expand_as(given["g"]))
        exact = {name: x.detach().double().requires_grad_() for name, x in given.items()}
        results = tests.recurrence(**{**dict.fromkeys(NAMES), **exact}, **form)
        weights = torch.randn(results[0].shape).to(given["q"].dtype), torch.randn(results[1].shape)
    outputs = call(gdn, given, words)
    ends = [end - 1 for end in form["cu_seqlens"][1:]] if form["cu_seqlens"] else [given["q"].shape[1] - 1]
    worst, texts = 0.0, []
    for what, used in (("state", (1,)), ("o", (0,)), ("both", (0, 1))):
        ask = functools.partial(torch.autograd.grad, retain_graph=True)
        found = ask([outputs[i] for i in used], given["g"], [weights[i] for i in used])[0].double()
        wanted = ask([results[i] for i in used], exact["g"], [weights[i].double() for i in used])[0]
        for place, tokens in (("all", slice(None)), ("last", ends)):
            for number, strength in enumerate(STRENGTHS):
                heads = slice(number * each, (number + 1) * each)
                want = wanted[:, tokens, heads]
                if (size := float(want.norm())) > LEAST:
                    error = float((found[:, tokens, heads] - want).norm()) / size
                    worst = max(worst, error)
                    if not error <= (OF_STRONG if strength else TOLERANCE):
                        texts.append(f"{what}, {place} at {strength}: {error:.1e}")
    return "  ".join([f"dg {worst:.1e}", *texts]), not texts


def simple(torch, T=150, **more):
    """Five inputs that require gradients, and the loss of a step."""
    import gradient_cases as tests

    with torch.device("cuda"):
        given = tests.make(K=128, V=128, T=T, dtype=torch.bfloat16, **more)
    return list(given.values())


def loss(gdn, *arguments, **words):
    o, state = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True, **words)
    return (o.float() ** 2).sum() + state.sum()


def graph(torch, gdn):
    """A captured step, forward and backward, follows its inputs and boundaries."""
    arguments = simple(torch)
    cu = torch.tensor([0, 70, 70, 150], dtype=torch.int32, device="cuda")

    def step():
        return torch.autograd.grad(loss(gdn, *arguments, cu_seqlens=cu), arguments)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
        stream.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, stream=stream):
            found = step()
    for boundaries in ([0, 70, 70, 150], [0, 1, 149, 150], [0, 0, 30, 64]):
        cu.copy_(torch.tensor(boundaries))
        with torch.no_grad():
            for x in arguments:
                x.mul_(0.9)
        captured.replay()
        torch.cuda.synchronize()
        if not all(map(torch.equal, found, step())):
            return f"boundaries {boundaries}: other bits than without a graph", False
    return "3 replays", True


def compiled(torch, gdn, backend):
    """torch.compile(fullgraph=True) of the loss, differentiated."""
    faulthandler.dump_traceback_later(8 * LIMIT, exit=True)
    arguments = simple(torch)
    want = torch.autograd.grad(loss(gdn, *arguments), arguments)
    begin = time.perf_counter()
    step = torch.compile(functools.partial(loss, gdn), backend=backend, fullgraph=True)
    text, right = judge(errors_of(torch.autograd.grad(step(*arguments), arguments), want, "qkvgb"))
    return f"{text}  {time.perf_counter() - begin:.0f} s", right


def checkpointed(torch, gdn):
    from torch.utils.checkpoint import checkpoint

    arguments = simple(torch)
    want = torch.autograd.grad(loss(gdn, *arguments), arguments)
    got = torch.autograd.grad(checkpoint(functools.partial(loss, gdn), *arguments, use_reentrant=False), arguments)
    return "equal bits", all(map(torch.equal, got, want))


def refused(torch, gdn):
    """What has no kernel, and a second derivative, by name; of a recurrent call where its gradients are asked for."""
    arguments = simple(torch, T=10)
    wide = [x.detach().float().requires_grad_() for x in arguments]
    recurrent, _ = gdn.fused_recurrent_gated_delta_rule(*wide[:4], beta=wide[4])
    first = torch.autograd.grad(loss(gdn, *arguments), arguments, create_graph=True)
    texts = []
    for what, run in (
        ("differentiated once", lambda: torch.autograd.grad(first[0].float().sum(), arguments)),
        ("needs no gradient, got requires_grad=True; gdn has", lambda: loss(gdn, *wide)),
        ("a call with a backward: gdn has", lambda: torch.autograd.grad(recurrent.sum(), wide)),
    ):
        try:
            run()
            texts.append(f"nothing instead of '{what}'")
        except NotImplementedError as error:
            texts += [] if what in str(error) else [str(error)]
    return "; ".join(texts) or "3 by name", not texts


def streams(torch, gdn):
    """Another stream, with gradients of a sum, whose strides are 0."""
    arguments = simple(torch)
    want = torch.autograd.grad(gdn.chunk_gated_delta_rule(*arguments)[0].sum(), arguments)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = torch.autograd.grad(gdn.chunk_gated_delta_rule(*arguments)[0].sum(), arguments)
    stream.synchronize()
    return "equal bits", all(map(torch.equal, got, want))


def views(torch, gdn):
    """q, k and v out of one projection, whose gradient torch puts together."""
    plain = simple(torch)
    rows = torch.cat([x.detach().flatten(2) for x in plain[:3]], -1).requires_grad_()
    q, k, v = (x.unflatten(2, (-1, 128)) for x in rows.split((2 * 128, 2 * 128, 4 * 128), -1))
    (got,) = torch.autograd.grad(loss(gdn, q, k, v, *plain[3:]), rows)
    want = torch.autograd.grad(loss(gdn, *plain), plain[:3])
    return "equal bits", torch.equal(got, torch.cat([x.flatten(2) for x in want], -1))


def many(torch, gdn, runs):
    """The same bits in so many runs."""
    arguments = simple(torch, T=700, H=8, HV=16)
    lost = loss(gdn, *arguments)
    first = torch.autograd.grad(lost, arguments, retain_graph=True)
    other = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(runs):
        for x, y in zip(torch.autograd.grad(lost, arguments, retain_graph=True), first):
            other += (x != y).sum()
    return f"{runs} runs, {int(other)} elements differ", not int(other)


def gradient_runs(torch, gdn, repeats):
    """All checks by name."""
    import gradient_cases as tests

    runs = [
        (f"gradients: {name}", functools.partial(values, torch, gdn, tests, sizes, repeats))
        for name, sizes in CASES.items()
    ]
    runs += [
        (f"gradients: strong gates, {name}", functools.partial(strong, torch, gdn, tests, dict(sizes)))
        for name, sizes in STRONG.items()
    ]
    for check in (graph, checkpointed, refused, streams, views):
        runs.append((f"gradients: {check.__name__}", functools.partial(check, torch, gdn)))
    for backend in ("aot_eager", "inductor"):
        runs.append((f"gradients: compiled, {backend}", functools.partial(compiled, torch, gdn, backend)))
    return [*runs, ("gradients: many runs", functools.partial(many, torch, gdn, 50 * repeats))]
