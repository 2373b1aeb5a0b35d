# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of any strides on a GPU that is not there: what is read in place, what is copied first, what that costs.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import re

import pytest
from fake_cuda import Tensor
from hopper_checks import device, driver, run, tensors  # noqa: F401

import gdn

torch = pytest.importorskip("torch")


def convolved(T=256, H=2, HV=4, dtype="bfloat16", rows=None):
    """q, k and v as Transformers makes them: views of a convolution's output [1, C, T], whose tokens lie side by side;
    `rows` is the distance of channels."""
    rows = rows or T
    size = {"bfloat16": 2, "float16": 2, "float32": 4}[dtype]
    whole = Tensor(dtype, 1, (2 * H + HV) * 128, T, strides=[(2 * H + HV) * 128 * rows, rows, 1])

    def view(first, heads):
        part = Tensor(dtype, 1, T, heads, 128, strides=[whole.strides[0], 1, 128 * rows, rows])
        part.address = whole.address + first * 128 * rows * size
        return part

    return {"q": view(0, H), "k": view(H, H), "v": view(2 * H, HV)}


def launches(arguments, **kwargs):
    before = driver.count("cuLaunchKernelEx")
    run(arguments, **kwargs)
    return driver.count("cuLaunchKernelEx") - before


@pytest.mark.parametrize("rows", [256, 259])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_views_of_a_convolution(dtype, rows):
    """One launch copies all three."""
    assert launches(tensors(dtype=dtype, **convolved(dtype=dtype, rows=rows))) == 2


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_one_input(name):
    """Tokens side by side, alone; a misaligned address; rows that are no multiples of 16 bytes; every second channel;
    heads that share memory."""
    shape = (1, 256, 4 if name == "v" else 2, 128)
    heads = shape[2]
    for value in (
        convolved()[name],
        Tensor("bfloat16", *shape, offset=2),
        Tensor("bfloat16", *shape, strides=[256 * (heads * 128 + 1), heads * 128 + 1, 128, 1]),
        Tensor("bfloat16", *shape, strides=[512 * heads * 128, 2 * heads * 128, 256, 2]),
        Tensor("bfloat16", *shape, strides=[256 * 128, 128, 0, 1]),
    ):
        assert launches(tensors(**{name: value})) == 2


@pytest.mark.parametrize("name,shape,strides", [
    ("g", (1, 256, 4), [1024, 1, 256]),
    ("beta", (1, 256, 4), [2048, 8, 2]),
])
def test_gates(name, shape, strides):
    assert launches(tensors(**{name: Tensor("float32", *shape, strides=strides)})) == 2


@pytest.mark.parametrize("strides", [[4 * 128 * 128, 128 * 128, 1, 128], [4 * 128 * 128, 1, 4 * 128, 4]])
def test_states(strides):
    """Functions of chunks read states of any strides, those token by token rows of stride 1."""
    state = Tensor("float32", 1, 4, 128, 128, strides=strides)
    assert launches(tensors(initial_state=state)) == 1
    assert launches(tensors(T=1, initial_state=state)) == 2


def test_gate_parameters():
    changes = {name: Tensor("float32", 4, strides=[2]) for name in ("A_log", "dt_bias")}
    options = gdn._library.pack_options(gate_domain=2, beta_domain=1)
    assert launches(tensors(**changes), options=options) == 3


def test_in_place():
    """Rows of one projection, odd rows token by token, and whatever stride an extent of 1 has."""
    row = (2 * 2 + 4) * 128
    view = Tensor("bfloat16", 1, 256, 4, 128, strides=[256 * row, row, 128, 1])
    assert launches(tensors(v=view)) == 1
    odd = Tensor("float32", 1, 256, 2, 128, strides=[256 * 259, 259, 129, 1], offset=4)
    assert launches(tensors(dtype="float32", k=odd)) == 1
    token = {
        name: Tensor("bfloat16", 1, 1, heads, 128, strides=[7, 1, 128, 1])
        for name, heads in (("q", 2), ("k", 2), ("v", 4))
    }
    assert launches(tensors(T=1, **token)) == 1


def test_failed_copy():
    """No kernel runs on what is not there."""
    run(tensors(**convolved()))
    driver.fail("cuLaunchKernelEx", 719)
    try:
        with pytest.raises(RuntimeError, match="^gdn: q, k, v: expected a copy .*, got: launching .*gdn_convert_.* failed"):
            run(tensors(**convolved()))
    finally:
        driver.fail("cuLaunchKernelEx", 0)


def test_outputs():
    """Those that no kernel writes in place are cast behind it."""
    strided = convolved()["v"]
    assert launches(tensors(out=strided)) == 2


def meta(*shape, dtype=torch.bfloat16):
    return torch.empty(*shape, dtype=dtype, device="meta")


def explain(q, k, v, **kwargs):
    g = meta(1, v.shape[1], v.shape[2], dtype=torch.float32)
    return gdn.explain(q, k, v, g, g, device="cuda", **kwargs)


def test_explain():
    whole = meta(1, 8192, 32768).transpose(1, 2)
    views = [part.unflatten(2, (-1, 128)) for part in whole.split([2048, 2048, 4096], dim=2)]
    choice = explain(*views)
    (copy,) = choice.copies
    assert copy.inputs == ("q", "k", "v") and copy.transposed and copy.bytes == 2 * 8192 * 32768 * 2
    dense = explain(*(view.contiguous() for view in views))
    assert dense.copies == () and re.search("copies +none", str(dense))
    assert choice.seconds == pytest.approx(dense.seconds + copy.seconds)
    # At least 80 % of 4 TB/s, and the launch.
    assert 2.6e-4 < copy.seconds < 3.4e-4
    # The copies, beside what segments take.
    assert choice.workspace_bytes == 8192 * 32768 * 2 + dense.workspace_bytes
    assert "q, k, v transposed: 1.074e+09 bytes" in str(choice)


def test_explain_outputs():
    """Of any strides too: the caller's are written by a conversion behind the call."""
    q = meta(1, 64, 4, 128)
    choice = explain(q, q, q, out=meta(1, 4, 128, 64).permute(0, 3, 1, 2))
    assert choice.copies == () and [x.what for x in choice.conversions] == ["outputs back"]


def test_supported():
    q, g = meta(1, 64, 4, 128), meta(1, 64, 4, dtype=torch.float32)
    padded, by_head = meta(1, 64, 4, 129)[..., :128], meta(1, 4, 64, dtype=torch.float32).transpose(1, 2)
    assert gdn.supported(padded, q, q, g, g, device="cuda")
    assert gdn.supported(q, q, q, g, by_head, device="cuda")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_models_of_transformers(dtype):
    """Prefill without and with a cache, and a token, reach gdn on a GPU whatever the strides are."""
    from gdn import transformers

    heads = [(dtype, (1, 1, n, 128), (n * 128, n * 128, 128, 1)) for n in (16, 16, 32)]
    gates = [(each, (1, 1, 32), (32, 32, 1)) for each in (torch.float32, dtype)]
    state = (torch.float32, (1, 32, 128, 128), (32 * 128 * 128, 128 * 128, 128, 1))
    words = (("output_final_state", True), ("use_qk_l2norm_in_kernel", True))
    for function, initial in (
        ("chunk_gated_delta_rule", None),
        ("chunk_gated_delta_rule", state),
        ("fused_recurrent_gated_delta_rule", state),
    ):
        assert transformers._ask(function, "cuda", (*heads, *gates, None, None, initial, None), words, False)
