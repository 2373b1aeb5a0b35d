# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's call of Kimi Delta Attention: decoding, verification and prefills, in order or in a pool."""

import inspect

import numpy as np
import pytest
from reference import gated_delta_rule, rms_error

from gdn.flashinfer import recurrent_kda

B, H, HV, D, P = 3, 2, 4, 64, 14
ROWS = np.array([4, -1, 2])


def call(T, packed=False):
    """The arguments of a call with raw gates and logits, and those of the reference."""
    random = np.random.default_rng(T)
    q, k, v, g = (random.standard_normal((B, T, heads, D), np.float32) for heads in (H, H, HV, HV))
    beta = random.standard_normal((B, T, HV), np.float32)
    A_log, dt_bias = random.standard_normal(H).astype(np.float32), random.standard_normal(H * D).astype(np.float32)
    x = {"q": q, "k": k, "v": v, "g": g, "beta": beta}
    words = {"lower_bound": -5.0, "use_gate_in_kernel": True, "beta_is_logit": True, "A_log": A_log, "dt_bias": dt_bias}
    if packed:
        words["cu_seqlens"] = np.arange(B + 1, dtype=np.int32) * T
    given = {name: array.reshape(1, -1, *array.shape[2:]) if packed else array for name, array in x.items()}
    wide = {"A_log": A_log.repeat(2), "dt_bias": dt_bias.reshape(H, D).repeat(2, 0)}
    facts = {"lower_bound": -5.0, "gate_domain": "bounded", "beta_domain": "logit", "l2norm": True, "v_first": True}
    return {**given, **words}, x, {**wide, **facts}


def states(rows=P):
    return np.random.default_rng(6).standard_normal((rows, HV, D, D)).astype(np.float32)


def after(x, words, first, missing=()):
    """Outputs, and the states after each token, [B, T, HV, V, K]."""
    kept = []
    for t in range(x["q"].shape[1]):
        o, last = gated_delta_rule(**{name: a[:, : t + 1] for name, a in x.items()}, initial_state=first, **words)
        kept.append(last)
    o[list(missing)] = 0
    return o, np.stack(kept, 1)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("T", [1, 5])
def test_a_pool(T, packed):
    """Decoding and a prefill."""
    given, x, words = call(T, packed)
    pool = states()
    wanted_o, kept = after(x, words, pool[ROWS], [1])
    wanted = pool.copy()
    wanted[ROWS[::2]] = kept[::2, -1]
    o, last = recurrent_kda(**given, initial_state=pool, ssm_state_indices=ROWS, output_final_state=True)
    assert rms_error(o.reshape(wanted_o.shape), wanted_o) < 1e-5 and rms_error(pool, wanted) < 1e-5
    if T == 1 and not packed:
        np.testing.assert_array_equal(last, pool[ROWS])
    else:
        assert last is pool


@pytest.mark.parametrize("T", [1, 5])
def test_states_in_order(T):
    given, x, words = call(T)
    state, out = states(B), np.empty_like(given["v"])
    wanted_o, kept = after(x, words, state)
    o, last = recurrent_kda(**given, initial_state=state, output=out)
    assert o is out and last is None
    assert rms_error(o, wanted_o) < 1e-5 and rms_error(state, kept[:, -1]) < 1e-5
    _, last = recurrent_kda(**given, output_final_state=True)
    assert rms_error(last, after(x, words, None)[1][:, -1]) < 1e-5


@pytest.mark.parametrize("packed", [False, True])
def test_verification(packed):
    given, x, words = call(4, packed)
    slots = np.array([[9, 3, 13, 6], [-1, -1, -1, -1], [1, 12, 0, 7]])
    accepted, pool = np.array([3, 1, 9], np.int32), states()
    wanted_o, kept = after(x, words, pool[[13, 0, 7]], [1])
    wanted = pool.copy()
    wanted[slots[::2]] = kept[::2]
    o, _ = recurrent_kda(
        **given, initial_state=pool, ssm_state_indices=slots, num_spec_tokens=3, num_accepted_tokens=accepted
    )
    assert rms_error(o.reshape(wanted_o.shape), wanted_o) < 1e-5 and rms_error(pool, wanted) < 1e-5


@pytest.mark.parametrize("speculates", [False, True])
def test_no_states(speculates):
    """With rows alone: all begin with zeros, in a pool that the call makes."""
    T = 4 if speculates else 1
    given, x, words = call(T)
    slots = np.arange(B * T)[::-1].reshape(B, T) if speculates else ROWS
    wanted_o, kept = after(x, words, None, [] if speculates else [1])
    more = {"num_spec_tokens": 3} if speculates else {}
    o, pool = recurrent_kda(**given, ssm_state_indices=slots, output_final_state=True, **more)
    assert rms_error(o, wanted_o) < 1e-5
    if speculates:
        assert rms_error(pool[slots], kept) < 1e-5


def test_rows_in_order():
    """Without indices, and with states of another pool before."""
    given, x, words = call(4)
    pool, source = states(12), states()[::-1].copy()
    wanted_o, kept = after(x, words, source[[5, 1, 8]])
    rows = np.array([5, 1, 8])
    o, _ = recurrent_kda(
        **given, initial_state=pool, num_spec_tokens=3, initial_state_source=source, initial_state_indices=rows
    )
    assert rms_error(o, wanted_o) < 1e-5 and rms_error(pool.reshape(kept.shape), kept) < 1e-5
    np.testing.assert_array_equal(source, states()[::-1])
    wanted_o, kept = after(x, words, pool[::4])
    o, _ = recurrent_kda(**given, initial_state=pool, num_spec_tokens=3)
    assert rms_error(o, wanted_o) < 1e-5 and rms_error(pool.reshape(kept.shape), kept) < 1e-5


@pytest.mark.parametrize("rows", [None, ROWS])
def test_states_that_stay(rows):
    given, x, words = call(4)
    pool = states(B if rows is None else P)
    before = pool.copy()
    wanted, _ = after(x, words, pool if rows is None else pool[rows], [] if rows is None else [1])
    o, last = recurrent_kda(**given, initial_state=pool, ssm_state_indices=rows, disable_state_update=True)
    assert last is None and rms_error(o, wanted) < 1e-5
    np.testing.assert_array_equal(pool, before)


@pytest.mark.parametrize("packed", [pytest.param(False, marks=pytest.mark.full), True])
def test_states_inside(packed):
    """After every 64 tokens of a prefill, in rows of a buffer; a sequence without a row in the pool keeps none."""
    given, x, words = call(130, packed)
    pool, kept = states(), np.full((7, HV, D, D), 7, np.float32)
    _, wanted = after(x, words, pool[ROWS], [1])
    recurrent_kda(
        **given, initial_state=pool, ssm_state_indices=ROWS, state_checkpoints=kept, checkpoint_every_n_tokens=64,
        checkpoint_cu_starts=np.array([0, 2, 4, 6]),
    )  # fmt: skip
    for n in (0, 2):
        assert rms_error(kept[2 * n : 2 * n + 2], wanted[n, [63, 127]]) < 1e-5
    assert (kept[[2, 3, 6]] == 7).all() and rms_error(pool[ROWS[::2]], wanted[::2, -1]) < 1e-5


@pytest.mark.parametrize("library", [pytest.param("numpy", marks=pytest.mark.full), "torch"])
def test_states_inside_in_named_rows(library):
    """The second state of the last sequence has no row."""
    given, x, words = call(130)
    pool, kept = states(), np.full((8, HV, D, D), 7, np.float32)
    _, wanted = after(x, words, pool[ROWS], [1])
    numbers = [ROWS, np.array([0, 2, 4, 5]), np.array([6, 1, 2, 3, 5])]
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = {name: torch.from_numpy(a) if isinstance(a, np.ndarray) else a for name, a in given.items()}
        pool, kept, *numbers = map(torch.from_numpy, (pool, kept, *numbers))
    rows, starts, named = numbers
    recurrent_kda(
        **given, initial_state=pool, ssm_state_indices=rows, state_checkpoints=kept, checkpoint_every_n_tokens=64,
        checkpoint_cu_starts=starts, checkpoint_state_indices=named,
    )  # fmt: skip
    kept = np.asarray(kept)
    assert rms_error(kept[[6, 1]], wanted[0, [63, 127]]) < 1e-5 and rms_error(kept[5], wanted[2, 63]) < 1e-5
    assert (kept[[0, 2, 3, 4, 7]] == 7).all()


def test_torch():
    torch = pytest.importorskip("torch")
    given, x, words = call(3)
    pool = torch.from_numpy(states())
    wanted_o, kept = after(x, words, states()[::4][:3])
    tensors = {name: torch.from_numpy(a) if isinstance(a, np.ndarray) else a for name, a in given.items()}
    slots = torch.tensor([[0, 1, 2], [4, 5, 6], [8, 9, 10]], dtype=torch.int32)
    o, _ = recurrent_kda(**tensors, initial_state=pool, ssm_state_indices=slots, num_spec_tokens=2)
    assert rms_error(o, wanted_o) < 1e-5 and rms_error(pool[slots.long()], kept) < 1e-5


SLOTS = {"ssm_state_indices": np.zeros((3, 3), int)}


@pytest.mark.parametrize("error,match,changes", [
    (ValueError, "checkpoint_state_indices: expected None with checkpoint_every_n_tokens == 0", {
        "checkpoint_state_indices": np.zeros(3, int), "num_spec_tokens": None,
    }),
    (ValueError, "must both be provided when checkpoint_every_n_tokens > 0", {"checkpoint_every_n_tokens": 64}),
    (NotImplementedError, "state_checkpoints: states inside are those of a prefill", {
        "disable_state_update": True, "checkpoint_every_n_tokens": 64, "state_checkpoints": states(4),
        "checkpoint_cu_starts": np.zeros(4, int),
    }),
    (NotImplementedError, "kg_cache: what is inside", {"kg_cache": 0}),
    (NotImplementedError, "initial_state_source: a prefill has one pool", {
        "initial_state_source": 0, "initial_state_indices": 0,
    }),
    (ValueError, "must be provided together", {"initial_state_source": 0}),
    (ValueError, "num_spec_tokens must be >= 1, got 0", {"num_spec_tokens": 0, "cu_seqlens": np.arange(2), **SLOTS}),
    (ValueError, "ssm_state_indices is required", {"num_spec_tokens": 3, "cu_seqlens": np.arange(4)}),
    (ValueError, r"must be 2D \[N, 4\] in spec mode, got shape \[3, 3\]", {"num_spec_tokens": 3, **SLOTS}),
    (ValueError, r"shape\[0\]=3 must equal N=2", {"num_spec_tokens": 2, "cu_seqlens": np.arange(3), **SLOTS}),
    (ValueError, r"q.shape\[1\]=4 must equal 1\+num_spec_tokens=3", {"num_spec_tokens": 2}),
    (ValueError, "expected none with disable_state_update", {"disable_state_update": True, "output_final_state": True}),
])  # fmt: skip
def test_wrong_calls(error, match, changes):
    given, _, _ = call(4)
    with pytest.raises(error, match=match):
        recurrent_kda(**{**given, "initial_state": states(B), **changes})


def test_signature():
    """FlashInfer 0.7's names, order and defaults."""
    parameters = inspect.signature(recurrent_kda).parameters.values()
    by_place = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert " ".join(p.name for p in by_place) == (
        "q k v g beta A_log dt_bias scale initial_state output_final_state use_qk_l2norm_in_kernel use_gate_in_kernel "
        "lower_bound cu_seqlens ssm_state_indices num_spec_tokens num_accepted_tokens output initial_state_source "
        "initial_state_indices beta_is_logit seq_order prefill_workspace state_checkpoints checkpoint_cu_starts "
        "checkpoint_every_n_tokens checkpoint_state_indices"
    )
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == [
        "disable_state_update", "correction_cache", "kg_cache", "backend"
    ]  # fmt: skip
    values = {p.name: p.default for p in parameters if p.default and p.default is not p.empty}
    assert values == {"use_qk_l2norm_in_kernel": True, "backend": "auto"}
