# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plug-in of vLLM: steps of prefill and decoding over one pool against float64, and when vLLM's own layer runs.

Small classes stand for vLLM's layers (vllm_stand_in.py). Where vLLM can be imported, from the Python files of its wheel too,
its own classes, modules and builder of metadata take their place in the tests of steps.
"""

import importlib.metadata
import logging
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from reference import rms_error

torch = pytest.importorskip("torch")

PACKAGE = "vllm.model_executor.layers.mamba.gdn"

from vllm_stand_in import (  # noqa: E402
    CHANNELS, HEADS, PREFIX, SPECULATED, KimiGatedDeltaNetAttention, OlmoHybridGatedDeltaNetAttention,
    QwenGatedDeltaNetAttention, Request, Step, built, core, engine_of, run, verify,
)  # fmt: skip

import gdn.vllm  # noqa: E402
from gdn import _serving  # noqa: E402


@pytest.fixture(params=["stand-in", "vLLM"])
def made(request, monkeypatch):
    """What makes a layer, and what it runs in."""

    def make(kind=QwenGatedDeltaNetAttention, **words):
        engine = engine_of(kind)
        if request.param == "stand-in":
            return engine, gdn.vllm.make_layer(engine, kind.__name__)(**words)
        module = pytest.importorskip(f"{PACKAGE}.{gdn.vllm.LAYERS[kind.__name__]}")
        for name in ("get_forward_context", "is_conv_state_dim_first", "causal_conv1d_fn", "causal_conv1d_update"):
            assert callable(getattr(module, name))
            monkeypatch.setattr(module, name, getattr(engine, name))
        engine.metadata_of = built
        # What needs a GPU: the plan of vLLM's convolution, and copies from pinned memory.
        builder = "vllm.v1.attention.backends.gdn_attn"
        monkeypatch.setattr(f"{builder}.compute_causal_conv1d_metadata", lambda *arguments, **words: (None, None, None))
        copied = lambda x, device, dtype=None: torch.as_tensor(x, dtype=dtype, device=device)  # noqa: E731
        monkeypatch.setattr(f"{builder}.async_tensor_h2d", copied)
        made = gdn.vllm.make_layer(module, kind.__name__)
        # As vLLM's own tests do: a layer without its projections, which a model's configuration would have to make.
        layer, stand_in = made.__new__(made), kind(**words)
        vars(layer).update(**vars(stand_in), served=_serving.Served("vLLM"))
        return engine, layer

    return make


KINDS = QwenGatedDeltaNetAttention, OlmoHybridGatedDeltaNetAttention, KimiGatedDeltaNetAttention
OLMO, KIMI = {"kind": OlmoHybridGatedDeltaNetAttention}, {"kind": KimiGatedDeltaNetAttention}
FORMS = {
    "heads / 8": {}, "heads / 4": {"tp_size": 4}, "heads / 2": {"tp_size": 2}, "OLMo": OLMO, "Kimi": KIMI,
    "bfloat16": {"dtype": torch.bfloat16}, "a pool in bfloat16": {"dtype": torch.bfloat16, "pool": torch.bfloat16},
    "OLMo in bfloat16": {**OLMO, "dtype": torch.bfloat16}, "Kimi in bfloat16": {**KIMI, "dtype": torch.bfloat16},
    "Kimi, bounded, heads / 4": {**KIMI, "tp_size": 4, "lower_bound": -5.0}, "Kimi, another bound": {**KIMI, "lower_bound": -3.0},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_steps(form, made):
    """Prefills, decoding, both, and a block that goes to another request."""
    words = FORMS[form]
    tolerance = 1e-5 if "dtype" not in words else 2e-2 if "pool" in words else 8e-3
    engine, layer = made(**words)
    first, second, third = (Request(layer, block, block) for block in (3, 5, 8))
    got = [run(engine, layer, [first, second], [70, 3])]
    got.append(run(engine, layer, [first, second], [1, 1], decodes=2, padding=2))
    got.append(run(engine, layer, [first, third, second], [1, 40, 33], decodes=1))
    got.append(run(engine, layer, [third, Request(layer, 3, 30)], [1, 1], decodes=1))
    for o, wanted in got:
        assert rms_error(o, wanted) < tolerance
    states = layer.kv_cache[1].float()
    assert rms_error(states[8], third.state[0]) < tolerance and rms_error(states[5], second.state[0]) < tolerance
    assert states[[0, 1, 2, 4, 6, 7]].isnan().all() and not layer.ran


@pytest.mark.parametrize("form", [form for form in FORMS if "kind" not in FORMS[form]])
def test_states_inside_a_prefill(form, made):
    """Prefixes that a cache keeps, beside a token of decoding, a prefill that keeps none and a block of nobody: requests go on
    from them."""
    words = FORMS[form]
    tolerance = 1e-5 if "dtype" not in words else 3e-2 if "pool" in words else 2e-2
    engine, layer = made(**words, blocks=12)
    first, second, third, fourth = (Request(layer, block, block) for block in (3, 5, 8, 10))
    run(engine, layer, [first], [5])
    o, wanted, forks = run(
        engine, layer, [first, second, third, fourth], [1, 70, 40, 330], decodes=1, keeps=[(0, 0), (64, 2), (0, 0), (192, 7)]
    )
    assert rms_error(o, wanted) < tolerance and [fork.block for fork in forks] == [2, 7]
    states = layer.kv_cache[1].float()
    for fork in forks:
        assert rms_error(states[fork.block], fork.state[0]) < tolerance
    assert states[[0, 1, 4, 6, 9, 11]].isnan().all()
    for tokens in ([9, 70], [1, 1]):
        o, wanted = run(engine, layer, forks, tokens, decodes=2 * (tokens == [1, 1]))
        assert rms_error(o, wanted) < tolerance
    assert not layer.ran and layer.served.runs["prefill and decoding with states inside"]


@pytest.mark.parametrize("form", FORMS)
def test_speculated_tokens(form, made):
    """Prefills, verification with all numbers of accepted tokens, beside prefills, and one token at a time again."""
    words = FORMS[form]
    tolerance = 1e-5 if "dtype" not in words else 3e-2 if "pool" in words else 2e-2
    engine, layer = made(**words, blocks=14)
    requests = [Request(layer, block, block) for block in (1, 5, 9)]
    for request in requests:
        request.slots = list(range(request.block, request.block + SPECULATED + 1))
    late = Request(layer, 13, 30)
    got = [run(engine, layer, requests, [9, 30, 2])]
    accepted, random = [1, 1, 1], np.random.default_rng(0)
    for turn in range(6):
        prefills = [(late, 5)] if turn in (2, 4) else []
        o, wanted, parts = verify(engine, layer, requests, accepted, prefills, padding=0 if prefills else 2)
        got.append((o, wanted))
        accepted = [int(random.integers(1, len(part[0]) + 1)) for part in parts]
        for request, part, count in zip(requests, parts, accepted):
            request.accept(part, count)
        requests = requests[1:] + requests[:1]
        accepted = accepted[1:] + accepted[:1]
    got.append(run(engine, layer, [late], [1], decodes=1))
    for o, wanted in got:
        assert rms_error(o, wanted) < tolerance
    pool = layer.kv_cache[1].float()
    for request, count in zip(requests, accepted):
        assert rms_error(pool[request.slots[count - 1]], request.state[0]) < tolerance
    assert pool[0].isnan().all() and not layer.ran


@pytest.mark.parametrize("answer", [False, True])
@pytest.mark.parametrize("pool", [torch.float32, torch.bfloat16])
def test_who_verifies(answer, pool, made, monkeypatch):
    """vLLM itself says whether its compiled kernel, which is faster, verifies with gates a head, whatever gdn runs."""
    _, layer = made(dtype=torch.bfloat16, pool=pool)
    layer.served.runs["speculated tokens"] = True
    name, own = "_can_use_fused_gdn_mtp_decode", type(layer).__mro__[2]
    monkeypatch.setattr(own, name, lambda self, metadata: answer, raising=False)
    assert own.__name__ == "QwenGatedDeltaNetAttention" and getattr(layer, name)("metadata") is answer


def test_a_bias_that_changes(made):
    engine, layer = made(dtype=torch.bfloat16)
    request = Request(layer, 2, 0)
    run(engine, layer, [request], [20])
    with torch.no_grad():
        layer.dt_bias.add_(1)
    o, wanted = run(engine, layer, [request], [1], decodes=1)
    assert rms_error(o, wanted) < 2e-2


@pytest.mark.parametrize("what,reason", [
    ({"spec_sequence_masks": torch.ones(1, dtype=torch.bool)}, "prefill and speculated tokens as before: AttributeError"),
    ({"flashinfer_checkpoint_plan": object()}, "prefill with states inside as before: AttributeError"),
    ({"prefill_query_start_loc": torch.zeros(4)}, "prefill as before: cu_seqlens: expected a tensor of int32"),
    ({"num_actual_tokens": "no number"}, "prefill as before: TypeError"),
])  # fmt: skip
def test_what_is_left_to_vllm(what, reason, caplog):
    """With one line, whatever the number of layers and steps is."""
    _serving._said.clear()
    engine = engine_of(QwenGatedDeltaNetAttention)
    layers = [gdn.vllm.make_layer(engine, "QwenGatedDeltaNetAttention")() for _ in range(2)]
    step = Step([5], [1], [False])
    vars(step).update(what)
    engine.steps = {PREFIX: step}
    x, gates = torch.zeros(5, layers[0].conv1d.weight.shape[0]), torch.zeros(5, HEADS)
    with caplog.at_level(logging.WARNING, "gdn.vllm"), torch.inference_mode():
        for layer in layers * 2:
            layer._forward_core(x, gates, gates, torch.zeros(5, HEADS, CHANNELS))
    assert [layer.ran for layer in layers] == [2, 2]
    assert len(caplog.messages) == 1 and reason in caplog.messages[0]


def test_captured_steps(monkeypatch, caplog):
    """A kind of step that a CUDA graph captures first is vLLM's there, and asked about behind it. An answer stays."""
    _serving._said.clear()
    served, asked = _serving.Served("vLLM"), []

    def calls():
        asked.append(True)
        raise KeyError("a rank")

    for capturing in (True, False, True):
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda capturing=capturing: capturing)
        with caplog.at_level(logging.WARNING, "gdn.vllm"):
            assert not served.serves("decoding", calls, on_gpu=True)
        assert len(asked) == len(caplog.messages) == (0 if not served.runs else 1)
    assert served.runs == {"decoding": False} and "decoding as before: KeyError: 'a rank'" in caplog.messages[0]
    assert _serving.Served("vLLM").serves("decoding", list, on_gpu=False)
    served.runs["prefill"] = True
    assert served.serves("prefill", calls, on_gpu=True) and len(asked) == 1


def test_long_prefills_are_asked_for(monkeypatch, caplog):
    """A short prefill may run token by token, where a long one has no kernels: the kind is vLLM's, not its first call."""
    _serving._said.clear()
    asked = []

    class Answer(int):
        reasons = ("initial_state: expected float32",)

    def supported(q, initial_state, function, device=None):
        asked.append((function, q.shape[1], device, initial_state.device.type))
        return Answer(q.shape[1] < 100)

    monkeypatch.setattr(gdn, "supported", supported)
    call = {"q": torch.zeros(1, 5, HEADS, CHANNELS), "initial_state": torch.zeros(2, HEADS, CHANNELS, CHANNELS)}
    served = _serving.Served("vLLM")
    with caplog.at_level(logging.WARNING, "gdn.vllm"):
        assert not served.serves("prefill", lambda: [("chunk_kda", call)], on_gpu=False)
        assert served.serves("decoding", lambda: [("fused_recurrent_kda", call)], on_gpu=False)
    assert asked == [
        ("chunk_kda", 5, None, "cpu"), ("chunk_kda", 8192, "cpu", "meta"), ("fused_recurrent_kda", 5, None, "cpu"),
    ]  # fmt: skip
    assert caplog.messages == ["gdn: vLLM runs prefill as before: initial_state: expected float32"]


@pytest.mark.parametrize("kind,is_spec,pool,left", [
    (QwenGatedDeltaNetAttention, False, "bfloat16", None),
    (QwenGatedDeltaNetAttention, True, "bfloat16", None),
    (QwenGatedDeltaNetAttention, True, "float32", None),
    (KimiGatedDeltaNetAttention, False, "bfloat16", None),
    (KimiGatedDeltaNetAttention, True, "bfloat16", None),
    (KimiGatedDeltaNetAttention, True, "float32", "speculated tokens with states in float32"),
])  # fmt: skip
def test_what_vllm_keeps_on_a_gpu(kind, is_spec, pool, left, monkeypatch):
    """vLLM runs the steps without prefills in which its kernels are faster."""
    layer = gdn.vllm.make_layer(engine_of(kind), kind.__name__)(dtype=torch.bfloat16, pool=getattr(torch, pool))
    asked = "speculated tokens" if is_spec else "decoding"
    monkeypatch.setattr(layer.served, "serves", lambda kind, calls, on_gpu: kind == asked and on_gpu)
    on_gpu = types.SimpleNamespace(is_cuda=True)
    gates = torch.zeros(1, HEADS) if kind is QwenGatedDeltaNetAttention else torch.zeros(1, HEADS, CHANNELS)
    step = Step([1], [1], [True], decodes=1)
    step.spec_sequence_masks = torch.ones(1, dtype=torch.bool) if is_spec else None
    assert layer._serves(step, on_gpu, None, gates, None) == (left is None)
    assert layer.served.runs == ({} if left is None else {left: False})


@pytest.mark.parametrize("steps", [None, {}])
@pytest.mark.parametrize("kind", [QwenGatedDeltaNetAttention, KimiGatedDeltaNetAttention])
def test_profile_runs_are_vllms(kind, steps):
    engine = engine_of(kind)
    layer = gdn.vllm.make_layer(engine, kind.__name__)()
    engine.steps = steps
    core(layer, torch.zeros(1, 4), torch.zeros(1, 4), torch.zeros(1, CHANNELS), torch.zeros(1, 4))
    assert layer.ran == 1


@pytest.fixture
def modules(monkeypatch):
    """vLLM's modules that `register` looks at."""
    registry = {}

    class PluggableLayer:
        @classmethod
        def register_oot(cls, name):
            assert name not in registry
            return lambda layer: registry.setdefault(name, layer)

    custom_op = types.SimpleNamespace(op_registry_oot=registry, PluggableLayer=PluggableLayer)
    engines = {f"{PACKAGE}.{gdn.vllm.LAYERS[kind.__name__]}": engine_of(kind) for kind in KINDS}
    for name, module in {"vllm.model_executor.custom_op": custom_op, **engines}.items():
        # Parents that are there already are those of the module.
        for i, letter in enumerate(name):
            if letter == "." and name[:i] not in sys.modules:
                monkeypatch.setitem(sys.modules, name[:i], types.ModuleType(name[:i]))
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.33.1")
    monkeypatch.setenv("GDN_VLLM", "1")
    return registry


def test_register(modules):
    gdn.vllm.register()
    made = dict(modules)
    gdn.vllm.register()
    assert modules == made and modules.keys() == gdn.vllm.LAYERS.keys()
    assert all(issubclass(made[kind.__name__], kind) for kind in KINDS)


def test_batch_invariance(modules, monkeypatch, caplog):
    """Sizes choose gdn's kernels."""
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    with caplog.at_level(logging.WARNING, "gdn.vllm"):
        gdn.vllm.register()
    assert not modules and "expected VLLM_BATCH_INVARIANT=0, got 1" in caplog.messages[0]
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "0")
    gdn.vllm.register()
    assert len(modules) == 3


def test_other_versions_and_plugins(modules, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "gdn.vllm"):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.34.0")
        gdn.vllm.register()
        assert not modules
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.33.0")
        modules["QwenGatedDeltaNetAttention"] = OlmoHybridGatedDeltaNetAttention
        gdn.vllm.register()
    assert modules.pop("QwenGatedDeltaNetAttention") is OlmoHybridGatedDeltaNetAttention
    assert all(layer.is_gdn for layer in modules.values()) and len(modules) == 2
    assert "expected vLLM 0.33.*, got 0.34.0" in caplog.messages[0]
    assert "got OlmoHybridGatedDeltaNetAttention of another plug-in, which stays" in caplog.messages[1]


def test_the_entry_point():
    """vLLM finds `register` in the installed package."""
    try:
        package = importlib.metadata.distribution("gdn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gdn is not installed as a package")
    (found,) = package.entry_points.select(group="vllm.general_plugins")
    assert found.load() is gdn.vllm.register


@pytest.mark.parametrize("value", [None, "0"])
def test_off_without_a_trace(value):
    """The entry point imports nothing but gdn, which is light, and what that needs."""
    code = (
        "import sys, gdn; before = set(sys.modules); import gdn.vllm; gdn.vllm.register(); "
        "print(set(sys.modules) - before)"
    )
    environment = {name: x for name, x in os.environ.items() if name != "GDN_VLLM"} | ({"GDN_VLLM": value} if value else {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "{'gdn.vllm'}"


def test_the_real_registry(monkeypatch):
    """vLLM makes the plug-in's layer where it would make its own."""
    custom_op = pytest.importorskip("vllm.model_executor.custom_op")
    engines = [(pytest.importorskip(f"{PACKAGE}.{module}"), name) for name, module in gdn.vllm.LAYERS.items()]
    monkeypatch.setattr(custom_op, "op_registry_oot", {})
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.33.0")
    monkeypatch.setenv("GDN_VLLM", "1")
    gdn.vllm.register()
    for engine, name in engines:
        own = getattr(engine, name)
        assert type(own.__new__(own)).is_gdn and issubclass(type(own.__new__(own)), own)
