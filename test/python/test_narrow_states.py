# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States in 8 bits: those of a call with states in float32, cast once; rows of a pool that are nobody's stay."""

import pytest

torch = pytest.importorskip("torch")

import gdn  # noqa: E402
import gdn.flashinfer  # noqa: E402

TYPES = [torch.float8_e4m3fn, torch.float8_e5m2]
FUNCTIONS = ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule", "chunk_kda"]
ENDS = torch.tensor([0, 64, 65, 200])


def make_call(function, T=200):
    torch.manual_seed(T)
    q, v = torch.randn(1, T, 2, 64) / 8, torch.randn(1, T, 2, 64)
    gates = (1, T, 2, 64) if function == "chunk_kda" else (1, T, 2)
    return {"q": q, "k": q.roll(1, 1), "v": v, "g": -torch.rand(gates), "beta": torch.rand(1, T, 2), "cu_seqlens": ENDS}


def states(count, dtype):
    return torch.randn(count, 2, 64, 64, generator=torch.Generator().manual_seed(count)).to(dtype)


def equal(x, y):
    return torch.equal(x.view(torch.uint8), y.view(torch.uint8))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_initial_and_final_states(function, dtype):
    """Apart, one tensor, and one alone."""
    call, initial, run = make_call(function), states(3, dtype), getattr(gdn, function)
    o, state = run(**call, initial_state=initial.float(), output_final_state=True)
    for final in (torch.empty_like(initial), initial.clone()):
        first = initial if final.data_ptr() != initial.data_ptr() else final
        got, last = run(**call, initial_state=first, final_state=final)
        assert last is final and torch.equal(got, o) and equal(final, state.to(dtype))
    same = initial.clone()
    assert equal(run(**call, initial_state=same, final_state=same)[1], state.to(dtype))
    got, last = run(**call, initial_state=initial, output_final_state=True)
    assert last.dtype is torch.float32 and torch.equal(last, state)
    begin = run(**call, output_final_state=True)[1]
    assert equal(run(**call, final_state=torch.empty_like(initial))[1], begin.to(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("rows,there", [([5, 2, 7], [0, 1, 2]), ([0, 6, -1], [1]), ([1, 9, 1], []), ([3, 0, 8], [0, 2])])
def test_pools(function, dtype, rows, there):
    """Padded pages, with the first two rows nobody's."""
    pages = torch.zeros(9, 2 * 64 * 64 + 48, dtype=torch.uint8).view(dtype)
    pool = pages[:, : 2 * 64 * 64].unflatten(1, (2, 64, 64))
    pool.copy_(states(9, dtype))
    call, run, before = make_call(function), getattr(gdn, function), pool.clone()
    wide, indices = before.float(), torch.tensor(rows)
    words = {"state_indices": indices, "first_state": 2}
    o, _ = run(**call, initial_state=wide, final_state=wide, **words)
    got, last = run(**call, initial_state=pool, final_state=pool, **words)
    assert last is pool and torch.equal(got, o)
    named = [rows[n] for n in there]
    assert equal(pool[named], wide[named].to(dtype)) if named else True
    others = [row for row in range(9) if row not in named]
    assert equal(pool[others], before[others]) and not pages.view(torch.uint8)[:, 2 * 64 * 64 :].any()


@pytest.mark.parametrize("dtype", TYPES)
def test_checkpoints(dtype):
    """Rows that no sequence has stay."""
    call, kept = make_call("chunk_gated_delta_rule"), states(6, dtype)
    words = {"checkpoint_cu_starts": torch.tensor([1, 2, 2, 4]), "checkpoint_every_n_tokens": 64}
    wide, before = kept.float(), kept.clone()
    gdn.chunk_gated_delta_rule(**call, **words, state_checkpoints=wide)
    gdn.chunk_gated_delta_rule(**call, **words, state_checkpoints=kept)
    assert equal(kept, wide.to(dtype)) and equal(kept[[0, 4, 5]], before[[0, 4, 5]]) and not equal(kept, before)


@pytest.mark.parametrize("dtype", TYPES)
def test_flashinfer(dtype):
    """Its prefill, with rows of two pools, too; the state of a sequence without tokens stays."""
    call, ends = make_call("chunk_gated_delta_rule"), torch.tensor([0, 64, 64, 200])
    tokens = {name: x[0] for name, x in call.items() if name != "cu_seqlens"}
    tokens["g"] = tokens["g"].exp()
    for indices in (None, torch.tensor([4, 0, 2])):
        initial, final = states(5 if indices is not None else 3, dtype), states(6 if indices is not None else 3, dtype)
        wide = final.float()
        words = {"cu_seqlens": ends, "output_final_state": True, "state_indices": indices}
        o, _ = gdn.flashinfer.chunk_gated_delta_rule(**tokens, **words, initial_state=initial.float(), output_state=wide)
        got, last = gdn.flashinfer.chunk_gated_delta_rule(**tokens, **words, initial_state=initial, output_state=final)
        assert last is final and torch.equal(got, o) and equal(final, wide.to(dtype))


def test_what_is_refused():
    call = make_call("fused_recurrent_gated_delta_rule")
    pool, table = states(9, TYPES[0]), torch.arange(3 * 135).reshape(3, 135) % 9
    for rows in ({"state_indices": table}, {"state_indices": table[:, 0].clone(), "step_indices": table}):
        with pytest.raises(NotImplementedError, match="expected no states after tokens"):
            gdn.fused_recurrent_gated_delta_rule(**call, initial_state=pool, final_state=pool, **rows)
    with pytest.raises(ValueError, match="final_state: expected initial_state, the pool"):
        words = {"state_indices": torch.arange(3), "final_state": states(9, TYPES[1])}
        gdn.chunk_gated_delta_rule(**call, initial_state=pool, **words)
    with pytest.raises(ValueError, match=r"initial_state: expected the shape \[N, HV, K, V\]"):
        gdn.chunk_gated_delta_rule(**call, initial_state=pool)
    call["q"].requires_grad_()
    with pytest.raises(TypeError, match="initial_state: expected a tensor of float32"):
        gdn.chunk_gated_delta_rule(**call, initial_state=pool[:3])


def test_explain():
    """The kernels are those of states in float32."""
    call, pool = make_call("chunk_gated_delta_rule"), states(9, TYPES[0])
    words = {"state_indices": torch.arange(3), "first_state": 1}
    choice = gdn.explain(**call, initial_state=pool, final_state=pool, **words)
    assert choice.kernel == gdn.explain(**call, initial_state=pool.float(), **words).kernel
    assert gdn.supported(**call, initial_state=pool[:3]) and not gdn.supported(**call, initial_state=pool)
