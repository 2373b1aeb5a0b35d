# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The torch front end: values, custom operators, compilation, autocast, gradients."""

import re

import pytest
from reference import gated_delta_rule, make_inputs, rms_error

import gdn

torch = pytest.importorskip("torch")

from gdn import _torch, _torch_checks  # noqa: E402
from gdn._arguments import NO_POOL  # noqa: E402

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
NO_STATE = (None,) * 4


def tensors(dtype=torch.float32, **sizes):
    x = make_inputs(**sizes)
    q, k, v = (torch.from_numpy(a).to(dtype) for a in (x.q, x.k, x.v))
    return q, k, v, torch.from_numpy(x.g), torch.from_numpy(x.beta)


def expect(results, arguments, tolerance, **kwargs):
    expected = gated_delta_rule(*(a.double().numpy() for a in arguments), **kwargs)
    for got, wanted in zip(results, expected):
        assert rms_error(got.double().numpy(), wanted) < tolerance


@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype):
    arguments = tensors(TYPES[dtype])
    state = torch.randn(1, 4, 64, 64)
    o, final = gdn.chunk_gated_delta_rule(*arguments, initial_state=state, output_final_state=True)
    assert o.dtype == TYPES[dtype] and final.dtype == torch.float32
    expect((o, final), arguments, 1e-5 if dtype == "float32" else 6e-3, initial_state=state.numpy())
    q, k, v, g, beta = arguments
    o, final = gdn.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta)
    assert final is None
    expect((o,), arguments, 1e-5 if dtype == "float32" else 6e-3)


def test_views_of_one_projection():
    q, k, v, g, beta = tensors(H=4, HV=4)
    fused = torch.cat([q, k, v], 3)
    views = fused.split(64, 3)
    expected, _ = gdn.chunk_gated_delta_rule(q, k, v, g, beta)
    o, _ = gdn.chunk_gated_delta_rule(*views, g, beta)
    assert torch.equal(o, expected)


@pytest.mark.parametrize("function,typed", [("chunk_gated_delta_rule", 0), ("fused_recurrent_gated_delta_rule", 2)])
def test_different_types(function, typed):
    """Of q, k and v: the call is float32's, eager and compiled, and o has the type that FLA gives it."""
    run = getattr(gdn, function)
    q, k, v, g, beta = tensors()
    q, k, v = q.half(), k.bfloat16(), v.bfloat16()
    expected, final = run(q.float(), k.float(), v.float(), g, beta=beta, output_final_state=True)
    expected = expected.to((q, k, v)[typed].dtype)
    for call in (run, torch.compile(run, fullgraph=True, backend="eager")):
        o, state = call(q, k, v, g, beta=beta, output_final_state=True)
        assert o.dtype == expected.dtype and torch.equal(o, expected) and torch.equal(state, final)
    out = torch.empty_like(expected)
    assert run(q, k, v, g, beta=beta, out=out)[0] is out and torch.equal(out, expected)
    with pytest.raises(ValueError, match="out: expected the shape"):
        run(q, k, v, g, beta=beta, out=out[:, :3])
    assert gdn.explain(q, k, v, g, beta=beta, function=function).kernel.startswith("gdn_cpu")
    with pytest.raises(NotImplementedError, match="q: expected a tensor that needs no gradient"):
        run(q.requires_grad_(), k, v, g, beta=beta, out=out)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("boundaries", [[0, 30, 80], [0, 40, 30, 70], [1, 70], [-1, 70], [0, 70], [0, 30, 30, 50]])
def test_boundaries_of_a_gpu_can_be_checked(monkeypatch, dtype, boundaries):
    """GDN_CHECK=1 says what a CPU says, before anything runs. What would run next needs a GPU."""
    q, k, v, g, beta = tensors()
    cu = torch.tensor(boundaries, dtype=dtype)

    class Launched(Exception):
        pass

    expected = (Launched, None)
    try:
        gdn.chunk_gated_delta_rule(q, k, v, g, beta, cu_seqlens=cu)
    except ValueError as error:
        expected = (ValueError, "^" + re.escape(str(error)) + "$")

    def call(*arguments):
        raise Launched

    monkeypatch.setattr(_torch, "_call_library", call)
    monkeypatch.setattr(_torch_checks, "CHECKS_VALUES", True)
    with pytest.raises(expected[0], match=expected[1]):
        tensors_of_call = (q, k, v, None, beta, None, None, None, cu, torch.empty_like(v), None, None, None)
        _torch._compute_on_gpu(tensors_of_call, None, 0, 0)


def test_given_outputs():
    arguments = tensors()
    expected = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)
    out, state = torch.empty(1, 70, 4, 64), torch.empty(1, 4, 64, 64)
    o, final = gdn.chunk_gated_delta_rule(*arguments, out=out, final_state=state)
    assert o is out and final is state
    assert torch.equal(out, expected[0]) and torch.equal(state, expected[1])
    o, final = gdn.chunk_gated_delta_rule(*arguments, out=out, output_final_state=True)
    assert o is out and torch.equal(final, expected[1])
    o, final = gdn.chunk_gated_delta_rule(*arguments, final_state=state)
    assert final is state and torch.equal(o, expected[0])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(packed, with_state, dtype):
    cu_seqlens = torch.tensor([0, 30, 70]) if packed else None
    state = torch.randn(2 if packed else 1, 4, 64, 64) if with_state else None
    arguments = (*tensors(dtype), None, None, state, cu_seqlens, 0.125, 0, 0, with_state)
    torch.library.opcheck(torch.ops.gdn.gated_delta_rule.default, arguments)


@pytest.mark.parametrize("with_state", [False, True])
def test_opcheck_into(with_state):
    out, state = torch.empty(1, 70, 4, 64), torch.empty(1, 4, 64, 64) if with_state else None
    arguments = (*tensors(), *NO_STATE, out, state, *NO_POOL, 0.125, 0, 0)
    torch.library.opcheck(torch.ops.gdn.gated_delta_rule_out.default, arguments)


def test_fake_and_meta_tensors():
    arguments = [a.to("meta") for a in tensors(torch.bfloat16)]
    o, state = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True, state_v_first=True)
    assert o.is_meta and o.shape == (1, 70, 4, 64) and o.dtype == torch.bfloat16
    assert state.shape == (1, 4, 64, 64) and state.dtype == torch.float32


@pytest.mark.parametrize("index", range(1, 5))
def test_devices_must_agree(index):
    arguments = list(tensors())
    arguments[index] = arguments[index].to("meta")
    name = ("q", "k", "v", "g", "beta")[index]
    with pytest.raises(ValueError, match=f"^{name}: expected a tensor on cpu as q is, got one on meta$"):
        gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)


def test_written_tensors_are_counted():
    """Autograd sees that memory changed which it may have saved."""
    out, state = torch.empty(1, 70, 4, 64), torch.empty(1, 4, 64, 64)
    gdn.chunk_gated_delta_rule(*tensors(), out=out, final_state=state)
    assert out._version == 1 and state._version == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    """q, k and v take autocast's type, whatever mixture comes; gates and states stay as they are."""
    q, k, v, g, beta = tensors()
    with torch.autocast("cpu", dtype):
        o, state = gdn.chunk_gated_delta_rule(q, k.bfloat16(), v, g, beta, output_final_state=True)
    assert o.dtype == dtype and state.dtype == torch.float32
    with torch.autocast("cpu", enabled=False):
        same, _ = gdn.chunk_gated_delta_rule(q.to(dtype), k.bfloat16().to(dtype), v.to(dtype), g, beta)
    assert torch.equal(o, same)


def along(function, argument):
    """The ways to ask torch for a derivative along an argument, forward."""
    from torch.autograd import forward_ad

    yield "jvp", lambda: torch.func.jvp(function, (argument,), (torch.ones_like(argument),))
    yield "jacfwd", lambda: torch.func.jacfwd(lambda scale: function(argument * scale).sum())(torch.tensor(1.0))
    for name, mode in (("dual", torch.enable_grad), ("dual without gradients", torch.no_grad)):

        def dual(mode=mode):
            with forward_ad.dual_level(), mode():
                return function(forward_ad.make_dual(argument, torch.ones_like(argument)))

        yield name, dual


@pytest.mark.parametrize("index", range(5))
def test_no_tangent_is_ever_wrong(index):
    """Forward-mode differentiation is refused; inside it, a call on other tensors is not."""
    name = ("q", "k", "v", "g", "beta")[index]
    arguments = tensors()

    def with_one(value):
        return (*arguments[:index], value, *arguments[index + 1 :])

    message = f"^{name}: expected a tensor that needs no gradient, got one with a tangent"
    calls = (
        lambda value: gdn.chunk_gated_delta_rule(*with_one(value))[0],
        lambda value: gdn.chunk_gated_delta_rule(*with_one(value), out=torch.empty(1, 70, 4, 64))[0],
        lambda value: gdn.explain(*with_one(value)),
    )
    for call in calls:
        for _, derive in along(call, arguments[index]):
            with pytest.raises(NotImplementedError, match=message):
                derive()
    expected = calls[0](arguments[index])
    for _, derive in along(lambda value: calls[0](value.detach()), arguments[index]):
        derive()
    with torch.autograd.forward_ad.dual_level():
        assert torch.equal(calls[0](arguments[index]), expected)


def imaginary(tensor):
    """The tensor as a view whose memory has its negative: the imaginary part of a conjugate."""
    view = torch.complex(torch.zeros_like(tensor), -tensor).conj().imag
    assert view.is_neg() and torch.equal(view, tensor)
    return view


@pytest.mark.parametrize("name,raw", [
    ("g", False), ("beta", False), ("g", True), ("beta", True), ("A_log", True), ("dt_bias", True),
])
def test_views_with_a_negative_bit(name, raw):
    q, k, v, g, beta = tensors()
    arguments = {"g": g, "beta": beta}
    if raw:
        arguments.update(A_log=torch.randn(4), dt_bias=torch.randn(4), gate_domain="raw")
    expected, _ = gdn.chunk_gated_delta_rule(q, k, v, **arguments)
    arguments[name] = imaginary(arguments[name])
    assert torch.equal(gdn.chunk_gated_delta_rule(q, k, v, **arguments)[0], expected)
    out = torch.empty_like(expected)
    gdn.chunk_gated_delta_rule(q, k, v, **arguments, out=out)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("name", ["q", "k", "v", "initial_state", "out", "final_state"])
@pytest.mark.parametrize("view,channels", [(imaginary, 1), (lambda tensor: torch._neg_view(-tensor), 64)])
def test_rows_with_a_negative_bit(name, view, channels):
    """Where the last extent is 1 an imaginary part passes for contiguous; torch has such views of its own as well."""
    arguments = dict(zip(("q", "k", "v", "g", "beta"), tensors(K=channels, V=channels)))
    arguments["initial_state"] = torch.randn(1, 4, channels, channels)
    arguments["output_final_state"] = True
    expected = gdn.chunk_gated_delta_rule(**arguments)
    given = {"out": expected[0], "final_state": expected[1]}.get(name, arguments.get(name))
    arguments[name] = view(given)
    if name in ("out", "final_state"):
        with pytest.raises(ValueError, match=f"^{name}: expected a tensor whose memory has its elements, got one with"):
            gdn.chunk_gated_delta_rule(**arguments)
        return
    got = gdn.chunk_gated_delta_rule(**arguments)
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])


@pytest.mark.parametrize("name", ["q", "k", "v", "g", "beta", "initial_state"])
def test_tensors_without_memory(name):
    arguments = dict(zip(("q", "k", "v", "g", "beta"), tensors()))
    arguments["initial_state"] = torch.randn(1, 4, 64, 64)
    freed = arguments[name].clone()
    freed.untyped_storage().resize_(0)
    for tensor in (torch._efficientzerotensor(arguments[name].shape), freed):
        with pytest.raises(ValueError, match=f"^{name}: expected a tensor whose elements have memory, got a null"):
            gdn.chunk_gated_delta_rule(**{**arguments, name: tensor})


@pytest.mark.parametrize("given", [False, True])
def test_no_boundaries(given):
    """The library's words, whoever finds that a state would have -1 sequences."""
    arguments, none = tensors(), torch.zeros(0, dtype=torch.int64)
    out = torch.empty(1, 70, 4, 64) if given else None
    with pytest.raises(ValueError, match="^cu_seqlens: expected at least two boundaries, got 0$"):
        gdn.chunk_gated_delta_rule(*arguments, cu_seqlens=none, output_final_state=True, out=out)
    with pytest.raises(ValueError, match="^cu_seqlens: expected at least two boundaries, got 0$"):
        torch.ops.gdn.gated_delta_rule(*arguments, *NO_STATE[:3], none, 1.0, 0, 0, True)


def test_layouts_without_strides():
    q, *rest = tensors()
    with pytest.raises(TypeError, match="^q: expected a tensor with strides, got one of the layout torch.sparse_coo$"):
        gdn.chunk_gated_delta_rule(q.to_sparse(), *rest)
    assert not gdn.supported(q.to_sparse(), *rest)


@pytest.mark.parametrize("name", ["q", "k", "v", "g", "beta", "initial_state", "out"])
@pytest.mark.parametrize("make,match", [
    (lambda x: torch.nested.nested_tensor([x[0], x[0]]), "expected a tensor with one shape, got a nested one"),
    (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "expected a tensor of floats, got a quantized one"),
])
def test_kinds_of_tensors(name, make, match):
    arguments = dict(zip(("q", "k", "v", "g", "beta"), tensors()))
    arguments.update(initial_state=torch.randn(1, 4, 64, 64), out=torch.empty(1, 70, 4, 64))
    arguments[name] = make(arguments[name])
    for scale in (None, 1.0):
        with pytest.raises(TypeError, match=f"^{name}: {match}$"):
            gdn.chunk_gated_delta_rule(**arguments, scale=scale)
        assert gdn.supported(**arguments, scale=scale).reasons == (f"{name}: {match}",)


def test_tensors_as_objects_of_tvm_ffi(monkeypatch):
    """As a torch that is older than 2.10 hands them over."""
    from gdn import _torch

    arguments = tensors()
    expected = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)
    monkeypatch.setattr(_torch, "_exchange_functions", lambda: 0)
    got = gdn.chunk_gated_delta_rule(*arguments, output_final_state=True)
    assert all(torch.equal(x, y) for x, y in zip(got, expected))


def test_threads_are_torchs():
    arguments = tensors(T=2000)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert gdn.explain(*arguments).threads == 1
        single, _ = gdn.chunk_gated_delta_rule(*arguments)
        torch.set_num_threads(3)
        assert gdn.explain(*arguments).threads == 3
        assert torch.equal(gdn.chunk_gated_delta_rule(*arguments)[0], single)
    finally:
        torch.set_num_threads(before)


def test_calls_from_several_threads():
    import concurrent.futures

    arguments = tensors(T=200)
    expected, _ = gdn.chunk_gated_delta_rule(*arguments)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: gdn.chunk_gated_delta_rule(*arguments)[0], range(64)))
    assert all(torch.equal(result, expected) for result in results)


def test_after_fork():
    """No thread is left behind that a child would wait for."""
    import multiprocessing

    arguments = tensors(T=500)
    gdn.chunk_gated_delta_rule(*arguments)
    torch.set_num_threads(2)
    child = multiprocessing.get_context("fork").Process(target=gdn.chunk_gated_delta_rule, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == 0
