# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plug-in of SGLang: prefills, decoding and verification over one pool against float64, and when SGLang's own kernels run.

Small classes stand for SGLang's dispatchers, backends and kernels (sglang_stand_in.py). Where SGLang can be imported, from the Python files of its
wheel too, its own registry of hooks and its own dispatchers take their place.
"""

import importlib
import importlib.metadata
import logging
import os
import subprocess
import sys
import types

import pytest
from reference import rms_error

torch = pytest.importorskip("torch")

from sglang_stand_in import (  # noqa: E402
    CHANNELS, HEADS, ROLES, SLOTS, STEPS, Dispatcher, Layer, Sequence, Triton, real_dispatcher,
)  # fmt: skip

import gdn.sglang  # noqa: E402
from gdn import _serving  # noqa: E402


@pytest.fixture(params=["stand-in", "SGLang"])
def made(request):
    """What makes a layer."""
    return lambda **words: Layer(is_real=request.param == "SGLang", **words)


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


@pytest.mark.parametrize("is_kda", [False, True])
def test_decoding_with_states_of_16_bits_on_a_gpu(is_kda):
    """gdn decodes gates a head; nobody has measured gates a channel beside SGLang's kernels."""
    layer, on_gpu = Layer(pool=torch.bfloat16, is_kda=is_kda), types.SimpleNamespace(is_cuda=True)
    gates = torch.zeros(1, HEADS * (CHANNELS if is_kda else 1)), torch.zeros(1, HEADS)
    assert layer.dispatcher.decode_kernel._decodes(on_gpu, *gates, {"ssm_states": layer.pool}) != is_kda


def test_deterministic_inference(monkeypatch, caplog):
    """Sizes choose gdn's kernels."""
    monkeypatch.setenv("SGLANG_ENABLE_DETERMINISTIC_INFERENCE", "1")
    with caplog.at_level(logging.WARNING, "gdn.sglang"):
        layer = Layer()
    assert layer.dispatcher.extend_kernel is layer.own
    assert "expected SGLANG_ENABLE_DETERMINISTIC_INFERENCE=0, got 1" in caplog.messages[0]


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
