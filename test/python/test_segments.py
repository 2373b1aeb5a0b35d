# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences that are cut into segments: on a CPU the same function, whatever the segments are."""

import numpy as np
import pytest
import torch
from reference import gated_delta_rule

import gdn


def inputs(B=1, T=300, H=2, HV=4, K=128, V=128, sequences=None, seed=0):
    """Arrays of a call by name."""
    random = np.random.default_rng(seed)
    normal = lambda *shape: random.standard_normal(shape).astype("float32")  # noqa: E731
    k = normal(B, T, H, K)
    return {
        "q": normal(B, T, H, K),
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": normal(B, T, HV, V),
        "g": -random.exponential(0.02, (B, T, HV)).astype("float32"),
        "beta": random.random((B, T, HV), "float32"),
        "initial_state": normal(sequences or B, HV, K, V),
    }


def distance(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max()


def both(call, **split):
    """A call with and without segments."""
    return (
        gdn.chunk_gated_delta_rule(**call, output_final_state=True, **split),
        gdn.chunk_gated_delta_rule(**call, output_final_state=True, context_parallel=False),
    )


PACKED = np.array([0, 0, 130, 131, 131, 300, 300], "int32")
SPLITS = [{"context_parallel": 2}, {"context_parallel": 7}, {"segment_length": 32}, {"segment_length": 128}]


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_same_function(split, packed):
    """GVA, batch rows or packed sequences with empty ones, states before and after."""
    call = inputs(sequences=6) | {"cu_seqlens": PACKED} if packed else inputs(B=2)
    (o, state), (whole_o, whole_state) = both(call, **split)
    assert distance(o, whole_o) < 1e-6
    assert distance(state, whole_state) < 1e-6


@pytest.mark.parametrize("K,V", [(64, 128), (128, 64), (40, 24)])
def test_channels(K, V):
    (o, state), (whole_o, whole_state) = both(inputs(K=K, V=V), segment_length=64)
    assert distance(o, whole_o) < 1e-6
    assert distance(state, whole_state) < 1e-6


def test_forms():
    """States [V, K], raw gates, logits, norms, a scale and keys of low rank, against float64."""
    call = inputs()
    rank16 = np.random.default_rng(1).standard_normal((16, 128)).astype("float32")
    call["k"] = call["k"][..., :16] @ rank16
    call |= {"A_log": np.zeros(4, "float32"), "dt_bias": np.ones(4, "float32")}
    call["initial_state"] = np.ascontiguousarray(call["initial_state"].swapaxes(2, 3))
    o, state = gdn.chunk_gated_delta_rule(
        **call, output_final_state=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        use_qk_l2norm_in_kernel=True, state_layout="vk", scale=0.3, context_parallel=5,
    )  # fmt: skip
    want_o, want_state = gated_delta_rule(
        **call, scale=0.3, l2norm=True, gate_domain="raw", beta_domain="logit", v_first=True
    )
    assert distance(o, want_o) < 1e-5
    assert distance(state, want_state) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_torch(dtype):
    """The same by torch, in place of the initial state, and through the operator."""
    call = {name: torch.from_numpy(array) for name, array in inputs().items()}
    for name in "qkv":
        call[name] = call[name].to(dtype)
    state = call["initial_state"]
    (o, _), (whole_o, whole_state) = both(call | {"initial_state": state.clone()}, context_parallel=4)
    gdn.chunk_gated_delta_rule(**call, final_state=state, context_parallel=4)
    bound = 1e-6 if dtype == torch.float32 else 2e-2
    assert distance(o.float(), whole_o.float()) < bound
    assert distance(state, whole_state) < bound
    compiled = torch.compile(
        lambda: gdn.chunk_gated_delta_rule(**call, context_parallel=4)[0], fullgraph=True, backend="eager"
    )
    assert torch.equal(compiled(), gdn.chunk_gated_delta_rule(**call, context_parallel=4)[0])


def test_neighbours():
    """With segments of a length a sequence does not depend on those beside it, bit for bit, wherever it begins."""
    call = inputs(T=300, sequences=3)
    o, state = gdn.chunk_gated_delta_rule(
        **call, cu_seqlens=np.array([0, 71, 210, 300], "int64"), output_final_state=True, segment_length=64
    )
    alone = {name: array[:, 71:210] for name, array in call.items()} | {"initial_state": call["initial_state"][1:2]}
    alone_o, alone_state = gdn.chunk_gated_delta_rule(**alone, output_final_state=True, segment_length=64)
    assert np.array_equal(o[:, 71:210], alone_o)
    assert np.array_equal(state[1:2], alone_state)


@pytest.mark.parametrize("words", [{"context_parallel": 1}, {"context_parallel": True}, {"context_parallel": None}])
def test_no_segments(words):
    call = inputs()
    for one, other in zip(gdn.chunk_gated_delta_rule(**call, **words), gdn.chunk_gated_delta_rule(**call)):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "words,kind,message",
    [
        ({"context_parallel": -1}, ValueError, "context_parallel: expected 0 to 2^32 - 1 segments, got -1"),
        ({"context_parallel": 2.0}, TypeError, "context_parallel: expected an integer, a boolean or None, got float"),
        ({"segment_length": 40}, ValueError, "segment_length: expected a multiple of 32 of at most 2^32 - 1, got 40"),
        ({"segment_length": 0}, ValueError, "segment_length: expected a multiple of 32 of at most 2^32 - 1, got 0"),
        ({"segment_length": True}, TypeError, "segment_length: expected an integer or None, got bool"),
        (
            {"segment_length": 64, "context_parallel": 2},
            ValueError,
            "segment_length: expected None with context_parallel=2",
        ),
    ],
)
def test_wrong_words(words, kind, message):
    with pytest.raises(kind) as error:
        gdn.chunk_gated_delta_rule(**inputs(T=8), **words)
    assert str(error.value) == message
