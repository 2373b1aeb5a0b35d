# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong calls: the right exception with the argument's name, the rule and what came; nothing written.

Each case changes one thing of a right call and runs on NumPy arrays and, where torch is, on its tensors.
"""

import warnings

import numpy as np
import pytest
from reference import make_inputs

import gdn

try:
    import torch
except ImportError:
    torch = None

B, T, H, HV, K, V = 1, 20, 2, 4, 64, 64


def right_call():
    x = make_inputs(B, T, H, HV, K, V)
    return {
        "q": x.q,
        "k": x.k,
        "v": x.v,
        "g": x.g,
        "beta": x.beta,
        "initial_state": x.state,
        "out": np.full((B, T, HV, V), 7, np.float32),
        "final_state": np.full((B, HV, K, V), 7, np.float32),
    }


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def expanded(*shape):
    """A tensor all of whose heads are one."""
    return np.broadcast_to(np.zeros((*shape[:2], 1, shape[3]), np.float32), shape)


def folded(*shape, strides):
    """A tensor that lies over itself."""
    memory = np.zeros(20000, np.float32)
    return np.lib.stride_tricks.as_strided(memory[5000:], shape, [4 * stride for stride in strides])


CASES = []


def case(error, match, **changes):
    CASES.append(pytest.param(error, match, changes, id=f"{len(CASES)}-{'-'.join(changes)}"))


# Ranks and shapes.
SHAPES = {
    "q": (B, T, H, K), "k": (B, T, H, K), "v": (B, T, HV, V), "g": (B, T, HV), "beta": (B, T, HV),
    "initial_state": (B, HV, K, V), "out": (B, T, HV, V), "final_state": (B, HV, K, V),
}
for name, shape in SHAPES.items():
    case(ValueError, rf"{name}: expected the shape \[.*got \[", **{name: zeros(*shape[:-1])})
    case(ValueError, rf"{name}: expected the shape \[.*got (\[|5 dim)", **{name: zeros(*shape, 1)})
    if name not in ("q",):
        case(ValueError, rf"{name}: expected the shape", **{name: zeros(shape[0] + 1, *shape[1:])})
        case(ValueError, rf"{name}: expected the shape", **{name: zeros(shape[0], shape[1] + 1, *shape[2:])})
    if name in ("k", "g", "beta", "out", "initial_state", "final_state"):
        case(ValueError, rf"{name}: expected the shape", **{name: zeros(*shape[:2], shape[2] + 1, *shape[3:])})
    case((ValueError, TypeError), rf"^{name}: expected", **{name: zeros()})
case(ValueError, "k: expected the shape", q=zeros(B, T, H + 1, K))
case(ValueError, "k: expected the shape", q=zeros(B, T, H, K + 1))
case(ValueError, "k: expected the shape", q=zeros(B + 1, T, H, K))
case(ValueError, "v: expected a number of heads that is a multiple of q's 2, got 3", v=zeros(B, T, 3, V))
case(ValueError, "v: expected a number of heads that is a multiple of q's 2, got 1", v=zeros(B, T, 1, V))
case(ValueError, "v: expected a number of heads", v=zeros(B, T, 0, V))
case(ValueError, "q: expected at least one head, got none", q=zeros(B, T, 0, K), k=zeros(B, T, 0, K))
case(ValueError, "q: expected K of 1 to 256, got K = 257", q=zeros(B, T, H, 257), k=zeros(B, T, H, 257))
case(ValueError, "q: expected K of 1 to 256, got K = 0", q=zeros(B, T, H, 0), k=zeros(B, T, H, 0))
case(ValueError, "v: expected V of 1 to 256, got V = 300", v=zeros(B, T, HV, 300))
case(ValueError, "v: expected V of 1 to 256, got V = 0", v=zeros(B, T, HV, 0))

# Element types.
for name, shape in SHAPES.items():
    for dtype in ("float64", "int32", "bool", "complex64"):
        case(TypeError, rf"{name}: expected a tensor of .*got", **{name: zeros(*shape, dtype=dtype)})
case(TypeError, "out: expected a tensor of float32, got float16", out=zeros(*SHAPES["out"], dtype=np.float16))

# What is no tensor.
for name in SHAPES:
    for value in ([1.0], "tensor", 3):
        case(TypeError, rf"{name}: expected a (torch.Tensor|tensor)", **{name: value})
for name in ("q", "k", "v"):
    case(TypeError, rf"{name}: expected a (torch.Tensor|tensor)", **{name: None})

# Strides.
for name, strides in (
    ("out", (0, 64, 32, 1)), ("out", (10240, 256, 63, 1)), ("out", (0, 256, -32, 1)),
    ("final_state", (0, 4096, 1, 1)), ("final_state", (0, 64, 64, 1)),
):
    case(ValueError, f"{name}: expected a tensor whose elements have memory of their own", **{
        name: folded(*SHAPES[name], strides=strides)
    })
# NumPy's expanded arrays are read-only, torch's are not.
case(ValueError, "out: expected (a tensor whose elements|an array that can)", out=expanded(*SHAPES["out"]))
case(ValueError, "final_state: expected (a tensor whose|an array that)", final_state=expanded(*SHAPES["final_state"]))

# Packed sequences.
for boundaries, match in (
    ([0, 30], r"cu_seqlens: expected boundaries of at most T = 20, got cu_seqlens\[1\] = 30"),
    ([0, 12, 9, 20], r"cu_seqlens: expected boundaries that ascend, got cu_seqlens\[2\] = 9 after 12"),
    ([1, 20], r"cu_seqlens: expected cu_seqlens\[0\] = 0, got 1"),
    ([-1, 20], r"cu_seqlens: expected cu_seqlens\[0\] = 0, got -1"),
    ([0, -5, 20], "cu_seqlens: expected boundaries that ascend"),
    ([0], "cu_seqlens: expected at least two boundaries, got 1"),
    ([], "cu_seqlens: expected at least two boundaries, got 0"),
):
    n = max(len(boundaries) - 1, 1)
    states = {name: zeros(n, HV, K, V) for name in ("initial_state", "final_state")}
    case(ValueError, match, cu_seqlens=np.array(boundaries, np.int64), **states)
case(TypeError, "cu_seqlens: expected a tensor of int32 or int64, got float32", cu_seqlens=zeros(2))
case(TypeError, "cu_seqlens: expected a tensor of int32 or int64, got int16", cu_seqlens=np.array([0, T], np.int16))
case(ValueError, "cu_seqlens: expected the shape", cu_seqlens=np.array([[0, T]]))
case(TypeError, "cu_seqlens: expected a", cu_seqlens=[0, T])
case(ValueError, "initial_state: expected the shape", cu_seqlens=np.array([0, 10, T]), final_state=None)
case(
    ValueError, r"q: expected B = 1 with cu_seqlens", cu_seqlens=np.array([0, T]),
    q=zeros(2, T, H, K), k=zeros(2, T, H, K), v=zeros(2, T, HV, V),
)

# Numbers and words.
for value in (float("nan"), float("inf"), float("-inf")):
    case(ValueError, f"scale: expected a finite number, got {value}", scale=value)
for value in ("1", [1.0], True, 1j):
    case(TypeError, "scale: expected a number or None", scale=value)
for value in (0, 1, 48, 128, "64", None):
    case(ValueError, "`chunk_size` must be 16, 32, or 64", chunk_size=value)
for value in ("ln", "LOG", 3, [], {}, np.zeros(3)):
    case(ValueError, "gate_domain: expected 'log', 'linear', 'raw' or 'bounded'", gate_domain=value)
for value in ("kk", 1, [], np.zeros(3)):
    case(ValueError, "state_layout: expected 'kv' or 'vk'", state_layout=value)
case(ValueError, "state_layout: expected 'vk' with state_v_first", state_layout="kv", state_v_first=True)
case(ValueError, "gate_domain: expected 'raw' with use_gate_in_kernel", gate_domain="log", use_gate_in_kernel=True)
case(ValueError, "A_log: expected a tensor", use_gate_in_kernel=True)
case(ValueError, "A_log: expected a tensor", gate_domain="raw")
case(ValueError, "g: expected a tensor with a raw gate", gate_domain="raw", g=None, A_log=zeros(HV))
case(ValueError, "A_log: expected the shape", gate_domain="raw", A_log=zeros(HV + 1))
case(ValueError, "A_log: expected the shape", gate_domain="raw", A_log=zeros(HV, 1))
case(TypeError, "A_log: expected a tensor of", gate_domain="raw", A_log=zeros(HV, dtype=np.int64))
case(ValueError, "dt_bias: expected the shape", gate_domain="raw", A_log=zeros(HV), dt_bias=zeros(H))
case(TypeError, "dt_bias: expected a", gate_domain="raw", A_log=zeros(HV), dt_bias=0.5)
for value in (1.5, "20", True):
    case(TypeError, "max_seqlen: expected an integer or None", max_seqlen=value)
case(ValueError, "max_seqlen: expected at most 2\\^63 - 1, got 1180591620717411303424", max_seqlen=2**70)
case(ValueError, "scale: expected a finite number", scale=10**400)
for boundaries in ([[0, T]], [0.0, T], [0.0, float("nan")]):
    case(
        ValueError, r"cu_seqlens_cpu: expected integers of the shape \[N \+ 1\], got (int|float)64 of the shape \[",
        cu_seqlens_cpu=np.array(boundaries),
    )
for name in ("cu_seqlens_cpu", "chunk_indices"):
    case(TypeError, f"{name}: expected a tensor", **{name: [0, T]})
case(ValueError, "allow_neg_eigval=True` requires", allow_neg_eigval=True)
case(ValueError, "beta: expected a tensor of logits", use_beta_sigmoid_in_kernel=True, beta=None)

# What is not there, was, or never has been.
case(NotImplementedError, "cp_context: context parallelism", cp_context=object())
case(DeprecationWarning, "head_first has been removed", head_first=True)
case(ValueError, "Cannot pass both", state_v_first=True, transpose_state_layout=True)
case(TypeError, "use_qk_l2norm: expected an argument that the function has", use_qk_l2norm=True)

ARRAYS = [
    *SHAPES, "cu_seqlens", "A_log", "dt_bias", "state_indices", "has_initial_state", "step_states", "step_indices", "num_accepted",
    "parents", "checkpoint_cu_starts", "checkpoint_every_n_tokens",
]  # fmt: skip


def run(function, arguments):
    """Calls the function on arguments by name and returns what it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises(Exception) as caught:
            function(**arguments)
    return caught


def check(caught, error, match, arguments):
    assert isinstance(caught.value, error), repr(caught.value)
    assert caught.match(match)
    for name in ("out", "final_state"):
        array = arguments.get(name)
        if hasattr(array, "shape") and np.size(array):
            assert (np.asarray(array)[...] == np.asarray(array).flat[0]).all(), f"{name} was written"


@pytest.mark.parametrize("error,match,changes", CASES)
def test_arrays(error, match, changes):
    arguments = {**right_call(), **changes}
    check(run(gdn.chunk_gated_delta_rule, arguments), error, match, arguments)


def to_torch(array):
    # from_numpy does not take expanded arrays as they are.
    if 0 in array.strides and array.size:
        return torch.from_numpy(array[:, :, :1].copy()).expand(*array.shape)
    return torch.from_numpy(array)


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("error,match,changes", CASES)
def test_tensors(error, match, changes):
    arguments = {**right_call(), **changes}
    for name in ARRAYS:
        if isinstance(arguments.get(name), np.ndarray):
            arguments[name] = to_torch(arguments[name])
    check(run(gdn.chunk_gated_delta_rule, arguments), error, match, arguments)


@pytest.mark.parametrize("error,match,changes", CASES)
def test_supported_says_the_same(error, match, changes):
    arguments = {**right_call(), **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        answer = gdn.supported(**arguments)
    assert not answer and len(answer.reasons) == 1


def test_the_right_call_is_right():
    """So each case above fails for its change alone."""
    arguments = right_call()
    o, state = gdn.chunk_gated_delta_rule(**arguments)
    assert not (o == 7).any() and not (state == 7).all()


def test_there_are_enough():
    assert len(CASES) >= 100


@pytest.mark.parametrize("name", ["gk", "gv"])
def test_recurrent_gates_twice(name):
    x = make_inputs()
    with pytest.raises(NotImplementedError, match=f"{name}: gates are those of a head, or of its key channels"):
        gdn.fused_recurrent_gated_delta_rule(x.q, x.k, x.v, x.g, **{name: x.g})


def test_overlapping_outputs():
    arguments = right_call()
    memory = np.zeros((B, T, HV, 3 * V), np.float32)
    for name, other in (("v", "out"), ("initial_state", "final_state"), ("final_state", "out")):
        call = dict(arguments)
        size = max(np.prod(SHAPES[name]), np.prod(SHAPES[other]))
        flat = np.zeros(size + 1, np.float32)
        call[name] = flat[: np.prod(SHAPES[name])].reshape(SHAPES[name])
        call[other] = flat[1 : np.prod(SHAPES[other]) + 1].reshape(SHAPES[other])
        with pytest.raises(ValueError, match="expected memory apart from"):
            gdn.chunk_gated_delta_rule(**call)
    call = dict(arguments, v=memory[..., :V], out=memory[..., V : 2 * V])
    with pytest.raises(ValueError, match="out: expected memory apart from v"):
        gdn.chunk_gated_delta_rule(**call)


@pytest.mark.parametrize("name,other", [
    *(("final_state", other) for other in ("q", "k", "v", "g", "beta", "A_log", "dt_bias", "cu_seqlens")),
    *(("out", other) for other in ("q", "k", "g", "beta", "A_log", "dt_bias", "cu_seqlens", "initial_state")),
])
def test_outputs_over_inputs(name, other):
    """Memory of an output that begins with an input, which other threads still read."""
    arguments = right_call()
    arguments.update(
        gate_domain="raw", A_log=zeros(HV), dt_bias=zeros(HV), cu_seqlens=np.array([0, T], np.int64)
    )
    memory = np.zeros(1 << 15, np.float32)
    for key in (name, other):
        array = arguments[key]
        arguments[key] = memory[: array.nbytes // 4].view(array.dtype).reshape(array.shape)
        arguments[key][...] = array
    before = memory.copy()
    with pytest.raises(ValueError, match=f"{name}: expected memory apart from {other}, got tensors that overlap"):
        gdn.chunk_gated_delta_rule(**arguments)
    np.testing.assert_array_equal(memory, before)
    assert not gdn.supported(**arguments)


def test_a_state_in_place_is_one_view():
    """Whatever stride stands beside an extent of 1."""
    x = make_inputs(B, T, H, HV, K, V)
    pool = np.zeros((3, HV, K, V), np.float32)
    pool[1] = x.state[0]
    expected = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, initial_state=x.state, output_final_state=True)
    initial, final = np.lib.stride_tricks.as_strided(pool[1:2], strides=(4, *pool.strides[1:])), pool[1:2]
    assert initial.strides != final.strides
    o, _ = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, initial_state=initial, final_state=final)
    np.testing.assert_array_equal(o, expected[0])
    np.testing.assert_array_equal(final, expected[1])


def test_read_only_outputs():
    arguments = right_call()
    arguments["out"].flags.writeable = False
    with pytest.raises(ValueError, match="out: expected an array that can be written"):
        gdn.chunk_gated_delta_rule(**arguments)
    assert "out: expected an array that can be written" in gdn.supported(**arguments).reasons[0]


@pytest.mark.parametrize("name", ["q", "g", "initial_state", "out"])
def test_masks_are_not_dropped(name):
    arguments = right_call()
    arguments[name] = np.ma.masked_array(arguments[name], mask=arguments[name] > 0)
    with pytest.raises(TypeError, match=f"^{name}: expected an array without a mask, got a masked one"):
        gdn.chunk_gated_delta_rule(**arguments)
    assert f"{name}: expected an array without a mask" in gdn.supported(**arguments).reasons[0]


@pytest.mark.parametrize("options", [3 << 2, -1])
def test_unknown_options(options):
    from gdn import _arrays

    x = make_inputs()
    with pytest.raises(ValueError, match="options: expected a domain of g of 0 to 3, one of beta of 0 to 2 and no bits above"):
        _arrays.forward((x.q, x.k, x.v, x.g, x.beta, *(None,) * 14), 1.0, options, False, 0)


def test_byte_order_and_bits():
    arguments = right_call()
    swapped = {**arguments, "g": arguments["g"].astype(">f4")}
    with pytest.raises(ValueError, match="g: expected native byte order"):
        gdn.chunk_gated_delta_rule(**swapped)
    assert "g: expected native byte order" in gdn.supported(**swapped).reasons[0]
    with pytest.raises(TypeError, match="q: expected float32, float16 or bfloat16 .*got uint16"):
        gdn.chunk_gated_delta_rule(**{**arguments, "q": np.zeros((B, T, H, K), np.uint16)})
    if torch is not None:
        bits = {name: torch.from_numpy(array) for name, array in arguments.items()}
        bits["q"] = torch.zeros(B, T, H, K, dtype=torch.uint16)
        with pytest.raises(TypeError, match="q: expected a tensor of bfloat16, float16 or float32, got uint16"):
            gdn.chunk_gated_delta_rule(**bits)
    with pytest.raises(TypeError, match="q: expected an array of numbers, got <U1"):
        gdn.chunk_gated_delta_rule(**{**arguments, "q": np.full((B, T, H, K), "x")})


def test_old_name_of_the_state_layout():
    x = make_inputs()
    with pytest.warns(DeprecationWarning, match="renamed to `state_v_first`") as caught:
        _, state = gdn.chunk_gated_delta_rule(
            x.q, x.k, x.v, x.g, x.beta, output_final_state=True, transpose_state_layout=True
        )
    assert caught[0].filename == __file__
    expected = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, output_final_state=True)[1]
    np.testing.assert_array_equal(state, expected.swapaxes(2, 3))


@pytest.mark.skipif(torch is None, reason="torch is not installed")
def test_mixed_libraries_and_devices():
    x = make_inputs()
    q, k, v, g, beta = (torch.from_numpy(a) for a in (x.q, x.k, x.v, x.g, x.beta))
    with pytest.raises(TypeError, match="g: expected a torch.Tensor as q is, got ndarray"):
        gdn.chunk_gated_delta_rule(q, k, v, x.g, beta)
    with pytest.raises(ValueError, match="k: expected a tensor on cpu as q is, got one on meta"):
        gdn.chunk_gated_delta_rule(q, k.to("meta"), v, g, beta)


def test_threads_by_the_environment(monkeypatch):
    x = make_inputs()
    for value in ("0", "-1", "many", "", "9" * 20, "9" * 5000):
        monkeypatch.setenv("GDN_NUM_THREADS", value)
        with pytest.raises(ValueError, match="GDN_NUM_THREADS: expected an integer of 1 to 999999999, got '"):
            gdn.chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta)
