# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kimi Delta Attention: gates per key channel, as arrays and as torch tensors, against float64."""

import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

import gdn

FUNCTIONS = {"chunk": gdn.chunk_kda, "token": gdn.fused_recurrent_kda}
B, T, H, HV, K, V = 2, 75, 2, 4, 64, 48
#: Logarithms of gates, by what makes them hard: memory that lasts, that is lost in a token, and both side by side.
GATES = {
    "weak": lambda random, shape: -0.01 * random.random(shape),
    "strong": lambda random, shape: -5.0 * random.random(shape),
    "single": lambda random, shape: np.where(random.random((*shape[:3], 1)) < 0.1, -1000.0, -0.1) + np.zeros(shape),
    "side by side": lambda random, shape: np.where(np.arange(shape[3]) % 7 == 0, 0.0, -5.0) + np.zeros(shape),
    "mixed": lambda random, shape: -np.exp(random.uniform(-9, 2, shape)),
}


def make(gates="mixed", B=B, T=T, H=H, HV=HV, K=K, V=V, seed=0, dtype=np.float32):
    x, random = make_inputs(B=B, T=T, H=H, HV=HV, K=K, V=V, seed=seed), np.random.default_rng(seed)
    g = GATES[gates](random, (B, T, HV, K)).astype(np.float32)
    return {"q": x.q.astype(dtype), "k": x.k.astype(dtype), "v": x.v.astype(dtype), "g": g, "beta": x.beta}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("gates", GATES)
def test_gates(function, gates):
    call = make(gates)
    state = make_inputs(B=B, H=H, HV=HV, K=K, V=V, seed=1).state
    o, final = function(**call, initial_state=state, output_final_state=True)
    expected, expected_state = gated_delta_rule(**call, initial_state=state)
    assert rms_error(o, expected) < 1e-6 and rms_error(final, expected_state) < 1e-6


@pytest.mark.parametrize("sizes", [(16, 16), (64, 64), (100, 60), (128, 128), (256, 200)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_channels(sizes, dtype):
    K, V = sizes
    call = make(K=K, V=V, dtype=dtype)
    o, state = gdn.chunk_kda(**call, output_final_state=True, use_qk_l2norm_in_kernel=True, state_v_first=True)
    expected, expected_state = gated_delta_rule(**call, l2norm=True, v_first=True)
    assert o.dtype == dtype
    assert rms_error(o, expected) < (1e-6 if dtype == np.float32 else 5e-4)
    # Arithmetic is in float32 whatever the type of arrays is.
    assert rms_error(state, expected_state) < 1e-6


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("bias", [None, "flat", "by head"])
def test_raw_gates(function, bias):
    call, random = make(), np.random.default_rng(2)
    A_log = random.uniform(-1, 1, HV).astype(np.float32)
    dt_bias = None if bias is None else random.standard_normal((HV * K) if bias == "flat" else (HV, K), np.float32)
    call["g"] = random.standard_normal((B, T, HV, K), np.float32) * 3
    raw = {"A_log": A_log, "dt_bias": dt_bias, "use_gate_in_kernel": True}
    o, _ = function(**call, **raw)
    expected, _ = gated_delta_rule(**call, gate_domain="raw", A_log=A_log, dt_bias=dt_bias)
    assert rms_error(o, expected) < 1e-6
    # As FLA's layers keep it.
    wide, _ = function(**call, **{**raw, "A_log": A_log.reshape(1, 1, HV, 1)})
    assert (wide == o).all()
    # Kernels have a bound of -5; gates with others are made logarithms first.
    for parameter, bound in ((A_log, -5), (A_log, -3.5), (None, -5.0)):
        o, _ = function(**call, **{**raw, "A_log": parameter}, lower_bound=bound)
        expected, _ = gated_delta_rule(
            **call, gate_domain="bounded", A_log=parameter, dt_bias=dt_bias, lower_bound=bound
        )
        assert rms_error(o, expected) < 1e-6


def test_packed_sequences():
    call, boundaries = make(B=1), np.array([0, 0, 31, 33, 70], np.int64)
    o, state = gdn.chunk_kda(**call, cu_seqlens=boundaries, output_final_state=True)
    expected, expected_state = gated_delta_rule(**call, cu_seqlens=boundaries)
    assert rms_error(o, expected) < 1e-6 and rms_error(state, expected_state) < 1e-6
    assert not o[:, 70:].any()
    cut, cut_state = gdn.chunk_kda(**call, cu_seqlens=boundaries, output_final_state=True, segment_length=32)
    assert rms_error(cut, expected) < 1e-6 and rms_error(cut_state, expected_state) < 1e-6


def test_pool():
    call, pool = make(), make_inputs(B=5, H=H, HV=HV, K=K, V=V, seed=1).state
    rows, before = np.array([3, -1], np.int32), pool.copy()
    o, _ = gdn.chunk_kda(**call, initial_state=pool, final_state=pool, state_indices=rows)
    expected, expected_state = gated_delta_rule(**call, initial_state=before[rows])
    assert rms_error(o[0], expected[0]) < 1e-6 and rms_error(pool[3], expected_state[0]) < 1e-6
    assert not o[1].any() and (pool[[0, 1, 2, 4]] == before[[0, 1, 2, 4]]).all()


def test_strides():
    """Gates that are a view: as [B, HV, K, T] in memory."""
    call = make()
    expected, _ = gdn.chunk_kda(**call)
    call["g"] = call["g"].transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    assert (gdn.chunk_kda(**call)[0] == expected).all()


def test_explained():
    choice = gdn.explain(**make(), function="chunk_kda")
    assert choice.function == "chunk_kda" and "channel_f32" in choice.kernel
    assert gdn.supported(**make(), function="fused_recurrent_kda")


def test_wrong_calls():
    call = make()
    with pytest.raises(ValueError, match=r"g: expected the shape \[B, T, HV, K\], got \[2, 75, 4\]"):
        gdn.chunk_kda(**{**call, "g": call["g"][..., 0]})
    with pytest.raises(ValueError, match=r"g: expected the shape \[B, T, HV, K\] = \[2, 75, 4, 64\]"):
        gdn.chunk_kda(**{**call, "g": call["g"][..., :5]})
    with pytest.raises(ValueError, match="`chunk_size` must be either 32 or 64 for KDA, got 16"):
        gdn.chunk_kda(**call, chunk_size=16)
    with pytest.raises(ValueError, match="`A_log` must be provided"):
        gdn.chunk_kda(**call, use_gate_in_kernel=True)
    with pytest.raises(ValueError, match="`lower_bound` must be specified"):
        gdn.chunk_kda(**call, use_gate_in_kernel=True, safe_gate=True)
    A_log = np.zeros(HV, np.float32)
    raw = {**call, "use_gate_in_kernel": True, "A_log": A_log}
    with pytest.raises(ValueError, match=r"safe range \[-5, 0\), got -6"):
        gdn.chunk_kda(**raw, safe_gate=True, lower_bound=-6.0)
    with pytest.raises(ValueError, match="lower_bound: expected a finite number below 0, got 1"):
        gdn.chunk_kda(**raw, lower_bound=1)
    with pytest.raises(ValueError, match=r"dt_bias: expected the shape \[HV \* K\] = \[256\], got \[4\]"):
        gdn.chunk_kda(**raw, dt_bias=A_log)
    with pytest.raises(ValueError, match=r"dt_bias: expected the shape \[HV \* K\] = \[256\], got \[4\]"):
        gdn.chunk_kda(**raw, dt_bias=A_log, lower_bound=-5)
    with pytest.raises(NotImplementedError, match="return_intermediate_states"):
        gdn.chunk_kda(**call, return_intermediate_states=True)


def test_torch():
    torch = pytest.importorskip("torch")
    call = {name: torch.from_numpy(x) for name, x in make().items()}
    call["g"] = call["g"].bfloat16()
    expected, _ = gated_delta_rule(**{name: x.float().numpy() for name, x in call.items()})
    o, _ = gdn.chunk_kda(**call)
    assert rms_error(o.numpy(), expected) < 1e-6
    token, _ = gdn.fused_recurrent_gated_delta_rule(
        call["q"], call["k"], call["v"], gk=call["g"], beta=call["beta"]
    )
    assert rms_error(token.numpy(), expected) < 1e-6
    raw = {"A_log": torch.rand(HV), "dt_bias": torch.rand(HV * K), "lower_bound": -5.0, "use_gate_in_kernel": True}
    o, _ = gdn.chunk_kda(**call, **raw)
    words = {"A_log": raw["A_log"].numpy(), "dt_bias": raw["dt_bias"].numpy(), "lower_bound": -5.0}
    given = {name: x.float().numpy() for name, x in call.items()}
    expected, _ = gated_delta_rule(**given, gate_domain="bounded", **words)
    assert rms_error(o.numpy(), expected) < 1e-6


def test_compiled():
    torch = pytest.importorskip("torch")
    call = {name: torch.from_numpy(x) for name, x in make().items()}
    compiled = torch.compile(gdn.chunk_kda, backend="eager", fullgraph=True)
    o, _ = compiled(**call)
    assert torch.equal(o, gdn.chunk_kda(**call)[0])


def test_flash_kda():
    """FlashKDA's call: all transforms inside, states [V, K], outputs where the caller has them."""
    import gdn.flash_kda

    call, random = make(), np.random.default_rng(3)
    call["g"], call["beta"] = (random.standard_normal(call[name].shape, np.float32) for name in ("g", "beta"))
    A_log, dt_bias = random.standard_normal(HV, np.float32), random.standard_normal((HV, K), np.float32)
    initial = make_inputs(B=B, H=H, HV=HV, K=K, V=V, v_first=True, seed=1).state
    out, final = np.empty_like(call["v"]), np.empty_like(initial)
    gdn.flash_kda.fwd(
        *call.values(), 0.2, out, A_log, dt_bias, -4.0, initial_state=initial, final_state=final
    )
    expected, expected_state = gated_delta_rule(
        **call, scale=0.2, initial_state=initial, l2norm=True, gate_domain="bounded", A_log=A_log, dt_bias=dt_bias,
        lower_bound=-4.0, beta_domain="logit", v_first=True,
    )  # fmt: skip
    assert rms_error(out, expected) < 1e-6 and rms_error(final, expected_state) < 1e-6
