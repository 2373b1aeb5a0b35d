# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.fla's functions for callers of FLA's, without FLA."""

import inspect
import warnings

import pytest
from reference import gated_delta_rule, rms_error
from test_torch import tensors

import gdn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("function", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
def test_unknown_keywords(function):
    """The functions for FLA's callers ignore them, with one warning a name; our own refuse them."""
    q, k, v, g, beta = tensors()
    name = f"use_cache_{function}"
    ours, for_fla = getattr(gdn, function), getattr(gdn.fla, function)
    with pytest.raises(TypeError, match=f"{name}: expected an argument that the function has"):
        ours(q, k, v, g, beta=beta, **{name: True})
    with pytest.warns(UserWarning, match=f"gdn.fla: {name} is ignored"):
        o, _ = for_fla(q, k, v, g, beta=beta, **{name: True})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for_fla(q, k, v, g, beta=beta, **{name: True})
    assert torch.equal(o, ours(q, k, v, g, beta=beta)[0])
    assert inspect.signature(for_fla) == inspect.signature(ours)


@pytest.mark.parametrize("speculates", [False, True])
def test_pools_of_engines(speculates):
    """What FLA has below `fused_recurrent_kda`: rows of sequences, or of the states after their tokens."""
    N, T, heads, channels = 3, 3 if speculates else 1, 2, 32
    torch.manual_seed(0)
    q, k, v, g = (torch.randn(1, N * T, heads, channels) for _ in range(4))
    g, beta, pool = -g.abs(), torch.rand(1, N * T, heads), torch.randn(11, heads, channels, channels)
    before, ends = pool.clone(), torch.arange(N + 1) * T
    slots = torch.tensor([[7, 1, 4], [0, 9, 3], [8, 5, 2]])[:, :T]
    accepted = torch.tensor([3, 1, 2]) if speculates else None
    out = torch.empty_like(v)
    o, states = gdn.fla.fused_recurrent_kda_fwd(
        q, k, v, g, beta, initial_state=pool, state_v_first=True, use_qk_l2norm_in_kernel=True, cu_seqlens=ends, out=out,
        ssm_state_indices=slots if speculates else slots[:, 0], num_accepted_tokens=accepted,
    )  # fmt: skip
    assert o is out and states is pool
    first = [int(row[accepted[n] - 1 if speculates else 0]) for n, row in enumerate(slots)]
    for n in range(N):
        state = before[first[n]][None].double().numpy()
        for t in range(n * T, n * T + T):
            tokens = (x[:, t : t + 1].double().numpy() for x in (q, k, v, g, beta))
            wanted, state = gated_delta_rule(*tokens, initial_state=state, l2norm=True, v_first=True)
            assert rms_error(o[:, t : t + 1], wanted) < 1e-5
            assert rms_error(pool[slots[n, t - n * T]], state[0]) < 1e-5
    others = [row for row in range(11) if row not in slots]
    assert torch.equal(pool[others], before[others])
    _, states = gdn.fla.fused_recurrent_kda_fwd(q, k, v, g, beta, inplace_final_state=False, output_final_state=True)
    assert states.shape == (1, heads, channels, channels)
