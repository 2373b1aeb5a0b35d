# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Both functions against the recurrence in float64, on NumPy arrays."""

import ctypes
import mmap

import ml_dtypes
import numpy as np
import pytest
from reference import gated_delta_rule, make_inputs, rms_error

import gdn

TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# docs/Testing.md: 6e-3 for 16-bit operands, 1e-5 for float32.
TOLERANCE = {"float32": 1e-5, "float16": 6e-3, "bfloat16": 6e-3}


def chunk(q, k, v, g, beta, **kwargs):
    return gdn.chunk_gated_delta_rule(q, k, v, g, beta, **kwargs)


def recurrent(q, k, v, g, beta, **kwargs):
    return gdn.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, **kwargs)


FUNCTIONS = [chunk, recurrent]


def check(function, x, dtype="float32", reference=None, **kwargs):
    """Runs the function on x in a type and compares both results with the reference on the rounded inputs."""
    q, k, v = (a.astype(TYPES[dtype]) for a in (x.q, x.k, x.v))
    o, state = function(q, k, v, x.g, x.beta, output_final_state=True, **kwargs)
    expected_o, expected_state = gated_delta_rule(q, k, v, x.g, x.beta, **(reference or {}))
    assert o.dtype == v.dtype and o.shape == v.shape
    assert state.dtype == np.float32
    assert rms_error(o, expected_o) < TOLERANCE[dtype]
    assert rms_error(state, expected_state) < TOLERANCE[dtype]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [64, 128, 256])
@pytest.mark.parametrize("T", [0, 1, 63, 64, 65, 130])
def test_lengths(function, dtype, channels, T):
    check(function, make_inputs(T=T, K=channels, V=channels), dtype)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("K,V", [(1, 1), (16, 48), (60, 64), (100, 128), (128, 64), (64, 128), (130, 256)])
def test_channels_are_padded(function, dtype, K, V):
    x = make_inputs(K=K, V=V)
    check(function, x, dtype, initial_state=x.state, reference={"initial_state": x.state})


@pytest.mark.parametrize("types", [
    ("bfloat16", "bfloat16", "float32"), ("float16", "bfloat16", "bfloat16"), ("float32", "float32", "float16"),
])
@pytest.mark.parametrize("function,typed", [(chunk, 0), (recurrent, 2)], ids=["chunk", "recurrent"])
def test_different_types(function, typed, types):
    """Of q, k and v: the call is float32's, and o has the type that FLA gives it."""
    x = make_inputs(T=160)
    q, k, v = (a.astype(TYPES[dtype]) for a, dtype in zip((x.q, x.k, x.v), types))
    kwargs = {"initial_state": x.state.astype(np.float16), "output_final_state": True}
    expected, final = function(*(a.astype(np.float32) for a in (q, k, v)), x.g, x.beta, **kwargs)
    o, state = function(q, k, v, x.g, x.beta, **kwargs)
    np.testing.assert_array_equal(o, expected.astype(TYPES[types[typed]]))
    np.testing.assert_array_equal(state, final)
    out = np.zeros(o.shape, o.dtype)
    assert function(q, k, v, x.g, x.beta, out=out, **kwargs)[0] is out
    np.testing.assert_array_equal(out, o)
    with pytest.raises(TypeError, match=f"out: expected a tensor of {o.dtype}, got float64"):
        function(q, k, v, x.g, x.beta, out=out.astype(float), **kwargs)
    assert gdn.explain(q, k, v, x.g, x.beta).kernel.startswith("gdn_cpu_chunk_f32")


def transposed(array):
    """The same numbers in memory whose channels are the slowest: what a convolution leaves."""
    return np.ascontiguousarray(array.transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)


def apart(array):
    """The same numbers, every second element of a memory, the last one first."""
    return np.repeat(array[..., ::-1], 2, -1)[..., ::-2]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("T,K,V", [(1, 64, 64), (70, 128, 128), (70, 96, 192)])
@pytest.mark.parametrize("view", [transposed, apart])
def test_any_strides(function, dtype, T, K, V, view):
    """Of inputs and outputs: the results are those of contiguous arrays."""
    x = make_inputs(B=2, T=T, K=K, V=V)
    q, k, v = (a.astype(TYPES[dtype]) for a in (x.q, x.k, x.v))
    kwargs = {"initial_state": x.state, "output_final_state": True, "use_qk_l2norm_in_kernel": True, "scale": 0.3}
    o, state = function(q, k, v, x.g, x.beta, **kwargs)
    strided = [view(a) for a in (q, k, v)]
    assert all(a.strides[3] != a.itemsize for a in strided) or T == 1
    out, final = view(np.full_like(o, 7)), view(x.state)
    kwargs |= {"initial_state": final, "out": out, "final_state": final}
    function(*strided, x.g, x.beta, **kwargs)
    np.testing.assert_array_equal(out, o)
    np.testing.assert_array_equal(final, state)


def test_the_copy_of_other_strides_is_named():
    x = make_inputs(K=128, V=128)
    choice = gdn.explain(transposed(x.q), x.k, x.v, x.g, x.beta)
    assert choice.padded and "to 128 channels a head" in str(choice)
    assert not gdn.explain(x.q, x.k, x.v, x.g, x.beta).padded


def test_outputs_behind_the_last_boundary_are_zero_in_any_strides():
    x = make_inputs(T=20)
    out = transposed(np.full((1, 20, 4, 64), 7, np.float32))
    gdn.chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, cu_seqlens=np.array([0, 12]), out=out)
    assert (out[:, 12:] == 0).all() and (out[:, :12] != 7).all()


def test_what_a_sum_of_gates_is_rounded_by_does_not_add_up():
    # Behind a strong gate the sum begins anew; the weak ones behind it are rounded in each chunk, always the same way.
    x = make_inputs(T=25000, H=1, HV=1, K=16, V=16)
    x.g[:] = -1e-7
    x.g[:, 50] = -18
    x.beta[:, 100:] = 0
    check(chunk, x)


def test_padded_sequence_of_several_segments():
    check(chunk, make_inputs(T=5000, H=1, HV=1, K=24, V=40))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("heads", [(1, 1), (1, 5), (3, 3), (4, 8), (2, 8)])
@pytest.mark.parametrize("B", [1, 3])
def test_heads_and_batches(function, heads, B):
    check(function, make_inputs(B=B, H=heads[0], HV=heads[1]))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("v_first", [False, True])
@pytest.mark.parametrize("state_type", TYPES)
def test_states(function, dtype, v_first, state_type):
    x = make_inputs(B=2, K=64, V=64, v_first=v_first)
    state = x.state.astype(TYPES[state_type])
    check(
        function, x, dtype, initial_state=state, state_v_first=v_first,
        reference={"initial_state": state, "v_first": v_first},
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_state_layouts_differ_where_channels_do(function):
    x = make_inputs(K=48, V=80, v_first=True)
    check(
        function, x, initial_state=x.state, state_layout="vk",
        reference={"initial_state": x.state, "v_first": True},
    )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("boundaries", [[0, 70], [0, 1, 34, 34, 69, 70], [0, 0, 70, 70], [0, 10, 33]])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("with_state", [False, True])
def test_packed_sequences(function, boundaries, index_type, with_state):
    x = make_inputs(N=len(boundaries) - 1)
    cu_seqlens = np.array(boundaries, index_type)
    extra = {"initial_state": x.state} if with_state else {}
    check(function, x, cu_seqlens=cu_seqlens, reference={"cu_seqlens": boundaries, **extra}, **extra)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
def test_l2norm(function, dtype):
    x = make_inputs()
    x.q, x.k = x.q * 3, x.k * 0.2
    check(function, x, dtype, use_qk_l2norm_in_kernel=True, reference={"l2norm": True})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
def test_l2norm_of_rows_of_all_lengths(function, dtype):
    """The longest is some 1e4 times as long as the shortest but for those of zeros, whose values are large."""
    x, random = make_inputs(T=130, K=128, V=128), np.random.default_rng(1)
    x.q, x.k = (a * np.exp(2 * random.standard_normal((*a.shape[:3], 1))) for a in (x.q, x.k))
    x.k[:, ::5], x.v[:, ::5], x.q[:, ::7] = 0, x.v[:, ::5] * 1000, 0
    check(function, x, dtype, use_qk_l2norm_in_kernel=True, reference={"l2norm": True})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 0.3, -2.0, 0.0, 1e-3])
@pytest.mark.parametrize("dtype", TYPES)
def test_scale(function, scale, dtype):
    check(function, make_inputs(), dtype, scale=scale, reference={"scale": scale})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("gate_type", TYPES)
def test_gate_domains(function, gate_type):
    x = make_inputs()
    g, beta = x.g.astype(TYPES[gate_type]), x.beta.astype(TYPES[gate_type])
    x.g, x.beta = g, beta
    check(function, x)
    x.g = np.exp(g.astype(np.float32)).astype(TYPES[gate_type])
    check(function, x, gate_domain="linear", reference={"gate_domain": "linear"})
    x.g = (g.astype(np.float32) * 20 + 3).astype(TYPES[gate_type])
    A_log = np.array([-2, 0.1, 1, -5], np.float32).astype(TYPES[gate_type])
    for dt_bias in (None, np.array([0.5, -0.5, 0, 3], np.float32)):
        reference = {"gate_domain": "raw", "A_log": A_log, "dt_bias": dt_bias}
        check(function, x, use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias, reference=reference)
        check(function, x, gate_domain="raw", A_log=A_log, dt_bias=dt_bias, reference=reference)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gates_that_close(function):
    """A gate of minus infinity (or a decay of 0) forgets everything before it."""
    x = make_inputs()
    x.g[:, 20] = -np.inf
    check(function, x)
    x.g = np.exp(x.g)
    check(function, x, gate_domain="linear", reference={"gate_domain": "linear"})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_gate_and_no_beta(function):
    x = make_inputs()
    x.g = None
    check(function, x)
    x.beta = None
    check(function, x)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("doubled", [False, True])
def test_beta_logits(function, doubled):
    x = make_inputs()
    x.beta = x.beta * 8 - 4
    check(
        function, x, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=doubled,
        reference={"beta_domain": "doubled_logit" if doubled else "logit"},
    )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
def test_views_of_one_projection(function, dtype):
    """q, k and v out of one array, gates transposed, states in a padded pool: no copy, the same numbers."""
    x = make_inputs(H=2, HV=2)
    fused = np.concatenate([x.q, x.k, x.v], axis=3).astype(TYPES[dtype])
    pool = np.zeros((1, 2, 64, 80), np.float32)
    pool[..., :64] = x.state
    views = [fused[..., i * 64 : i * 64 + 64] for i in range(3)]
    g = np.ascontiguousarray(x.g.transpose(0, 2, 1)).transpose(0, 2, 1)
    o, state = function(*views, g, x.beta, initial_state=pool[..., :64], output_final_state=True)
    dense = [np.ascontiguousarray(view) for view in views]
    expected = function(*dense, x.g, x.beta, initial_state=x.state, output_final_state=True)
    np.testing.assert_array_equal(np.asarray(o, np.float32), np.asarray(expected[0], np.float32))
    np.testing.assert_array_equal(state, expected[1])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("state_type", TYPES)
def test_given_outputs(function, state_type):
    x = make_inputs()
    wide = np.full((1, 70, 4, 96), np.nan, np.float32)
    out, state = wide[..., :64], np.empty(x.state.shape, TYPES[state_type])
    o, final = function(x.q, x.k, x.v, x.g, x.beta, out=out, final_state=state)
    assert o is out and final is state
    expected = gated_delta_rule(x.q, x.k, x.v, x.g, x.beta)
    assert rms_error(o, expected[0]) < 1e-5
    assert rms_error(state, expected[1]) < (1e-5 if state_type == "float32" else 6e-3)
    assert np.isnan(wide[..., 64:]).all()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("channels", [64, 60])
def test_state_in_place(function, channels):
    x = make_inputs(K=channels, V=channels)
    expected = gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, initial_state=x.state)[1]
    final = function(x.q, x.k, x.v, x.g, x.beta, initial_state=x.state, final_state=x.state)[1]
    assert final is x.state
    assert rms_error(x.state, expected) < 1e-5


def test_inputs_are_only_read():
    x = make_inputs()
    arrays = [x.q, x.k, x.v, x.g, x.beta, x.state]
    for array in arrays:
        array.flags.writeable = False
    before = [array.copy() for array in arrays]
    check(chunk, x, initial_state=x.state, reference={"initial_state": x.state})
    for array, copy in zip(arrays, before):
        np.testing.assert_array_equal(array, copy)


def test_results_do_not_depend_on_threads(monkeypatch):
    x = make_inputs(B=3, T=500, H=4, HV=8)
    results = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("GDN_NUM_THREADS", threads)
        results.append(chunk(x.q, x.k, x.v, x.g, x.beta, output_final_state=True))
    for o, state in results[1:]:
        np.testing.assert_array_equal(o, results[0][0])
        np.testing.assert_array_equal(state, results[0][1])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_sequence_does_not_depend_on_its_neighbours(function):
    """NaN in one sequence, or one head, stays there."""
    x = make_inputs()
    expected = function(x.q, x.k, x.v, x.g, x.beta, cu_seqlens=np.array([0, 33, 70]))[0]
    x.v[:, :33] = np.nan
    o = function(x.q, x.k, x.v, x.g, x.beta, cu_seqlens=np.array([0, 33, 70]))[0]
    np.testing.assert_array_equal(o[:, 33:], expected[:, 33:])
    assert np.isnan(o[:, :33]).all()


@pytest.mark.parametrize("name,first", [("q", 40), ("k", 32), ("v", 32), ("g", 32), ("beta", 32)])
def test_what_a_nan_reaches(name, first):
    """In chunks also the earlier tokens of its chunk (docs/Spec.md), token by token none; no other head in both."""
    for function, reached in ((chunk, first), (recurrent, 40)):
        # Long enough to run by chunks on all processors.
        x = make_inputs(T=160, H=4, HV=4)
        expected, _ = function(x.q, x.k, x.v, x.g, x.beta)
        getattr(x, name)[0, 40, 1] = np.nan
        o, _ = function(x.q, x.k, x.v, x.g, x.beta)
        np.testing.assert_array_equal(o[:, :, [0, 2, 3]], expected[:, :, [0, 2, 3]])
        np.testing.assert_array_equal(o[:, :reached, 1], expected[:, :reached, 1])
        assert np.isnan(o[:, 40, 1]).all()
        if name == "q":
            np.testing.assert_array_equal(o[:, 41:, 1], expected[:, 41:, 1])
        else:
            assert np.isnan(o[:, reached:, 1]).all()


def test_arrays_of_other_libraries():
    """Anything with __dlpack__ is taken."""

    class Foreign:
        def __init__(self, array):
            self.array, self.shape = array, array.shape

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = make_inputs()
    o, _ = chunk(*(Foreign(array) for array in (x.q, x.k, x.v, x.g, x.beta)))
    np.testing.assert_array_equal(o, chunk(x.q, x.k, x.v, x.g, x.beta)[0])


class Guarded:
    """Arrays that end where memory does: one byte beyond, before or after, ends the process."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.mappings = []

    def place(self, array, at_end):
        page = mmap.PAGESIZE
        pages = -(-array.nbytes // page)
        mapping = mmap.mmap(-1, (pages + 2) * page)
        self.mappings.append(mapping)
        start = np.frombuffer(mapping, np.uint8).ctypes.data
        # Protection 0: neither read nor written.
        for guard in (start, start + (pages + 1) * page):
            assert self.libc.mprotect(ctypes.c_void_p(guard), page, 0) == 0
        offset = (pages + 1) * page - array.nbytes if at_end else page
        view = np.frombuffer(mapping, array.dtype, array.size, offset).reshape(array.shape)
        view[...] = array
        return view


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("channels", [64, 60, 128, 256])
@pytest.mark.parametrize("T", [1, 33, 70])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_beyond_the_arrays_is_touched(function, dtype, channels, T, at_end):
    guarded = Guarded()
    x = make_inputs(T=T, H=1, HV=2, K=channels, V=channels)

    def place(array):
        return guarded.place(array, at_end)

    out = place(np.zeros(x.v.shape, TYPES[dtype]))
    x.q, x.k, x.v = (place(a.astype(TYPES[dtype])) for a in (x.q, x.k, x.v))
    x.g, x.beta, x.state = (place(a) for a in (x.g, x.beta, x.state))
    check(function, x, dtype, initial_state=x.state, out=out, reference={"initial_state": x.state})
