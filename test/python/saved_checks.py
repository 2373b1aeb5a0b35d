# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward that saves, and gradients from that, on a GPU that is not there (as hopper_gradients_checks.py)."""

import itertools

import pytest
from fake_cuda import Tensor
from hopper_checks import device, driver, meta  # noqa: F401
from hopper_gradients_checks import GRADIENTS, INPUTS, KERNELS, MODEL, NORMS, OF_A_MODEL, WITH_NORMS, explain, model, tensors
from matrix import crossed, sampled

torch = pytest.importorskip("torch")
import gdn  # noqa: E402
from gdn import _library  # noqa: E402

SAVED = ("writes", "states")
INTERVAL = _library.MANIFEST["decays"]["Head"]["saved_tokens"]
#: The rows of q and k, and the forward.
FORWARD = {0: 1, NORMS: 3, MODEL: 3}
#: In segments: the cut, starts, what segments add, maps, the scan, the forward; of gradients those but the state pass, one
#: scan and replay.
FORWARD_OF_SEGMENTS, BACKWARD_OF_SEGMENTS = 6, 8


def saved(T=256, HV=4, N=3, K=128, dtype="bfloat16", more=0, **changes):
    """What a forward saves, by name; with memory for so many states more than sequences need."""
    found = {"writes": Tensor(dtype, 1, T, HV, K), "states": Tensor(dtype, T // INTERVAL + N + more, HV, K, K)}
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
    names = (*INPUTS[:9], "o", "final", *INPUTS[11:], *SAVED)
    given = {**arguments, "o": arguments["d_o"], "final": arguments.get("d_state")}
    return launches(_library.load().forward_saving, names, given, options)


#: What the backward of a form would launch if nothing was saved.
FORMS = {"plain": (0, KERNELS), "norms": (NORMS, WITH_NORMS), "model": (MODEL, OF_A_MODEL)}


# Norms are those of a model, too.
@pytest.mark.parametrize(
    "form,dtype",
    sampled(
        itertools.product(FORMS, ["bfloat16", "float16"]),
        each_time=[("plain", "bfloat16"), ("plain", "float16"), ("model", "bfloat16")],
    ),
)
def test_launches(form, dtype):
    """One kernel less than without: what the forward saved is not made again."""
    options, count = FORMS[form]
    given = {**(model("float32", dtype=dtype) if form == "model" else tensors(dtype=dtype)), **saved(dtype=dtype)}
    assert backward(given, options) == count - 1
    assert forward(given, options) == FORWARD[options]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("states,options", [(False, 0), (True, 1 << 5)])
def test_other_states(dtype, states, options):
    """No state, and states [V, K], have the kernels of others."""
    given = {**tensors(dtype=dtype, states=states), **saved(dtype=dtype)}
    assert backward(given, options) == KERNELS - 1 and forward(given, options) == FORWARD[0]


@pytest.mark.parametrize("dtype,N", crossed(["bfloat16", "float16"], [1, 2]))
def test_segments(dtype, N):
    """Where a caller says so, forward and backward are cut alike; there may be memory for more states than segments want."""
    sizes = {"T": 8192, "N": N}
    given = {**tensors(**sizes, dtype=dtype), **saved(**sizes, dtype=dtype, more=8)}
    for split in (_library.pack_segments(3), _library.pack_segment_length(1024), _library.pack_segment_length(64)):
        assert forward(given, split) == FORWARD_OF_SEGMENTS and backward(given, split) == BACKWARD_OF_SEGMENTS
    for split in (_library.NO_SEGMENTS, _library.pack_segments(1)):
        assert forward(given, split) == FORWARD[0] and backward(given, split) == KERNELS - 1
    few = {**given, **saved(**sizes, dtype=dtype)}
    for run in (forward, backward):
        with pytest.raises(ValueError, match="states: expected room for 6. states of all sequences or segments, got 6."):
            run(few, _library.pack_segments(3))


def test_bitwise():
    """Whole sequences by one kernel, however few and long they are; with a gate a channel, token by token."""
    sizes = {"T": 8192, "N": 1}
    given = {**tensors(**sizes), **saved(**sizes)}
    assert forward(given, _library.BITWISE) == FORWARD[0] and backward(given, _library.BITWISE) == KERNELS - 1
    q, v, g = meta(1, 8192, 4, 128), meta(1, 8192, 4, 128), meta(1, 8192, 4, dtype="float32")
    words = {"device": "cuda", "bitwise": True}
    for one in (q, q.requires_grad_()):
        choice = gdn.explain(one, q, v, g, g, **words)
        assert choice.kernel == "gdn_hopper_saving_bf16_cta_per_head" and choice.ctas == 4
        assert (choice.backward is None) == (one is not q) or choice.backward.saves == "states"
    q = q.detach()
    # No final state is asked for: the kernel is that of calls with states.
    for other in ({"g": meta(1, 8192, 4, 128, dtype="float32")}, {"g": g, "scale": 0.5}):
        choice = gdn.explain(q, q, v, beta=g, **words, **other)
        assert choice.algorithm == "recurrent" and "_both_kv_f32_" in choice.kernel


def test_segments_of_boundaries_of_64_bits():
    given = {**tensors(T=8192, N=2, boundaries="int64"), **saved(T=8192, N=2, more=8)}
    assert forward(given, _library.pack_segments(3)) == FORWARD_OF_SEGMENTS
    assert backward(given, _library.pack_segments(3)) == BACKWARD_OF_SEGMENTS


def test_norms_are_never_cut():
    given = {**model("float32", T=8192, N=1), **saved(T=8192, N=1, more=8)}
    given |= {name: Tensor("float32", 1, 8192, 4) for name in ("g", "beta", "dg", "dbeta")}
    assert forward(given, MODEL | _library.pack_segments(3)) == FORWARD[MODEL]
    assert backward(given, MODEL | _library.pack_segments(3)) == OF_A_MODEL - 1


@pytest.mark.parametrize("run", [forward, backward])
@pytest.mark.parametrize("changes,message", [
    ({"states": Tensor("bfloat16", 4, 4, 128, 128)}, "expected room for 5 states of all sequences or segments, got 4"),
    ({"states": Tensor("bfloat16", 5, 4, 128, 64)}, "states"),
    ({"writes": Tensor("bfloat16", 1, 255, 4, 128)}, "writes"),
    ({"writes": Tensor("bfloat16", 1, 256, 5, 128)}, "writes"),
    ({"states": Tensor("float16", 5, 4, 128, 128)}, "states"),
])  # fmt: skip
def test_refused(run, changes, message):
    before = driver.count("cuLaunchKernelEx")
    with pytest.raises((ValueError, RuntimeError), match=message):
        run({**tensors(), **saved(**changes)})
    assert driver.count("cuLaunchKernelEx") == before


def test_pays():
    """By the cost model: where replay would not run beside adjoint. A device that is not there has no answer."""
    pays = _library.load().saving_pays
    assert pays(0, 8, 32768, 16, 32, 0, 1, 0) and pays(0, 1, 32768, 4, 8, 0, 1, 0)
    assert not pays(0, 1, 8192, 16, 32, 0, 1, 0) and not pays(0, 1, 32768, 4, 8, 0, 1, _library.NO_SEGMENTS)
    assert not pays(0, 1, 32768, 4, 8, 0, 0, 0)
    # With a gate a channel.
    assert pays(0, 1, 8192, 96, 96, 1, 0, 0) and not pays(0, 1, 8192, 32, 32, 1, 0, 0)
    with pytest.raises(RuntimeError):
        pays(99, 1, 8192, 16, 32, 0, 1, 0)
    with pytest.raises(TypeError, match="saving_pays: expected integers"):
        pays(0.5, 1, 8192, 16, 32, 0, 1, 0)


def test_no_forward():
    """Forms without a forward that saves are refused; the package does not ask for them."""
    with pytest.raises(NotImplementedError, match="a forward that saves"):
        forward({**tensors(K=64), **saved(K=64)}, 0)


def test_explain():
    words = {"save_for_backward": "states", "T": 32768}
    forwards = [explain(N=64, **own) for own in ({"T": 32768}, words)]
    plain, asked = (forward.backward for forward in forwards)
    # The forward is another one, too.
    assert forwards[0].kernel == "gdn_hopper_bf16_packed_any_f32_log_f32_value_f32_plain_cta_per_head"
    assert forwards[1].kernel == "gdn_hopper_saving_bf16_cta_per_head" and forwards[1].ctas == 64 * 4
    assert forwards[1].seconds > forwards[0].seconds and forwards[1].split is None
    assert dict(forwards[1].alternatives)["inputs"].startswith("saving inputs: ")
    assert plain.saves == "inputs" and plain.why_inputs is None and asked.saves == "states" and asked.why_inputs is None
    states, replayed = ((32768 // tokens + 64) * 4 * 128 * 128 * 2 for tokens in (INTERVAL, 64))
    assert asked.saved_bytes == plain.saved_bytes + states and asked.launches == plain.launches - 1
    # What is saved is not in the workspace, but how far the adjoint is.
    assert asked.workspace_bytes == plain.workspace_bytes - replayed - 32768 * 4 * 128 * 2 + 64 * 4 * 2 * 4
    assert "bytes saved (states)" in str(asked)
    other = explain(K=64, V=64, dtype=torch.float16, save_for_backward="states").backward
    assert other.saves == "inputs" and other.why_inputs == "K = 64, V = 64" and "(inputs, for K = 64" in str(other)


def test_explain_segments():
    """There is memory for more states than are used. The forward of three long sequences is cut, and not its backward."""
    # The default saves states where that pays.
    forward = explain(T=32768, H=8, parallel=None, save_for_backward=None)
    cut = forward.backward
    assert forward.kernel.startswith("gdn_hopper_saving_bf16_waiting_") and forward.workspace_bytes > 0
    assert cut.saves == "states" and cut.segment_tokens % INTERVAL == 0 and cut.launches == BACKWARD_OF_SEGMENTS
    assert cut.forward_segment_tokens > 0 and cut.forward_segment_tokens % INTERVAL == 0
    apart = explain(T=65536, N=3, H=6, parallel=None, save_for_backward=None)
    assert apart.kernel.startswith("gdn_hopper_saving_bf16_waiting_") and apart.backward.forward_segment_tokens > 0
    assert apart.backward.saves == "states" and apart.backward.segment_tokens == 0
    inputs = explain(T=32768, H=8).backward
    assert cut.saved_bytes - inputs.saved_bytes == (32768 // INTERVAL + 1 + 8) * 16 * 128 * 128 * 2
    state, A_log = torch.empty(64, 16, 128, 128, device="meta"), torch.empty(16, device="meta")
    words = {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "A_log": A_log}
    norms = explain(T=32768, H=8, N=64, save_for_backward="states", parallel=None, initial_state=state, **words)
    assert norms.kernel.startswith("gdn_hopper_saving_bf16_l2_raw_f32_logit_f32_") and norms.workspace_bytes >= 2 * 32768 * 8 * 128 * 2
    few = explain(T=8192, save_for_backward="states").backward
    assert few.saves == "inputs" and few.why_inputs.startswith("time: ")
