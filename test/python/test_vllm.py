# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plug-in of vLLM: steps of prefill and decoding over one pool against float64, and when vLLM's own layer runs.

A small class stands for vLLM's layer: the same attributes, the convolution in torch. Where vLLM can be imported, from the
Python files of its wheel too, its own class, module and metadata take its place in the tests of steps.
"""

import importlib.metadata
import logging
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from reference import gated_delta_rule, rms_error

torch = pytest.importorskip("torch")

import gdn.vllm  # noqa: E402

HEADS, WIDTH, CHANNELS, BLOCKS, KEY_HEADS = 4, 4, 32, 9, 2
PREFIX = "model.layers.0.linear_attn"


class Step(types.SimpleNamespace):
    """GDNAttentionMetadata of sequences of `tokens` in blocks, of which the first ones decode."""

    def __init__(self, tokens, blocks, has, decodes=0):
        ends = np.cumsum([0, *tokens])
        integers = lambda values: torch.tensor(list(values), dtype=torch.int32)  # noqa: E731
        prefills = len(tokens) - decodes
        super().__init__(
            num_actual_tokens=int(ends[-1]), num_prefills=prefills, num_prefill_tokens=int(ends[-1]) - decodes,
            num_decodes=decodes, num_decode_tokens=decodes, spec_sequence_masks=None, flashinfer_checkpoint_plan=None,
            has_initial_state=torch.tensor(has) if prefills else None, non_spec_query_start_loc=integers(ends),
            non_spec_state_indices_tensor=integers(blocks), prefill_query_start_loc=integers(ends[decodes:] - decodes),
            prefill_state_indices=integers(blocks[decodes:]), prefill_has_initial_state=torch.tensor(has[decodes:]),
        )  # fmt: skip


def convolve(x, states, weight, bias, rows, ends, has):
    """The causal convolution of packed tokens [T, C] with a SiLU; `states` [blocks, C, width - 1] are updated."""
    out = torch.empty_like(x)
    for n, row in enumerate(rows):
        tokens = x[ends[n] : ends[n + 1]].T
        before = states[row] if has[n] else torch.zeros_like(states[row])
        whole = torch.cat([before, tokens], 1)
        y = torch.nn.functional.conv1d(whole[None], weight[:, None], bias, groups=len(weight))[0]
        out[ends[n] : ends[n + 1]] = torch.nn.functional.silu(y).T
        if row > 0:
            states[row] = whole[:, -states.shape[-1] :]
    return out


def engine_of(layer):
    """vLLM's module around a layer's class, as far as the plug-in looks at it."""

    def causal_conv1d_fn(
        x, weight, bias, activation, conv_states, has_initial_state, cache_indices, query_start_loc, metadata
    ):
        ends = query_start_loc.tolist()
        return convolve(x.T, conv_states, weight, bias, cache_indices.tolist(), ends, has_initial_state.tolist()).T

    def causal_conv1d_update(x, conv_state, weight, bias, activation, conv_state_indices, validate_data):
        rows = conv_state_indices.tolist()
        return convolve(x, conv_state, weight, bias, rows, range(len(rows) + 1), [True] * len(rows))

    engine = types.SimpleNamespace(steps=None, is_conv_state_dim_first=lambda: False)
    engine.get_forward_context = lambda: types.SimpleNamespace(attn_metadata=engine.steps)
    engine.causal_conv1d_fn, engine.causal_conv1d_update = causal_conv1d_fn, causal_conv1d_update
    engine.metadata_of = lambda step: step
    engine.QwenGatedDeltaNetAttention = layer
    return engine


class StandIn(torch.nn.Module):
    """vLLM's layer on one rank of `tp_size`."""

    def __init__(self, tp_size=1, value_heads=HEADS, dtype=torch.float32, pool=torch.float32):
        super().__init__()
        random = torch.Generator().manual_seed(3)

        def normal(*shape):
            return torch.randn(*shape, generator=random)

        self.prefix, self.tp_size, self.activation = PREFIX, tp_size, "silu"
        self.num_k_heads, self.num_v_heads = KEY_HEADS * tp_size, value_heads * tp_size
        self.head_k_dim = self.head_v_dim = CHANNELS
        width = CHANNELS * (2 * KEY_HEADS + value_heads)
        self.conv1d = torch.nn.Conv1d(width, width, WIDTH, groups=width, bias=False, dtype=dtype)
        self.conv1d.weight.data = (normal(width, 1, WIDTH) / 2).to(dtype)
        self.A_log = torch.nn.Parameter(normal(value_heads))
        self.dt_bias = torch.nn.Parameter(normal(value_heads).to(dtype))
        # Pages are longer than states. A block that was another request's is not cleared.
        size = value_heads * CHANNELS**2
        pages = torch.full((BLOCKS, size + 40), torch.nan, dtype=pool)
        states = pages[:, :size].unflatten(1, (value_heads, CHANNELS, CHANNELS))
        self.kv_cache = (torch.full((BLOCKS, WIDTH - 1, width), torch.nan, dtype=dtype), states)
        self.ran = 0

    def _forward_core(self, mixed_qkv, b, a, core_attn_out):
        self.ran += 1


@pytest.fixture(params=["stand-in", "vLLM"])
def made(request, monkeypatch):
    """What makes a layer, and what it runs in."""

    def make(**words):
        engine = engine_of(StandIn)
        if request.param == "stand-in":
            return engine, gdn.vllm.make_layer(engine)(**words)
        module = pytest.importorskip("vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn")
        for name in ("get_forward_context", "is_conv_state_dim_first", "causal_conv1d_fn", "causal_conv1d_update"):
            assert callable(getattr(module, name))
            monkeypatch.setattr(module, name, getattr(engine, name))
        engine.metadata_of = lambda step: module.GDNAttentionMetadata(
            **vars(step), num_spec_decodes=0, num_spec_decode_tokens=0
        )
        kind = gdn.vllm.make_layer(module)
        # As vLLM's own tests do: a layer without its projections, which a model's configuration would have to make.
        layer = kind.__new__(kind)
        vars(layer).update(vars(StandIn(**words)), runs_gdn={}, _float_bias=(None, None))
        return engine, layer

    return make


class Request:
    """Tokens of one sequence, whose states and outputs float64 has."""

    def __init__(self, layer, block, seed):
        self.layer, self.block, self.done = layer, block, 0
        self.random = np.random.default_rng(seed)
        self.inputs, self.state = None, None

    def draw(self, tokens):
        width, heads = self.layer.conv1d.weight.shape[0], self.layer.A_log.shape[0]
        x = self.random.standard_normal((tokens, width + 2 * heads)).astype(np.float32)
        return torch.from_numpy(x).to(self.layer.conv1d.weight.dtype).split([width, heads, heads], 1)

    def expected(self, x, b, a):
        """The outputs of these tokens."""
        layer = self.layer
        self.inputs = x if self.inputs is None else torch.cat([self.inputs, x])
        ends = [0, len(self.inputs)]
        blank = torch.zeros(1, x.shape[1], WIDTH - 1)
        y = convolve(self.inputs.float(), blank, layer.conv1d.weight.detach().flatten(1).float(), None, [0], ends, [False])
        y = y[-len(x) :].to(x.dtype).double()
        keys = KEY_HEADS * CHANNELS
        parts = y.split([keys, keys, y.shape[1] - 2 * keys], 1)
        heads = [part.unflatten(1, (-1, CHANNELS))[None] for part in parts]
        o, self.state = gated_delta_rule(
            *heads, a.double()[None], b.double()[None], initial_state=self.state, l2norm=True, gate_domain="raw",
            A_log=layer.A_log.detach().double(), dt_bias=layer.dt_bias.detach().double(), beta_domain="logit", v_first=True,
        )  # fmt: skip
        return o[0]


def run(engine, layer, requests, tokens, decodes=0, padding=0):
    """A step of these requests; outputs and those of float64."""
    parts = [request.draw(n) for request, n in zip(requests, tokens)]
    wanted = [request.expected(*part) for request, part in zip(requests, parts)]
    mixed, b, a = (torch.cat(group) for group in zip(*parts))
    mixed, b, a = (torch.cat([x, x.new_zeros(padding, x.shape[1])]) for x in (mixed, b, a))
    blocks = [request.block for request in requests] + [0] * padding
    has = [request.inputs.shape[0] > n for request, n in zip(requests, tokens)]
    step = Step([*tokens, *[1] * padding], blocks, has, decodes + padding)
    engine.steps = {PREFIX: engine.metadata_of(step)}
    out = torch.full((len(mixed) + 3, layer.A_log.shape[0], CHANNELS), 7.0, dtype=mixed.dtype)
    rows = torch.zeros(3, mixed.shape[1], dtype=mixed.dtype)
    with torch.inference_mode():
        layer._forward_core(torch.cat([mixed, rows]), *(torch.cat([x, x.new_zeros(3, x.shape[1])]) for x in (b, a)), out)
    assert (out[len(mixed) :] == 7).all() and not out[len(mixed) - padding : len(mixed)].any()
    return out[: len(mixed) - padding].float(), np.concatenate(wanted)


FORMS = {
    "float32": {}, "heads / 4": {"tp_size": 4, "value_heads": 2},
    "bfloat16": {"dtype": torch.bfloat16}, "a pool in bfloat16": {"dtype": torch.bfloat16, "pool": torch.bfloat16},
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


def test_a_bias_that_changes(made):
    engine, layer = made(dtype=torch.bfloat16)
    request = Request(layer, 2, 0)
    run(engine, layer, [request], [20])
    with torch.no_grad():
        layer.dt_bias.add_(1)
    o, wanted = run(engine, layer, [request], [1], decodes=1)
    assert rms_error(o, wanted) < 2e-2


@pytest.mark.parametrize("what,reason", [
    ({"spec_sequence_masks": torch.ones(1, dtype=torch.bool)}, "speculated tokens as before"),
    ({"flashinfer_checkpoint_plan": object()}, "states inside a prefill as before"),
    ({"prefill_query_start_loc": torch.zeros(4)}, "prefill as before: cu_seqlens: expected a tensor of int32"),
    ({"num_actual_tokens": "no number"}, "prefill as before: TypeError"),
])  # fmt: skip
def test_what_is_left_to_vllm(what, reason, caplog):
    """With one line, whatever the number of layers and steps is."""
    gdn.vllm._said.clear()
    engine = engine_of(StandIn)
    layers = [gdn.vllm.make_layer(engine)() for _ in range(2)]
    step = Step([5], [1], [False])
    vars(step).update(what)
    engine.steps = {PREFIX: step}
    x, gates = torch.zeros(5, layers[0].conv1d.weight.shape[0]), torch.zeros(5, HEADS)
    with caplog.at_level(logging.WARNING, "gdn.vllm"), torch.inference_mode():
        for layer in layers * 2:
            layer._forward_core(x, gates, gates, torch.zeros(5, HEADS, CHANNELS))
    assert [layer.ran for layer in layers] == [2, 2]
    assert len(caplog.messages) == 1 and reason in caplog.messages[0]


def test_decoding_with_states_of_16_bits_on_a_gpu():
    """vLLM's kernels are faster."""
    layer = gdn.vllm.make_layer(engine_of(StandIn))(dtype=torch.bfloat16, pool=torch.bfloat16)
    on_gpu = types.SimpleNamespace(is_cuda=True)
    assert not layer._serves(Step([1], [1], [True], decodes=1), on_gpu, None, None, None)
    assert layer.runs_gdn == {"decoding with states of 16 bits": False}


@pytest.mark.parametrize("steps", [None, {}])
def test_profile_runs_are_vllms(steps):
    engine = engine_of(StandIn)
    layer = gdn.vllm.make_layer(engine)()
    engine.steps = steps
    layer._forward_core(None, None, None, None)
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
    engine = "vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn"
    for name, module in (("vllm.model_executor.custom_op", custom_op), (engine, engine_of(StandIn))):
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
    layer = modules["QwenGatedDeltaNetAttention"]
    gdn.vllm.register()
    assert modules == {"QwenGatedDeltaNetAttention": layer} and issubclass(layer, StandIn)


def test_other_versions_and_plugins(modules, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "gdn.vllm"):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.34.0")
        gdn.vllm.register()
        assert not modules
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.33.0")
        modules["QwenGatedDeltaNetAttention"] = StandIn
        gdn.vllm.register()
    assert modules == {"QwenGatedDeltaNetAttention": StandIn}
    assert "expected vLLM 0.33.*, got 0.34.0" in caplog.messages[0]
    assert "got StandIn of another plug-in, which stays" in caplog.messages[1]


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
    engine = pytest.importorskip("vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn")
    monkeypatch.setattr(custom_op, "op_registry_oot", {})
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.33.0")
    monkeypatch.setenv("GDN_VLLM", "1")
    gdn.vllm.register()
    own = engine.QwenGatedDeltaNetAttention
    assert type(own.__new__(own)).is_gdn and issubclass(type(own.__new__(own)), own)
