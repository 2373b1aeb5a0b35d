# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside a prefill, for prefix caches: each is that of the sequence's first tokens, by float64, and lies where FlashInfer
has it. Rows that are nobody's stay as they were."""

import re

import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

import gdn
import gdn.flashinfer

LENGTHS = (0, 1, 63, 64, 65, 200)
ENDS = np.cumsum((0, *LENGTHS))
UNTOUCHED = 7.0


def inputs_of(V=64, v_first=False, channel_gates=False, dtype=np.float32):
    x = make_inputs(T=sum(LENGTHS), N=len(LENGTHS), V=V, v_first=v_first)
    given = {name: getattr(x, name) for name in ("q", "k", "v", "g", "beta")}
    if channel_gates:
        given["g"] = -np.random.default_rng(7).random((*given["g"].shape, 64), np.float32)
    given |= {name: given[name].astype(dtype) for name in ("q", "k", "v")}
    return given, x.state


def checkpoints_of(every, shape, dtype=np.float32):
    """A buffer with two rows that are nobody's, and where each sequence's rows begin: `every` is a list."""
    starts = np.cumsum((1, *(length // each if each else 0 for length, each in zip(LENGTHS, every))))
    return np.full((starts[-1] + 1, *shape), UNTOUCHED, dtype), starts


def check(kept, starts, every, given, initial, tolerance=1e-5, **options):
    """Compares rows with the states of prefixes in float64."""
    for n, each in enumerate(every):
        for m in range(starts[n + 1] - starts[n]):
            tokens = slice(ENDS[n], ENDS[n] + (m + 1) * each)
            prefix = [given[name][:, tokens] for name in ("q", "k", "v", "g", "beta")]
            _, state = gated_delta_rule(*prefix, initial_state=None if initial is None else initial[n : n + 1], **options)
            assert rms_error(kept[starts[n] + m], state[0]) < tolerance, (n, m)
    assert (kept[0] == UNTOUCHED).all() and (kept[-1] == UNTOUCHED).all()


@pytest.mark.parametrize("every,form,dtype,tolerance", [
    (64, {}, np.float32, 1e-5),
    (64, {"v_first": True, "V": 48, "dtype": np.float16}, np.float32, 5e-3),
    (128, {"channel_gates": True}, np.float32, 1e-5),
    (64, {}, np.float16, 1e-3),
])  # fmt: skip
def test_states_of_prefixes(every, form, dtype, tolerance):
    given, initial = inputs_of(**form)
    v_first = form.get("v_first", False)
    kept, starts = checkpoints_of([every] * len(LENGTHS), initial.shape[1:], dtype)
    words = {"initial_state": initial, "output_final_state": True, "cu_seqlens": ENDS, "state_v_first": v_first}
    o, state = gdn.chunk_gated_delta_rule(
        **given, **words, state_checkpoints=kept, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=every
    )
    check(kept, starts, [every] * len(LENGTHS), given, initial, tolerance, v_first=v_first)
    expected = gdn.chunk_gated_delta_rule(**given, **words)
    assert rms_error(o, expected[0]) < 1e-5 + tolerance / 10 and rms_error(state, expected[1]) < 1e-5 + tolerance / 10
    if every == 64:
        np.testing.assert_array_equal(kept[starts[3]], state[3].astype(dtype))


def test_a_number_for_each_sequence():
    """An offset of one state, or none; rows that a sequence has not are not written."""
    given, initial = inputs_of()
    every = np.array([64, 64, 0, 64, -64, 128], np.int32)
    kept, starts = checkpoints_of(np.maximum(every, 0), initial.shape[1:])
    words = {"initial_state": initial, "cu_seqlens": ENDS, "state_checkpoints": kept}
    gdn.chunk_gated_delta_rule(**given, **words, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=every)
    check(kept, starts, every, given, initial)
    less, before = np.minimum(starts, starts[-1] - 1), kept.copy()
    kept[:] = UNTOUCHED
    gdn.chunk_gated_delta_rule(**given, **words, checkpoint_cu_starts=less, checkpoint_every_n_tokens=every)
    np.testing.assert_array_equal(kept[: starts[-1] - 1], before[: starts[-1] - 1])
    assert (kept[starts[-1] - 1 :] == UNTOUCHED).all()


def test_a_pool():
    """A sequence without a row keeps nothing."""
    given, initial = inputs_of()
    pool, rows = np.zeros((9, *initial.shape[1:]), np.float32), np.array([1, 2, 3, 0, 5, 6])
    pool[rows] = initial
    kept, starts = checkpoints_of([64] * len(LENGTHS), initial.shape[1:])
    gdn.chunk_gated_delta_rule(
        **given, initial_state=pool, final_state=pool, state_indices=rows, first_state=1, cu_seqlens=ENDS,
        state_checkpoints=kept, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=64,
    )  # fmt: skip
    assert (kept[starts[3]] == UNTOUCHED).all()
    _, kept[starts[3]] = (x[0] for x in gated_delta_rule(
        *(given[name][:, ENDS[3] : ENDS[4]] for name in ("q", "k", "v", "g", "beta")), initial_state=initial[3:4]
    ))  # fmt: skip
    check(kept, starts, [64] * len(LENGTHS), given, initial)


def check_named(states, slots, every, given, initial, first, **options):
    """Compares named rows with the states of prefixes in float64, and returns which rows those are."""
    written = set()
    for n, (row, each) in enumerate(zip(slots, every)):
        for m, slot in enumerate(row, 1):
            if first <= slot < len(states) and 0 < m * each <= LENGTHS[n]:
                tokens = slice(ENDS[n], ENDS[n] + m * each)
                prefix = [given[name][:, tokens] for name in ("q", "k", "v", "g", "beta")]
                _, state = gated_delta_rule(*prefix, initial_state=initial[n : n + 1], **options)
                assert rms_error(states[slot], state[0]) < 1e-5, (n, m)
                written.add(int(slot))
    return written


@pytest.mark.parametrize("channel_gates,every", [(False, (64, 64, 0, 64, -64, 64)), (True, (64, 16, 48, 32, 16, 80))])
@pytest.mark.parametrize("apart", [False, True])
def test_rows_of_a_pool(channel_gates, every, apart):
    """States go to rows that a sequence names, of the pool or of an array; with gates a channel after 16 tokens, too. What
    names no row, and what is behind the last column, is not kept; nor is a row that nobody names written."""
    given, initial = inputs_of(channel_gates=channel_gates)
    rows, every = np.array([1, 2, 3, 4, 5, 6]), np.array(every, np.int32)
    pool = np.full((24, *initial.shape[1:]), UNTOUCHED, np.float32)
    pool[rows] = initial
    slots = np.array([[7, 8, 9], [10, 11, 12], [13, 14, 15], [0, 16, 17], [18, -1, 99], [19, 20, 21]], np.int32)
    states = np.full_like(pool, UNTOUCHED) if apart else pool
    words = {"initial_state": pool, "final_state": pool, "state_indices": rows, "first_state": 1, "cu_seqlens": ENDS}
    o, _ = gdn.chunk_gated_delta_rule(
        **given, **words, checkpoint_state_indices=slots, checkpoint_every_n_tokens=every,
        state_checkpoints=states if apart else None,
    )  # fmt: skip
    written = check_named(states, slots, every, given, initial, 1)
    assert written
    whole = gdn.chunk_gated_delta_rule(**given, initial_state=initial, output_final_state=True, cu_seqlens=ENDS)
    assert rms_error(o, whole[0]) < 1e-5 and rms_error(pool[rows], whole[1]) < 1e-5
    nobodys = sorted(set(range(len(pool))) - written - set(() if apart else rows.tolist()))
    assert (states[nobodys] == UNTOUCHED).all()


def test_one_row_each():
    """Rows [N] are those of one state each, as an engine has them: a later multiple is not kept."""
    given, initial = inputs_of()
    pool, rows = np.zeros((13, *initial.shape[1:]), np.float32), np.arange(1, 7)
    pool[rows] = initial
    slots, before = np.array([0, 0, 0, 7, 0, 8], np.int32), pool.copy()
    words = {"initial_state": pool, "final_state": pool, "state_indices": rows, "first_state": 1, "cu_seqlens": ENDS}
    gdn.chunk_gated_delta_rule(**given, **words, checkpoint_state_indices=slots, checkpoint_every_n_tokens=64)
    assert check_named(pool, slots[:, None], [64] * 6, given, initial, 1) == {7, 8}
    np.testing.assert_array_equal(pool[[0, *range(9, 13)]], before[[0, *range(9, 13)]])


def test_torch():
    torch = pytest.importorskip("torch")
    given, _ = inputs_of()
    kept, starts = checkpoints_of([64] * len(LENGTHS), (4, 64, 64))
    tensors = {name: torch.from_numpy(x) for name, x in given.items()}
    buffer = torch.from_numpy(kept.copy())
    words = {"cu_seqlens": torch.from_numpy(ENDS), "checkpoint_cu_starts": torch.from_numpy(starts), "checkpoint_every_n_tokens": 64}
    version = buffer._version
    o, state = gdn.chunk_gated_delta_rule(**tensors, **words, state_checkpoints=buffer)
    assert state is None and buffer._version > version
    check(buffer.numpy(), starts, [64] * len(LENGTHS), given, None)
    # Those that others have a say in go by the operator.
    again = torch.from_numpy(kept.copy())
    with torch.autograd.forward_ad.dual_level():
        o_again, _ = gdn.chunk_gated_delta_rule(**tensors, **words, state_checkpoints=again)
    np.testing.assert_array_equal(o_again.numpy(), o.numpy())
    np.testing.assert_array_equal(again.numpy(), buffer.numpy())
    tensors["v"].requires_grad_()
    with pytest.raises(NotImplementedError, match="no backward"):
        gdn.chunk_gated_delta_rule(**tensors, **words, state_checkpoints=buffer)


STATES, STARTS = checkpoints_of([64] * len(LENGTHS), (4, 64, 64))


@pytest.mark.parametrize("kind,message,changed", [
    (ValueError, "checkpoint_every_n_tokens: expected a positive multiple of 64, got 96", {"checkpoint_every_n_tokens": 96}),
    (ValueError, "checkpoint_every_n_tokens: expected a positive multiple of 64, got 0", {"checkpoint_every_n_tokens": 0}),
    (TypeError, "checkpoint_every_n_tokens: expected an integer or a tensor, got float", {"checkpoint_every_n_tokens": 64.0}),
    (ValueError, "expected all three or none, got some", {"state_checkpoints": None}),
    (ValueError, "expected all three or none, got some", {"checkpoint_every_n_tokens": None}),
    (ValueError, r"checkpoint_cu_starts: expected the shape \[N \+ 1\] = \[7\], got \[6\]", {"checkpoint_cu_starts": STARTS[:6]}),
    (ValueError, r"checkpoint_every_n_tokens: expected the shape \[N\] = \[6\], got \[5\]",
     {"checkpoint_every_n_tokens": np.full(5, 64)}),
    (ValueError, r"state_checkpoints: expected the shape \[R, HV, K, V\]", {"state_checkpoints": STATES[:, :2]}),
    (TypeError, "state_checkpoints: expected a tensor of float32", {"state_checkpoints": STATES.astype(np.int32)}),
    (ValueError, "checkpoint_cu_starts: expected None with checkpoint_state_indices, got a tensor",
     {"checkpoint_state_indices": np.zeros((6, 1), np.int32)}),
    (ValueError, "checkpoint_every_n_tokens: expected an integer or a tensor with checkpoint_state_indices, got None",
     {"checkpoint_state_indices": np.zeros(6, np.int32), "checkpoint_cu_starts": None, "checkpoint_every_n_tokens": None}),
    (ValueError, r"checkpoint_state_indices: expected the shape \[N, steps\] = \[6, 1\], got \[5, 1\]",
     {"checkpoint_state_indices": np.zeros(5, np.int32), "checkpoint_cu_starts": None}),
    (ValueError, "final_state: expected initial_state, the pool, which keeps the states",
     {"checkpoint_state_indices": np.zeros(6, np.int32), "checkpoint_cu_starts": None, "state_checkpoints": None}),
    (NotImplementedError, "state_checkpoints: expected None with segments", {"segment_length": 64}),
    (NotImplementedError, "state_checkpoints: expected None with segments", {"context_parallel": 2}),
])  # fmt: skip
def test_wrong_calls(kind, message, changed):
    given, _ = inputs_of()
    words = {"state_checkpoints": STATES, "checkpoint_cu_starts": STARTS, "checkpoint_every_n_tokens": 64, "cu_seqlens": ENDS}
    with pytest.raises(kind, match=message):
        gdn.chunk_gated_delta_rule(**{**given, **words, **changed})
    assert (STATES == UNTOUCHED).all()


def test_outputs_lie_apart():
    given, initial = inputs_of()
    with pytest.raises(ValueError, match=re.escape("memory apart from state_checkpoints")):
        gdn.chunk_gated_delta_rule(
            **given, cu_seqlens=ENDS, final_state=initial, state_checkpoints=initial, checkpoint_cu_starts=STARTS,
            checkpoint_every_n_tokens=64,
        )  # fmt: skip


def test_flashinfer():
    """FlashInfer's arguments: linear gates, states [H, V, K], and a state for each whole 64 tokens, the last one too."""
    given, initial = inputs_of(v_first=True)
    kept, starts = checkpoints_of([64] * len(LENGTHS), (4, 64, 64))
    tokens = {name: x[0] for name, x in given.items()}
    o, state = gdn.flashinfer.chunk_gated_delta_rule(
        **{**tokens, "g": np.exp(tokens["g"])}, initial_state=initial, output_final_state=True, cu_seqlens=ENDS,
        state_checkpoints=kept, checkpoint_cu_starts=starts, checkpoint_every_n_tokens=64,
    )  # fmt: skip
    check(kept, starts, [64] * len(LENGTHS), given, initial, v_first=True)
    np.testing.assert_array_equal(kept[starts[3]], state[3])
