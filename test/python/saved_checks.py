# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward that saves, and gradients from that, on a GPU that is not there (as hopper_gradients_checks.py)."""

import pytest
from fake_cuda import Tensor
from hopper_checks import device, driver  # noqa: F401
from hopper_gradients_checks import GRADIENTS, INPUTS, KERNELS, MODEL, NORMS, OF_A_MODEL, WITH_NORMS, explain, model, tensors

torch = pytest.importorskip("torch")
from gdn import _library  # noqa: E402

SAVED = ("writes", "states")
#: The rows of q and k, and the forward.
FORWARD = {0: 1, NORMS: 3, MODEL: 3}


def saved(T=256, HV=4, N=3, K=128, dtype="bfloat16", **changes):
    """What a forward saves, by name."""
    found = {"writes": Tensor(dtype, 1, T, HV, K), "states": Tensor(dtype, T // 64 + N, HV, K, K)}
    return {**found, **changes}


def launches(function, names, arguments, options):
    """Calls a function of the library; returns how many kernels it launched."""
    import tvm_ffi

    held = [None if arguments.get(name) is None else tvm_ffi.from_dlpack(arguments[name]) for name in names]
    before = driver.count("cuLaunchKernelEx")
    function(*held, None, options, 1, 0)
    return driver.count("cuLaunchKernelEx") - before


def backward(arguments, options=0):
    return launches(_library.load().backward_saved, (*INPUTS, *GRADIENTS, *SAVED), arguments, options)


def forward(arguments, options=0):
    names = (*INPUTS[:9], "o", "final", *SAVED)
    given = {**arguments, "o": arguments["d_o"], "final": arguments.get("d_state")}
    return launches(_library.load().forward_saving, names, given, options)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_launches(dtype):
    """One kernel less than without: what the forward saved is not made again."""
    made = saved(dtype=dtype)
    for states, options in ((False, 0), (True, 0), (True, 1 << 5)):
        assert backward({**tensors(dtype=dtype, states=states), **made}, options) == KERNELS - 1
    assert backward({**tensors(dtype=dtype), **made}, NORMS) == WITH_NORMS - 1
    assert backward({**model("float32", dtype=dtype), **made}, MODEL) == OF_A_MODEL - 1
    for options, given in ((0, tensors(dtype=dtype)), (NORMS, tensors(dtype=dtype)), (MODEL, model("float32", dtype=dtype))):
        assert forward({**given, **made}, options) == FORWARD[options]


def test_never_cut():
    """Who asks for states asks for whole sequences."""
    assert backward({**tensors(T=1000, N=2), **saved(T=1000, N=2)}, _library.pack_segments(3)) == KERNELS - 1


@pytest.mark.parametrize("changes,message", [
    ({"states": Tensor("bfloat16", 8, 4, 128, 128)}, "extent 0 of states to be 7, got 8"),
    ({"writes": Tensor("bfloat16", 1, 255, 4, 128)}, "extent 1 of writes to be 256, got 255"),
    ({"states": Tensor("float16", 7, 4, 128, 128)}, "states"),
])  # fmt: skip
def test_refused(changes, message):
    before = driver.count("cuLaunchKernelEx")
    with pytest.raises((ValueError, RuntimeError), match=message):
        backward({**tensors(), **saved(**changes)})
    assert driver.count("cuLaunchKernelEx") == before


@pytest.mark.parametrize("words", [{"K": 64}, {"state_v_first": True}])
def test_no_forward(words):
    """Forms without a forward that saves are refused; the package does not ask for them."""
    K = words.get("K", 128)
    with pytest.raises(NotImplementedError, match="a forward that saves"):
        forward({**tensors(K=K), **saved(K=K)}, 1 << 5 if "state_v_first" in words else 0)


def test_explain():
    plain, asked = (explain(**own).backward for own in ({}, {"save_for_backward": "states"}))
    assert plain.saves == "inputs" and plain.why_inputs is None and asked.saves == "states" and asked.why_inputs is None
    states = (4096 // 64 + 1) * 4 * 128 * 128 * 2
    assert asked.saved_bytes == plain.saved_bytes + states and asked.launches == plain.launches - 1
    # What is saved is not in the workspace.
    assert asked.workspace_bytes == plain.workspace_bytes - states - 4096 * 4 * 128 * 2
    assert "bytes saved (states)" in str(asked)
    other = explain(K=64, V=64, save_for_backward="states").backward
    assert other.saves == "inputs" and other.why_inputs == "K = 64, V = 64" and "(inputs, for K = 64" in str(other)
