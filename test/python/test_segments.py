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


# ===----------------------------------------------------------------------===
# Maps of spans
# ===----------------------------------------------------------------------===


def spans(call, cuts):
    """k, v, g and beta of the tokens between cuts."""
    for begin, end in zip(cuts, cuts[1:]):
        yield {name: call[name][:, begin:end] for name in ("k", "v", "g", "beta")}


@pytest.mark.parametrize("layout", ["kv", "vk"])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_maps(library, layout):
    """The maps of four ranks, of several forms, put together: the final state and the output of each rank."""
    call = inputs(B=2, K=64, V=128)
    if layout == "vk":
        call["initial_state"] = np.ascontiguousarray(call["initial_state"].swapaxes(2, 3))
    call = {name: library(array) for name, array in call.items()}
    words = {"use_qk_l2norm_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "state_layout": layout}
    whole_o, whole_state = gdn.chunk_gated_delta_rule(**call, **words, output_final_state=True)
    cuts = [0, 70, 71, 71, 300]
    maps = [gdn.segment_map(**span, **words) for span in spans(call, cuts)]
    assert maps[0][0].shape == (2, 4, 64, 64)
    assert maps[0][1].shape == ((2, 4, 64, 128) if layout == "kv" else (2, 4, 128, 64))
    for rank, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        entry = gdn.compose(call["initial_state"], *maps[:rank], state_layout=layout)
        mine = {name: call[name][:, begin:end] for name in ("q", "k", "v", "g", "beta")}
        o, state = gdn.chunk_gated_delta_rule(**mine, **words, initial_state=entry, output_final_state=True)
        if end > begin:
            assert distance(o, whole_o[:, begin:end]) < 2e-6
        assert distance(state, gdn.compose(entry, maps[rank], state_layout=layout)) < 2e-6
    assert distance(state, whole_state) < 2e-6
    # Maps of neighbours make one map.
    pairs = [gdn.compose(*maps[:2], state_layout=layout), gdn.compose(*maps[2:], state_layout=layout)]
    together = gdn.compose(*maps, state_layout=layout)
    for map_, added in (gdn.compose(*pairs, state_layout=layout), together):
        assert distance(gdn.compose(call["initial_state"], (map_, added), state_layout=layout), whole_state) < 2e-6


def test_gradients_of_maps():
    """Those of the whole, through maps of two spans."""
    call = {name: torch.from_numpy(array) for name, array in inputs(T=90, K=32, V=16, HV=2).items()}
    wanted = [call[name].requires_grad_() for name in ("k", "v", "g", "beta", "initial_state")]
    _, whole = gdn.chunk_gated_delta_rule(**call, output_final_state=True)
    parts = gdn.compose(call["initial_state"], *(gdn.segment_map(**span) for span in spans(call, [0, 40, 90])))
    weights = torch.randn(whole.shape, generator=torch.Generator().manual_seed(0))
    for got, expected in zip(*(torch.autograd.grad(state, wanted, weights) for state in (parts, whole))):
        assert distance(got, expected) < 1e-5


def test_maps_of_packed_sequences():
    """A map for each sequence; that of an empty one is the identity."""
    call = inputs(sequences=6)
    span = {name: call[name] for name in ("k", "v", "g", "beta")}
    map_, added = gdn.segment_map(**span, cu_seqlens=PACKED)
    _, state = gdn.chunk_gated_delta_rule(**call, cu_seqlens=PACKED, output_final_state=True)
    assert map_.shape == (6, 4, 128, 128) and map_.dtype == np.float32
    assert distance(gdn.compose(call["initial_state"], (map_, added)), state) < 2e-6
    assert np.array_equal(map_[0], np.broadcast_to(np.eye(128), (4, 128, 128)))
    assert not added[0].any()


def test_keys_of_low_rank():
    """What keys never reach stays: the identity of M has no rounding. 16-bit data, float32 maps."""
    call = inputs(T=128, H=1, HV=1)
    rank16 = np.linalg.qr(np.random.default_rng(1).standard_normal((128, 16)))[0].T
    k = torch.from_numpy((call["k"][..., :16] @ rank16).astype("float32")).bfloat16()
    map_, _ = gdn.segment_map(k, torch.zeros(1, 128, 1, 128, dtype=torch.bfloat16), None, torch.full((1, 128, 1), 0.007))
    change = map_[0, 0].double() - torch.eye(128, dtype=torch.float64)
    # Of rank 16, as far as keys in bfloat16 are.
    assert torch.linalg.svdvals(change)[16] < 2e-3
    assert torch.linalg.svdvals(change)[0] < 1


@pytest.mark.parametrize(
    "function,kind,message",
    [
        (lambda x: gdn.segment_map(x, x, initial_state=x), TypeError, "initial_state: expected an argument that"),
        (lambda x: gdn.segment_map(x[0], x), ValueError, r"k: expected the shape \[B, T, H, K\], got \[8, 2, 16\]"),
        (lambda x: gdn.segment_map(x, x[0]), ValueError, r"v: expected the shape \[B, T, H, V\], got \[8, 2, 16\]"),
        (lambda x: gdn.segment_map(3, x), TypeError, "k: expected a tensor"),
        (lambda x: gdn.compose(x, x), TypeError, r"spans: expected pairs \(M, B\) of segment_map, got ndarray"),
        (lambda x: gdn.compose((x, x, x)), TypeError, r"first: expected a state or a pair \(M, B\), got 3 values"),
        (lambda x: gdn.compose(None, (x, x)), TypeError, "first: expected a tensor"),
        (lambda x: gdn.compose(x[0], (x, x)), ValueError, r"first: expected states \[N, HV, K, V\], got the shape"),
        (
            lambda x: gdn.compose(x[:, :1, :, :2], (x[..., :2], x[..., :2])), ValueError,
            r"spans: expected M and B of the shapes \[1, 1, 2, 2\] and \[1, 1, 2, 2\], as the states are, got \[1, 8",
        ),
        (lambda x: gdn.compose((x, x)), ValueError, r"first: expected M and B of the shapes \[1, 8, 2, 2\] and"),
        (
            lambda x: gdn.compose(x[..., :2], (x[..., :2],) * 2, (x[..., :2].astype("float64"),) * 2), TypeError,
            "spans: expected M and B of float32 as the states are, got float64",
        ),
        (lambda x: gdn.compose(x, state_layout="vv"), ValueError, "state_layout: expected 'kv' or 'vk', got 'vv'"),
    ],
)
def test_wrong_maps(function, kind, message):
    with pytest.raises(kind, match=message):
        function(np.zeros((1, 8, 2, 16), "float32"))
