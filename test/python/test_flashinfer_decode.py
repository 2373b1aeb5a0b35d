# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's step of decoding: raw gates and logits, states that are updated in place, in order or in a pool."""

import inspect

import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

from gdn.flashinfer import gated_delta_rule_decode, gated_delta_rule_decode_pretranspose

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
    (NotImplementedError, "intermediate_states_buffer: states after each token", 2, {"intermediate_states_buffer": 0}),
    (NotImplementedError, "output_state_indices: states go back", 2, {"output_state_indices": np.zeros(B, int)}),
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
