# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Against FLA 0.6 itself: its signatures, its plain torch functions, its backend registry."""

import importlib
import inspect
import logging

import pytest
from reference import make_inputs, rms_error

import gdn

torch = pytest.importorskip("torch")
pytest.importorskip("fla", reason="FLA 0.6 is not installed")
fla = pytest.importorskip("fla.ops.gated_delta_rule", reason="FLA does not import here")
kda = pytest.importorskip("fla.ops.kda", reason="FLA does not import here")

from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule  # noqa: E402
from fla.ops.kda.gate import naive_kda_gate, naive_kda_lowerbound_gate  # noqa: E402
from fla.ops.kda.naive import naive_recurrent_kda  # noqa: E402


def tensors(**sizes):
    x = make_inputs(**sizes)
    return [torch.from_numpy(a) for a in (x.q, x.k, x.v, x.g, x.beta)]


@pytest.mark.parametrize("module,name", [
    (fla, "chunk_gated_delta_rule"), (fla, "fused_recurrent_gated_delta_rule"), (kda, "chunk_kda"),
    (kda, "fused_recurrent_kda"),
])  # fmt: skip
def test_signature(module, name):
    """FLA's parameters in FLA's order with FLA's defaults; ours after them, by keyword only."""
    theirs = inspect.signature(inspect.unwrap(getattr(module, name))).parameters
    ours = inspect.signature(getattr(gdn, name)).parameters
    positional = [p for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for expected, got in zip(positional, ours.values()):
        assert (got.name, got.kind, got.default) == (expected.name, expected.kind, expected.default)
    rest = list(ours.values())[len(positional) :]
    assert all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in rest)


def test_the_signature_below():
    theirs = inspect.signature(inspect.unwrap(importlib.import_module("fla.ops.kda.fused_recurrent").fused_recurrent_kda_fwd))
    ours = inspect.signature(gdn.fla.fused_recurrent_kda_fwd)
    assert [(p.name, p.default) for p in ours.parameters.values()] == [(p.name, p.default) for p in theirs.parameters.values()]


@pytest.mark.parametrize("state", [False, True])
def test_values(state):
    q, k, v, g, beta = tensors(H=4, HV=4)
    initial = torch.randn(1, 4, 64, 64) if state else None
    expected = naive_recurrent_gated_delta_rule(
        q, k, v, beta, g, initial_state=initial, output_final_state=True
    )
    for function in (gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule):
        got = function(q, k, v, g, beta=beta, initial_state=initial, output_final_state=True)
        for a, b in zip(got, expected):
            assert rms_error(a, b) < 1e-5


def channel_tensors():
    """A call of Kimi Delta Attention with raw gates, and their parameters."""
    q, k, v, _, beta = tensors(H=4, HV=4)
    torch.manual_seed(0)
    return (q, k, v, torch.randn(*v.shape[:3], 64), beta), {"A_log": torch.randn(4), "dt_bias": torch.randn(4 * 64)}


@pytest.mark.parametrize("lower_bound", [None, -5.0, -2.5])
def test_values_of_channels(lower_bound):
    (q, k, v, g, beta), parameters = channel_tensors()
    initial = torch.randn(1, 4, 64, 64)
    bound = {} if lower_bound is None else {"lower_bound": lower_bound}
    logarithms = (naive_kda_lowerbound_gate if bound else naive_kda_gate)(g, **parameters, **bound)
    expected = naive_recurrent_kda(q, k, v, logarithms, beta, initial_state=initial, output_final_state=True)
    for function in (gdn.chunk_kda, gdn.fused_recurrent_kda):
        got = function(
            q, k, v, g, beta, initial_state=initial, output_final_state=True, use_gate_in_kernel=True, **parameters,
            **bound,
        )  # fmt: skip
        for a, b in zip(got, expected):
            assert rms_error(a, b) < 1e-5


@pytest.fixture
def installed():
    from fla import backends

    registries = [
        backends._get_operation_registry("gated_delta_rule"),
        backends._function_registries[inspect.unwrap(kda.chunk_kda)],
    ]
    before = [dict(registry._backends) for registry in registries]
    gdn.fla.install()
    for registry in registries:
        registry._logged.clear()
    yield registries[0]
    for registry, backends_before in zip(registries, before):
        registry._backends.clear()
        registry._backends.update(backends_before)


def test_fla_runs_ours_for_channels(installed, caplog):
    arguments, parameters = channel_tensors()
    words = {**parameters, "use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -5.0}
    with caplog.at_level(logging.INFO, "fla.backends"), torch.inference_mode():
        o, _ = kda.chunk_kda(*arguments, **words)
    assert torch.equal(o, gdn.chunk_kda(*arguments, **words)[0])
    assert "chunk_kda -> gdn" in caplog.text


def test_fla_runs_ours(installed, caplog):
    arguments = tensors()
    with caplog.at_level(logging.INFO, "fla.backends"):
        o, state = fla.chunk_gated_delta_rule(*arguments, output_final_state=True, use_qk_l2norm_in_kernel=True)
    expected = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True, use_qk_l2norm_in_kernel=True)
    assert torch.equal(o, expected[0]) and torch.equal(state, expected[1])
    assert "chunk_gated_delta_rule -> gdn" in caplog.text


def test_fla_gets_gradients(installed):
    """On a CPU by our kernels."""
    arguments = [argument.requires_grad_() for argument in tensors()]
    found = [torch.autograd.grad(run(*arguments)[0].square().sum(), arguments)
             for run in (fla.chunk_gated_delta_rule, gdn.chunk_gated_delta_rule)]  # fmt: skip
    assert all(torch.equal(got, expected) for got, expected in zip(*found))


def test_fla_gets_gradients_of_channels(installed):
    """On a CPU by our kernels, of raw gates with a bound and of their parameters."""
    arguments, parameters = channel_tensors()
    words = {"use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -5.0}
    inputs = [x.requires_grad_() for x in (*arguments, *parameters.values())]
    found = [torch.autograd.grad(run(*arguments, **parameters, **words)[0].square().sum(), inputs)
             for run in (kda.chunk_kda, gdn.chunk_kda)]  # fmt: skip
    assert all(torch.equal(got, expected) for got, expected in zip(*found))


@pytest.mark.parametrize("lower_bound", [None, -5.0, -2.5])
def test_gradients_of_channels(lower_bound):
    """Are those of FLA's plain functions, which torch differentiates."""
    arguments, parameters = channel_tensors()
    inputs = [x.requires_grad_() for x in (*arguments, *parameters.values())]
    bound = {} if lower_bound is None else {"lower_bound": lower_bound}
    q, k, v, g, beta = arguments
    logarithms = (naive_kda_lowerbound_gate if bound else naive_kda_gate)(g, **parameters, **bound)
    expected, _ = naive_recurrent_kda(q, k, v, logarithms, beta)
    o, _ = gdn.chunk_kda(*arguments, use_gate_in_kernel=True, **parameters, **bound)
    found = [torch.autograd.grad(x.square().sum(), inputs) for x in (o, expected)]
    for got, wanted in zip(*found):
        assert rms_error(got, wanted) < 1e-5


@pytest.mark.parametrize("change,reason", [
    (lambda call: call.update(v=torch.randn(1, 70, 4, 300)), "v: expected V of 1 to 256"),
    (lambda call: call.update(cp_context=object()), "cp_context: context parallelism"),
])
def test_what_we_do_not_do_is_declined(installed, caplog, change, reason):
    """With the reason; FLA then takes its own way, which needs a GPU."""
    call = dict(zip(("q", "k", "v", "g", "beta"), tensors()))
    change(call)
    with caplog.at_level(logging.INFO, "fla.backends"), pytest.raises(Exception) as caught:
        fla.chunk_gated_delta_rule(**call)
    assert reason in caplog.text and "rejected" in caplog.text
    assert reason not in str(caught.value)


def test_it_can_be_turned_off(installed, monkeypatch):
    monkeypatch.setenv("FLA_GDN", "0")
    assert not installed._backends["gdn"].is_enabled()
