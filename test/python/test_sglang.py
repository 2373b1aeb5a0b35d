# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plug-in of SGLang: prefills, decoding and verification over one pool against float64, and when SGLang's own kernels run.

Small classes stand for SGLang's dispatchers, backends and kernels. Where SGLang can be imported, from the Python files of its
wheel too, its own registry of hooks and its own dispatchers take their place.
"""

import importlib
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

import gdn.sglang  # noqa: E402
from gdn import _serving  # noqa: E402

KEY_HEADS, HEADS, CHANNELS, SLOTS, STEPS = 2, 4, 32, 7, 4
ROLES = ("decode_kernel", "extend_kernel", "verify_kernel", "tree_verify_kernel")


class Triton:
    """SGLang's kernel: it counts its calls."""

    __module__ = "sglang.srt.kernels"

    def __init__(self):
        self.ran = []

    def _call(self, name):
        self.ran.append(name)
        return name

    def packed_decode(self, mixed_qkv, a, b, **words):
        return self._call("packed_decode")

    def decode(self, q, k, v, a, b, **words):
        return self._call("decode")

    def extend(self, q, k, v, g, beta, **words):
        return self._call("extend")

    def target_verify(self, A_log, dt_bias, q, k, v, a, b, **words):
        return self._call("target_verify")


class Dispatcher:
    """SGLang's dispatcher of one kernel."""

    def __init__(self, kernel):
        vars(self).update(dict.fromkeys(ROLES, kernel))

    def packed_decode(self, *arguments, **words):
        return self.decode_kernel.packed_decode(*arguments, **words)

    def decode(self, *arguments, **words):
        return self.decode_kernel.decode(*arguments, **words)

    def extend(self, *arguments, **words):
        return self.extend_kernel.extend(*arguments, **words)

    def target_verify(self, **words):
        is_tree = words["retrieve_parent_token"] is not None
        return (self.tree_verify_kernel if is_tree else self.verify_kernel).target_verify(**words)


class Chosen(types.SimpleNamespace):
    """The choice of Triton's kernels, and of no others."""

    def __getattr__(self, name):
        return lambda: name == "is_triton"


def real_dispatcher(is_kda):
    """SGLang's own, where it can be imported."""
    name = "kda" if is_kda else "gdn"
    backends = pytest.importorskip(f"sglang.srt.layers.attention.linear.{name}_backend")
    return getattr(backends, f"{name.upper()}KernelDispatcher")(*[Chosen()] * (2 + is_kda))


@pytest.fixture(params=["stand-in", "SGLang"])
def made(request):
    """What makes a layer."""
    return lambda **words: Layer(is_real=request.param == "SGLang", **words)


class Sequence:
    """The state and outputs of one sequence in float64."""

    def __init__(self, row):
        self.row, self.state = row, None

    def expected(self, layer, q, k, v, a, b, commit=True):
        o, state = gated_delta_rule(
            *(x.double()[None] for x in (q, k, v, layer.of_heads(a), b)), initial_state=self.state, l2norm=True,
            gate_domain="raw" if layer.lower_bound is None else "bounded", lower_bound=layer.lower_bound,
            A_log=layer.A_log.double().flatten(), dt_bias=layer.dt_bias.double(), beta_domain="logit", v_first=True,
        )  # fmt: skip
        if commit:
            self.state = state
        return o[0], state


class Layer:
    """What SGLang's backend gives its dispatcher: the parameters, the pool, tokens behind the convolution."""

    def __init__(self, is_real=False, dtype=torch.float32, pool=torch.float32, is_kda=False, lower_bound=None):
        self.random, self.dtype = torch.Generator().manual_seed(5), dtype
        self.is_kda, self.lower_bound = is_kda, lower_bound
        self.key_heads, self.gates = (HEADS, CHANNELS) if is_kda else (KEY_HEADS, 1)
        self.A_log, self.dt_bias = self.draw(HEADS).float(), self.draw(HEADS * self.gates)
        if is_kda:
            self.A_log, self.dt_bias = self.A_log.reshape(1, 1, -1, 1), self.dt_bias.float()
        # Slot 0 is for padded rows. Pages are longer than states.
        size = HEADS * CHANNELS**2
        self.pool = torch.zeros(SLOTS, size + 40, dtype=pool)[:, :size].unflatten(1, (HEADS, CHANNELS, CHANNELS))
        self.own = Triton()
        self.dispatcher = real_dispatcher(is_kda) if is_real else Dispatcher(self.own)
        step = types.SimpleNamespace(has_mamba_track_mask=False, track_ssm_h_src=torch.empty(0))
        self.backend = types.SimpleNamespace(
            kernel_dispatcher=self.dispatcher, forward_metadata=step,
            verify_intermediate_state_indices=torch.arange(SLOTS, dtype=torch.int32),
        )  # fmt: skip
        gdn.sglang.serve(None, self.backend)

    def of_heads(self, a):
        """Raw gates as float64 takes them."""
        return a.unflatten(-1, (HEADS, CHANNELS)) if self.is_kda else a

    def draw(self, *shape):
        return torch.randn(*shape, generator=self.random).to(self.dtype)

    def tokens(self, count):
        """q, k, v as views of the convolution's output; a; b; and that output."""
        mixed = self.draw(count, (2 * self.key_heads + HEADS) * CHANNELS)
        keys = self.key_heads * CHANNELS
        parts = [x.unflatten(1, (-1, CHANNELS)) for x in mixed.split([keys, keys, HEADS * CHANNELS], 1)]
        return parts, self.draw(count, HEADS * self.gates), self.draw(count, HEADS), mixed

    def words(self, rows, ends=None):
        numbers = lambda values: torch.tensor(values, dtype=torch.int32)  # noqa: E731
        words = {"ssm_states": self.pool, "cache_indices": numbers(rows)}
        return words if ends is None else {**words, "query_start_loc": numbers(ends)}

    @property
    def parameters(self):
        bound = {"lower_bound": self.lower_bound} if self.is_kda else {}
        return {"A_log": self.A_log, "dt_bias": self.dt_bias, **bound}

    def extend(self, sequences, lengths, chunks=None):
        """A prefill; outputs and those of float64, and with `chunks`, a number for each sequence or -1, the states between chunks
        that are kept, and those of float64."""
        parts, a, b, _ = self.tokens(sum(lengths))
        ends = np.cumsum([0, *lengths]).tolist()
        words = {**self.words([s.row for s in sequences], ends), "track_state": None, "track_chunk_idx": None}
        kept = []
        if chunks:
            words["track_state"] = torch.full((len(lengths) + 1, HEADS, CHANNELS, CHANNELS), torch.nan)
            words["track_chunk_idx"] = torch.tensor([*chunks, -1], dtype=torch.int32)
            for s, begin, count in zip(sequences, ends, chunks):
                tokens = slice(begin, begin + 64 * count)
                kept.append(s.expected(self, *(x[tokens] for x in (*parts, a, b)), commit=False)[1] if count > 0 else None)
        if self.is_kda:
            words |= {**self.parameters, "beta_is_raw": True, "return_intermediate_states": chunks is not None}
            out = self.dispatcher.extend(*(x[None] for x in parts), self.of_heads(a)[None], b[None], **words)
            out = out[0] if chunks else out
        else:
            g = -self.A_log.exp() * torch.nn.functional.softplus(a.float() + self.dt_bias.float())
            out, _, _ = self.dispatcher.extend(*(x[None] for x in parts), g[None], b.float().sigmoid()[None], **words)
        done = out[0], self.wanted(sequences, ends, parts, a, b)
        return (*done, words["track_state"], kept) if chunks else done

    def wanted(self, sequences, ends, parts, a, b):
        pieces = [
            s.expected(self, *(x[i:j] for x in (*parts, a, b)))[0] for s, i, j in zip(sequences, ends, ends[1:]) if s.row > 0
        ]
        return np.concatenate(pieces)

    def decode(self, sequences, packed):
        """A token of each sequence, in the call that SGLang makes if a kernel takes the convolution's output, and in the other."""
        parts, a, b, mixed = self.tokens(len(sequences))
        ends = list(range(len(sequences) + 1))
        rows = [s.row for s in sequences]
        if packed:
            shape = {"scale": CHANNELS**-0.5, "num_v_heads": HEADS, "head_v_dim": CHANNELS}
            b = b[None] if self.is_kda else b
            out = self.dispatcher.packed_decode(mixed, a, b, **self.parameters, **self.words(rows), **shape)
        else:
            out = self.dispatcher.decode(*(x[None] for x in parts), a, b, **self.parameters, **self.words(rows, ends))
        assert not out[0, [n for n, row in enumerate(rows) if row < 0]].any()
        there = [n for n, row in enumerate(rows) if row > 0]
        return out[0, there], self.wanted(sequences, ends, parts, a, b.reshape(-1, HEADS))


FORMS = {
    "float32": ({}, 1e-5), "bfloat16": ({"dtype": torch.bfloat16}, 8e-3),
    "a pool in bfloat16": ({"dtype": torch.bfloat16, "pool": torch.bfloat16}, 3e-2), "Kimi": ({"is_kda": True}, 1e-5),
    "Kimi, bounded": ({"is_kda": True, "dtype": torch.bfloat16, "lower_bound": -5.0}, 8e-3),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_steps(form, made):
    """Prefills in two pieces, decoding in both calls beside padded rows, and a slot of another sequence."""
    words, tolerance = FORMS[form]
    layer = made(**words)
    first, second = Sequence(3), Sequence(5)
    got = [layer.extend([first, second], [70, 3]), layer.extend([second, first], [20, 1])]
    for packed in (True, False):
        got.append(layer.decode([first, Sequence(-1), second], packed))
    for o, wanted in got:
        assert rms_error(o.float(), wanted) < tolerance
    for sequence in (first, second):
        assert rms_error(layer.pool[sequence.row].float(), sequence.state[0]) < tolerance
    assert not layer.pool[[1, 2, 4, 6]].any() and not layer.own.ran


@pytest.mark.parametrize("form", FORMS)
def test_states_inside_a_prefill(form, made):
    """One of a sequence, in float32 whatever the pool's type is; a radix cache keeps it."""
    words, tolerance = FORMS[form]
    layer = made(**words)
    sequences = [Sequence(row) for row in (3, 5, 2)]
    layer.extend(sequences[:1], [33])
    o, wanted, got, kept = layer.extend(sequences, [70, 40, 300], chunks=[1, -1, 3])
    assert rms_error(o.float(), wanted) < tolerance
    for state, expected in zip(got, kept):
        assert expected is None or rms_error(state, expected[0]) < tolerance
    assert layer.dispatcher.extend_kernel.served.runs["prefill with states inside"] and not layer.own.ran


def test_states_inside_a_prefill_of_sglang():
    """What SGLang's kernel gives, all states between chunks, becomes the one that the backend asked gdn for."""
    layer = Layer()
    kernel = layer.dispatcher.extend_kernel
    all_states = torch.arange(6.0)[None, :, None, None, None].expand(1, -1, HEADS, CHANNELS, CHANNELS).bfloat16()
    layer.own._call = kernel._call = lambda name: ("out", None, all_states)
    step = layer.backend.forward_metadata
    step.track_ssm_h_src, step.track_ssm_h_batch_src = torch.tensor([4, 1]), torch.tensor([2, 0])
    x, kept = torch.zeros(1, 3, HEADS, CHANNELS), torch.full((3, HEADS, CHANNELS, CHANNELS), 7.0)
    words = {**layer.words([1], [0, 3]), "track_state": kept, "track_chunk_idx": "no numbers"}
    assert kernel.extend(x, x, x, x[..., 0], x[..., 0], **words)[0] == "out"
    assert [float(state.mean()) for state in kept] == [1, 7, 4] and kernel.served.runs == {"prefill with states inside": False}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("own_indices", [False, True])
def test_verification(form, tree, own_indices, made):
    """The pool stays, and the buffer has the state after each token; SGLang copies the accepted one."""
    words, tolerance = FORMS[form]
    layer = made(**words)
    sequences = [Sequence(2), Sequence(4)]
    layer.extend(sequences, [9, 30])
    before = layer.pool.clone()
    parts, a, b, _ = layer.tokens(2 * STEPS)
    # Of each token: the root has none; the others go on from the root, the root, and the second token.
    parents = torch.tensor([[-1, 0, 0, 1], [-1, 0, 1, 2]], dtype=torch.int32) if tree else None
    buffer = torch.full((SLOTS, STEPS, HEADS, CHANNELS, CHANNELS), torch.nan, dtype=layer.pool.dtype)
    indices = layer.backend.verify_intermediate_state_indices if own_indices else torch.tensor([5, 1], dtype=torch.int32)
    for _ in range(2):
        out = layer.dispatcher.target_verify(
            **layer.parameters, **dict(zip("qkv", (x[None] for x in parts))), a=a, b=b, intermediate_states_buffer=buffer,
            **layer.words([2, 4], [0, STEPS, 2 * STEPS]), cache_steps=STEPS, retrieve_parent_token=parents,
            intermediate_state_indices=indices, stable_rows=False,
        )  # fmt: skip
    assert torch.equal(layer.pool, before) and not layer.own.ran
    for n, sequence in enumerate(sequences):
        for t in range(STEPS):
            path = [t]
            while path[0] > 0:
                path.insert(0, int(parents[n, path[0]]) if tree else path[0] - 1)
            at = [n * STEPS + step for step in path]
            o, state = sequence.expected(layer, *(x[at] for x in (*parts, a, b)), commit=False)
            assert rms_error(out[0, n * STEPS + t].float(), o[-1]) < 2 * tolerance
            assert rms_error(buffer[indices[n], t].float(), state[0]) < 2 * tolerance
    assert buffer[[n for n in range(SLOTS) if n not in indices[:2]]].isnan().all()


def test_what_is_left_to_sglang(caplog):
    """With one line for each kind, whatever the number of calls is."""
    _serving._said.clear()
    layer = Layer()
    x, gates = torch.zeros(1, 3, HEADS, CHANNELS), torch.zeros(1, 3, HEADS)
    words = layer.words([1], [0, 3])
    kernel = layer.dispatcher.extend_kernel
    with caplog.at_level(logging.WARNING, "gdn.sglang"):
        for _ in range(2):
            assert kernel.extend(x, x, x, gates, gates, **words, inplace_update=False) == "extend"
            assert kernel.extend(x, x, x, gates, gates, **words, is_spec_decode=True) == "extend"
            assert kernel.extend(x, x, x, gates, gates, **{**words, "query_start_loc": torch.zeros(2)}) == "extend"
            decoding = {**layer.parameters, **layer.words([1]), "scale": 1.0, "num_v_heads": HEADS, "head_v_dim": CHANNELS}
            mixed, a = torch.zeros(1, 8 * CHANNELS), torch.zeros(1, HEADS)
            assert kernel.packed_decode(mixed, a, a, **decoding, replayssm_d=x) == "packed_decode"
            assert kernel.packed_decode(mixed, "no gates", a, **decoding) == "packed_decode"
            verifying = {**layer.parameters, **dict(zip("qkvab", (x, x, x, a, a))), "retrieve_parent_token": None}
            assert kernel.target_verify(**verifying, replayssm_rawv=x, intermediate_states_buffer=None) == "target_verify"
    reasons = (
        "multi-item scoring as before: gdn writes",
        "prefills of drafts as before: gdn writes", "prefill as before: cu_seqlens: expected a tensor of int32",
        "decoding with replayssm_d as before: gdn has no", "decoding as before: AttributeError",
        "verification with replayssm_rawv as before: gdn has no",
    )  # fmt: skip
    assert len(caplog.messages) == len(reasons)
    for message, reason in zip(caplog.messages, reasons):
        assert message.startswith("gdn: SGLang runs") and reason in message


def test_decoding_with_states_of_16_bits_on_a_gpu():
    """SGLang's kernels are faster."""
    layer = Layer(pool=torch.bfloat16)
    assert not layer.dispatcher.decode_kernel._decodes(types.SimpleNamespace(is_cuda=True), {"ssm_states": layer.pool})


def test_kernels_of_others_stay(caplog):
    other = type("Other", (), {"__module__": "elsewhere"})()
    dispatcher = Dispatcher(Triton())
    dispatcher.decode_kernel = other
    with caplog.at_level(logging.WARNING, "gdn.sglang"):
        for _ in range(2):
            gdn.sglang.serve(None, types.SimpleNamespace(kernel_dispatcher=dispatcher))
    assert dispatcher.decode_kernel is other
    assert dispatcher.extend_kernel is dispatcher.verify_kernel is dispatcher.tree_verify_kernel
    assert dispatcher.extend_kernel.is_gdn and isinstance(dispatcher.extend_kernel, Triton)
    assert "expected SGLang's own decode_kernel, got Other of another plug-in" in caplog.messages[0]


@pytest.fixture
def hooks(monkeypatch):
    """SGLang's registry of hooks."""
    registered = []
    registry = types.SimpleNamespace(register=lambda *arguments: registered.append(arguments))
    names = "sglang.srt.plugins.hook_registry"
    for i, letter in enumerate(names):
        if letter == "." and names[:i] not in sys.modules:
            monkeypatch.setitem(sys.modules, names[:i], types.ModuleType(names[:i]))
    module = types.SimpleNamespace(HookRegistry=registry, HookType=types.SimpleNamespace(AFTER="after"))
    monkeypatch.setitem(sys.modules, names, module)
    monkeypatch.setenv("GDN_SGLANG", "1")
    return registered


def test_register(hooks, monkeypatch, caplog):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.5.24")
    with caplog.at_level(logging.WARNING, "gdn.sglang"):
        gdn.sglang.register()
    assert not hooks and "expected SGLang 0.5.23*, got 0.5.24" in caplog.messages[0]
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.5.23")
    gdn.sglang.register()
    assert [hook for _, *hook in hooks] == [[gdn.sglang.serve, "after"]] * 2
    assert [target.rsplit(".", 2)[1] for target, *_ in hooks] == ["GDNAttnBackend", "KDAAttnBackend"]


def test_the_entry_point():
    """SGLang finds `register` in the installed package."""
    try:
        package = importlib.metadata.distribution("gdn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gdn is not installed as a package")
    (found,) = package.entry_points.select(group="sglang.srt.plugins")
    assert found.load() is gdn.sglang.register


@pytest.mark.parametrize("value", [None, "0"])
def test_off_without_a_trace(value):
    """The entry point imports nothing but gdn, which is light, and what that needs."""
    code = "import sys, gdn; before = set(sys.modules); import gdn.sglang; gdn.sglang.register(); print(set(sys.modules) - before)"
    environment = {name: x for name, x in os.environ.items() if name != "GDN_SGLANG"}
    if value:
        environment["GDN_SGLANG"] = value
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "{'gdn.sglang'}"


def test_the_real_registry(monkeypatch):
    """SGLang has the hook, and its own dispatcher takes kernels of its own kind."""
    registry = pytest.importorskip("sglang.srt.plugins.hook_registry")
    monkeypatch.setattr(registry.HookRegistry, "_hooks", type(registry.HookRegistry._hooks)(list))
    monkeypatch.setenv("GDN_SGLANG", "1")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.5.23")
    gdn.sglang.register()
    for target, hooks in registry.HookRegistry._hooks.items():
        module, name, method = target.rsplit(".", 2)
        backend = getattr(importlib.import_module(module), name)
        assert callable(getattr(backend, method)) and hooks[0][1] is gdn.sglang.serve
    for is_kda in (False, True):
        dispatcher = real_dispatcher(is_kda)
        own = dispatcher.extend_kernel
        gdn.sglang.serve(None, types.SimpleNamespace(kernel_dispatcher=dispatcher))
        kernels = [getattr(dispatcher, role) for role in ROLES if hasattr(dispatcher, role)]
        assert len(kernels) == 4 - is_kda and all(kernel.is_gdn for kernel in kernels)
        flags = {name for name in dir(own) if name.startswith(("supports_", "uses_"))} - {"supports_track_state_snapshot"}
        assert len(flags) > 2 and kernels[0].supports_track_state_snapshot and all(getattr(kernels[0], name) == getattr(own, name) for name in flags)
