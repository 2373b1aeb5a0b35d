# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of Kimi Delta Attention on a CPU: against torch's own of the recurrence in float64, and by all the ways to ask
torch for them. What the gates of heads share with these, test_gradients.py has."""

import pytest

torch = pytest.importorskip("torch")

from gradient_cases import NAMES, SHARED_CASES, make, recurrence  # noqa: E402
from gradient_checks import (  # noqa: E402
    check_checkpoint, check_compiled_step, check_function_transforms, equal, gradients_of,
)  # fmt: skip
from matrix import crossed  # noqa: E402
from test_gradients import TOLERANCES  # noqa: E402
from torch._functorch import config as functorch  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402

import gdn  # noqa: E402

FUNCTIONS = ("chunk_kda", "fused_recurrent_kda")
#: What a call says beside its inputs, and these (`make`).
CASES = {
    **SHARED_CASES,
    "raw, biases in rows": {"gate": "raw", "bias": "rows", "cu_seqlens": [0, 31, 31, 64], "N": 3},
    "raw without a bias": {"gate": "raw", "bias": False, "K": 24},
    "bounded": {"gate": "bounded", "logits": 1, "l2norm": True, "B": 2, "state": True},
    "bounded, biases in rows": {"gate": "bounded", "bias": "rows", "K": 40, "V": 24},
    "bounded by -3.5": {"gate": "bounded", "bound": -3.5},
    "bounded without A_log": {"gate": "bounded", "absent": ("A_log",)},
    "linear": {"gate": "linear", "logits": 2, "state": True, "K": 40},
    "no beta": {"absent": ("beta",), "K": 256, "V": 200, "T": 40},
    "bfloat16, bounded": {"dtype": torch.bfloat16, "gates": torch.bfloat16, "gate": "bounded", "logits": 1, "l2norm": True},
}


def words_of(gate="log", logits=0, l2norm=False, v_first=False, bound=-5.0):
    """A form of a call as the functions say it."""
    gates = {
        "raw": {"use_gate_in_kernel": True}, "bounded": {"use_gate_in_kernel": True, "lower_bound": bound},
        "linear": {"gate_domain": "linear"}, "log": {},
    }[gate]  # fmt: skip
    return {
        **gates, "use_beta_sigmoid_in_kernel": logits > 0, "allow_neg_eigval": logits == 2,
        "use_qk_l2norm_in_kernel": l2norm, "state_v_first": v_first,
    }  # fmt: skip


def exact_of(given, cu_seqlens=None, scale=None, gate="log", logits=0, l2norm=False, v_first=False, bound=-5.0):
    """Inputs in float64, and what the recurrence makes of them."""
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    names = (*NAMES, "A_log", "dt_bias", "initial_state")
    results = recurrence(
        **{**dict.fromkeys(names), **exact}, cu_seqlens=cu_seqlens, gate=gate, logits=logits, l2norm=l2norm,
        v_first=v_first, bound=bound, scale=given["q"].shape[-1] ** -0.5 if scale is None else scale,
    )  # fmt: skip
    return exact, results


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values(case, function):
    """All gradients, of o and of the final states together."""
    sizes = dict(CASES[case])
    call = {name: sizes.pop(name, None) for name in ("cu_seqlens", "scale")}
    form = {name: sizes[name] for name in ("gate", "logits", "l2norm", "v_first", "bound") if name in sizes}
    sizes.pop("bound", None)
    given = make(**sizes, channels=True)
    boundaries = None if call["cu_seqlens"] is None else torch.tensor(call["cu_seqlens"])
    o, state = getattr(gdn, function)(
        **{**dict.fromkeys(NAMES), **given}, cu_seqlens=boundaries, scale=call["scale"], output_final_state=True,
        **words_of(**form),
    )  # fmt: skip
    exact, results = exact_of(given, **call, **form)
    weights = torch.randn(o.shape).to(o.dtype), torch.randn(state.shape)
    got = torch.autograd.grad((o, state), list(given.values()), weights)
    expected = torch.autograd.grad(results, list(exact.values()), [weight.double() for weight in weights])
    for (name, tensor), gradient, wanted in zip(given.items(), got, expected):
        assert gradient.dtype == tensor.dtype and gradient.shape == tensor.shape, name
        error = (gradient.double() - wanted).norm() / wanted.norm()
        assert error < TOLERANCES[tensor.dtype], (name, error)
    if boundaries is not None:
        assert not any(gradient[:, boundaries[-1] :].any() for gradient in got[: len(NAMES)])


#: Log gates of channels side by side: those that keep all, that forget at once, and that grow.
STRENGTHS = (0.0, -5.0, -20.0, -60.0, 0.05)
#: Raw gates: softplus(20) is 20, and sigmoid(-20) is next to none.
RAW_STRENGTHS = (-20.0, 5.0, 20.0, 60.0, -2.0)


@pytest.mark.parametrize("kind", ["log", "packed", "single", "raw", "bounded", "linear"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_strong_gates(function, kind):
    """dg of each strength, however small; by o, by the final state and by both; of the last tokens alone, too, which lie
    anywhere in a chunk. Of `single` a few tokens forget all in half of the channels, and all in the others."""
    cu_seqlens = [0, 1, 14, 37] if kind in ("packed", "single") else None
    sizes = {"T": 37, "N": 3} if cu_seqlens else {"T": 13, "B": 2}
    gate = kind if kind in ("raw", "bounded", "linear") else "log"
    given = make(H=1, HV=2, K=40, V=32, state=True, gate=gate, channels=True, **sizes)
    g = torch.tensor(STRENGTHS if gate in ("log", "linear") else RAW_STRENGTHS).repeat(8).repeat(*given["g"].shape[:3], 1)
    if kind == "single":
        g[:, 3::7], g[:, 5::7, :, 20:] = -1000.0, -torch.inf
    if "A_log" in given:
        given["A_log"].detach().zero_()
        given["dt_bias"].detach().zero_()
    # A linear gate has no digits left at e^-60, and its gradient needs none: it is as large at 0.
    given["g"].detach().copy_(g.exp() if kind == "linear" else g)
    boundaries = None if cu_seqlens is None else torch.tensor(cu_seqlens)
    outputs = getattr(gdn, function)(**given, cu_seqlens=boundaries, output_final_state=True, **words_of(gate))
    exact, results = exact_of(given, cu_seqlens, gate=gate)
    weights = [torch.randn(x.shape) for x in outputs]
    ends = [end - 1 for end in cu_seqlens[1:]] if cu_seqlens else [-1]
    for used in ([0], [1], [0, 1]):
        of_g = []
        for x, inputs_of_x in ((outputs, given), (results, exact)):
            factors = [weights[i].to(x[i].dtype) for i in used]
            (gradient,) = torch.autograd.grad([x[i] for i in used], inputs_of_x["g"], factors, retain_graph=True)
            of_g.append(gradient.double().unflatten(3, (8, len(STRENGTHS))).movedim(4, 0))
        assert of_g[0].isfinite().all()
        for tokens in (slice(None), ends):
            got, want = (x[:, :, tokens].flatten(1) for x in of_g)
            error, size = (got - want).norm(dim=1), want.norm(dim=1)
            assert (size > 1e-30).sum() >= 3
            assert (error <= 1e-6 * size)[size > 1e-30].all(), (used, tokens, error / size)


@pytest.mark.parametrize("bound", [-5.0, -3.5])
def test_a_rate_beyond_float32(bound):
    """Of a gate that is its bound, or 0, whose own gradients are 0."""
    given = make(gate="bounded", log_rate=100.0, channels=True)
    o, _ = gdn.chunk_kda(**given, **words_of("bounded", bound=bound))
    exact, (wanted, _) = exact_of(given, gate="bounded", bound=bound)
    weight = torch.randn(o.shape)
    found = torch.autograd.grad(o, list(given.values()), weight)
    for name, got, expected in zip(given, found, torch.autograd.grad(wanted, list(exact.values()), weight.double())):
        assert (name in ("g", "A_log", "dt_bias")) == (not expected.any())
        assert (got - expected).norm() <= 2e-6 * expected.norm(), name


def inputs(**sizes):
    """Those of `loss`: what a layer hands over."""
    return list(make(**{"gate": "bounded", "logits": 1, "channels": True, "state": True, **sizes}).values())


def loss(q, k, v, g, beta, A_log, dt_bias, initial_state, function=gdn.chunk_kda, **words):
    """Of a layer's call: all transforms inside."""
    o, state = function(
        q, k, v, g, beta, A_log=A_log, dt_bias=dt_bias, initial_state=initial_state, output_final_state=True,
        use_gate_in_kernel=True, lower_bound=-5.0, use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, **words,
    )  # fmt: skip
    return (o.float() ** 2).sum() + state.sum()


def gradients(arguments, function=loss):
    return gradients_of(function, arguments)


@pytest.mark.parametrize("backend,dtype", crossed(["aot_eager", "inductor"], [torch.float32, torch.bfloat16]))
def test_compiled_step(backend, dtype):
    check_compiled_step(loss, inputs, backend, dtype)


@inductor.patch(fx_graph_cache=False)
@functorch.patch(enable_autograd_cache=False)
def test_compiled_step_of_another_bound():
    """Gates with a bound of which there are no kernels become logarithms in the graph."""
    torch.compiler.reset()

    def step(q, k, v, g, beta, A_log, dt_bias, initial_state):
        o, _ = gdn.fused_recurrent_kda(
            q, k, v, g, beta, A_log, dt_bias, initial_state=initial_state, use_gate_in_kernel=True, lower_bound=-2.5
        )
        return o.square().sum()

    arguments = inputs(bias="rows")
    got = gradients(arguments, torch.compile(step, fullgraph=True, backend="aot_eager"))
    assert equal(got, gradients(arguments, step))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant):
    check_checkpoint(loss, inputs(), reentrant)


def test_function_transforms():
    check_function_transforms(loss, inputs())


def test_autocast():
    arguments = inputs()
    expected = gradients(arguments)
    with torch.autocast("cpu", torch.bfloat16):
        lost = loss(*arguments)
    for got, wanted, argument in zip(torch.autograd.grad(lost, arguments), expected, arguments):
        assert got.dtype == argument.dtype and (got - wanted).norm() < 2e-2 * wanted.norm()


def test_a_part_of_the_inputs():
    """Each input alone: the others' gradients are not asked for. A parameter of one shape has a gradient of that shape."""
    arguments = inputs()
    expected = gradients(arguments)
    for index, wanted in enumerate(expected):
        some = [argument if i == index else argument.detach() for i, argument in enumerate(arguments)]
        assert torch.equal(torch.autograd.grad(loss(*some), some[index])[0], wanted)
    wide = [*arguments[:5], arguments[5].detach().reshape(1, 1, 4, 1).requires_grad_(), *arguments[6:]]
    assert torch.equal(gradients(wide)[5], expected[5].reshape(1, 1, 4, 1))


def test_gates_of_one_strength():
    """Are gates of heads: the sum over channels is the gradient of the head's, and others are the same."""
    given = make(state=True)
    wide = {name: x.detach().clone().requires_grad_() for name, x in given.items() if name != "g"}
    wide["g"] = given["g"].detach()[..., None].expand(1, 70, 4, 64).clone().requires_grad_()
    o, _ = gdn.chunk_gated_delta_rule(**given)
    channels, _ = gdn.chunk_gated_delta_rule(**wide)
    weight = torch.randn(o.shape)
    expected = dict(zip(given, torch.autograd.grad(o, list(given.values()), weight)))
    found = dict(zip(wide, torch.autograd.grad(channels, list(wide.values()), weight)))
    found["g"] = found["g"].sum(3)
    for name, wanted in expected.items():
        assert (found[name] - wanted).norm() < 2e-6 * wanted.norm(), name


def test_segments():
    """A forward in segments has the gradients of a whole one, if the loss asks for the same of both: the backward cuts
    nothing."""
    given = make(T=200, state=True, channels=True)

    def of(**options):
        o, final = gdn.chunk_kda(**given, output_final_state=True, **options)
        weight = torch.linspace(-1, 1, o.numel()).view(o.shape)
        return o, torch.autograd.grad((o * weight).sum() + final.sum(), list(given.values()))

    (o, found), (whole, expected) = of(segment_length=64), of()
    assert not torch.equal(o, whole) and torch.allclose(o, whole, atol=1e-5) and equal(found, expected)


def test_threads_change_nothing():
    arguments, before, runs = inputs(T=1200, H=4, HV=8, N=3), torch.get_num_threads(), []
    boundaries = torch.tensor([0, 500, 800, 1200])
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            runs.append(gradients(arguments, lambda *each: loss(*each, cu_seqlens=boundaries)))
    finally:
        torch.set_num_threads(before)
    assert equal(runs[1], runs[0]) and equal(runs[2], runs[0])


def test_views_and_no_tokens():
    """Gates that lie as [B, HV, K, T], gates of one number, and a call that gives its states back."""
    arguments = inputs()
    expected = gradients(arguments)
    turned = arguments[3].detach().permute(0, 2, 3, 1).contiguous().requires_grad_()
    views = [*arguments[:3], turned.permute(0, 3, 1, 2), *arguments[4:]]
    assert torch.equal(torch.autograd.grad(loss(*views), turned)[0], expected[3].permute(0, 2, 3, 1))
    one = torch.tensor(-0.1, requires_grad=True)
    wide = torch.full_like(arguments[3], -0.1).requires_grad_()
    of_one, of_all = (
        torch.autograd.grad(loss(*arguments[:3], g.expand(wide.shape), *arguments[4:]), g)[0].sum() for g in (one, wide)
    )
    assert (of_one - of_all).abs() < 1e-5 * of_all.abs()
    *found, of_state = gradients(inputs(T=0))
    assert (of_state == 1).all() and not any(x.any() for x in found)


@pytest.mark.parametrize("packed", [pytest.param(False, marks=pytest.mark.full), True])
@pytest.mark.parametrize("with_state", [pytest.param(False, marks=pytest.mark.full), True])
def test_opcheck(packed, with_state):
    given = make(gate="raw", state=True, N=2 if packed else 1, channels=True)
    cu_seqlens, raw = torch.tensor([0, 30, 60]) if packed else None, 2
    torch.library.opcheck(
        torch.ops.gdn.gated_delta_rule.default, (*given.values(), cu_seqlens, 0.125, raw, 0, with_state)
    )
    bare = [tensor.detach() for tensor in given.values()]
    weights = torch.randn_like(bare[2]), torch.randn_like(bare[-1]) if with_state else None
    torch.library.opcheck(torch.ops.gdn.gated_delta_rule_backward.default, (*bare, cu_seqlens, *weights, 0.125, raw))


def test_what_is_refused():
    """By name, and never a wrong gradient: derivatives of gradients, tangents, outputs of the caller's and pools."""
    arguments = inputs()
    found = torch.autograd.grad(loss(*arguments), arguments, create_graph=True)
    with pytest.raises(NotImplementedError, match="^gdn: expected a loss that is differentiated once, got a double"):
        sum(each.sum() for each in found).backward()
    bare = [argument.detach() for argument in arguments]
    with pytest.raises(NotImplementedError, match="got one with a tangent"):
        torch.func.jvp(lambda g: loss(*bare[:3], g, *bare[4:]), (bare[3],), (bare[3],))
    state = arguments[7].detach().clone()
    rows = torch.zeros(1, dtype=torch.int32)
    for words, reason in (
        ({"out": torch.empty_like(bare[2])}, "no backward of calls with out or final_state"),
        ({"final_state": state}, "no backward of calls with out or final_state"),
        ({"initial_state": state, "final_state": state, "state_indices": rows}, "no backward of calls with state_indices"),
    ):
        for name in FUNCTIONS:
            with pytest.raises(NotImplementedError, match=f"^q: .* {reason}"):
                getattr(gdn, name)(*arguments[:5], **words)
            assert not gdn.supported(*arguments[:5], **words, function=name)
        with torch.no_grad():
            gdn.chunk_kda(*arguments[:5], **words)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_explained(function):
    """A CPU runs it, by kernels of float32; a GPU refuses float32, and says what runs."""
    given = make(K=128, V=128, channels=True, dtype=torch.bfloat16)
    assert gdn.supported(**given, function=function)
    assert "channel_f32" in gdn.explain(**given, function=function).kernel
    meta = {name: x.detach().to("meta") for name, x in given.items()}
    meta["v"].requires_grad_()
    wide = {name: x.detach().to("meta", torch.float32) for name, x in given.items()}
    wide["v"].requires_grad_()
    answer, message = gdn.supported(**wide, function=function, device="cuda"), "v: expected a tensor that needs no gradient"
    # A recurrent call is refused where its gradients are asked for.
    if function == "chunk_kda":
        assert not answer and message in answer.reasons[0]
        assert "float16 with gates per channel on a GPU in this version, got q of float32" in answer.reasons[0]
    o, _ = getattr(gdn, function)(**meta)
    o.float().sum().backward()
    assert meta["v"].grad.is_meta and meta["v"].grad.shape == meta["v"].shape
