# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose sequences name rows of a pool of states (`state_indices`): each has the bits of the call that is given
their states in the sequences' order."""

import math
import re

import numpy as np
import pytest
from reference import make_inputs

import gdn
import gdn.flashinfer

FUNCTIONS = (gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule)
#: Five sequences: one below the first state, one empty, one with no row of the pool.
LENGTHS, ROWS, STATES, FIRST = (40, 7, 0, 33, 20), (4, 0, 2, 6, 1), 6, 1


def inputs_of(inputs):
    return {name: getattr(inputs, name) for name in ("q", "k", "v", "g", "beta")}


def packed(seed=0, K=64, V=64):
    inputs = make_inputs(B=1, T=sum(LENGTHS) + 3, K=K, V=V, seed=seed)
    ends = np.cumsum((0, *LENGTHS))
    return {**inputs_of(inputs), "cu_seqlens": ends}


def pool_of(K=64, V=64, dtype=np.float32, v_first=False, gap=0, seed=1):
    """A pool whose rows lie `gap` elements apart."""
    shape = (4, V, K) if v_first else (4, K, V)
    size = int(np.prod(shape))
    values = np.random.default_rng(seed).standard_normal((STATES, size + gap)).astype(dtype)
    return values[:, :size].reshape(STATES, *shape) if not gap else np.lib.stride_tricks.as_strided(
        values, (STATES, *shape), (values.strides[0], *np.empty(shape, dtype).strides))  # fmt: skip


def gathered(function, inputs, pool, rows=ROWS, first=FIRST, flags=(True,) * len(ROWS), **options):
    """Outputs and pool of a call as the same call gives them that has the states in the sequences' order."""
    named = [first <= row < len(pool) for row in rows]
    begins = [known and flag for known, flag in zip(named, flags)]
    states = np.stack([pool[row] if has else np.zeros_like(pool[0]) for row, has in zip(rows, begins)])
    o, final = function(**inputs, initial_state=states, final_state=np.empty_like(states), **options)
    after = pool.copy()
    for n, (row, known) in enumerate(zip(rows, named)):
        begin, end = inputs["cu_seqlens"][n : n + 2]
        if known:
            after[row] = final[n]
        else:
            o[:, begin:end] = 0
    return o, after


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype,v_first,gap", [(np.float32, False, 0), (np.float32, True, 24), (np.float16, False, 8)])
def test_sequences_name_rows(function, index, dtype, v_first, gap):
    inputs, pool = packed(), pool_of(dtype=dtype, v_first=v_first, gap=gap)
    expected, after = gathered(function, inputs, pool, state_v_first=v_first)
    o, state = function(
        **inputs, initial_state=pool, final_state=pool, state_indices=np.array(ROWS, index), first_state=FIRST,
        state_v_first=v_first,
    )  # fmt: skip
    assert state is pool
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


@pytest.mark.parametrize("length", [None, 32])
def test_batch_rows(length):
    inputs = make_inputs(B=3, T=70)
    tensors = inputs_of(inputs)
    pool, rows = pool_of(), np.array([5, -1, 2], np.int32)
    given = np.zeros((3, *pool.shape[1:]), np.float32)
    given[0], given[2] = pool[5], pool[2]
    expected, final = gdn.chunk_gated_delta_rule(
        **tensors, initial_state=given, output_final_state=True, segment_length=length
    )
    expected[1] = 0
    before = pool.copy()
    o, _ = gdn.chunk_gated_delta_rule(
        **tensors, initial_state=pool, final_state=pool, state_indices=rows, segment_length=length
    )
    np.testing.assert_array_equal(o, expected)
    before[5], before[2] = final[0], final[2]
    np.testing.assert_array_equal(pool, before)


def test_segments_of_packed_sequences():
    inputs, pool = packed(), pool_of()
    expected, after = gathered(gdn.chunk_gated_delta_rule, inputs, pool, segment_length=32)
    o, _ = gdn.chunk_gated_delta_rule(
        **inputs, initial_state=pool, final_state=pool, state_indices=np.array(ROWS), first_state=FIRST,
        segment_length=32,
    )  # fmt: skip
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


#: Of the sequences with a row, the empty one and a long one begin with zeros.
FLAGS = (True, True, False, False, False)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("v_first,length", [(False, None), (True, 32)])
def test_sequences_begin_with_zeros(function, v_first, length):
    """Whatever their rows hold."""
    options = {"state_v_first": v_first, **({"segment_length": length} if function is FUNCTIONS[0] else {})}
    inputs, pool = packed(), pool_of(v_first=v_first)
    expected, after = gathered(function, inputs, pool, flags=FLAGS, **options)
    pool[[row for row, flag in zip(ROWS, FLAGS) if FIRST <= row < STATES and not flag]] = np.nan
    function(
        **inputs, initial_state=pool, final_state=pool, state_indices=np.array(ROWS), first_state=FIRST,
        has_initial_state=np.array(FLAGS), out=(o := np.empty_like(expected)), **options,
    )  # fmt: skip
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


def test_a_pool_that_is_read_alone():
    inputs, pool = packed(), pool_of()
    before = pool.copy()
    expected, _ = gathered(gdn.chunk_gated_delta_rule, inputs, pool)
    o, state = gdn.chunk_gated_delta_rule(
        **inputs, initial_state=pool, state_indices=np.array(ROWS), first_state=FIRST
    )
    assert state is None
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, before)


def test_padded_channels():
    inputs, pool = packed(K=40, V=24), pool_of(K=40, V=24)
    expected, after = gathered(gdn.chunk_gated_delta_rule, inputs, pool)
    o, _ = gdn.chunk_gated_delta_rule(
        **inputs, initial_state=pool, final_state=pool, state_indices=np.array(ROWS), first_state=FIRST
    )
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


@pytest.mark.parametrize("kind,message,changed", [
    (ValueError, "initial_state: expected a pool of states with state_indices, got None", {"initial_state": None}),
    (ValueError, "final_state: expected initial_state, the pool, with state_indices, got another tensor",
     {"final_state": pool_of()}),
    (ValueError, "final_state: expected initial_state, the pool, with state_indices and output_final_state, got None",
     {"final_state": None, "output_final_state": True}),
    (ValueError, r"state_indices: expected the shape \[N\] = \[5\], got \[4\]", {"state_indices": np.zeros(4, int)}),
    (TypeError, "state_indices: expected a tensor of int32 or int64, got float32",
     {"state_indices": np.zeros(5, np.float32)}),
    (ValueError, "state_indices: expected rows that differ, got 3 twice", {"state_indices": np.array([1, 3, 9, 3, 9])}),
    (ValueError, r"initial_state: expected the shape \[P, HV, K, V\]", {"initial_state": pool_of(K=32)}),
    (ValueError, "first_state: expected 0 to 262143, got -1", {"first_state": -1}),
    (TypeError, "first_state: expected an integer, got float", {"first_state": 1.0}),
    (ValueError, "first_state: expected 0 without state_indices, got 1", {"state_indices": None}),
    (ValueError, "has_initial_state: expected None without state_indices, got a tensor",
     {"state_indices": None, "first_state": 0, "has_initial_state": np.zeros(5, bool)}),
    (ValueError, r"has_initial_state: expected the shape \[N\] = \[5\], got \[4\]",
     {"has_initial_state": np.zeros(4, bool)}),
    (TypeError, "has_initial_state: expected a tensor of bool, got int32", {"has_initial_state": np.zeros(5, np.int32)}),
])  # fmt: skip
def test_wrong_pools(kind, message, changed):
    pool = pool_of()
    call = {
        **packed(), "initial_state": pool, "final_state": pool, "state_indices": np.array(ROWS), "first_state": FIRST,
        **changed,
    }  # fmt: skip
    with pytest.raises(kind, match=message):
        gdn.chunk_gated_delta_rule(**call)


# ----------------------------------------------------------------------------------------------------------------------
# FlashInfer's call
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in place", "two pools", "no initial state", "read alone"])
def test_flashinfer(way):
    """Row 0 is one as others are."""
    inputs, pool, rows = packed(), pool_of(v_first=True), np.array([4, 0, 2, 5, 1])
    tokens = {name: inputs[name][0] for name in ("q", "k", "v", "beta")} | {"g": np.exp(inputs["g"][0])}
    options = {"gate_domain": "linear", "state_v_first": True}
    start = np.zeros_like(pool) if way == "no initial state" else pool
    alone = {**inputs, "g": tokens["g"][None]}
    expected, after = gathered(gdn.chunk_gated_delta_rule, alone, start, rows, 0, **options)
    written = pool if way == "in place" else pool_of(v_first=True, seed=2)
    call = {**tokens, "cu_seqlens": inputs["cu_seqlens"], "state_indices": rows}
    if way != "no initial state":
        call["initial_state"] = pool
    if way == "read alone":
        o = gdn.flashinfer.chunk_gated_delta_rule(**call)
    else:
        kept = np.setdiff1d(np.arange(STATES), [4, 0, 5, 1])
        after[kept] = written[kept]
        o, state = gdn.flashinfer.chunk_gated_delta_rule(**call, output_final_state=True, output_state=written)
        assert state is written
        np.testing.assert_array_equal(written, after)
    np.testing.assert_array_equal(o, expected[0, : len(o)])


@pytest.mark.parametrize("message,changed", [
    ("state_indices requires an explicit output_state pool", {"output_final_state": True}),
    (r"state_indices must have shape \(5,\), got \(4,\)", {"state_indices": np.zeros(4, int)}),
    ("state_indices must have an integer dtype, got float32", {"state_indices": np.zeros(5, np.float32)}),
])  # fmt: skip
def test_flashinfer_refuses(message, changed):
    inputs = packed()
    tokens = {name: inputs[name][0] for name in ("q", "k", "v", "g", "beta")}
    call = {
        **tokens, "cu_seqlens": inputs["cu_seqlens"], "initial_state": pool_of(), "state_indices": np.arange(5), **changed
    }
    with pytest.raises(ValueError, match=message):
        gdn.flashinfer.chunk_gated_delta_rule(**call)


# ----------------------------------------------------------------------------------------------------------------------
# torch
# ----------------------------------------------------------------------------------------------------------------------

torch = pytest.importorskip("torch")


def torch_call(**changed):
    call = {name: torch.from_numpy(array) for name, array in packed().items()}
    pool = torch.from_numpy(pool_of())
    call |= {"initial_state": pool, "final_state": pool, "state_indices": torch.tensor(ROWS), "first_state": FIRST}
    return {**call, **changed}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("flags", [None, FLAGS])
def test_torch(function, flags):
    expected, after = gathered(function, packed(), pool_of(), **({} if flags is None else {"flags": flags}))
    call = torch_call(has_initial_state=None if flags is None else torch.tensor(flags))
    o, state = function(**call)
    assert state is call["final_state"]
    np.testing.assert_array_equal(o.numpy(), expected)
    np.testing.assert_array_equal(state.numpy(), after)


def test_a_compiled_call_clones_no_pool():
    expected, after = gathered(gdn.chunk_gated_delta_rule, packed(), pool_of(), flags=FLAGS)
    from torch._inductor.utils import run_and_get_code

    call = torch_call(has_initial_state=torch.tensor(FLAGS))
    pool = call.pop("final_state")
    call.pop("initial_state")

    def step(pool, **inputs):
        return gdn.chunk_gated_delta_rule(**inputs, initial_state=pool, final_state=pool)[0]

    o, codes = run_and_get_code(torch.compile(step, fullgraph=True), pool, **call)
    np.testing.assert_array_equal(o.numpy(), expected)
    np.testing.assert_array_equal(pool.numpy(), after)
    assert "gated_delta_rule_out" in "".join(codes)
    # What it allocates is smaller than the pool.
    allocated = re.findall(r"empty_strided\w*\(\(([\d, ]+)\)", "".join(codes))
    assert allocated and all(math.prod(map(int, shape.strip(", ").split(","))) < pool.numel() for shape in allocated)


def test_no_gradients():
    call = torch_call()
    call["v"].requires_grad_()
    with pytest.raises(NotImplementedError, match="v: .*gdn has no backward of calls with state_indices"):
        gdn.chunk_gated_delta_rule(**call)
    call["final_state"] = None
    with pytest.raises(NotImplementedError, match="v: .*gdn has no backward of calls with state_indices"):
        gdn.chunk_gated_delta_rule(**call)
    with torch.no_grad():
        gdn.chunk_gated_delta_rule(**call)


@pytest.mark.parametrize("message,rows", [
    (r"state_indices: expected rows of -1 to P - 1 = 5, got state_indices\[1\] = 6", [3, 6, 0, 1, 2]),
    (r"state_indices: expected rows of -1 to P - 1 = 5, got state_indices\[4\] = -2", [3, 5, 0, 1, -2]),
    ("state_indices: expected rows that differ, got 3 twice", [3, -1, 0, -1, 3]),
    (None, [3, -1, 0, -1, 0]),
])  # fmt: skip
def test_rows_on_a_gpu_can_be_checked(message, rows):
    """By the CPU's check, on a copy. Rows below the first state may be equal."""
    from gdn import _library, _torch_checks

    call = torch_call()
    options = _library.pack_first_state(FIRST)
    others = (None,) * 6
    tensors = (call["q"], *others, call["initial_state"], call["cu_seqlens"], None, None, torch.tensor(rows), None)
    checked = tensors, options
    if message is None:
        _torch_checks.check_values(*checked)
    else:
        with pytest.raises(ValueError, match=message):
            _torch_checks.check_values(*checked)
