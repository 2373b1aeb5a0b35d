# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What gdn.explain and gdn.supported say of calls that are converted for a GPU (as hopper_checks.py)."""

import itertools

import pytest
from hopper_checks import device  # noqa: F401

torch = pytest.importorskip("torch")
import gdn  # noqa: E402

CHUNK, TOKENS = "chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"


def explain(
    D=64, V=None, T=256, dtype=torch.float16, function=CHUNK, states=None, raw=False, ask=gdn.explain, **kwargs
):  # fmt: skip
    """Of 2 heads and 4 value heads."""
    make = {"device": "meta"}
    V = V or D
    q, v = torch.empty(1, T, 2, D, dtype=dtype, **make), torch.empty(1, T, 4, V, dtype=dtype, **make)
    gates = torch.empty(1, T, 4, **make)
    if states is not None:
        kwargs.update(initial_state=torch.empty(1, 4, D, V, dtype=states, **make), output_final_state=True)
    if raw:
        kwargs.update(use_gate_in_kernel=True, A_log=torch.empty(4, **make))
    return ask(q, q, v, gates, beta=gates, function=function, device="cuda", **kwargs)


def test_a_served_call_is_not_converted():
    choice = explain(D=128)
    assert choice.conversions == () and "converted" not in str(choice)


def test_channels():
    choice = explain(D=60, dtype=torch.bfloat16, states=torch.float32)
    assert choice.kernel_channels == 128 and choice.algorithm == "chunk"
    data, states, scaled, back = choice.conversions
    assert data.what == "q, k, v with zeros from K = 60, V = 60 to K = 128, V = 128"
    # What was given is read, and all is written.
    assert data.launches == 3 and data.bytes == 2 * 256 * (2 * 2 + 4) * (128 + 60)
    assert states.what.startswith("initial_state") and states.launches == 1
    assert back.what == "outputs back" and back.launches == 1 and back.bytes == 4 * 4 * (60 * 60 + 128 * 128)
    assert scaled.what == "o times 1.461 after the kernel" and scaled.bytes == 2 * 256 * 4 * (60 + 128)
    assert f"  {data.what}: 7.7e+05 bytes, 3 launches, " in str(choice)
    assert choice.seconds > sum(x.seconds for x in choice.conversions) > 0


def test_scales():
    """Those that kernels do not have, after the call: float16 may not hold what a smaller one would make fit."""
    q, g = torch.empty(1, 256, 4, 128, device="meta", dtype=torch.float16), torch.empty(1, 256, 4, device="meta")
    small, large = (gdn.explain(q, q, q, g, g, scale=scale, device="cuda").conversions for scale in (1e-3, 1.0))
    assert [x.what for x in small] == ["o times 0.01131 after the kernel; float16 must hold o with K^(-1/2)"]
    assert [x.what for x in large] == ["o times 11.31 after the kernel"]
    assert (small[0].bytes, small[0].launches) == (2 * 2 * q.numel(), 1)


def test_gates_and_beta():
    choice = explain(D=128, raw=True, allow_neg_eigval=True, use_beta_sigmoid_in_kernel=True)
    assert [x.what for x in choice.conversions] == [
        "g from raw to log gates", "beta from logits (of the doubled sigmoid) to values"
    ]
    assert [x.launches for x in choice.conversions] == [1, 1]


def test_short_types():
    """The function of tokens is computed in float32; that of chunks stays in 16 bits where it can."""
    tokens = explain(D=256, function=TOKENS, states=torch.float32)
    assert "_f32_" in tokens.kernel and tokens.conversions[0].what == "q, k, v from float16 to float32"
    assert "_f16_" in explain(D=64, states=torch.float32).kernel


@pytest.mark.parametrize("function,element", [(CHUNK, "bfloat16"), (TOKENS, "float32")])
def test_different_types(function, element):
    """Of q, k and v: they are computed in float32, and o gets the type that FLA gives it."""
    q, v = torch.empty(1, 4, 2, 128, device="meta"), torch.empty(1, 4, 4, 128, device="meta")
    gates, q, k = torch.empty(1, 4, 4, device="meta"), q.bfloat16(), q.half()
    choice = gdn.explain(q, k, v, gates, beta=gates, function=function, device="cuda")
    assert "_f32_" in choice.kernel
    assert [x.what for x in choice.conversions] == [
        "q, k, v from bfloat16 to float32", "q, k, v from float16 to float32", *["outputs back"] * (element != "float32")
    ]
    answer = gdn.supported(q.requires_grad_(), k, v, gates, gates, device="cuda")
    assert "gradients of q, k and v of one type on a GPU in this version, got bfloat16, float16, float32" in answer.reasons[0]


def test_few_tokens_take_small_heads():
    choice = explain(D=60, T=4, dtype=torch.bfloat16, states=torch.float32)
    assert choice.kernel_channels == 64 and choice.algorithm == "recurrent"


FORMS_BY_LENGTH = {
    "heads of 64 channels": {"states": torch.float32},
    "odd channels": {"D": 60},
    "raw gates without norms": {"D": 128, "raw": True},
    "logits": {"D": 128, "use_beta_sigmoid_in_kernel": True},
}


@pytest.mark.parametrize("form", FORMS_BY_LENGTH)
def test_no_length_chooses_a_form(form):
    """With `segment_length` a call of few tokens is converted as one of many is, to a form that has segments."""
    words = {"dtype": torch.bfloat16, "segment_length": 64, **FORMS_BY_LENGTH[form]}
    few, many = (explain(T=T, **words) for T in (4, 4096))
    assert (few.kernel, few.algorithm, few.kernel_channels) == (many.kernel, "chunk", 128)
    assert [x.what for x in few.conversions] == [x.what for x in many.conversions] != []


def test_no_length_brings_float32_to_segments():
    for T in (4, 4096):
        answer = explain(D=128, T=T, dtype=torch.float32, segment_length=64, ask=gdn.supported)
        assert "segment_length: expected a form" in answer.reasons[0]


@pytest.mark.full
@pytest.mark.parametrize("function", [CHUNK, TOKENS])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_form_is_supported(function, dtype):
    gates = [{}, {"gate_domain": "linear"}, {"raw": True}]
    betas = [{}, {"use_beta_sigmoid_in_kernel": True}, {"use_beta_sigmoid_in_kernel": True, "allow_neg_eigval": True}]
    states = [{}, {"output_final_state": True}, {"states": torch.float32}, {"states": dtype}]
    for D, norm, *options in itertools.product((1, 32, 64, 100, 128, 256), (False, True), gates, betas, states):
        kwargs = {name: value for option in options for name, value in option.items()}
        answer = explain(D, 64, 80, dtype, function, ask=gdn.supported, use_qk_l2norm_in_kernel=norm, **kwargs)
        assert answer.ok, (D, norm, kwargs, answer.reasons)
