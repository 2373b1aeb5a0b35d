# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""With `segment_length` the bits of a sequence's results and gradients depend on nothing beside it, on a CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import batch_cases  # noqa: E402

import gdn  # noqa: E402

PARTS = 10


@pytest.mark.parametrize("part", [*range(4), *(pytest.param(n, marks=pytest.mark.full) for n in range(4, PARTS))])
def test_random_batches(part):
    """Outputs, final states and gradients alone, packed in two orders, as a batch row, by one thread and by two."""
    faults = []
    for seed in range(part, batch_cases.COUNT, PARTS):
        batch = batch_cases.make_batch(seed)
        faults += [f"{fault}: {batch}" for fault in batch_cases.check(batch)]
    assert not faults, "\n".join([f"{len(faults)} differences, of which", *faults[:5]])


def make_call(T, dtype=torch.float32, K=64, requires_grad=False):
    torch.manual_seed(T)
    q, v = torch.randn(1, T, 1, K).to(dtype), torch.randn(1, T, 2, K).to(dtype)
    call = {"q": q / 8, "k": q / 8, "v": v, "g": -torch.rand(1, T, 2), "beta": torch.rand(1, T, 2)}
    return {name: x.requires_grad_(requires_grad) for name, x in call.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_length_chooses_a_kernel(dtype):
    """Short sequences run by chunks, too; without `segment_length` what is faster decides."""
    words = {"segment_length": 32}
    choices = {T: gdn.explain(**make_call(T, dtype), **words) for T in (0, 1, 17, 33, 300)}
    assert {choice.algorithm for choice in choices.values()} == {"chunk"}
    assert len({choice.kernel for choice in choices.values()}) == 1
    assert choices[1].alternatives == (("recurrent", "segment_length: no length of a sequence chooses the kernels"),)
    assert gdn.explain(**make_call(1, dtype)).algorithm == "recurrent"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_arrays(monkeypatch, threads):
    """NumPy's arrays get the bits of torch's tensors, by any number of threads."""
    monkeypatch.setenv("GDN_NUM_THREADS", threads)
    parts = [make_call(T) for T in (1, 40, 17, 90)]
    arrays = [{name: x.numpy() for name, x in part.items()} for part in parts]
    together = {name: np.concatenate([array[name] for array in arrays], 1) for name in arrays[0]}
    ends = np.cumsum([0, 1, 40, 17, 90], dtype="int32")
    words = {"segment_length": 64, "output_final_state": True}
    o, state = gdn.chunk_gated_delta_rule(**together, cu_seqlens=ends, **words)
    for n, part in enumerate(parts):
        alone, its_state = gdn.chunk_gated_delta_rule(**part, **words)
        assert np.array_equal(o[:, ends[n] : ends[n + 1]].view("int32"), alone.numpy().view("int32"))
        assert np.array_equal(state[n].view("int32"), its_state[0].numpy().view("int32"))


def test_channels_with_gaps():
    """Heads whose channels do not lie side by side are copied, and computed alike."""
    call = make_call(70, torch.bfloat16)
    apart = {name: x.repeat_interleave(2, -1)[..., ::2] if name in "qkv" else x for name, x in call.items()}
    assert apart["q"].stride(-1) == 2
    words = {"segment_length": 32, "output_final_state": True}
    for x, y in zip(gdn.chunk_gated_delta_rule(**call, **words), gdn.chunk_gated_delta_rule(**apart, **words)):
        assert torch.equal(x, y)
