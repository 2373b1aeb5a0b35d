# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients on a CPU: against torch's own of the recurrence in float64, and by all the ways to ask torch for them."""

import re

import pytest

torch = pytest.importorskip("torch")

from gradient_cases import CASES, NAMES, make, recurrence  # noqa: E402
from gradient_checks import (  # noqa: E402
    check_checkpoint, check_compiled_step, check_function_transforms, equal, gradients_of,
)  # fmt: skip
from matrix import crossed  # noqa: E402

import gdn  # noqa: E402

#: Gradients of the CPU kernels are float32's; those of 16 bits are rounded once.
TOLERANCES = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}


#: Of forms that a GPU has no gradients of.
MORE_CASES = {"bounded": {"gate": "bounded", "state": True}, "bounded, no bias": {"gate": "bounded", "bias": False}}


@pytest.mark.parametrize("case", [*CASES, *MORE_CASES])
@pytest.mark.parametrize("function", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
def test_values(case, function):
    """All gradients, of o and of the final states together."""
    sizes = dict({**CASES, **MORE_CASES}[case])
    cu_seqlens, scale = sizes.pop("cu_seqlens", None), sizes.pop("scale", None)
    given = make(**sizes)
    form = {"l2norm": False, "gate": "log", "logits": 0, "v_first": False}
    form |= {name: value for name, value in sizes.items() if name in form}
    tensors = {name: given.get(name) for name in (*NAMES, "A_log", "dt_bias", "initial_state")}
    options = {
        "scale": scale, "use_qk_l2norm_in_kernel": form["l2norm"], "gate_domain": form["gate"],
        "use_beta_sigmoid_in_kernel": form["logits"] > 0, "allow_neg_eigval": form["logits"] == 2,
        "state_v_first": form["v_first"], "output_final_state": True,
        "cu_seqlens": None if cu_seqlens is None else torch.tensor(cu_seqlens),
    }  # fmt: skip
    o, state = getattr(gdn, function)(**tensors, **options)
    weights = torch.randn(o.shape).to(o.dtype), torch.randn(state.shape)
    got = torch.autograd.grad((o, state), list(given.values()), weights)
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    scale = given["q"].shape[-1] ** -0.5 if scale is None else scale
    results = recurrence(**{**dict.fromkeys(tensors), **exact}, cu_seqlens=cu_seqlens, scale=scale, **form)
    expected = torch.autograd.grad(results, list(exact.values()), [weight.double() for weight in weights])
    for (name, tensor), gradient, wanted in zip(given.items(), got, expected):
        assert gradient.dtype == tensor.dtype and gradient.shape == tensor.shape, name
        error = (gradient.double() - wanted).norm() / wanted.norm()
        assert error < TOLERANCES[tensor.dtype], (name, error)


#: Log gates that decay nothing, that forget all at once, and that grow; two heads each.
STRENGTHS = (0.0, -5.0, -20.0, -60.0, 0.05)


@pytest.mark.parametrize("kind", ["log", "packed", "raw", "linear"])
@pytest.mark.parametrize("function", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
def test_strong_gates(function, kind):
    """dg of each strength, however small; by o, by the final state and by both; of the last tokens alone, too, which lie
    anywhere in a chunk."""
    cu_seqlens = [0, 1, 14, 37] if kind == "packed" else None
    sizes = {"T": 37, "N": 3} if cu_seqlens else {"T": 13, "B": 2}
    gate = "log" if kind == "packed" else kind
    given = make(H=5, HV=10, K=32, V=32, state=True, gate=gate, **sizes)
    g = torch.tensor(STRENGTHS).repeat_interleave(2)
    if kind == "raw":
        given["A_log"].detach().zero_()
        given["dt_bias"].detach().zero_()
        g = torch.where(g < 0, -g, -2.0)
    # A linear gate has no digits left at e^-60, and its gradient needs none: it is as large at 0.
    given["g"].detach().copy_((g.exp() if kind == "linear" else g).expand_as(given["g"]))
    tensors = {name: given.get(name) for name in (*NAMES, "A_log", "dt_bias", "initial_state")}
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    form = {"l2norm": False, "gate": gate, "logits": 0, "v_first": False}
    boundaries = None if cu_seqlens is None else torch.tensor(cu_seqlens)
    outputs = getattr(gdn, function)(**tensors, cu_seqlens=boundaries, gate_domain=gate, output_final_state=True)
    results = recurrence(**{**dict.fromkeys(tensors), **exact}, cu_seqlens=cu_seqlens, scale=32**-0.5, **form)
    weights = [torch.randn(x.shape) for x in outputs]
    ends = [end - 1 for end in cu_seqlens[1:]] if cu_seqlens else [-1]
    for used in ([0], [1], [0, 1]):
        of_g = []
        for x, inputs_of_x in ((outputs, given), (results, exact)):
            factors = [weights[i].to(x[i].dtype) for i in used]
            (gradient,) = torch.autograd.grad([x[i] for i in used], inputs_of_x["g"], factors, retain_graph=True)
            of_g.append(gradient.double().unflatten(2, (len(STRENGTHS), 2)).movedim(2, 0))
        for tokens in (slice(None), ends):
            got, want = (x[:, :, tokens].flatten(1) for x in of_g)
            error, size = (got - want).norm(dim=1), want.norm(dim=1)
            assert (error <= 1e-6 * size)[size > 1e-30].all(), (used, tokens, error / size)


def inputs(**sizes):
    return list(make(**sizes).values())


def loss(*arguments):
    o, state = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)
    return (o.float() ** 2).sum() + state.sum()


def gradients(arguments, function=loss):
    return gradients_of(function, arguments)


@pytest.mark.parametrize("backend,dtype", crossed(["aot_eager", "inductor"], [torch.float32, torch.bfloat16]))
def test_compiled_step(backend, dtype):
    check_compiled_step(loss, inputs, backend, dtype)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant):
    check_checkpoint(loss, inputs(), reentrant)


def test_function_transforms():
    arguments = inputs()
    check_function_transforms(loss, arguments)
    bare = [argument.detach() for argument in arguments]
    short = [argument[:, :3] for argument in bare]
    rows = torch.func.jacrev(lambda q: gdn.chunk_gated_delta_rule(q, *short[1:])[0][0, 2, 1, :2])(short[0])
    short[0].requires_grad_()
    for row, channel in zip(rows, range(2)):
        o, _ = gdn.chunk_gated_delta_rule(*short)
        assert torch.equal(row, torch.autograd.grad(o[0, 2, 1, channel], short[0])[0])


def test_double_backward_is_refused():
    """By name, and never zero."""
    arguments = inputs()
    found = torch.autograd.grad(loss(*arguments), arguments, create_graph=True)
    bare = [argument.detach() for argument in arguments]

    def twice():
        torch.func.grad(lambda *each: torch.func.grad(loss)(*each).sum())(*bare)

    def plain_around():
        inner = torch.func.grad(lambda q: loss(q, *arguments[1:]))(bare[0])
        torch.autograd.grad(inner.sum(), arguments[1])

    for ask in (lambda: sum(each.sum() for each in found).backward(), twice, plain_around):
        with pytest.raises(NotImplementedError, match="^gdn: expected a loss that is differentiated once, got a double"):
            ask()


def test_tangents_of_gradients_are_refused():
    """Forward over backward, by name, and never zero."""
    bare = [argument.detach() for argument in inputs()]
    gradient = torch.func.grad(lambda q: gdn.chunk_gated_delta_rule(q, *bare[1:])[0].square().sum())

    def around_outputs():
        with torch.autograd.forward_ad.dual_level():
            q = bare[0].clone().requires_grad_()
            o, _ = gdn.chunk_gated_delta_rule(q, *bare[1:])
            torch.autograd.grad(o, q, torch.autograd.forward_ad.make_dual(torch.ones_like(o), torch.ones_like(o)))

    for ask in (
        lambda: torch.func.jvp(gradient, (bare[0],), (bare[0],)),
        lambda: torch.func.vmap(torch.func.jacfwd(gradient))(bare[0][:, None, :1]),
        around_outputs,
    ):
        with pytest.raises(NotImplementedError, match="got one with a tangent"):
            ask()


def test_autocast():
    arguments = inputs()
    expected = gradients(arguments)
    with torch.autocast("cpu", torch.bfloat16):
        lost = loss(*arguments)
    for got, wanted, argument in zip(torch.autograd.grad(lost, arguments), expected, arguments):
        assert got.dtype == argument.dtype and (got - wanted).norm() < 1e-2 * wanted.norm()


@pytest.mark.parametrize("sizes", [{}, {"K": 48, "V": 40}], ids=["64", "padded"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_forward_in_float32(sizes, dtype):
    """With gradients the outputs are those of float32, rounded once; a scale is part of that."""
    half = make(dtype=dtype, T=200, **sizes)
    wide = {name: tensor.detach().float() for name, tensor in half.items()}
    for function in (gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule):
        expected, state = function(**wide, scale=0.3, output_final_state=True)
        got, final = function(**half, scale=0.3, output_final_state=True)
        assert got.dtype == dtype and (got - expected.to(dtype)).abs().max() <= got.abs().max() * torch.finfo(dtype).eps
        if function is gdn.chunk_gated_delta_rule:
            assert torch.equal(got, expected.to(dtype)) and torch.equal(final, state)
    assert gdn.explain(**half).kernel.startswith("gdn_cpu_chunk_f32")
    with torch.no_grad():
        assert re.match("gdn_cpu_chunk_b?f16", gdn.explain(**half).kernel)


def test_different_types():
    arguments = inputs()
    half = [arguments[0].detach().half().requires_grad_(), *arguments[1:]]
    wide = [half[0].detach().float().requires_grad_(), *arguments[1:]]

    def of_state(*arguments):
        return gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)[1].square().sum()

    for got, wanted, argument in zip(gradients(half, of_state), gradients(wide, of_state), half):
        assert got.dtype == argument.dtype and torch.equal(got, wanted.to(got.dtype))
    q, k, v, g, beta = half
    o, _ = gdn.fused_recurrent_gated_delta_rule(q, k, v.bfloat16(), g, beta=beta)
    assert o.dtype == torch.bfloat16 and torch.autograd.grad(o.sum(), q)[0].dtype == torch.float16


@pytest.mark.parametrize("index", range(5))
def test_a_part_of_the_inputs(index):
    arguments = inputs()
    expected = gradients(arguments)[index]
    some = [argument if i == index else argument.detach() for i, argument in enumerate(arguments)]
    assert torch.equal(torch.autograd.grad(loss(*some), some[index])[0], expected)
    assert gdn.supported(*some)
    with torch.no_grad():
        assert not gdn.chunk_gated_delta_rule(*some)[0].requires_grad


def test_a_part_of_the_outputs():
    """o alone with a gradient without strides, the state alone, and no state at all."""
    arguments = inputs()
    o, state = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)
    of_o = torch.autograd.grad(o.sum(), arguments, retain_graph=True)
    of_state = torch.autograd.grad(state.sum(), arguments, retain_graph=True)
    for a, b, both in zip(of_o, of_state, torch.autograd.grad(o.sum() + state.sum(), arguments)):
        assert (a + b - both).abs().max() < 1e-5 * both.abs().max()
    o, state = gdn.chunk_gated_delta_rule(*arguments)
    assert state is None and equal(torch.autograd.grad(o.sum(), arguments), of_o)


def test_segments():
    """A forward in segments has the same gradients: the backward cuts nothing."""
    arguments, state = inputs(T=200), torch.randn(1, 4, 64, 64, requires_grad=True)

    def of(**options):
        o, final = gdn.chunk_gated_delta_rule(*arguments, initial_state=state, output_final_state=True, **options)
        weight = torch.linspace(-1, 1, o.numel()).view(o.shape)
        return o, torch.autograd.grad((o * weight).sum() + final.sum(), [*arguments, state])

    (o, found), (whole, expected) = of(segment_length=64), of()
    assert not torch.equal(o, whole) and torch.allclose(o, whole, atol=1e-5) and equal(found, expected)


def test_no_tokens():
    state = torch.randn(1, 4, 64, 64, requires_grad=True)
    arguments = inputs(T=0)
    _, final = gdn.chunk_gated_delta_rule(*arguments, initial_state=state, output_final_state=True)
    *found, of_state = torch.autograd.grad((2 * final).sum(), [*arguments, state])
    assert (of_state == 2).all() and all(each.numel() == 0 for each in found)


def test_views_and_strides():
    """Of one projection, channels that do not lie side by side, and broadcast gates."""
    q, k, v, g, beta = inputs(H=4)
    expected = gradients([q, k, v, g, beta])
    fused = torch.cat([x.detach().movedim(1, 3) for x in (q, k, v)], 2).requires_grad_()
    views = [x.movedim(3, 1) for x in fused.split(64, 2)]
    got = torch.autograd.grad(loss(*views, g, beta), fused)[0]
    assert torch.equal(got, torch.cat([x.movedim(1, 3) for x in expected[:3]], 2))
    one = torch.tensor(-0.1, requires_grad=True)
    wide = torch.full_like(g, -0.1).requires_grad_()
    of_one = torch.autograd.grad(loss(q, k, v, one.expand(g.shape), beta), one)[0]
    of_all = torch.autograd.grad(loss(q, k, v, wide, beta), wide)[0].sum()
    assert (of_one - of_all).abs() < 1e-5 * of_all.abs()


def test_saved_memory():
    """The forward keeps its inputs, and nothing else."""
    arguments, saved = inputs(), []

    def pack(tensor):
        saved.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        gdn.chunk_gated_delta_rule(*arguments)
    assert set(saved) == {argument.data_ptr() for argument in arguments}
    changed = arguments[0] * 1
    o, _ = gdn.chunk_gated_delta_rule(changed, *arguments[1:])
    changed.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        o.sum().backward()


def test_threads_change_nothing():
    leaves = list(make(T=2000, H=4, HV=8, gate="raw", logits=1, l2norm=True).values())
    words = {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True}
    before, runs = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            o, _ = gdn.chunk_gated_delta_rule(
                *leaves[:5], A_log=leaves[5], dt_bias=leaves[6], cu_seqlens=torch.tensor([0, 700, 1200, 2000]), **words
            )
            runs.append((o, *torch.autograd.grad(o.square().sum(), leaves)))
    finally:
        torch.set_num_threads(before)
    assert len(leaves) == 7 and equal(runs[1], runs[0]) and equal(runs[2], runs[0])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("with_state", [pytest.param(False, marks=pytest.mark.full), True])
def test_opcheck(packed, with_state):
    given = make(gate="raw", state=True, N=2 if packed else 1)
    cu_seqlens = torch.tensor([0, 30, 60]) if packed else None
    raw = 2
    forward = (*given.values(), cu_seqlens, 0.125, raw, 0, with_state)
    torch.library.opcheck(torch.ops.gdn.gated_delta_rule.default, forward)
    bare = [tensor.detach() for tensor in given.values()]
    weights = torch.randn_like(bare[2]), torch.randn_like(bare[-1]) if with_state else None
    torch.library.opcheck(
        torch.ops.gdn.gated_delta_rule_backward.default, (*bare, cu_seqlens, *weights, 0.125, raw)
    )


def test_what_is_refused():
    """Outputs of the caller's, and gradients of a GPU, by name."""
    arguments = inputs()
    for name, shape in (("out", (1, 70, 4, 64)), ("final_state", (1, 4, 64, 64))):
        given = {name: torch.empty(shape)}
        with pytest.raises(NotImplementedError, match="^q: .* no backward of calls with out or final_state"):
            gdn.chunk_gated_delta_rule(*arguments, **given)
        assert not gdn.supported(*arguments, **given)
        with torch.no_grad():
            gdn.chunk_gated_delta_rule(*arguments, **given)
    meta = [argument.detach().to("meta").requires_grad_() for argument in arguments]
    answer = gdn.supported(*meta, device="cuda")
    assert not answer and "q: expected a tensor that needs no gradient" in answer.reasons[0]
    assert "on a GPU in this version, got q of float32" in answer.reasons[0]
    o, _ = gdn.chunk_gated_delta_rule(*meta)
    o.float().sum().backward()
    assert meta[0].grad.is_meta and meta[0].grad.shape == meta[0].shape


@pytest.mark.parametrize("name,change,message", [
    ("d_o", lambda x: x[:, 1:], r"expected the shape \[B, T, HV, V\] of v = \[.*\], got \["),
    ("d_o", lambda x: x.double(), "expected a tensor of float32, got float64"),
    ("d_final_state", lambda x: x[:, 1:], r"expected the shape \[N, HV, K, V\] = \[.*\], got \["),
    ("d_final_state", lambda x: x.int(), "expected a tensor of .*, got int32"),
])
def test_gradients_that_do_not_fit(name, change, message):
    """Are called what the operator calls them."""
    q, k, v, g, beta, state = (x.detach() for x in make(state=True).values())
    given = {"d_o": torch.ones_like(v), "d_final_state": torch.ones_like(state)}
    given[name] = change(given[name])
    with pytest.raises((TypeError, ValueError), match=f"^{name}: {message}"):
        torch.ops.gdn.gated_delta_rule_backward(q, k, v, g, beta, None, None, state, None, *given.values(), 1.0, 0)
