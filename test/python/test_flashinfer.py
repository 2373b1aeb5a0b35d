# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's call: packed tokens, linear gates, states [N, H, V, K], buffers by the caller."""

import inspect

import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

from gdn.flashinfer import chunk_gated_delta_rule

BOUNDARIES = np.array([0, 30, 30, 70])


def packed(**sizes):
    x = make_inputs(N=3, v_first=True, **sizes)
    return [x.q[0], x.k[0], x.v[0], np.exp(x.g[0]), x.beta[0]], x.state


def expected(arguments, **kwargs):
    q, k, v, alpha, beta = (None if a is None else a[None] for a in arguments)
    o, state = gated_delta_rule(
        q, k, v, alpha, beta, cu_seqlens=BOUNDARIES, gate_domain="linear", v_first=True, **kwargs
    )
    return o[0], state


def test_values_and_states():
    arguments, initial = packed(K=64, V=48)
    o, state = chunk_gated_delta_rule(
        *arguments, initial_state=initial, output_final_state=True, cu_seqlens=BOUNDARIES
    )
    wanted = expected(arguments, initial_state=initial)
    assert rms_error(o, wanted[0]) < 1e-5 and rms_error(state, wanted[1]) < 1e-5
    np.testing.assert_array_equal(state[1], initial[1])


def test_a_bare_tensor_without_the_state():
    arguments, _ = packed()
    o = chunk_gated_delta_rule(*arguments, cu_seqlens=BOUNDARIES)
    assert isinstance(o, np.ndarray) and rms_error(o, expected(arguments)[0]) < 1e-5


def test_no_gate_no_beta():
    (q, k, v, _, _), _ = packed()
    o = chunk_gated_delta_rule(q, k, v, cu_seqlens=BOUNDARIES, scale=0.5)
    assert rms_error(o, expected([q, k, v, None, None], scale=0.5)[0]) < 1e-5


def test_query_heads_that_share_keys_and_values():
    arguments, _ = packed(H=4, HV=4)
    q, k, v, alpha, beta = arguments
    o = chunk_gated_delta_rule(q, k[:, :2], v[:, :2], alpha, beta, cu_seqlens=BOUNDARIES)
    shared = [np.repeat(x[:, :2], 2, axis=1) for x in (k, v)]
    assert rms_error(o, expected([q, *shared, alpha, beta])[0]) < 1e-5


def test_buffers_of_the_caller():
    arguments, initial = packed()
    output, states = np.empty_like(arguments[2]), np.empty_like(initial)
    result = chunk_gated_delta_rule(
        *arguments, output_final_state=True, cu_seqlens=BOUNDARIES, output=output, output_state=states
    )
    assert result[0] is output and result[1] is states
    wanted = expected(arguments)
    assert rms_error(output, wanted[0]) < 1e-5 and rms_error(states[[0, 2]], wanted[1][[0, 2]]) < 1e-5


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_state_of_no_tokens_is_left_as_it_is(library):
    """If the caller has given it; BOUNDARIES has a sequence without tokens."""
    arguments, initial = packed()
    states, cu = np.full_like(initial, 7), BOUNDARIES
    expect = chunk_gated_delta_rule(*arguments, initial_state=initial, output_final_state=True, cu_seqlens=cu)[1]
    if library == "torch":
        torch = pytest.importorskip("torch")
        arguments, initial, cu = [torch.from_numpy(a) for a in arguments], torch.from_numpy(initial), torch.tensor(cu)
        given = torch.from_numpy(states)
    else:
        given = states
    _, got = chunk_gated_delta_rule(
        *arguments, initial_state=initial, output_final_state=True, cu_seqlens=cu, output_state=given
    )
    assert got is given and (states[1] == 7).all()
    np.testing.assert_array_equal(states[[0, 2]], expect[[0, 2]])


def test_the_norm_is_ignored_as_flashinfer_does():
    arguments, _ = packed()
    plain = chunk_gated_delta_rule(*arguments, cu_seqlens=BOUNDARIES)
    flagged = chunk_gated_delta_rule(*arguments, cu_seqlens=BOUNDARIES, use_qk_l2norm_in_kernel=True)
    np.testing.assert_array_equal(flagged, plain)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    arguments, _ = packed(H=4, HV=4)
    arguments[1:3] = (x[:, :2].copy() for x in arguments[1:3])
    tensors = [torch.from_numpy(a) for a in arguments]
    o = chunk_gated_delta_rule(*tensors, cu_seqlens=torch.from_numpy(BOUNDARIES))
    np.testing.assert_array_equal(o.numpy(), chunk_gated_delta_rule(*arguments, cu_seqlens=BOUNDARIES))


#: Right checkpoint arguments.
CHECKPOINTS = {
    "checkpoint_every_n_tokens": 64, "state_checkpoints": np.zeros((1, 4, 64, 64), np.float32),
    "checkpoint_cu_starts": np.zeros(4, np.int64),
}


@pytest.mark.parametrize("error,match,changes", [
    (ValueError, "cu_seqlens: expected a tensor of boundaries", {"cu_seqlens": None}),
    (ValueError, "must be a multiple of the chunk size", {**CHECKPOINTS, "checkpoint_every_n_tokens": 100}),
    (ValueError, "must be non-negative", {"checkpoint_every_n_tokens": -1}),
    (ValueError, "must both be provided", {"checkpoint_every_n_tokens": 64}),
    (ValueError, "must be None", {**CHECKPOINTS, "checkpoint_every_n_tokens": 0}),
    (ValueError, "checkpoints must have dtype", {**CHECKPOINTS, "state_checkpoints": np.zeros((1, 1, 1, 1), int)}),
    (ValueError, "state_checkpoints must be 4D", {**CHECKPOINTS, "state_checkpoints": np.zeros(3, np.float32)}),
    (ValueError, "cu_starts must have 4 elements", {**CHECKPOINTS, "checkpoint_cu_starts": np.zeros(3, int)}),
    (ValueError, r"q: expected the shape \[T, H, channels\]", {"q": np.zeros((1, 70, 2, 64), np.float32)}),
    (ValueError, "v: expected a number of heads", {"v": np.zeros((70, 0, 64), np.float32)}),
    (ValueError, "k: expected as many heads as v has", {"v": np.zeros((70, 1, 64), np.float32)}),
    (TypeError, "k: expected a tensor", {"k": "k"}),
])
def test_wrong_calls(error, match, changes):
    (q, k, v, g, beta), _ = packed()
    with pytest.raises(error, match=match):
        chunk_gated_delta_rule(**{"q": q, "k": k, "v": v, "g": g, "beta": beta, "cu_seqlens": BOUNDARIES, **changes})


def test_signature():
    """FlashInfer 0.7's names, order and defaults."""
    assert str(inspect.signature(chunk_gated_delta_rule, eval_str=True)).replace("typing.", "") == (
        "(q: Any, k: Any, v: Any, g: Any = None, beta: Any = None, scale: float | None = None, "
        "initial_state: Any = None, output_final_state: bool = False, cu_seqlens: Any = None, "
        "use_qk_l2norm_in_kernel: bool = False, output: Any = None, output_state: Any = None, "
        "state_checkpoints: Any = None, checkpoint_cu_starts: Any = None, checkpoint_every_n_tokens: int = 0, "
        "use_cp: bool | str = 'auto', state_indices: Any = None, _cp_chunk_len: int | None = None, "
        "backend: str = 'auto', max_seqlen: int | None = None) -> Any"
    )
