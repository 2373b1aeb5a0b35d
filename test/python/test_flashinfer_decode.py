# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's step of decoding: raw gates and logits, states that are updated in place, in order or in a pool."""

import inspect

import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

from gdn.flashinfer import gated_delta_rule_decode, gated_delta_rule_decode_pretranspose, gated_delta_rule_mtp

B, HV, K, V = 3, 4, 64, 48
ROWS = (4, -1, 2)


def step(T=1, dtype=np.float32):
    """The arguments between q and b but for the states, and those of the reference. q, k and v are views of one array."""
    x, random = make_inputs(B=B, T=T, K=K, V=V), np.random.default_rng(5)
    heads = [array.reshape(B, T, -1) for array in (x.q, x.k, x.v)]
    parts = np.split(np.concatenate(heads, -1).astype(dtype), np.cumsum([part.shape[-1] for part in heads])[:2], -1)
    q, k, v = (part.reshape(array.shape) for part, array in zip(parts, (x.q, x.k, x.v)))
    a, b = random.standard_normal((2, B, T, HV)).astype(dtype)
    A_log, dt_bias = random.standard_normal((2, HV)).astype(np.float32)
    words = {"gate_domain": "raw", "A_log": A_log, "dt_bias": dt_bias, "beta_domain": "logit", "l2norm": True}
    return [q, k, v], [A_log, a, dt_bias, b], ((q, k, v, a, b), words)


def states(rows, *channels):
    return np.random.default_rng(6).standard_normal((rows, HV, *channels)).astype(np.float32)


@pytest.mark.parametrize("function,shape,v_first", [
    (gated_delta_rule_decode, (K, V), False), (gated_delta_rule_decode_pretranspose, (V, K), True),
])  # fmt: skip
def test_states_in_order(function, shape, v_first):
    tokens, gates, (inputs, words) = step()
    state = states(B, *shape)
    o_wanted, wanted = gated_delta_rule(*inputs, initial_state=state, v_first=v_first, **words)
    o, given = function(*tokens, state, *gates, output=(out := np.empty_like(tokens[2])))
    assert given is state and o is out
    assert rms_error(o, o_wanted) < 1e-5 and rms_error(state, wanted) < 1e-5


def test_scale_and_no_norm():
    tokens, gates, (inputs, words) = step()
    o, _ = gated_delta_rule_decode(*tokens, states(B, K, V), *gates, scale=0.5, use_qk_l2norm=False)
    wanted, _ = gated_delta_rule(*inputs, scale=0.5, initial_state=states(B, K, V), **{**words, "l2norm": False})
    assert rms_error(o, wanted) < 1e-5


@pytest.mark.parametrize("T", [1, 5])
def test_a_pool(T):
    """A row of -1 is none; others stay."""
    tokens, gates, (inputs, words) = step(T)
    pool = states(6, V, K)
    o_wanted, wanted = gated_delta_rule(*inputs, initial_state=pool[list(ROWS)], v_first=True, **words)
    after = pool.copy()
    after[[4, 2]], o_wanted[1] = wanted[[0, 2]], 0
    o, given = gated_delta_rule_decode_pretranspose(
        *tokens, None, *gates, initial_state=pool, initial_state_indices=np.array(ROWS)
    )
    assert given is pool and not o[1].any()
    assert rms_error(o, o_wanted) < 1e-5 and rms_error(pool, after) < 1e-5
    np.testing.assert_array_equal(pool[[0, 1, 3, 5]], after[[0, 1, 3, 5]])


def test_states_that_stay():
    tokens, gates, (inputs, words) = step(5)
    state = states(B, V, K)
    wanted, _ = gated_delta_rule(*inputs, initial_state=state, v_first=True, **words)
    o, _ = gated_delta_rule_decode_pretranspose(*tokens, state, *gates, disable_state_update=True)
    assert rms_error(o, wanted) < 1e-5
    np.testing.assert_array_equal(state, states(B, V, K))


def test_torch():
    """In bfloat16, with a bfloat16 bias."""
    torch = pytest.importorskip("torch")
    tokens, gates, (inputs, words) = step()
    tokens = [torch.from_numpy(array).bfloat16() for array in tokens]
    A_log, a, dt_bias, b = (torch.from_numpy(array) for array in gates)
    pool = torch.from_numpy(states(6, V, K))
    rows = torch.tensor([4, 1, 2], dtype=torch.int32)
    inputs = [*(x.float().numpy() for x in tokens), a.bfloat16().float().numpy(), b.bfloat16().float().numpy()]
    words["dt_bias"] = dt_bias.bfloat16().float().numpy()
    wanted, after = gated_delta_rule(*inputs, initial_state=pool[rows.long()], v_first=True, **words)
    o, _ = gated_delta_rule_decode_pretranspose(
        *tokens, None, A_log, a.bfloat16(), dt_bias.bfloat16(), b.bfloat16(), initial_state=pool,
        initial_state_indices=rows,
    )  # fmt: skip
    assert o.dtype == torch.bfloat16
    assert rms_error(o.float(), wanted) < 4e-3 and rms_error(pool[rows.long()], after) < 1e-5


@pytest.mark.parametrize("error,match,T,changes", [
    (ValueError, "intermediate_states_buffer is supported only for T > 1", 1, {"intermediate_states_buffer": 0}),
    (ValueError, "disable_state_update is supported only for T > 1", 1, {"disable_state_update": True}),
    (ValueError, "must be provided together", 1, {"initial_state": np.zeros(0)}),
    (ValueError, "Either state or initial_state", 1, {"state": None}),
    (AssertionError, "output_state_indices can only be used with initial_state", 2, {"output_state_indices": np.zeros(B)}),
    (AssertionError, r"Expected output_state_indices shape \[3\], got", 1, {
        "initial_state": states(9, V, K), "initial_state_indices": np.arange(B), "output_state_indices": np.zeros(2)}),
    (ValueError, r"initial_state: expected the shape \[N, HV, V, K\]", 1, {"state": np.zeros((B, HV, K, V), "float32")}),
])  # fmt: skip
def test_wrong_calls(error, match, T, changes):
    tokens, gates, _ = step(T)
    arguments = dict(zip(("q", "k", "v", "A_log", "a", "dt_bias", "b"), (*tokens, *gates)))
    with pytest.raises(error, match=match):
        gated_delta_rule_decode_pretranspose(**{**arguments, "state": states(B, V, K), **changes})


def test_signatures():
    """FlashInfer 0.7's names, order and defaults."""

    def of(function):
        return str(inspect.signature(function)).replace(": Any", "").replace(": 'Any'", "")

    first = "(q, k, v, state, A_log, a, dt_bias, b, scale: 'float | None' = None, output = None, "
    first += "use_qk_l2norm: 'bool' = True, "
    last = "backend: 'str' = 'auto') -> 'tuple[Any, Any]'"
    assert of(gated_delta_rule_decode) == first + last
    assert of(gated_delta_rule_decode_pretranspose) == (
        first + "initial_state = None, initial_state_indices = None, output_state_indices = None, "
        "intermediate_states_buffer = None, disable_state_update: 'bool' = False, " + last
    )
    assert of(gated_delta_rule_mtp) == (
        "(q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b, scale: 'float | None' = None, output = None, "
        "intermediate_states_buffer = None, ssm_state_indices = None, disable_state_update: 'bool | None' = None, "
        "use_qk_l2norm: 'bool' = True, output_state_indices = None, cache_replayssm: 'bool' = False, replayssm_rawv = None, "
        "replayssm_rawk = None, replayssm_g = None, replayssm_beta = None) -> 'tuple[Any, Any]'"
    )


def verified(inputs, words, pool, rows):
    """Outputs of float64 and the states after each token, [B, T, HV, V, K]."""
    T, kept = inputs[0].shape[1], []
    first = pool[[max(row, 0) for row in rows]]
    for t in range(T):
        o, last = gated_delta_rule(*(x[:, : t + 1] for x in inputs), initial_state=first, v_first=True, **words)
        kept.append(last)
    o[[n for n, row in enumerate(rows) if row < 0]] = 0
    return o, np.stack(kept, 1)


@pytest.mark.parametrize("T", [1, 4])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_other_rows(T, kind):
    """The last state goes to another row than that which was read; a row of -1 is none."""
    tokens, gates, (inputs, words) = step(T)
    pool, rows, targets = states(9, V, K), np.array(ROWS), np.array([7, 0, 5])
    o_wanted, after = verified(inputs, words, pool, ROWS)
    wanted = pool.copy()
    wanted[[7, 5]] = after[[0, 2], -1]
    arrays = [*tokens, pool, rows, *gates, targets]
    if kind == "torch":
        torch = pytest.importorskip("torch")
        arrays = [torch.from_numpy(array) for array in arrays]
    q, k, v, pool, rows, A_log, a, dt_bias, b, targets = arrays
    o, _ = gated_delta_rule_decode_pretranspose(
        q, k, v, None, A_log, a, dt_bias, b, initial_state=pool, initial_state_indices=rows, output_state_indices=targets
    )
    assert rms_error(o, o_wanted) < 1e-5 and rms_error(pool, wanted) < 1e-5
    before = np.array(pool)
    _, after = verified(inputs, words, before, ROWS)
    kept = np.zeros((B, T, HV, V, K), np.float32)
    kept = torch.from_numpy(kept) if kind == "torch" else kept
    gated_delta_rule_mtp(
        q, k, v, pool, rows, A_log, a, dt_bias, b, intermediate_states_buffer=kept, disable_state_update=False,
        output_state_indices=targets,
    )  # fmt: skip
    before[[7, 5]] = after[[0, 2], -1]
    assert rms_error(pool, before) < 1e-5 and rms_error(kept[[0, 2]], after[[0, 2]]) < 1e-5


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_an_output_of_another_type(kind):
    """Rows of nobody keep what they have."""
    tokens, gates, (inputs, words) = step(2)
    pool, rows, out = states(6, V, K), np.array(ROWS), np.full((B, 2, HV, V), 7, np.float16)
    o_wanted, _ = verified(inputs, words, pool, ROWS)
    o_wanted[1] = 7
    arrays = [*tokens, pool, rows, *gates, out]
    if kind == "torch":
        torch = pytest.importorskip("torch")
        arrays = [torch.from_numpy(array) for array in arrays]
    *arguments, out = arrays
    o, _ = gated_delta_rule_mtp(*arguments, output=out, disable_state_update=True)
    assert o is out and rms_error(out, o_wanted) < 1e-3
    state = arguments[3][:B]
    o, _ = gated_delta_rule_decode_pretranspose(*arguments[:3], state, *arguments[5:], output=out)
    assert o is out and not (out == 7).any()


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("form", ["buffer", "leading steps", "rows", "nowhere"])
def test_verification(form, updates):
    """What is kept of tokens, and what of the pool and of the buffer stays."""
    tokens, gates, (inputs, words) = step(4)
    pool = states(20, V, K)
    before, rows = pool.copy(), np.array(ROWS)
    o_wanted, after = verified(inputs, words, pool, ROWS)
    longer = np.full((B + 1, 6, HV, V, K), 7, np.float32)
    buffer = longer[:, :4] if form == "leading steps" else longer
    slots = np.arange(6, 18, dtype=np.int32).reshape(B, 4)
    given = {"buffer": {"intermediate_states_buffer": buffer}, "leading steps": {"intermediate_states_buffer": buffer}}
    given |= {"rows": {"ssm_state_indices": slots}, "nowhere": {}}
    if form == "rows" and not updates:
        with pytest.raises(AssertionError, match="ssm_state_indices requires state writes"):
            gated_delta_rule_mtp(*tokens, pool, rows, *gates, disable_state_update=True, **given[form])
        return
    o, result = gated_delta_rule_mtp(*tokens, pool, rows, *gates, disable_state_update=not updates, **given[form])
    assert result is pool and rms_error(o, o_wanted) < 1e-5
    live = [n for n, row in enumerate(ROWS) if row >= 0]
    wanted = before.copy()
    if form == "rows":
        wanted[slots[live]] = after[live]
    elif updates:
        wanted[rows[live]] = after[live, -1]
    assert rms_error(pool, wanted) < 1e-5
    untouched = longer.copy()
    if form in ("buffer", "leading steps"):
        assert rms_error(longer[live, :4], after[live]) < 1e-5
        untouched[live, :4] = 7
    assert (untouched == 7).all()


def test_verification_by_torch():
    torch = pytest.importorskip("torch")
    tokens, gates, (inputs, words) = step(3)
    pool, buffer = states(9, V, K), np.zeros((B, 3, HV, V, K), np.float32)
    o, _ = gated_delta_rule_mtp(
        *tokens, pool, np.array(ROWS), *gates, intermediate_states_buffer=buffer, disable_state_update=True
    )
    given = [torch.from_numpy(x) for x in (*tokens, pool)], [torch.from_numpy(x) for x in gates]
    kept = torch.zeros(B, 3, HV, V, K)
    with pytest.deprecated_call(match="disable_state_update will be False"):
        got, _ = gated_delta_rule_mtp(*given[0], torch.tensor(ROWS), *given[1], intermediate_states_buffer=kept)
    np.testing.assert_array_equal(got.numpy(), o)
    np.testing.assert_array_equal(kept.numpy(), buffer)
    state, kept = pool[:B].copy(), np.zeros_like(buffer)
    gated_delta_rule_decode_pretranspose(
        *tokens, state, *gates, intermediate_states_buffer=kept, disable_state_update=True
    )
    np.testing.assert_array_equal(state, pool[:B])
    assert kept.any(axis=(2, 3, 4)).all()


@pytest.mark.parametrize("error,match,changes", [
    (AssertionError, "must have logical shape", {"intermediate_states_buffer": np.zeros((B, 2, HV, V, K), "float32")}),
    (AssertionError, "mutually exclusive", {
        "intermediate_states_buffer": np.zeros((B, 3, HV, V, K), "float32"), "ssm_state_indices": np.zeros((B, 3), int)}),
    (AssertionError, "ssm_state_indices must have shape", {"ssm_state_indices": np.zeros((B, 2), int)}),
    (NotImplementedError, "cache_replayssm: windows of raw inputs", {"cache_replayssm": True}),
])  # fmt: skip
def test_wrong_verifications(error, match, changes):
    tokens, gates, _ = step(3)
    arguments = dict(zip(("q", "k", "v", "A_log", "a", "dt_bias", "b"), (*tokens, *gates)))
    pool = {"initial_state": states(9, V, K), "initial_state_indices": np.arange(B), "disable_state_update": False}
    with pytest.raises(error, match=match):
        gated_delta_rule_mtp(**arguments, **pool, **changes)


def test_tables_are_kept():
    """A CUDA graph reads the table of a call before; those of traced calls are no tables of others."""
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    from gdn._steps import numbers_of_rows

    like = torch.zeros(1)
    with FakeTensorMode() as mode:
        assert list(numbers_of_rows(mode.from_tensor(like), 3, 2, 7).shape) == [3, 2]
    table = numbers_of_rows(like, 3, 2, 7)
    assert table is numbers_of_rows(like, 3, 2, 7) and table.tolist() == [[0, 1], [7, 8], [14, 15]]
    assert numbers_of_rows(like, 2, 1, -1).tolist() == [[-1], [-1]]


@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_buffer_of_narrow_states(name, in_place):
    """With an update, too, states are rounded after each token: the pool has the buffer's last ones."""
    torch = pytest.importorskip("torch")
    tokens, gates, _ = step(4)
    tokens, gates = ([torch.from_numpy(x) for x in arrays] for arrays in (tokens, gates))
    dtype, rows = getattr(torch, name), [0, 1, 2] if in_place else [4, 5, 2]
    pool = torch.from_numpy(states(6, V, K)).to(dtype)
    wanted, kept = pool.float(), torch.zeros(B, 4, HV, V, K).to(dtype)
    words = {"intermediate_states_buffer": kept, "initial_state_indices": None if in_place else torch.tensor(rows)}
    words = {**dict(zip(("A_log", "a", "dt_bias", "b"), gates)), **words}
    given = pool[:B] if in_place else pool
    o, _ = gated_delta_rule_mtp(*tokens, given, **words, disable_state_update=True)
    assert torch.equal(pool.float(), wanted)
    got, _ = gated_delta_rule_mtp(*tokens, given, **words, disable_state_update=False)
    wanted[rows] = kept.float()[:, 3]
    assert torch.equal(got, o) and torch.equal(pool.float(), wanted) and kept.float().any()
