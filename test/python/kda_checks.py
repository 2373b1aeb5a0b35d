# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kimi Delta Attention on a GPU that is not there: which kernels run, and what they are given.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import pytest
from hopper_checks import meta

import gdn

torch = pytest.importorskip("torch")


def explain(T=1, B=8, dtype="bfloat16", gates="float32", state="float32", layout="vk", function="fused_recurrent_kda", **words):
    """A token of sequences with 4 heads of 128 channels."""
    q, g = meta(B, T, 4, 128, dtype=dtype), meta(B, T, 4, 128, dtype=gates)
    beta, state = meta(B, T, 4, dtype=gates), meta(B, 4, 128, 128, dtype=state)
    return gdn.explain(
        q, q, q, g, beta, initial_state=state, output_final_state=True, state_v_first=layout == "vk", device="cuda",
        function=function, **words,
    )  # fmt: skip


@pytest.mark.parametrize("layout", ["kv", "vk"])
def test_tokens(layout):
    choice = explain(layout=layout)
    assert choice.kernel == f"gdn_hopper_channel_bf16_fixed_both_{layout}_f32_log_f32_value_f32_plain_token"
    assert not choice.conversions and not choice.copies


@pytest.mark.parametrize("bound,name", [(None, "raw"), (-5, "bounded")])
@pytest.mark.parametrize("shape", [(4 * 128,), (4, 128)])
def test_raw_gates(bound, name, shape):
    """Biases of all channels in a row, and by head."""
    parameters = {"A_log": meta(4, dtype="float32"), "dt_bias": meta(*shape, dtype="float32")}
    q, beta, state = meta(1, 9, 4, 128), meta(1, 9, 4), meta(9, 4, 128, 128, dtype="float32")
    choice = gdn.explain(
        q, q, q, q, beta, **parameters, lower_bound=bound, initial_state=state, output_final_state=True,
        state_v_first=True, use_gate_in_kernel=True, use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        cu_seqlens=meta(10, dtype="int32"), device="cuda", function="fused_recurrent_kda",
    )  # fmt: skip
    assert choice.kernel == f"gdn_hopper_channel_bf16_packed_both_vk_f32_{name}_bf16_logit_bf16_l2_token"
    assert not choice.conversions


def test_conversions():
    """Gates in 16 bits become float32, row by row."""
    (conversion, *_) = explain(gates="bfloat16").conversions
    assert "g" in conversion.what and conversion.bytes == pytest.approx(8 * 4 * 128 * (2 + 4))


def test_raw_gates_of_other_types():
    """Gates become float32, and logits values: kernels take neither together as they are."""
    parameters = {"A_log": meta(4, dtype="float32"), "dt_bias": meta(4 * 128, dtype="float32")}
    q, beta = meta(2, 9, 4, 128), meta(2, 9, 4)
    choice = gdn.explain(
        q, q, q, q, beta, **parameters, initial_state=meta(2, 4, 128, 128, dtype="float32"), output_final_state=True,
        use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True, state_v_first=True, device="cuda",
        function="fused_recurrent_kda",
    )  # fmt: skip
    assert choice.kernel == "gdn_hopper_channel_bf16_fixed_both_vk_f32_raw_f32_value_f32_plain_token"
    assert [conversion.what.split()[0] for conversion in choice.conversions] == ["g", "beta"]


def explain_long(**words):
    """Two packed sequences of 4096 tokens and 4 heads."""
    q, g, beta = meta(1, 4096, 4, 128), meta(1, 4096, 4, 128, dtype="float32"), meta(1, 4096, 4, dtype="float32")
    return gdn.explain(q, q, q, g, beta, cu_seqlens=meta(3, dtype="int32"), device="cuda", function="chunk_kda", **words)


def test_long_sequences():
    """Run by chunks, whatever states they have, of kernels that look whether gates are bounded."""
    choice = explain_long(context_parallel=False)
    assert choice.kernel.startswith("gdn_hopper_channel_bf16_packed_any_f32_log_f32_value_f32_plain_looking_cta_per_")
    assert choice.algorithm == "chunk" and choice.split is None


@pytest.mark.parametrize("words", [{}, {"segment_length": 256}, {"context_parallel": 4}])
def test_segments(words):
    """Few heads leave multiprocessors idle, so the model cuts; segments have their own starts. With segment_length no
    kernel looks at gates of other sequences."""
    choice = explain_long(**words)
    starts = "own" if "segment_length" in words else "looking_own"
    assert choice.kernel.startswith(f"gdn_hopper_channel_bf16_packed_any_f32_log_f32_value_f32_plain_{starts}")
    assert choice.split is not None


@pytest.mark.parametrize("heads,lengths", [(32, (4096, 8192)), (12, (768, 0)), (64, None)])
def test_two_lengths(heads, lengths):
    """The device leaves sequences whole whose heads keep their states, unless a cut pays for these, too."""
    q = meta(1, 8192, heads, 128)
    g, beta = meta(1, 8192, heads, 128, dtype="float32"), meta(1, 8192, heads, dtype="float32")
    words = {"cu_seqlens": meta(2, dtype="int32"), "device": "cuda", "function": "chunk_kda"}
    choice = gdn.explain(q, q, q, g, beta, output_final_state=True, **words)
    assert bool(choice.split and choice.split.splits) == (lengths is not None)
    assert lengths is None or (choice.split.length, choice.split.longer_length) == lengths
    assert ("own_two_lengths" in choice.kernel) == (heads == 32)


@pytest.mark.parametrize("shape", [(96 * 128,), (96, 128)])
def test_biases_of_gates_that_are_saved(shape):
    """Those of channels may lie in a row."""
    q = meta(1, 8192, 96, 128).requires_grad_()
    parameters = {"A_log": meta(96, dtype="float32"), "dt_bias": meta(*shape, dtype="float32")}
    choice = gdn.explain(
        q, q, q, q, meta(1, 8192, 96), **parameters, use_gate_in_kernel=True, use_qk_l2norm_in_kernel=True,
        use_beta_sigmoid_in_kernel=True, lower_bound=-5.0, device="cuda", function="chunk_kda",
    )  # fmt: skip
    assert choice.backward.saves == "states", choice.backward.why_inputs


def test_segments_are_refused():
    """256 channels have kernels token by token alone."""
    q, g, beta = meta(1, 512, 4, 256), meta(1, 512, 4, 256, dtype="float32"), meta(1, 512, 4, dtype="float32")
    with pytest.raises(NotImplementedError, match="g: expected .* on a GPU in this version, got"):
        gdn.explain(
            q, q, q, g, beta, cu_seqlens=meta(3, dtype="int32"), segment_length=256, device="cuda", function="chunk_kda"
        )


def test_what_is_refused():
    parameters = {"A_log": meta(4, dtype="float32"), "dt_bias": meta(4 * 128, dtype="float32")}
    q = meta(1, 8, 4, 128, dtype="float16")
    with pytest.raises(NotImplementedError, match="on a GPU in this version, got"):
        gdn.explain(
            q, q, q, q, meta(1, 8, 4, dtype="float16"), **parameters, use_gate_in_kernel=True, lower_bound=-5.0,
            device="cuda", function="chunk_kda",
        )  # fmt: skip
    q = meta(1, 8, 4, 128, dtype="float32").requires_grad_()
    with pytest.raises(NotImplementedError, match="with gates per channel on a GPU in this version, got q of float32"):
        gdn.explain(q, q, q, q, meta(1, 8, 4), device="cuda", function="chunk_kda")
