# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""With `bitwise` prefills in pieces, decoding and training have the same bits, on a CPU; and what such calls refuse."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bitwise_cases  # noqa: E402

import gdn  # noqa: E402
from gdn import _bitwise, _library, _torch  # noqa: E402

PARTS = 10


@pytest.mark.parametrize("by_token", [None, False])
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, PARTS))])
def test_random_batches(part, by_token):
    """Packed, in pieces and decoded, as a whole with gradients and without; in open chunks, as on a GPU, and alone."""
    faults = []
    for seed in range(part, bitwise_cases.COUNT, PARTS):
        batch = bitwise_cases.make_bitwise_batch(seed)
        faults += [f"{fault}: {batch}" for fault in bitwise_cases.check(batch, by_token=by_token)]
    assert not faults, "\n".join([f"{len(faults)} differences, of which", *faults[:5]])


def make_call(T, rows=1, is_kda=False):
    torch.manual_seed(T)
    q, v = torch.randn(rows, T, 2, 32) / 6, torch.randn(rows, T, 2, 32)
    gates = (rows, T, 2, 32) if is_kda else (rows, T, 2)
    return {"q": q, "k": q.roll(1, 1), "v": v, "g": -torch.rand(gates), "beta": torch.rand(rows, T, 2)}


@pytest.mark.parametrize("by_token", [None, False])
def test_kimi_delta_attention(by_token):
    """Through full chunks, two of them."""
    call, words = make_call(150, rows=2, is_kda=True), {"use_qk_l2norm_in_kernel": True}
    whole, _ = gdn.chunk_kda(**call, **words, bitwise=True)
    chunks = gdn.OpenChunks(torch.zeros(2, 2, 32, 32), **words)
    chunks._by_token = by_token
    parts = [chunks.prefill(*(x[:, :5] for x in call.values()))]
    parts += [chunks.decode(*(x[:, t : t + 1] for x in call.values())) for t in range(5, 150)]
    assert torch.equal(torch.cat(parts, 1), whole)
    assert chunks.tokens.tolist() == [150 % 64 * (by_token is False)] * 2


def test_arrays_and_plain_decoding():
    """NumPy's arrays have torch's bits, and on a CPU so has the function of decoding."""
    call = make_call(100)
    o, state = gdn.chunk_gated_delta_rule(**call, bitwise=True, output_final_state=True)
    arrays = {name: x.numpy() for name, x in call.items()}
    for function, words in ((gdn.chunk_gated_delta_rule, {"bitwise": True}), (gdn.fused_recurrent_gated_delta_rule, {})):
        found = function(**arrays, **words, output_final_state=True)
        assert np.array_equal(found[0], o.numpy()) and np.array_equal(found[1], state.numpy())
    choice = gdn.explain(**call, bitwise=True)
    assert choice.algorithm == "recurrent" and gdn.explain(**call).algorithm == "chunk"


@pytest.mark.parametrize("kind,message,words", [
    (ValueError, "bitwise: expected no segments", {"segment_length": 64}),
    (ValueError, "bitwise: expected no segments", {"context_parallel": 2}),
    (TypeError, "initial_state: expected float32 with bitwise=True, got torch.bfloat16", {"initial_state": torch.bfloat16}),
    (TypeError, "final_state: expected float32 with bitwise=True, got torch.float16", {"final_state": torch.float16}),
])  # fmt: skip
def test_wrong_calls(kind, message, words):
    words = {name: torch.zeros(1, 2, 32, 32, dtype=x) if isinstance(x, torch.dtype) else x for name, x in words.items()}
    with pytest.raises(kind, match=message):
        gdn.chunk_gated_delta_rule(**make_call(10), bitwise=True, **words)


def test_wrong_chunks():
    with pytest.raises(TypeError, match="states: expected a torch.Tensor, got ndarray"):
        gdn.OpenChunks(np.zeros((1, 2, 32, 32), "float32"))
    chunks, call = gdn.OpenChunks(torch.zeros(2, 2, 32, 32)), make_call(10)
    with pytest.raises(ValueError, match="q: expected tokens of 2 sequences, got 1"):
        chunks.prefill(**call)
    chunks._by_token = False
    chunks.prefill(**call, cu_seqlens=torch.tensor([0, 4, 10]))
    with pytest.raises(ValueError, match="expected sequences at the begin of a chunk of 64 tokens, got one inside"):
        chunks.prefill(**call, cu_seqlens=torch.tensor([0, 4, 10]))


@pytest.fixture
def like_a_gpu(monkeypatch):
    """A CPU does as a GPU would; what stands for the kernels that save goes token by token."""
    ran = []

    def save(*arguments):
        names = ("q", "k", "v", "g", "beta", "A_log", "dt_bias", "initial_state", "cu_seqlens", "out", "final_state")
        given, (writes, states, scale, options, threads, longest) = dict(zip(names, arguments)), arguments[-6:]
        assert writes.shape == given["v"].shape and len(states) == given["q"].shape[1] // 128 + len(given["cu_seqlens"]) - 1
        assert scale is None and (threads, longest) == (1, 0) and given["q"].shape[0] == 1
        v_first = bool(_library.state_is_v_first(options))
        gdn.fused_recurrent_gated_delta_rule(**given, state_v_first=v_first)
        ran.append(options)

    settled = _bitwise.settled
    monkeypatch.setattr(_bitwise, "settled", lambda call, _: settled(call, "cuda"))
    monkeypatch.setattr(_torch, "_compute_on_cpu", _torch._compute_on_gpu)
    monkeypatch.setattr(_library.load(), "forward_saving", save)
    return ran


def test_what_a_gpu_runs(like_a_gpu):
    """Rows and packed sequences, outputs of the caller's in any strides; chunks that are decoded."""
    torch.manual_seed(0)
    q, v = torch.randn(2, 150, 1, 128).bfloat16() / 11, torch.randn(2, 150, 2, 128).bfloat16()
    call = {"q": q, "k": q, "v": v, "g": -torch.rand(2, 150, 2), "beta": torch.rand(2, 150, 2)}
    initial = torch.randn(2, 2, 128, 128)
    for v_first in (True, False):
        words = {"initial_state": initial, "output_final_state": True, "state_v_first": v_first}
        o, state = gdn.fused_recurrent_gated_delta_rule(**call, **words)
        wide, final = torch.zeros(2, 150, 4, 128).bfloat16()[:, :, ::2], torch.zeros_like(initial)
        for outputs in ({}, {"out": wide, "final_state": final}):
            found = gdn.chunk_gated_delta_rule(**call, **words, **outputs, bitwise=True)
            assert torch.equal(found[0], o) and torch.equal(found[1], state)
        assert found[0] is wide and found[1] is final
    packed = {name: x.flatten(0, 1)[None] for name, x in call.items()}
    found, none = gdn.chunk_gated_delta_rule(**packed, cu_seqlens=torch.tensor([0, 150, 300]), initial_state=initial, bitwise=True)
    assert torch.equal(found.view(o.shape), o) and none is None
    chunks = gdn.OpenChunks(initial.clone())
    parts = [chunks.prefill(*(x[:, :70] for x in call.values()))]
    parts += [chunks.decode(*(x[:, t : t + 1] for x in call.values())) for t in range(70, 150)]
    assert torch.equal(torch.cat(parts, 1), o) and chunks.tokens.tolist() == [22, 22]
    assert len(like_a_gpu) == 5 + 2 + 80 and set(map(_library.segments_of, like_a_gpu)) == {_library.BITWISE}
    with pytest.raises(NotImplementedError, match="bitwise: expected no state_indices"):
        gdn.chunk_gated_delta_rule(**call, initial_state=initial, state_indices=torch.tensor([0, 1]), bitwise=True)
    # A gate a channel is computed token by token, in packed sequences.
    gates, out = -torch.rand(2, 150, 2, 128), torch.zeros_like(v)
    words = {"q": v, "k": v / 11, "v": v, "g": gates, "beta": call["beta"]}
    found, _ = gdn.chunk_kda(**words, bitwise=True, out=out)
    assert found is out and torch.equal(out, gdn.fused_recurrent_kda(**words)[0]) and len(like_a_gpu) == 87
