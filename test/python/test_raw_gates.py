# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Raw gates of all sizes: exp(A_log) may be infinite in float32, or 0, and its product with softplus an ordinary gate."""

import functools

import pytest

torch = pytest.importorskip("torch")

from gradient_cases import recurrence  # noqa: E402
from torch.nn.functional import normalize  # noqa: E402

import gdn  # noqa: E402
from gdn import _library, _torch_backward_gpu  # noqa: E402
from gdn._manifest import GradientForm  # noqa: E402

CHUNK, TOKEN = gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule
#: One of each head.
A_LOG = torch.tensor([-200.0, -88.0, -30.0, 0.0, 30.0, 88.7, 89.0, 100.0, 200.0])
#: Beside those that make ordinary gates of each A_log.
GATES = [-1e4, -300.0, -104.0, -90.0, -16.1, -15.9, 0.0, 16.5, 90.0, 1e4, 3e38]
NAMES = ("q", "k", "v", "g", "beta", "A_log", "dt_bias")


def logarithms(g, A_log, dt_bias):
    """Of gates, in float64, without infinity times 0 in their derivatives."""
    return -A_log.exp() * torch.nn.functional.softplus(g + dt_bias, threshold=40.0)


def make(dt_bias, gates, T=41, K=16):
    """A call whose heads have all A_log and whose tokens have all gates, some twice; in float32."""
    torch.manual_seed(3)
    H = len(A_LOG)
    q, k, v = (torch.randn(1, T, H, K) for _ in range(3))
    g = torch.randn(1, T, H) - A_LOG - dt_bias
    g[:, 1 : 1 + 2 * len(gates) : 2] = torch.tensor(gates)[:, None]
    bias, beta = torch.full((H,), float(dt_bias)), torch.rand(1, T, H)
    return dict(zip(NAMES, (normalize(q, dim=-1), normalize(k, dim=-1), v, g, beta, A_LOG.clone(), bias)))


def exactly(given):
    """The recurrence in float64: leaves, and what o is of them."""
    leaves = {name: x.double().requires_grad_() for name, x in given.items()}
    q, k, v, g, beta, A_log, dt_bias = leaves.values()
    o, _ = recurrence(
        q, k, v, logarithms(g, A_log, dt_bias), beta, None, None, None, None, q.shape[3] ** -0.5, False, "log", 0, False
    )
    return leaves, o


def worst(got, want, dim):
    """The largest error of a head, beside its largest element."""
    got, want = (x.detach().double().movedim(dim, 0).reshape(len(A_LOG), -1) for x in (got, want))
    assert got.isfinite().all()
    return ((got - want).abs().amax(1) / want.abs().amax(1).clamp_min(1e-30)).max()


@pytest.mark.parametrize("dt_bias", [0, -200, 150])
@pytest.mark.parametrize("function", [CHUNK, TOKEN])
def test_values_and_gradients(function, dt_bias):
    given = make(dt_bias, GATES)
    leaves, want = exactly(given)
    weight = torch.randn(want.shape)
    wanted = torch.autograd.grad(want, list(leaves.values()), weight.double())
    arguments = {name: x.requires_grad_() for name, x in given.items()}
    o, _ = function(**arguments, use_gate_in_kernel=True)
    assert worst(o, want, 2) < 1e-5
    found = torch.autograd.grad(o, list(arguments.values()), weight)
    for name, x, y in zip(NAMES, found, wanted):
        # A sum over tokens cancels.
        assert worst(x, y, -1 if x.dim() < 4 else 2) < (2e-5 if x.dim() > 1 else 1e-4), name


@pytest.mark.parametrize("function", [CHUNK, TOKEN])
def test_infinite_gates_forget(function):
    """Whatever A_log is. The derivative by A_log is 0 there, as of any gate whose decay is."""
    given = make(0, [float("inf"), -1e4])
    forgets, heads = given["g"].isinf(), A_LOG >= 0
    want = exactly({**given, "g": given["g"].nan_to_num(posinf=1e30)})[1]
    leaves = {name: x.requires_grad_() for name, x in given.items()}
    o, _ = function(**leaves, use_gate_in_kernel=True)
    # Where a gate of 1e30 forgets, too.
    assert worst(*(x.where(heads[:, None], 0.0) for x in (o, want)), 2) < 1e-5
    found = dict(zip(NAMES, torch.autograd.grad(o.square().sum(), list(leaves.values()))))
    assert all(x.isfinite().all() for x in found.values())
    assert not found["g"][forgets].any()


@pytest.mark.parametrize("dt_bias", [None, 0, -200, 150])
def test_conversions_for_a_gpu(dt_bias):
    """What is computed around kernels of gradients that have no raw gates."""
    given = make(dt_bias or 0, [*GATES, float("inf")])
    bias = None if dt_bias is None else given["dt_bias"]
    exact = [given[name].double().requires_grad_() for name in ("g", "A_log", "dt_bias")]
    want = logarithms(*exact)
    logs = _library.GATE_DOMAINS["log"]
    form = GradientForm(64, "bfloat16", False, logs, 0)
    log, back, (size, slope) = _torch_backward_gpu._gate(given["g"], A_LOG, bias, _library.GATE_DOMAINS["raw"], form)
    kept = want > -88.0
    close = functools.partial(torch.testing.assert_close, rtol=1e-6, atol=1e-38, check_dtype=False)
    assert log.dtype == torch.float32 and not log.isnan().any()
    close(log[kept], want[kept])
    assert (log[want < -90.0] <= -88.0).all()
    d_g = torch.autograd.grad(want[kept].sum(), exact[0])[0]
    ones = torch.ones_like(log)
    close(back(ones)[kept], d_g[kept])
    close(slope[kept], d_g[kept])
    close(size[kept], want[kept])
    for found in (back(ones), size, slope):
        assert not found[want < -90.0].any()
