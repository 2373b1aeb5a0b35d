# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speculated tokens: a call that keeps the states after them has the bits of calls of one token each, from the states that
are kept. test_schedule.py has the same with float64, over many calls."""

import re

import numpy as np
import pytest
from reference import make_inputs

import gdn

HEADS, ROWS, FIRST, STEPS = 4, 24, 1, 4
#: Five sequences: one without tokens, one with more than are kept.
LENGTHS = (3, 0, 4, 6, 1)
#: Of each the rows that keep states: below the first one, and of the pool's number and more, there is none.
SLOTS = np.array([[3, 4, 5, 6], [7, 8, 9, 10], [11, 0, 12, 13], [14, 15, ROWS, 16], [17, 18, -1, 19]])
#: What is no number of tokens counts as the first or the last one.
ACCEPTED = np.array([2, 1, 0, 9, 4])
PARENTS = np.array([[-1, 0, 0, 1], [-1] * 4, [0, 0, 1, 1], [5, 0, 0, 0], [-1, 0, 1, 2]])


def inputs_of(channel_gates=False, dtype=np.float32):
    x = make_inputs(B=1, T=sum(LENGTHS) + 2, HV=HEADS)
    given = {name: getattr(x, name) for name in ("q", "k", "v", "g", "beta")}
    if channel_gates:
        given["g"] = -np.random.default_rng(7).random((*given["g"].shape, 64), np.float32)
    given |= {name: given[name].astype(dtype) for name in ("q", "k", "v")}
    return {**given, "cu_seqlens": np.cumsum((0, *LENGTHS))}


def pool_of(dtype=np.float32, rows=ROWS, seed=1):
    # Longer slots than states: nothing lies between them that is anybody's.
    values = np.random.default_rng(seed).standard_normal((rows, HEADS * 64 * 64 + 24)).astype(dtype)
    return np.lib.stride_tricks.as_strided(values, (rows, HEADS, 64, 64), (values.strides[0], 64 * 64 * dtype().nbytes,
                                           64 * dtype().nbytes, dtype().nbytes))  # fmt: skip


def one_by_one(inputs, pool, begins, slots, kept, parents=None, **options):
    """Outputs, and `kept` as it is then, by calls of one token. `begins` are the rows of the pool to begin with."""
    ends, o = inputs["cu_seqlens"], np.zeros_like(inputs["v"])
    tensors = {name: inputs[name] for name in ("q", "k", "v", "g", "beta")}
    for n, row in enumerate(begins):
        if not FIRST <= row < len(pool):
            continue
        state = pool[row][None].astype(np.float32)
        states = {}
        for t in range(ends[n + 1] - ends[n]):
            parent = -1 if parents is None or t >= STEPS else parents[n, t]
            if 0 <= parent < t - 1 and parent in states:
                state = states[parent]
            at = slice(ends[n] + t, ends[n] + t + 1)
            o[:, at], state = gdn.fused_recurrent_gated_delta_rule(
                **{name: x[:, at] for name, x in tensors.items()}, initial_state=state, output_final_state=True, **options
            )
            # An array of 16 bits rounds states before the next token reads them.
            state = state.astype(kept.dtype).astype(np.float32)
            if t < STEPS and FIRST <= slots[n, t] < len(kept):
                kept[slots[n, t]], states[t] = state[0], state
    return o, kept


def begins_of(slots=SLOTS, accepted=ACCEPTED):
    return [row[np.clip(a, 1, STEPS) - 1] for row, a in zip(slots, accepted)]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype,v_first,channel_gates", [
    (np.float32, False, False), (np.float32, True, True), (np.float16, True, False),
])  # fmt: skip
def test_rows_of_the_pool(index, dtype, v_first, channel_gates):
    """vLLM's form: rows [N, S] say where sequences begin and where the states after tokens go."""
    inputs, pool = inputs_of(channel_gates), pool_of(dtype)
    options = {"state_v_first": v_first, "use_qk_l2norm_in_kernel": True}
    expected, after = one_by_one(inputs, pool.copy(), begins_of(), SLOTS, pool.copy(), **options)
    o, state = gdn.fused_recurrent_gated_delta_rule(
        **inputs, initial_state=pool, final_state=pool, state_indices=SLOTS.astype(index), first_state=FIRST,
        num_accepted_tokens=ACCEPTED.astype(index), **options,
    )  # fmt: skip
    assert state is pool
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


def test_sequences_begin_with_their_first_row():
    inputs, pool = inputs_of(), pool_of()
    expected, after = one_by_one(inputs, pool.copy(), SLOTS[:, 0], SLOTS, pool.copy())
    o, _ = gdn.fused_recurrent_gated_delta_rule(
        **inputs, initial_state=pool, final_state=pool, state_indices=SLOTS, first_state=FIRST
    )
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, after)


@pytest.mark.parametrize("of_the_pool", [False, True])
@pytest.mark.parametrize("is_tree", [False, True])
def test_rows_apart(of_the_pool, is_tree):
    """FlashInfer's and SGLang's forms: the rows that sequences begin with stay, or get the last state."""
    inputs, pool, rows = inputs_of(), pool_of(), np.array([1, 20, 2, 21, 22])
    given, kept = pool.copy(), pool.copy() if of_the_pool else pool_of(rows=30, seed=2)
    parents = PARENTS if is_tree else None
    expected, after = one_by_one(inputs, given, rows, SLOTS, kept.copy(), parents)
    words = {"state_indices": rows, "step_indices": SLOTS, "parents": parents, "first_state": FIRST}
    if of_the_pool:
        words["final_state"] = kept = pool
    else:
        words["step_states"] = kept
    o, _ = gdn.fused_recurrent_gated_delta_rule(**inputs, initial_state=pool, **words)
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(kept, after)
    if not of_the_pool:
        np.testing.assert_array_equal(pool, given)
        gdn.fused_recurrent_gated_delta_rule(**inputs, initial_state=pool, final_state=pool, **words)
        last = [slots[length - 1] for slots, length in zip(SLOTS, LENGTHS) if length in (3, 4)]
        np.testing.assert_array_equal(pool[rows[[0, 2]]], kept[last])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_one_token_has_the_bits_of_decoding(dtype):
    inputs = {name: x[0, :5, None] for name, x in inputs_of().items() if name != "cu_seqlens"}
    pool, decoded = pool_of(dtype), pool_of(dtype)
    slots = SLOTS[:, :1]
    o, _ = gdn.fused_recurrent_gated_delta_rule(
        **inputs, initial_state=pool, final_state=pool, state_indices=slots, num_accepted_tokens=np.ones(5, np.int32)
    )
    expected, _ = gdn.fused_recurrent_gated_delta_rule(
        **inputs, initial_state=decoded, final_state=decoded, state_indices=slots[:, 0]
    )
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(pool, decoded)


@pytest.mark.parametrize("kind,message,changed", [
    (ValueError, "final_state: expected initial_state, the pool, which keeps the states after tokens, got None",
     {"final_state": None}),
    (ValueError, "final_state: expected initial_state, .* got another tensor", {"final_state": pool_of()}),
    (ValueError, r"state_indices: expected the shape \[N\] = \[5\]", {"state_indices": SLOTS[:4]}),
    (ValueError, r"num_accepted: expected the shape \[N\] = \[5\], got \[4\]", {"num_accepted_tokens": ACCEPTED[:4]}),
    (TypeError, "num_accepted: expected a tensor of int32 or int64, got float64",
     {"num_accepted_tokens": ACCEPTED.astype(float)}),
    (ValueError, "num_accepted: expected None without step_indices, got a tensor", {"state_indices": SLOTS[:, 0]}),
    (ValueError, r"parents: expected the shape \[N, steps\] = \[5, 4\], got \[5, 3\]", {"parents": PARENTS[:, :3]}),
    (ValueError, r"step_states: expected the shape \[R, HV, K, V\]", {"step_states": pool_of()[:, :2]}),
    (TypeError, "step_states: expected a tensor of the type of initial_state, got float16",
     {"step_states": pool_of(np.float16), "final_state": None}),
    (ValueError, "step_indices: expected rows that differ, got 3 twice",
     {"state_indices": np.where(SLOTS == 19, 3, SLOTS)}),
    (ValueError, "step_indices: expected rows of at least one token, got none", {"state_indices": SLOTS[:, :0]}),
    (ValueError, "step_indices: expected None without state_indices, got a tensor",
     {"state_indices": None, "step_indices": SLOTS, "first_state": 0, "final_state": None, "step_states": pool_of(),
      "num_accepted_tokens": None, "initial_state": pool_of()[:5]}),
])  # fmt: skip
def test_wrong_calls(kind, message, changed):
    pool = pool_of()
    call = {
        **inputs_of(), "initial_state": pool, "final_state": pool, "state_indices": SLOTS, "first_state": FIRST,
        "num_accepted_tokens": ACCEPTED, **changed,
    }  # fmt: skip
    with pytest.raises(kind, match=message):
        gdn.fused_recurrent_gated_delta_rule(**call)


torch = pytest.importorskip("torch")


def torch_call(**changed):
    call = {name: torch.from_numpy(array) for name, array in inputs_of().items()}
    pool = torch.from_numpy(pool_of())
    call |= {"initial_state": pool, "final_state": pool, "state_indices": torch.tensor(SLOTS), "first_state": FIRST}
    return {**call, "num_accepted_tokens": torch.tensor(ACCEPTED), **changed}


def test_torch():
    expected, after = one_by_one(inputs_of(), pool_of(), begins_of(), SLOTS, pool_of())
    call = torch_call()
    o, state = gdn.fused_recurrent_gated_delta_rule(**call)
    assert state is call["final_state"]
    np.testing.assert_array_equal(o.numpy(), expected)
    np.testing.assert_array_equal(state.numpy(), after)


def test_a_compiled_call_clones_no_states():
    from torch._inductor.utils import run_and_get_code

    slots, rows = torch.tensor(SLOTS), torch.tensor(SLOTS[:, 0])
    call = torch_call(state_indices=rows, step_indices=slots, step_states=torch.from_numpy(pool_of(rows=30)), final_state=None)
    expected = torch_call(state_indices=rows, step_indices=slots, step_states=call["step_states"].clone(), final_state=None)
    wanted, _ = gdn.fused_recurrent_gated_delta_rule(**expected)

    def step(kept, **inputs):
        return gdn.fused_recurrent_gated_delta_rule(**inputs, step_states=kept)[0]

    o, codes = run_and_get_code(torch.compile(step, fullgraph=True), call.pop("step_states"), **call)
    torch.testing.assert_close(o, wanted, rtol=0, atol=0)
    assert "gated_delta_rule_out" in "".join(codes)
    allocated = re.findall(r"empty_strided\w*\(\(([\d, ]+)\)", "".join(codes))
    assert allocated and not any(shape.startswith("30,") for shape in allocated)


def test_no_gradients():
    call = torch_call()
    call["v"].requires_grad_()
    with pytest.raises(NotImplementedError, match="v: .*gdn has no backward of calls with state_indices"):
        gdn.fused_recurrent_gated_delta_rule(**call)
