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


#: Sequences with a token, none, more than keep states, and as many; begin rows, and rows of states, that some do not have.
LENGTHS, STEPS, FIRST = [1, 0, 6, 3, 3], 3, 1
BEGINS = torch.tensor([1, 20, 2, 0, 21])
SLOTS = torch.tensor([[3, 4, 5], [7, 8, 9], [10, 0, 11], [12, 13, 14], [15, 99, 16]])
ACCEPTED, PARENTS = torch.tensor([2, 1, 0, 2, 9]), torch.tensor([[-1, 0, 0], [-1, 0, 1], [0, 5, 0], [-1, 0, 0], [-1, 0, 0]])


def token_by_token(call, pool, begins, kept, parents):
    """The output, and `kept` with the states, by a call of each token that has a state, and one of those after them."""
    tensors, o, at = {name: call[name] for name in ("q", "k", "v", "g", "beta")}, torch.zeros_like(call["v"]), 0
    for n, (begin, length) in enumerate(zip(begins.tolist(), LENGTHS)):
        state, states, bounds = pool[begin % len(pool)][None].clone(), {}, [*range(min(length, STEPS) + 1)]
        for t, last in zip(bounds, bounds[1:] + [length]) if FIRST <= begin < len(pool) else ():
            if parents is not None and t < STEPS and 0 <= parents[n, t] < t - 1:
                state = states.get(int(parents[n, t]), state)
            tokens, final = slice(at + t, at + last), torch.empty_like(state)
            given = {name: x[:, tokens] for name, x in tensors.items()}
            o[:, tokens] = gdn.fused_recurrent_gated_delta_rule(**given, initial_state=state, final_state=final)[0]
            state = final
            if t < STEPS and t < length and FIRST <= SLOTS[n, t] < len(kept):
                kept[SLOTS[n, t]], states[t] = state[0], state
        at += length
    return o, kept


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channel_gates", [False, True])
@pytest.mark.parametrize("form", ["table", "accepted", "rows", "apart", "tree"])
def test_speculated_tokens(form, channel_gates, dtype):
    """States are cast after each token that keeps them, as calls of one token cast them."""
    call = make_call("chunk_kda" if channel_gates else "chunk_gated_delta_rule", sum(LENGTHS) + 2)
    call["cu_seqlens"] = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    pool, kept = states(24, dtype), states(30, dtype) if form in ("apart", "tree") else None
    words = {"state_indices": BEGINS.int(), "step_indices": SLOTS, "step_states": kept, "first_state": FIRST}
    words["final_state"], begins = pool if kept is None else None, BEGINS
    if form in ("table", "accepted"):
        words |= {"state_indices": SLOTS.int(), "step_indices": None}
        begins = SLOTS[:, 0]
    if form == "accepted":
        words["num_accepted_tokens"] = ACCEPTED
        begins = SLOTS.gather(1, ACCEPTED.clamp(1, STEPS)[:, None] - 1)[:, 0]
    words["parents"] = parents = PARENTS if form == "tree" else None
    target = pool if kept is None else kept
    before = pool.clone()
    o, after = token_by_token(call, before, begins, target.clone(), parents)
    out = torch.empty_like(o) if channel_gates else None
    got, last = gdn.fused_recurrent_gated_delta_rule(**call, initial_state=pool, out=out, **words)
    assert last is words["final_state"] and (out is None or got is out)
    assert torch.equal(got, o) and equal(target, after) and not equal(after, states(len(after), dtype))
    assert kept is None or equal(pool, before)


@pytest.mark.parametrize("T", [0, 1, 3, 5])
def test_speculated_tokens_of_a_batch(T):
    """The call of packed sequences, and that of sequences of one length."""
    call, pool = make_call("chunk_gated_delta_rule", 4 * T), states(20, TYPES[0])
    slots = torch.arange(12).reshape(4, 3) + 2
    packed, apart = pool.clone(), pool.clone()
    words = {"state_indices": slots, "has_initial_state": torch.tensor([True, False, True, True])}
    call["cu_seqlens"] = torch.arange(5) * T
    expected, _ = gdn.fused_recurrent_gated_delta_rule(**call, initial_state=packed, final_state=packed, **words)
    call = {name: x.reshape(4, T, *x.shape[2:]) for name, x in call.items() if name != "cu_seqlens"}
    o, _ = gdn.fused_recurrent_gated_delta_rule(**call, initial_state=apart, final_state=apart, **words)
    assert torch.equal(o, expected.reshape(o.shape)) and equal(apart, packed) and equal(apart, pool) == (not T)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_pool", [False, True])
def test_named_checkpoints(is_pool, dtype):
    """States inside a prefill in rows of the pool, or of an array of their own; a row of a final state has that."""
    call, rows = make_call("chunk_gated_delta_rule"), torch.tensor([[5, 9], [6, -1], [0, 7]])
    pool = states(12, dtype)
    kept = pool if is_pool else states(8, dtype)
    wide = pool.float()
    wide_kept = wide if is_pool else kept.float()
    words = {"state_indices": torch.tensor([1, 6, 2]), "checkpoint_state_indices": rows, "checkpoint_every_n_tokens": 64}
    words["first_state"] = 1
    before = pool.clone(), kept.clone()
    o, _ = gdn.chunk_gated_delta_rule(**call, initial_state=wide, final_state=wide, state_checkpoints=wide_kept, **words)
    got, _ = gdn.chunk_gated_delta_rule(**call, initial_state=pool, final_state=pool, state_checkpoints=kept, **words)
    assert torch.equal(got, o) and equal(pool, wide.to(dtype)) and equal(kept, wide_kept.to(dtype))
    assert not equal(pool, before[0]) and not equal(kept, before[1]) and equal(kept[0], before[1][0])


def test_what_is_refused():
    call = make_call("fused_recurrent_gated_delta_rule")
    pool, table = states(9, TYPES[0]), torch.arange(9).reshape(3, 3)
    for error, message, words in (
        (ValueError, "expected rows that differ, got 0 twice", {"state_indices": table * 0}),
        (ValueError, "final_state: expected initial_state, the pool", {"state_indices": table, "final_state": None}),
        (NotImplementedError, "final_state: expected None with step_states", {"step_states": pool.clone()}),
        (TypeError, "step_states: expected .* the type of", {"step_states": pool.to(TYPES[1]), "final_state": None}),
        (ValueError, r"parents: expected the shape \[N, steps\]", {"parents": table[:, 1:]}),
    ):
        words = {"state_indices": table[:, 0].clone(), "step_indices": table, "final_state": pool, **words}
        if words["state_indices"].dim() == 2:
            del words["step_indices"]
        with pytest.raises(error, match=message):
            gdn.fused_recurrent_gated_delta_rule(**call, initial_state=pool, **words)
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
    call = make_call("fused_recurrent_gated_delta_rule", 9)
    call["cu_seqlens"], words = torch.tensor([0, 3, 6, 9]), {"state_indices": torch.arange(9).reshape(3, 3)}
    call |= {"function": "fused_recurrent_gated_delta_rule", "initial_state": pool, "final_state": pool}
    assert gdn.supported(**call, **words)
    assert not gdn.supported(**call, **words, parents=torch.zeros(3, 2, dtype=torch.int32))


@pytest.mark.parametrize("is_packed", [False, True])
def test_speculated_tokens_wait_for_nothing(is_packed):
    """Tensors without data have no values that the host could look at."""
    from gdn import _narrow
    from gdn._arguments import Call

    call, pool = make_call("chunk_gated_delta_rule", 12), states(20, TYPES[0]).to("meta")
    call = {name: (x if is_packed else x.reshape(3, 4, *x.shape[2:])).to("meta") for name, x in call.items() if name[0] != "c"}
    table = torch.arange(9, device="meta").reshape(3, 3)
    call |= {"initial_state": pool, "final_state": pool, "state_indices": table, "num_accepted": table[0], "parents": table}
    call["cu_seqlens"] = torch.arange(4, device="meta") if is_packed else None
    calls = []

    def forward(*arguments):
        calls.append(given := Call.of(*arguments))
        return torch.empty_like(given.v), None

    tensors = {**dict.fromkeys(Call._fields[:-4]), **call}
    o, _ = _narrow.run(forward, Call(**tensors, scale=1.0, options=0, output_final_state=False, max_seqlen=0))
    assert o.shape == call["v"].shape and [given.q.shape[1] for given in calls] == [1, 1, 1, 12 if is_packed else 1]
