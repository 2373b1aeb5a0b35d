# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a forward on a GPU saves for its gradients, on a CPU: stand-ins compute what the kernels are to compute. The
kernels themselves: test/Integration/emulator/saved*.test."""

import concurrent.futures
import itertools
import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

import torch.utils.checkpoint  # noqa: E402

from gradient_cases import NAMES, make, recurrence  # noqa: E402
from test_gradients_gpu import backward  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import gdn  # noqa: E402
from gdn import _library, _torch_backward, _torch_backward_gpu, _torch_checks, _torch_saved  # noqa: E402
from gdn._api import BUILDERS  # noqa: E402
from gdn._arguments import NO_POOL  # noqa: E402
from gdn._manifest import GradientForm  # noqa: E402

STATES = {"save_for_backward": "states"}
INPUTS = {"save_for_backward": "inputs"}
#: Tokens between states, of gates that decay a head.
INTERVAL = _library.MANIFEST["decays"]["Head"]["saved_tokens"]


def call_of(given, cu_seqlens=None, **options):
    """The call that a function would run."""
    tensors = {name: given.get(name) for name in (*NAMES, "A_log", "dt_bias", "initial_state")}
    return BUILDERS["chunk_gated_delta_rule"](**tensors, cu_seqlens=cu_seqlens, **STATES, **options)


def test_words():
    """Other words are refused; on a CPU the gradients are those without."""
    given = make(T=20)
    with pytest.raises(ValueError, match="save_for_backward: expected 'inputs', 'states' or None, got 'all'"):
        gdn.chunk_gated_delta_rule(**given, save_for_backward="all")
    found = []
    for words in ({}, STATES, INPUTS):
        o, _ = gdn.chunk_gated_delta_rule(**given, **words)
        found.append((o, *torch.autograd.grad(o.sum(), list(given.values()))))
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other))


def forward_saving(q, k, v, g, beta, A_log, dt_bias, state, cu, o, final, *rest):
    """The library's: packed sequences. It saves v for what tokens write."""
    writes, states, scale, options, *_ = rest[len(NO_POOL) :]
    assert q.shape[0] == 1 and scale is None and writes.shape == v.shape
    assert all(x is None or x.dtype == torch.float32 for x in (state, final))
    apart = 64 if g is not None and g.dim() == 4 else INTERVAL
    assert states.shape == (q.shape[1] // apart + len(cu) - 1, v.shape[2], 128, 128) and states.dtype == q.dtype
    names = {number: name for name, number in _library.GATE_DOMAINS.items()}
    tensors = [None if x is None else x.double() for x in (q, k, v, g, beta, A_log, dt_bias, state)]
    made = recurrence(
        *tensors, cu.tolist(), 128**-0.5, l2norm=_library.has_l2norm(options), v_first=False,
        gate=names[_library.gate_domain_of(options)], logits=_library.beta_domain_of(options),
    )  # fmt: skip
    for x, y in zip((o, final, writes), (*made, v)):
        if x is not None:
            x.copy_(y)
    states.fill_(4.0)


def backward_saved(q, k, v, *rest):
    """The library's: of what tokens write, which is v here."""
    *others, writes, states, scale, options, threads, longest = rest
    assert v.data_ptr() == writes.data_ptr() and (states == 4).all()
    # A thread of its own, for torch differentiates nothing below an operator.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(backward, q, k, v, *others, scale, options, threads, longest).result()


@pytest.fixture
def kernels(monkeypatch):
    """A CPU that saves, by stand-ins."""
    monkeypatch.setattr(_library.load(), "forward_saving", forward_saving)
    monkeypatch.setattr(_library.load(), "backward_saved", backward_saved)
    monkeypatch.setattr(_torch_saved, "_DEVICES", frozenset(["cpu"]))
    ops = torch.library.Library("gdn", "IMPL")
    for name in ("gated_delta_rule_saving", "gated_delta_rule_backward_saved"):
        ops.impl(name, _torch_backward._ON_GPU[name][0], "CPU")
    yield
    ops._destroy()


@pytest.mark.parametrize("case,cu_seqlens,compiles", [
    ({}, None, True), ({"B": 2, "state": True}, None, False), ({"N": 3, "state": True}, [0, 7, 7, 11], False),
    ({"gate": "raw", "logits": 1, "l2norm": True}, None, False), ({"absent": ("g",)}, None, False),
    ({"channels": True, "gate": "bounded", "logits": 1, "l2norm": True, "T": 70, "dtype": torch.bfloat16}, None, False),
])  # fmt: skip
def test_values(kernels, case, cu_seqlens, compiles):
    """Results and gradients, with one state's gradient and without."""
    given = make(**{"T": 12, "H": 1, "HV": 2, "K": 128, "V": 128, "dtype": torch.float16, **case})
    form = {"l2norm": False, "gate": "log", "logits": 0}
    form |= {name: value for name, value in case.items() if name in form}
    exact = {name: x.detach().double().requires_grad_() for name, x in given.items()}
    tolerance = 2e-3 if given["q"].dtype == torch.float16 else 8e-3
    names = (*NAMES, "A_log", "dt_bias", "initial_state")
    wanted = recurrence(**{**dict.fromkeys(names), **exact}, cu_seqlens=cu_seqlens, scale=128**-0.5, **form, v_first=False)
    packed = {} if cu_seqlens is None else {"cu_seqlens": torch.tensor(cu_seqlens)}

    def call(**tensors):
        return gdn.chunk_gated_delta_rule(
            **{"g": None, **tensors}, **packed, **STATES, output_final_state=True, gate_domain=form["gate"],
            use_qk_l2norm_in_kernel=form["l2norm"], use_beta_sigmoid_in_kernel=form["logits"] > 0,
        )  # fmt: skip

    if compiles:
        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    for count in (2, 1):
        results = call(**given)[:count]
        assert compiles or len(results[0].grad_fn.saved_tensors) == 10
        for x, y in zip(results, wanted):
            assert x.shape == y.shape and (x.double() - y).norm() <= tolerance * y.norm()
        found = torch.autograd.grad([x.float().sum() for x in results], list(given.values()))
        want = torch.autograd.grad([x.sum() for x in wanted[:count]], list(exact.values()), retain_graph=True)
        for name, x, y in zip(given, found, want):
            assert x.dtype == given[name].dtype and (x.double() - y).norm() <= tolerance * y.norm(), name


@pytest.mark.parametrize("case,options,why", [
    ({"K": 64, "V": 64}, {}, "K = 64, V = 64"), ({}, {"scale": 0.5}, "scale"),
    ({"gate": "linear"}, {"gate_domain": "linear"}, "norms, gates or beta"),
    ({"dtype": torch.float32}, {}, "bfloat16 and float16"), ({}, {"segment_length": 64}, "segment_length"),
])  # fmt: skip
def test_inputs(case, options, why):
    """Forms without kernels save their inputs, as all do that do not ask."""
    given = make(**{"T": 20, "K": 128, "V": 128, "dtype": torch.bfloat16, **case})
    call = call_of(given, **options)
    assert why in _torch_saved.why_inputs(call, call.scale, call.options)


@pytest.mark.parametrize("asks", [True, False])
def test_autograd(kernels, asks):
    """Autograd keeps what tokens write in the place of v, and states; fake tensors follow."""
    with FakeTensorMode():
        q, v = (torch.empty(1, 300, heads, 128, dtype=torch.bfloat16, requires_grad=True) for heads in (2, 4))
        g = torch.empty(1, 300, 4)
        o, _ = gdn.chunk_gated_delta_rule(q, q, v, g, g, **(STATES if asks else INPUTS))
        saved = [x for x in o.grad_fn.saved_tensors if x is not None]
        assert any(x is v for x in saved) != asks and sum(x.shape == (300 // INTERVAL + 1, 4, 128, 128) for x in saved) == asks
        assert o.shape == v.shape and [x.shape for x in torch.autograd.grad(o.sum(), (q, v))] == [q.shape, v.shape]


def test_twice(kernels):
    """The gradients have no derivative, and say so."""
    given = make(T=8, H=1, HV=2, K=128, V=128, dtype=torch.float16)
    o, _ = gdn.chunk_gated_delta_rule(**given, **STATES)
    found = torch.autograd.grad(o.sum(), given["v"], create_graph=True)
    with pytest.raises(NotImplementedError, match="double backward"):
        found[0].sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(kernels, reentrant):
    """A checkpoint computes the forward again."""
    given = make(T=8, H=1, HV=2, K=128, V=128, dtype=torch.float16)

    def loss(*tensors):
        return gdn.chunk_gated_delta_rule(*tensors, **STATES)[0].float().sum()

    found = []
    for run in (loss, lambda *tensors: torch.utils.checkpoint.checkpoint(loss, *tensors, use_reentrant=reentrant)):
        for x in given.values():
            x.grad = None
        run(*given.values()).backward()
        found.append([x.grad for x in given.values()])
    assert all(torch.equal(x, y) for x, y in zip(*found))


@pytest.mark.parametrize("changes,message", [
    ({"k": (1, 20, 2, 64)}, "k"), ({"k": (1, 40, 2, 128)}, "k"), ({"v": (1, 21, 4, 128)}, "v"), ({"g": (1, 21, 4)}, "g"),
    ({"beta": (1, 20, 2)}, "beta"), ({"initial_state": (2, 4, 128, 128)}, "initial_state"), ({"q": (20, 2, 128)}, "q"),
    ({"q": (2, 10, 2, 128), "g": (1, 20, 4)}, "k|v|g"), ({"cu_seqlens": ()}, "cu_seqlens"), ({"cu_seqlens": (0,)}, "cu_seqlens"),
])  # fmt: skip
def test_wrong_shapes(kernels, changes, message):
    """What disagrees is refused as without, before it is packed or padded."""
    shapes = {"q": (1, 20, 2, 128), "k": (1, 20, 2, 128), "v": (1, 20, 4, 128), "g": (1, 20, 4), "beta": (1, 20, 4), **changes}
    types = {"cu_seqlens": torch.int32, "g": torch.float32, "beta": torch.float32, "initial_state": torch.float32}
    given = {name: torch.zeros(shape, dtype=types.get(name, torch.float16)) for name, shape in shapes.items()}
    given["q"].requires_grad_()
    for words in ({}, STATES):
        with pytest.raises(ValueError, match=message):
            gdn.chunk_gated_delta_rule(**given, **words)
    call = call_of(given, given.get("cu_seqlens"))
    with pytest.raises(ValueError, match=rf"gdn: ({message}).*: expected"):
        _torch_saved.compute_forward(*call[:9], call.options, True)


def test_boundaries_can_be_checked(kernels, monkeypatch):
    """GDN_CHECK=1 holds for a forward that saves, too."""
    given = make(T=20, H=1, HV=2, K=128, V=128, dtype=torch.float16)
    monkeypatch.setattr(_torch_checks, "CHECKS_VALUES", True)
    with pytest.raises(ValueError, match="cu_seqlens"):
        gdn.chunk_gated_delta_rule(**given, **STATES, cu_seqlens=torch.tensor([0, 15, 10, 20]))


def test_memory():
    """There is memory for the segments that the library may choose, if it may cut the call at all."""
    with FakeTensorMode():
        q, v = (torch.empty(1, 32768, heads, 128, dtype=torch.bfloat16) for heads in (4, 8))
        g, cu = torch.empty(1, 32768, 8), torch.empty(3, dtype=torch.int32)

        def count(q=q, v=v, cu_seqlens=None, **words):
            call = call_of({"q": q, "k": q, "v": v, "g": g, "beta": g}, cu_seqlens, **words)
            return _torch_saved.bytes_of_states(call, call.options) // (8 * 128 * 128 * 2)

        states = 32768 // INTERVAL
        assert count() == states + 1 + 16 and count(cu_seqlens=cu) == states + 2 + 16
        for words in ({"context_parallel": False}, {"use_qk_l2norm_in_kernel": True}):
            assert count(**words) == states + 1


@pytest.mark.parametrize("pays", [True, False])
def test_pays(monkeypatch, pays):
    """Where saving is predicted to take longer a call saves its inputs, and says so. Sizes that nobody knows are not asked
    for, nor is a device that is not there."""
    asked = []

    def answer(*sizes):
        asked.append(sizes)
        return pays

    _torch_saved._pays.cache_clear()
    monkeypatch.setattr(_library.load(), "saving_pays", answer)
    call = call_of(make(T=20, H=2, HV=4, K=128, V=128, dtype=torch.bfloat16, absent=("g",)))
    why = _torch_saved.why_inputs(call, call.scale, call.options, 3)
    assert asked == [(3, 1, 20, 2, 4, 0, 1, _library.UNDECAYED)]
    assert why is None if pays else why.startswith("time: ")
    assert _torch_saved.why_inputs(call, call.scale, call.options) is None and len(asked) == 1
    _torch_saved._pays.cache_clear()


def test_forms(monkeypatch):
    """Each form of the gradients' kernels with 128 channels has a forward that saves, by each schedule, and each that is cut
    one of segments."""
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[2] / "python" / "kernels")
    from modules import hopper_modules

    types, found = _library.MANIFEST["types"], {}
    domains = [list(_library.MANIFEST[f"{name}_domains"]) for name in ("gate", "beta")]
    for kernel in hopper_modules(_library.MANIFEST):
        if kernel.kind != "Saving":
            continue
        gate_domain, beta_domain = (kernel.traits[name].split()[0] for name in ("gate", "beta"))
        q = types[kernel.traits["element"]]["name"]
        D = _library.MANIFEST["hopper"]["channels"][kernel.traits["channels"]]["k"]
        norm, *numbers = kernel.traits["norm"] == "L2", domains[0].index(gate_domain), domains[1].index(beta_domain)
        form = GradientForm(D, q, norm, *numbers, kernel.traits["decay"])
        (variants,) = re.findall(r"gdn.variants = \[(.*)\]}", kernel.text)
        found[form] = [("cut" in text, text.split('"')[1]) for text in variants.split("schedule = ")[1:]]
    assert found.keys() == {form for form in _torch_backward_gpu._FORMS if form.channels in _torch_saved._CHANNELS}
    for form, variants in found.items():
        cuts = (False, True) if _torch_backward_gpu.has_segments(form) else (False,)
        assert variants == list(itertools.product(cuts, ("cta_per_head", "cta_per_v_tile")))
