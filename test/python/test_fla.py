# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Against FLA 0.6 itself: its signatures, its plain torch functions, its backend registry."""

import inspect
import logging

import pytest
from reference import make_inputs, rms_error

import gdn

torch = pytest.importorskip("torch")
pytest.importorskip("fla", reason="FLA 0.6 is not installed")
fla = pytest.importorskip("fla.ops.gated_delta_rule", reason="FLA does not import here")

from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule  # noqa: E402


def tensors(**sizes):
    x = make_inputs(**sizes)
    return [torch.from_numpy(a) for a in (x.q, x.k, x.v, x.g, x.beta)]


@pytest.mark.parametrize("name", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
def test_signature(name):
    """FLA's parameters in FLA's order with FLA's defaults; ours after them, by keyword only."""
    theirs = inspect.signature(inspect.unwrap(getattr(fla, name))).parameters
    ours = inspect.signature(getattr(gdn, name)).parameters
    positional = [p for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for expected, got in zip(positional, ours.values()):
        assert (got.name, got.kind, got.default) == (expected.name, expected.kind, expected.default)
    rest = list(ours.values())[len(positional) :]
    assert all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in rest)


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


@pytest.fixture
def installed():
    from fla import backends

    registry = backends._get_operation_registry("gated_delta_rule")
    before = dict(registry._backends)
    gdn.fla.install()
    registry._logged.clear()
    yield registry
    registry._backends.clear()
    registry._backends.update(before)


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
