# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recurrence of docs/Spec.md in float64, and seeded inputs for it."""

import dataclasses

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated_delta_rule(
    q, k, v, g, beta, scale=None, initial_state=None, cu_seqlens=None, l2norm=False, gate_domain="log",
    A_log=None, dt_bias=None, beta_domain="value", v_first=False, lower_bound=None,
):
    """Returns (o, final states); all arguments as gdn takes them, of any float type."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    B, T, H, K = q.shape
    HV, V = v.shape[2:]
    if l2norm:
        q, k = (x / np.sqrt(np.sum(x * x, -1, keepdims=True) + 1e-6) for x in (q, k))
    q, k = (np.repeat(x, HV // H, 2) for x in (q, k))
    scale = K**-0.5 if scale is None else scale
    decay = np.ones((B, T, HV)) if g is None else np.asarray(g, np.float64)
    if g is not None and gate_domain == "log":
        decay = np.exp(decay)
    if gate_domain in ("raw", "bounded"):
        heads = (HV, K)[: decay.ndim - 2]
        bias = 0 if dt_bias is None else np.asarray(dt_bias, np.float64).reshape(heads)
        rate = np.exp(np.zeros(HV) if A_log is None else np.asarray(A_log, np.float64))
        rate = rate.reshape(HV, *(1,) * (len(heads) - 1))
        if gate_domain == "raw":
            decay = np.exp(-rate * np.logaddexp(0, decay + bias))
        else:
            decay = np.exp(lower_bound * sigmoid(rate * (decay + bias)))
    if decay.ndim == 3:
        decay = decay[..., None]
    beta = np.ones((B, T, HV)) if beta is None else np.asarray(beta, np.float64)
    if beta_domain != "value":
        beta = sigmoid(beta) * (2 if beta_domain == "doubled_logit" else 1)
    ranges = [(b, 0, T) for b in range(B)]
    if cu_seqlens is not None:
        ranges = [(0, int(a), int(b)) for a, b in zip(cu_seqlens, cu_seqlens[1:])]
    o = np.zeros(v.shape)
    states = np.zeros((len(ranges), HV, K, V))
    if initial_state is not None:
        states[:] = np.asarray(initial_state, np.float64).swapaxes(2, 3) if v_first else initial_state
    for S, (b, begin, end) in zip(states, ranges):
        for t in range(begin, end):
            S *= decay[b, t, :, :, None]
            u = beta[b, t, :, None] * (v[b, t] - np.einsum("hkv,hk->hv", S, k[b, t]))
            S += k[b, t, :, :, None] * u[:, None, :]
            o[b, t] = scale * np.einsum("hkv,hk->hv", S, q[b, t])
    return o, states.swapaxes(2, 3) if v_first else states


@dataclasses.dataclass
class Inputs:
    """Seeded inputs of one problem, float32 but for the boundaries; gates as logarithms."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    g: np.ndarray
    beta: np.ndarray
    state: np.ndarray


def make_inputs(B=1, T=70, H=2, HV=4, K=64, V=64, N=None, v_first=False, seed=0):
    random = np.random.default_rng(seed)

    def normal(*shape):
        return random.standard_normal(shape, np.float32)

    def unit(*shape):
        x = normal(*shape)
        return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)

    state_shape = (V, K) if v_first else (K, V)
    return Inputs(
        unit(B, T, H, K),
        unit(B, T, H, K),
        normal(B, T, HV, V),
        -np.abs(normal(B, T, HV)) * np.float32(0.3),
        random.random((B, T, HV), np.float32),
        normal(N or B, HV, *state_shape),
    )


def rms_error(got, expected):
    """Relative root mean square; 0 where both are zero."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    assert got.shape == expected.shape
    if not expected.size:
        return 0.0
    norm = np.sqrt(np.mean(expected**2))
    error = np.sqrt(np.mean((got - expected) ** 2))
    return float(error if norm == 0 else error / norm)
