# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is computed around the GPU's kernels of gradients, on a CPU: a stand-in computes what the kernels are to compute,
in float64. The kernels themselves: test/Integration/emulator/gradients-*.test, and on a GPU test/Integration/sm90."""

import pytest

torch = pytest.importorskip("torch")

from gradient_cases import CASES, NAMES, make, recurrence  # noqa: E402

import gdn  # noqa: E402
from gdn import _library, _torch_backward, _torch_backward_gpu  # noqa: E402
from gdn._api import BUILDERS  # noqa: E402
from gdn._arguments import NO_POOL  # noqa: E402
from gdn._manifest import GradientForm  # noqa: E402

TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-2}


def backward(q, k, v, g, beta, A_log, dt_bias, state, cu, d_o, d_state, *rest):
    """The library's on a GPU: packed sequences, in a form of the manifest's but for types and channels."""
    *written, scale, options, _, _ = rest[len(NO_POOL) :]
    gate, logits = _library.gate_domain_of(options), _library.beta_domain_of(options)
    names = {number: name for name, number in _library.GATE_DOMAINS.items()}
    form = {"l2norm": _library.has_l2norm(options), "gate": names[gate], "logits": logits}
    decay = "Channel" if g is not None and g.dim() == 4 else "Head"
    channels = next(size for size in _torch_backward_gpu._served(decay)[1] if size >= max(q.shape[3], v.shape[3]))
    kernel = GradientForm(channels, str(q.dtype).removeprefix("torch."), form["l2norm"], gate, logits, decay)
    assert kernel in _torch_backward_gpu._FORMS
    assert names[gate] in ("raw", "bounded") or A_log is None and dt_bias is None
    assert cu is not None and q.shape[0] == 1
    # Tokens in no sequence are not looked at, and their gradients are zeros.
    inside, cu_seqlens = slice(cu[0], cu[-1]), (cu - cu[0]).tolist()
    tokens = [None if x is None else x[:, inside].double().requires_grad_() for x in (q, k, v, g, beta)]
    others = [None if x is None else x.double().requires_grad_() for x in (A_log, dt_bias, state)]
    v_first, factor = _library.state_is_v_first(options), k.shape[3] ** -0.5 if scale is None else scale
    o, states = recurrence(*tokens, *others, cu_seqlens, factor, **form, v_first=v_first)
    weights = [
        torch.zeros_like(result) if weight is None else weight.double()
        for result, weight in ((o, None if d_o is None else d_o[:, inside]), (states, d_state))
    ]
    wanted = [x for x in (*tokens, *others) if x is not None]
    found = dict(zip(map(id, wanted), torch.autograd.grad((o, states), wanted, weights)))
    for x, gradient in zip((*tokens, *others), written):
        assert (x is None) == (gradient is None)
    for x, gradient in zip(tokens, written):
        if x is not None:
            gradient.zero_()[:, inside] = found[id(x)]
    for x, gradient in zip(others, written[len(tokens) :]):
        if x is not None:
            gradient.copy_(found[id(x)])


@pytest.fixture
def kernels(monkeypatch):
    monkeypatch.setattr(_library.load(), "backward", backward)


def differentiate(given, cu_seqlens, weights, **options):
    """The gradients as the operator computes them on a GPU."""
    tensors = {name: given.get(name) for name in (*NAMES, "A_log", "dt_bias", "initial_state")}
    call = BUILDERS["chunk_gated_delta_rule"](**tensors, cu_seqlens=cu_seqlens, **options)
    tensors = [x.detach() if isinstance(x, torch.Tensor) else x for x in call[:9]]
    return _torch_backward_gpu.compute(*tensors, *weights, call.scale, call.options)


FUSED = {"l2norm": True, "K": 128, "V": 128, "T": 24}
SHORT = {
    **{
        name: {**case, "T": 60 if "cu_seqlens" in case else 24}
        for name, case in CASES.items()
        if max(case.get("K", 64), case.get("V", 64)) <= 128
    },
    "no gates": {"absent": ("g", "beta"), "T": 24},
    "norms, fused": {**FUSED, "state": True},
    "norms, no gates": {**FUSED, "absent": ("g", "beta")},
    "norms, linear": {**FUSED, "gate": "linear"},
    "norms, logits": {**FUSED, "logits": 2},
    "model": {**FUSED, "gate": "raw", "logits": 1, "B": 2, "state": True, "v_first": True},
    "model, bfloat16": {**FUSED, "gate": "raw", "logits": 1, "dtype": torch.bfloat16, "gates": torch.bfloat16},
    "model without a bias": {**FUSED, "gate": "raw", "logits": 1, "bias": False, "K": 120, "scale": 2.0},
    "model, doubled logits": {**FUSED, "gate": "raw", "logits": 2},
    "model, packed": {**FUSED, "gate": "raw", "logits": 1, "cu_seqlens": [3, 20, 40], "N": 2, "T": 44},
    "raw, packed, slack": {"gate": "raw", "logits": 1, "l2norm": True, "cu_seqlens": [3, 20, 40], "N": 2, "T": 44},
}
#: With gates a channel, which a bound keeps in range.
OF_CHANNELS = {"channels": True, "gate": "bounded", "dtype": torch.bfloat16, "T": 24}
SHORT |= {
    "channels": {**OF_CHANNELS, "K": 128, "V": 128},
    "channels, states": {**OF_CHANNELS, "K": 40, "V": 60, "state": True, "v_first": True, "bias": "rows"},
    "channels, batch": {**OF_CHANNELS, "B": 3, "H": 1, "HV": 3, "bias": False, "scale": -1.5},
    "channels, model": {**OF_CHANNELS, **FUSED, "logits": 1, "gates": torch.bfloat16, "cu_seqlens": [3, 20], "N": 1},
    "channels, doubled logits": {**OF_CHANNELS, **FUSED, "logits": 2, "state": True},
    "channels without A_log": {**OF_CHANNELS, **FUSED, "absent": ("A_log",)},
    "channels, infinite rate": {**OF_CHANNELS, "log_rate": 100.0},
    "channels, softplus": {**OF_CHANNELS, **FUSED, "gate": "raw", "logits": 1, "gates": torch.bfloat16},
    "channels, softplus without norms": {**OF_CHANNELS, "gate": "raw", "logits": 1, "bias": "rows"},
    # No kernel has these bounded gates: torch makes logarithms of them.
    "channels, float16": {**OF_CHANNELS, "dtype": torch.float16, "state": True},
    "channels, float16, packed": {**OF_CHANNELS, "dtype": torch.float16, "bias": "rows", "cu_seqlens": [3, 20], "N": 1},
    "channels, float16 without A_log": {**OF_CHANNELS, "dtype": torch.float16, "absent": ("A_log",)},
    "channels, float16, infinite rate": {**OF_CHANNELS, "dtype": torch.float16, "log_rate": 100.0},
}


@pytest.mark.parametrize("case,ends", [
    *((case, "both") for case in SHORT), *((case, ends) for case in ("plain", "states") for ends in ("o", "state")),
])  # fmt: skip
def test_values(kernels, case, ends):
    """All forms; gradients of o, of the final state, or of both."""
    sizes = dict(SHORT[case])
    cu_seqlens, scale = sizes.pop("cu_seqlens", None), sizes.pop("scale", None)
    sizes.setdefault("dtype", torch.float16)
    given = make(**sizes)
    form = {"l2norm": False, "gate": "log", "logits": 0, "v_first": False}
    form |= {name: value for name, value in sizes.items() if name in form}
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in given.items()}
    names = (*NAMES, "A_log", "dt_bias", "initial_state")
    factor = given["q"].shape[-1] ** -0.5 if scale is None else scale
    results = recurrence(**{**dict.fromkeys(names), **exact}, cu_seqlens=cu_seqlens, scale=factor, **form)
    weights = [torch.randn(x.shape).to(t) for x, t in zip(results, (given["q"].dtype, torch.float32))]
    used = [weights[0] if ends != "state" else None, weights[1] if ends != "o" else None]
    wanted = torch.autograd.grad(
        [r for r, w in zip(results, used) if w is not None], list(exact.values()),
        [w.double() for w in used if w is not None], allow_unused=True,
    )  # fmt: skip
    found = differentiate(
        given, None if cu_seqlens is None else torch.tensor(cu_seqlens), used, scale=scale,
        use_qk_l2norm_in_kernel=form["l2norm"], gate_domain=form["gate"], state_v_first=form["v_first"],
        use_beta_sigmoid_in_kernel=form["logits"] > 0, allow_neg_eigval=form["logits"] == 2, output_final_state=True,
    )  # fmt: skip
    for name, want in zip(given, wanted):
        got = found[names.index(name)]
        want = torch.zeros_like(exact[name]) if want is None else want
        assert got.dtype == given[name].dtype and got.shape == given[name].shape, name
        assert (got.double() - want).norm() <= TOLERANCES[got.dtype] * want.norm(), name
    assert all(found[names.index(name)] is None for name in names if name not in given)


@pytest.mark.parametrize("K,gate,channels", [(64, "raw", False), (128, "raw", False), (128, "raw", True), (128, "bounded", True)])
def test_tokens_of_nobody(kernels, K, gate, channels):
    """NaN in tokens that no sequence has reaches nothing."""
    given = make(gate=gate, logits=1, l2norm=True, dtype=torch.bfloat16, T=70, K=K, V=K, channels=channels)
    bad = {name: x.detach().clone() for name, x in given.items()}
    for name in NAMES:
        bad[name][:, 50:] = float("nan")
        bad[name][:, :5] = float("nan")
    weights = [torch.randn(1, 70, 4, K).bfloat16(), None]
    options = {"use_qk_l2norm_in_kernel": True, "gate_domain": gate, "use_beta_sigmoid_in_kernel": True}
    got = differentiate(bad, torch.tensor([5, 30, 50]), weights, **options)
    for name, gradient in zip((*NAMES, "A_log", "dt_bias"), got):
        assert gradient.isfinite().all(), name
        if name in NAMES:
            assert not gradient[:, 50:].any() and not gradient[:, :5].any() and gradient[:, 5:50].any(), name


@pytest.mark.parametrize("form,words", [
    ({}, "plain"), ({"l2norm": True}, "norm"), ({"l2norm": True, "gate": "raw", "logits": 1}, "norm raw logit"),
    ({"l2norm": True, "gate": "raw", "logits": 2}, "norm"),
    ({"gate": "raw", "logits": 1}, "plain"), ({"l2norm": True, "K": 64}, "norm"), ({"l2norm": True, "gate": "linear"}, "norm"),
    ({"channels": True, "l2norm": True, "gate": "raw", "logits": 1}, "norm raw logit"),
    ({"channels": True, "l2norm": True, "gate": "bounded", "logits": 1}, "norm bounded logit"),
    ({"channels": True, "l2norm": True, "gate": "bounded"}, "norm bounded"), ({"channels": True, "gate": "bounded"}, "bounded"),
    ({"channels": True, "gate": "raw"}, "plain"),
])  # fmt: skip
def test_forms(form, words):
    """As much as there are kernels for is left to them."""
    x, beta = torch.empty(1, 8, 1, form.get("K", 128), dtype=torch.bfloat16), torch.empty(1, 8, 1)
    g = x.float() if form.get("channels") else beta
    gate = _library.GATE_DOMAINS[form.get("gate", "log")]
    options = _library.pack_options(gate_domain=gate, beta_domain=form.get("logits", 0), l2norm=form.get("l2norm", False))
    found = _torch_backward_gpu.form_of(x, x, g, beta, options)
    domain = next(name for name, number in _library.GATE_DOMAINS.items() if number == found.gate_domain)
    said = ["norm"] * found.norm + [domain] * (domain != "log") + ["logit"] * (found.beta_domain == 1)
    assert " ".join(said) == (words if words != "plain" else "")


def test_no_tokens(kernels):
    given = make(T=0, B=2, dtype=torch.bfloat16, state=True)
    weight = torch.randn(2, 4, 64, 64)
    *rest, d_state = differentiate(given, None, [None, weight], output_final_state=True)
    assert torch.equal(d_state, weight) and all(x is None or x.numel() == 0 for x in rest)


def test_strided_gradients(kernels):
    """The gradient of a sum is one number with strides of 0."""
    given = make(dtype=torch.bfloat16)
    one = torch.ones((), dtype=torch.bfloat16)
    got = differentiate(given, None, [one.expand(1, 70, 4, 64), None])
    want = differentiate(given, None, [torch.ones(1, 70, 4, 64).bfloat16(), None])
    assert all(x is y is None or torch.equal(x, y) for x, y in zip(got, want))


def meta(K=128, V=128, dtype=torch.bfloat16, B=1, T=256, channels=False, **kwargs):
    make = {"device": "meta"}
    q, v = (torch.empty(B, T, heads, size, dtype=dtype, **make).requires_grad_() for heads, size in ((2, K), (4, V)))
    beta = torch.empty(B, T, 4, **make)
    return (q, q, v, torch.empty(B, T, 4, K, **make) if channels else beta, beta), {"device": "cuda", **kwargs}


@pytest.mark.parametrize("sizes,what", [
    ({"dtype": torch.float32}, "bfloat16 and float16 on a GPU in this version, got q of float32"),
    ({"K": 256}, "K and V up to 128 on a GPU in this version, got K = 256 and V = 128"),
    ({"channels": True, "dtype": torch.float32}, "float16 with gates per channel on a GPU in this version, got q of float32"),
])  # fmt: skip
def test_refused(sizes, what):
    """What has no kernel is refused before the forward."""
    tensors, words = meta(**sizes)
    answer = gdn.supported(*tensors, **words)
    assert not answer and "q: expected a tensor that needs no gradient" in answer.reasons[0] and what in answer.reasons[0]


@pytest.mark.parametrize("T,ends", [(0, [0, 0, 0]), (5, [0, 5, 10])])
def test_boundaries_of_rows(T, ends):
    """Rows may have no tokens, as those of a prefill that has nothing new."""
    assert _torch_backward_gpu.boundaries(torch.empty(2, T, 1, 8)).tolist() == ends


def test_recurrent_calls_are_refused_in_the_backward():
    """As FLA's: those of float32 run, and their backward says why there is none."""
    given = make(dtype=torch.float32)
    call = BUILDERS["fused_recurrent_gated_delta_rule"](**given)
    # What a GPU's call applies, on a CPU.
    arguments = (*call[:9], call.scale, call.options, 0, False)
    o, _ = _torch_backward._apply(_torch_backward._ForwardAlone, False, *arguments)
    assert torch.equal(o, gdn.fused_recurrent_gated_delta_rule(**{name: x.detach() for name, x in given.items()})[0])
    with pytest.raises(NotImplementedError, match="a call with a backward: .* got q of float32"):
        o.sum().backward()


def test_registration():
    """The operator has kernels for both devices, and one for autograd."""
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    assert all(has("gdn::gated_delta_rule_backward", key) for key in ("CPU", "CUDA", "AutogradCUDA"))
