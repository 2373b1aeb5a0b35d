# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls in segments on a GPU that is not there: when they are chosen, what they launch, what they refuse.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import re
import threading

import pytest
import torch
from fake_cuda import Tensor
from hopper_checks import driver, run, tensors
from relayout_checks import convolved

import gdn
from gdn import _library

KERNELS = 6
LAUNCH = "cuLaunchKernelEx"


def launches(arguments, **words):
    before = driver.count(LAUNCH)
    run(arguments, **words)
    return driver.count(LAUNCH) - before


def explain(HV, T, B=1, N=None, **words):
    """The choice for a call with states."""
    q, v = (torch.empty(B, T, heads, 128, dtype=torch.bfloat16, device="meta") for heads in (1, HV))
    g = torch.empty(B, T, HV, device="meta")
    if N:
        words["cu_seqlens"] = torch.empty(N + 1, dtype=torch.int32, device="meta")
    return gdn.explain(q, q, v, g, g, device="cuda", output_final_state=True, **words)


@pytest.mark.parametrize("N", [None, 3])
@pytest.mark.parametrize("boundaries", ["int32", "int64"])
def test_launches(N, boundaries):
    """Six kernels; the last one has two turns of a CTA for each segment and head. A seventh copies states that others
    replace: those of first segments are read while last ones may be done."""
    call = tensors(N=N, T=4096, boundaries=boundaries)
    assert launches(call, options=_library.NO_SEGMENTS) == 1
    assert launches(call, options=_library.pack_segment_length(256)) == KERNELS
    segments = 4096 // 256 + (N or 1) - 1
    assert list(driver.last_launch.config.grid) == [2 * 4 * segments, 1, 1]
    # A call like it, and one in the caller's states.
    assert launches(call, options=_library.pack_segment_length(256)) == KERNELS
    state = Tensor("float32", N or 1, 4, 128, 128)
    state.address = call["initial_state"].address
    assert launches({**call, "final_state": state}, options=_library.pack_segments(4)) == KERNELS + 1


@pytest.mark.parametrize("initial,final", [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("options", [0, 1 << 5])
def test_ends(initial, final, options):
    call = tensors(T=512, initial=initial, final=final)
    assert launches(call, options=options | _library.pack_segments(2)) == KERNELS


def test_one_long_sequence_of_few_heads():
    """The model cuts it, says so, and what it predicts with and without."""
    choice = explain(8, 32768)
    assert choice.split.splits and not choice.split.forced
    assert choice.seconds == pytest.approx(choice.split.seconds)
    assert choice.split.seconds < 0.97 * choice.split.whole_seconds
    assert choice.split.longest * choice.split.length >= 32768
    assert "segments " in str(choice)
    assert launches(tensors(HV=8, T=32768)) == KERNELS


def test_parts():
    """Four segments of 32 heads find room at once. Their maps are made of halves, and they are launched behind these."""
    choice = explain(32, 32768)
    assert choice.split.splits and (choice.split.longest, choice.split.parts, choice.split.late) == (4, 2, True)
    assert "own_late" in choice.kernel and "in 2 parts" in str(choice)
    entries = 4 * 2 * 32 * 128 * 128
    assert 0 <= choice.workspace_bytes - entries * (2 + 4 + 4) - 2 * 8 * 32 * 4 < 8 * 256
    assert launches(tensors(HV=32, T=32768)) == KERNELS
    assert list(driver.last_launch.config.grid) == [2 * 32 * 4, 1, 1]
    # More segments than multiprocessors begin beside the scan.
    assert not explain(8, 32768, context_parallel=20).split.late


def test_two_lengths():
    """The device takes shorter segments where some heads keep their states. A caller's numbers are one length, and so
    is what a call without gates is cut into."""
    choice = explain(8, 32768)
    split = choice.split
    assert (split.length, split.longer_length, split.parts, split.late) == (1152, 2048, 1, False)
    assert "1152 tokens (or 2048, by their gates)" in str(choice)
    assert launches(tensors(HV=8, T=32768)) == KERNELS
    assert list(driver.last_launch.config.grid) == [2 * 8 * choice.split.segments, 1, 1]
    for words in ({"context_parallel": 16}, {"segment_length": 2048}):
        assert explain(8, 32768, **words).split.longer_length == 0
    q, v = (torch.empty(1, 32768, heads, 128, dtype=torch.bfloat16, device="meta") for heads in (2, 8))
    choice = gdn.explain(q, q, v, None, torch.empty(1, 32768, 8, device="meta"), device="cuda", output_final_state=True)
    assert choice.split.longer_length == 0


@pytest.mark.parametrize("HV,T,N", [(64, 32768, 4), (8, 32768, 8), (16, 8192, 4)])
def test_work_for_all(HV, T, N):
    """Enough sequences and heads: nothing is cut."""
    choice = explain(HV, T, N=N)
    assert not (choice.split and choice.split.splits)
    assert launches(tensors(HV=HV, T=T, N=N)) == 1


def test_skewed_batch():
    """One long sequence among short ones is cut if the caller says that it is there."""
    assert not explain(8, 33792, N=9).split.splits
    choice = explain(8, 33792, N=9, max_seqlen=32768)
    assert choice.split.splits
    # Short sequences are segments of their own.
    assert choice.split.segments == choice.split.longest + 8


def test_no_gates():
    """A call without gates is judged as one that decays nothing, and not as one of the usual gates."""
    differ = False
    for heads in range(8, 65, 8):
        q, v = (torch.empty(1, 32768, n, 128, dtype=torch.bfloat16, device="meta") for n in (8, heads))
        beta = torch.empty(1, 32768, heads, device="meta")
        splits = [gdn.explain(q, q, v, g, beta, device="cuda").split for g in (None, beta)]
        for split, first in zip(splits, (0.0, 1e-9)):
            assert split is None or (split.slow_gate_seconds == 0) == (first == 0), heads
        differ |= [bool(split and split.splits) for split in splits] == [False, True]
    assert differ


def test_forced():
    """`context_parallel` and `segment_length` decide, whatever is faster."""
    assert explain(8, 32768, context_parallel=False).split is None
    assert explain(64, 512, context_parallel=4).split.length == 128
    assert explain(64, 512, context_parallel=4).split.forced
    lengths = [explain(heads, tokens, segment_length=96) for heads, tokens in ((8, 32768), (64, 64))]
    assert {choice.split.length for choice in lengths} == {96}
    assert {choice.schedule for choice in lengths} == {"cta_per_head"}


#: Calls of one token and of many, of few sequences and of many, as batch rows and packed. The fourth one fills the
#: multiprocessors with long segments.
SIZES = [
    {"T": 1}, {"T": 17}, {"T": 200, "B": 2}, {"T": 32768, "HV": 32}, {"T": 65536, "N": 2}, {"T": 40, "N": 3},
    {"T": 4096, "N": 64},
]  # fmt: skip


def kernels_by_size(dtype, states, options):
    """The kernels that calls of each size launch. That which cuts is another one for batch rows."""
    found = set()
    for sizes in SIZES:
        call = tensors(dtype=dtype, **sizes)
        call |= {name: Tensor(states, *call[name].shape) for name in ("initial_state", "final_state")}
        names = driver.kernels_of(lambda: run(call, options=options))
        found.add(tuple(re.sub("boundaries_[0-9a-f]+", "boundaries", name) for name in names))
    return found


@pytest.mark.parametrize("length", [64, 8192])
@pytest.mark.parametrize("dtype,states", [
    ("bfloat16", "float32"), ("bfloat16", "bfloat16"), pytest.param("float16", "float32", marks=pytest.mark.full)
])  # fmt: skip
def test_no_length_chooses_a_kernel(dtype, states, length):
    """With `segment_length` the kernels are the same whatever sequences there are, and without they are not."""
    (names,) = kernels_by_size(dtype, states, _library.pack_segment_length(length))
    assert len(names) == KERNELS
    assert len(kernels_by_size(dtype, states, 0)) > 1


def test_workspace():
    """As docs/Segments.md says: maps of 16 bits, two states of 32, and boundaries."""
    choice = explain(8, 32768, segment_length=2048)
    entries = 16 * 8 * 128 * 128
    assert 0 <= choice.workspace_bytes - entries * (2 + 4 + 4) - 2 * 16 * 8 * 4 - 18 * 4 < 7 * 256
    assert explain(8, 32768, context_parallel=1).workspace_bytes == 0


def test_copied_inputs():
    """Copies and segments have memory of their own each. (Without an allocator the call once waited for itself.)"""
    before, options = driver.count(LAUNCH), _library.pack_segments(2)
    call = threading.Thread(target=run, args=(tensors(**convolved()),), kwargs={"options": options}, daemon=True)
    call.start()
    call.join(60)
    assert not call.is_alive() and driver.count(LAUNCH) - before == KERNELS + 1


def test_rows_with_gaps():
    """Batch rows must lie one behind the other: the model leaves others whole, and a wish is refused."""
    call = tensors(B=2, T=32768, HV=4)
    call["v"] = Tensor("bfloat16", 2, 32768, 4, 128, strides=[32768 * 4 * 128 + 512, 512, 128, 1])
    assert launches(call) == 1
    wishes = {"context_parallel": _library.pack_segments(2), "segment_length": _library.pack_segment_length(64)}
    for name, options in wishes.items():
        with pytest.raises(NotImplementedError, match=f"{name}: expected batch rows of v"):
            run(call, options=options)


def test_forms_without_kernels():
    """Kernels token by token cannot be split."""
    call = tensors(T=512, dtype="float32")
    for options, message in (
        (_library.pack_segments(2), "context_parallel: expected a form .* pass False"),
        (_library.pack_segment_length(64), "segment_length: expected a form .* pass None"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            run(call, options=options)


def test_options_that_nobody_packs():
    with pytest.raises(ValueError, match="segment_length: expected a multiple of 32 tokens, got 40"):
        run(tensors(T=512), options=_library.pack_segment_length(40))
