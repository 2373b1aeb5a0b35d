# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients on a GPU that is not there: what is launched, what is refused, what gdn.explain says (as hopper_checks.py)."""

import itertools

import pytest
from fake_cuda import Tensor
from hopper_checks import device, driver  # noqa: F401
from matrix import crossed, sampled

torch = pytest.importorskip("torch")
import gdn  # noqa: E402
from gdn import _library  # noqa: E402

#: Of the plain form; with norms; with raw gates and logits, too.
KERNELS, WITH_NORMS, OF_A_MODEL, KERNELS_OF_SEGMENTS = 3, 7, 9, 11
#: With a gate a channel; with norms. Of gates of any strength two more round what the heads of a group have added up, if
#: there are several, and two count those below -5: both kinds of kernels are launched. In segments seven are more.
OF_CHANNELS, OF_CHANNELS_WITH_NORMS, OF_RAW, OF_SUMS, OF_COUNT, OF_CUTS = 3, 7, 2, 2, 2, 7
INPUTS = (
    "q", "k", "v", "g", "beta", "A_log", "dt_bias", "initial_state", "cu_seqlens", "d_o", "d_state", "state_indices",
    "has_initial_state", "step_states", "step_indices", "num_accepted", "parents",
    "checkpoint_cu_starts", "checkpoint_every_n_tokens",
)
GRADIENTS = ("dq", "dk", "dv", "dg", "dbeta", "dA_log", "ddt_bias", "dh0")


def tensors(T=256, H=2, HV=4, N=3, K=128, dtype="bfloat16", states=True, boundaries="int32", **changes):
    """The tensors of a call of the library's `backward` by name; `changes` replaces some."""
    state = {name: Tensor("float32", N, HV, K, K) for name in ("initial_state", "d_state", "dh0")}
    gates = {name: Tensor("float32", 1, T, HV) for name in ("g", "beta", "dg", "dbeta")}
    found = {
        **{name: Tensor(dtype, 1, T, H, K) for name in ("q", "k", "dq", "dk")},
        **{name: Tensor(dtype, 1, T, HV, K) for name in ("v", "d_o", "dv")},
        "cu_seqlens": Tensor(boundaries, N + 1),
    }
    return {**found, **gates, **(state if states else {}), **changes}


def run(arguments, scale=None, options=0):
    """Calls the library's `backward`; returns how many kernels it launched."""
    import tvm_ffi

    values = [arguments.get(name) for name in (*INPUTS, *GRADIENTS)]
    held = [None if value is None else tvm_ffi.from_dlpack(value) for value in values]
    before = driver.count("cuLaunchKernelEx")
    _library.load().backward(*held, scale, options, 1, 0)
    return driver.count("cuLaunchKernelEx") - before


#: Without states, and with both in either layout.
STATES = {"none": (False, 0), "kv": (True, 0), "vk": (True, 1 << 5)}


@pytest.mark.parametrize(
    "K,dtype,ends",
    crossed(
        [64, 128], ["bfloat16", "float16"], list(STATES),
        each_time=[(64, "float16", "none"), (128, "bfloat16", "none"), (128, "bfloat16", "kv"), (128, "float16", "vk")],
    ),
)  # fmt: skip
def test_launches(K, dtype, ends):
    states, options = STATES[ends]
    assert run(tensors(K=K, dtype=dtype, states=states), options=options) == KERNELS
    assert run(tensors(K=K, dtype=dtype, states=states, boundaries="int64"), options=options) == KERNELS


def model(gates, **sizes):
    """The tensors of a call with raw gates and logits of beta."""
    found = {name: Tensor(gates, 1, 256, 4) for name in ("g", "beta", "dg", "dbeta")}
    found |= {name: Tensor("float32", 4) for name in ("A_log", "dt_bias", "dA_log", "ddt_bias")}
    return tensors(**sizes, **found)


NORMS, MODEL = (
    _library.pack_options(gate_domain=gate, beta_domain=beta, l2norm=True) for gate, beta in ((0, 0), (2, 1))
)


# Other types and states have kernels with norms and raw gates.
@pytest.mark.parametrize(
    "dtype,ends", sampled(itertools.product(["bfloat16", "float16"], STATES), each_time=[("bfloat16", "none")])
)
def test_launches_with_norms(dtype, ends):
    states, layout = STATES[ends]
    assert run(tensors(dtype=dtype, states=states), options=NORMS | layout) == WITH_NORMS


@pytest.mark.parametrize(
    "types,ends",
    sampled(
        itertools.product([("bfloat16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")], STATES),
        each_time=[(("bfloat16", "float32"), "kv"), (("bfloat16", "bfloat16"), "vk")],
    ),
)  # fmt: skip
def test_launches_of_a_model(types, ends):
    (dtype, gates), (states, layout) = types, STATES[ends]
    assert run(model(gates, dtype=dtype, states=states), options=MODEL | layout) == OF_A_MODEL


def of_channels(T=256, HV=4, K=128, gates="float32", **sizes):
    """The tensors of a call with a gate a channel."""
    found = {name: Tensor(gates, 1, T, HV, K) for name in ("g", "dg")}
    return tensors(T=T, HV=HV, K=K, **sizes, **found)


LOG, LOG_NORMS, BOUNDED, BOUNDED_NORMS = (
    _library.pack_options(gate_domain=domain, l2norm=norm) for domain in (0, 3) for norm in (False, True)
)


@pytest.mark.parametrize("ends", STATES)
def test_launches_of_channels(ends):
    """Logarithms, which have no chain rule, and bounded gates, whose parameters two fills make where a call has none."""
    states, layout = STATES[ends]
    assert run(of_channels(states=states), options=BOUNDED_NORMS | layout) == OF_CHANNELS_WITH_NORMS + OF_RAW + 2
    assert run(of_channels(states=states, H=4), options=BOUNDED | layout) == OF_CHANNELS + OF_RAW + 2
    assert run(of_channels(states=states, H=4), options=LOG | layout) == OF_COUNT + 2 * OF_CHANNELS
    assert run(of_channels(states=states), options=LOG | layout) == OF_COUNT + 2 * OF_CHANNELS + OF_SUMS


@pytest.mark.full
@pytest.mark.parametrize("ends", STATES)
def test_launches_of_channels_with_norms(ends):
    """Logarithms: both kinds of kernels, or with segment_length those for gates of any strength alone."""
    states, layout = STATES[ends]
    assert run(of_channels(states=states), options=LOG_NORMS | layout) == OF_COUNT + 2 * OF_CHANNELS_WITH_NORMS
    length = _library.pack_segment_length(64)
    assert run(of_channels(states=states), options=LOG_NORMS | layout | length) == OF_CHANNELS_WITH_NORMS


def test_bits_apart_from_other_sequences():
    """With segment_length no kernel looks at the gates of other sequences."""
    length = _library.pack_segment_length(64)
    assert run(of_channels(H=4), options=LOG | length) == OF_CHANNELS + OF_CUTS
    assert run(of_channels(), options=LOG | length) == OF_CHANNELS + OF_SUMS + OF_CUTS


def test_conversions_of_channels():
    """Gates in 16 bits, and fewer channels."""
    for arguments in (of_channels(gates="bfloat16"), of_channels(K=64, states=False)):
        names = driver.kernels_of(lambda: run(arguments, options=BOUNDED_NORMS))
        assert len(names) > OF_CHANNELS_WITH_NORMS + OF_RAW + 2 and any("convert" in name for name in names)


def test_segments():
    """As the caller asks for them, or where the model predicts a gain; kernels of 64 channels have none."""
    never, three, by_length = _library.NO_SEGMENTS, _library.pack_segments(3), _library.pack_segment_length(96)
    for states in (False, True):
        for options in (three, by_length):
            assert run(tensors(T=1000, N=2, states=states), options=options) == KERNELS_OF_SEGMENTS
    assert run(tensors(K=64, dtype="float16", states=False), options=three) == KERNELS
    # One chunk is no more segments than one.
    assert run(tensors(T=64, N=1), options=three) == KERNELS
    assert run(tensors(T=1000, N=2, boundaries="int64"), options=three) == KERNELS_OF_SEGMENTS
    few = {"T": 32768, "N": 1, "H": 2, "HV": 4, "states": False}
    assert run(tensors(**few)) == KERNELS_OF_SEGMENTS
    assert run(tensors(**few), options=never) == KERNELS
    # Each segment has work items of its own. So many heads fill a GPU, and gradients are in one part.
    many = {"T": 1024, "N": 1, "H": 64, "HV": 128}
    run(tensors(**many), options=_library.pack_segments(2))
    blocks = driver.last_launch.config.grid[0]
    run(tensors(**many), options=_library.pack_segments(4))
    assert driver.last_launch.config.grid[0] == 2 * blocks


def test_no_length_chooses_a_kernel():
    """With `segment_length` gradients are computed in segments whatever sequences there are."""
    sizes = [{"T": 1, "N": 1}, {"T": 40}, {"T": 4096, "N": 64}, {"T": 32768, "N": 1, "HV": 32}]

    def launched(options):
        return {tuple(driver.kernels_of(lambda: run(tensors(**size), options=options))) for size in sizes}

    (names,) = launched(_library.pack_segment_length(96))
    assert len(names) == KERNELS_OF_SEGMENTS
    assert len(launched(_library.pack_segments(4))) > 1


def test_groups_are_work_items():
    """The last kernel has a block for each sequence, q/k head and part of the chunks."""
    run(tensors(H=2, HV=8))
    few = driver.last_launch.config.grid[0]
    run(tensors(H=4, HV=8))
    assert driver.last_launch.config.grid[0] == 2 * few


def test_a_call_does_only_its_launches():
    """The second call loads nothing and, without an allocator, keeps its workspace."""
    arguments = tensors(N=5)
    run(arguments)
    functions = ("cuLibraryLoadData", "cuMemAlloc", "cuCtxSynchronize", "cuKernelGetFunction", "cuKernelSetAttribute")
    before = [driver.count(name) for name in functions]
    assert run(arguments) == KERNELS
    assert [driver.count(name) for name in functions] == before


REFUSED = {
    "type": ({"dtype": "float32"}, {}, NotImplementedError, "q: expected bfloat16 or float16 for gradients on a GPU in this version, got float32"),
    "domain": ({}, {"options": 1}, NotImplementedError, "gate_domain: expected 'log' or 'raw' for gradients .* got 'linear'"),
    "logits": ({}, {"options": 4}, NotImplementedError, "beta: expected values for gradients .* got logits"),
    "no parameters": ({}, {"options": MODEL}, ValueError, "A_log"),
    "parameters": ({"A_log": Tensor("float32", 4)}, {}, ValueError, "A_log"),
    "no boundaries": ({"cu_seqlens": None, "states": False}, {}, NotImplementedError, "cu_seqlens: expected a tensor"),
    "dk of value heads": ({"dk": Tensor("bfloat16", 1, 256, 4, 128)}, {}, ValueError, "gradient of k: expected the shape"),
    "linear gates of channels": (
        {name: Tensor("float32", 1, 256, 4, 128) for name in ("g", "dg")}, {"options": 1}, NotImplementedError,
        "gate_domain: expected ('log' or 'bounded'|'bounded' or 'log') for gradients .* got 'linear'",
    ),
    "d_o": ({"d_o": Tensor("bfloat16", 1, 255, 4, 128)}, {}, ValueError, "d_o: expected the shape"),
}


#: Calls that no function takes as they are, with what is launched around the one that takes the rest.
CONVERTED = {
    "channels": ({"K": 96, "states": False}, {}, [*3 * ["cast_bf16_bf16"], "cast_bf16_bf16"], 3 * ["cast_bf16_bf16"]),
    "gate": (
        {name: Tensor("bfloat16", 1, 256, 4) for name in ("g", "dg")}, {}, ["cast_bf16_f32"], ["cast_f32_bf16"],
    ),
    "no gate": ({"g": None, "dg": None}, {}, ["fill_f32"], []),
    "scale": ({}, {"scale": 1.0}, ["cast_bf16_bf16"], []),
    "no final state": ({"d_state": None}, {}, ["fill_f32"], []),
    "no initial state": ({"initial_state": None, "dh0": None}, {}, ["fill_f32"], []),
    "no dv": ({"dv": None}, {}, [], []),
    "no gradient of o": ({"d_o": None}, {}, ["fill_bf16"], []),
    "states in 16 bits": (
        {name: Tensor("float16", 3, 4, 128, 128) for name in ("initial_state", "dh0")}, {}, ["cast_f16_f32"],
        ["cast_f32_f16"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVERTED)
def test_converted(case):
    changes, words, before, behind = CONVERTED[case]
    arguments = tensors(**changes)
    kernels = driver.kernels_of(lambda: run(arguments, **words))
    assert driver.are_conversions(kernels[: len(before)], before)
    assert driver.are_conversions(kernels[len(before) + KERNELS :], behind)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    changes, words, error, message = REFUSED[case]
    launches = driver.count("cuLaunchKernelEx")
    with pytest.raises(error, match=message):
        run(tensors(**changes), **words)
    assert driver.count("cuLaunchKernelEx") == launches


def explain(K=128, V=128, dtype=torch.bfloat16, T=4096, H=2, N=None, ask=gdn.explain, parallel=False, **words):
    make = {"device": "meta"}
    q, v = (torch.empty(1, T, heads, size, dtype=dtype, **make) for heads, size in ((H, K), (2 * H, V)))
    g = torch.empty(1, T, 2 * H, **make)
    if N:
        words["cu_seqlens"] = torch.empty(N + 1, dtype=torch.int32, device="meta")
    words.setdefault("context_parallel", parallel)
    words.setdefault("save_for_backward", "inputs")
    return ask(q.requires_grad_(), q, v, g, g, device="cuda", **words)


def test_explain():
    choice = explain(N=3)
    assert choice.backward.kernel == "gdn_hopper_backward_bf16_cta_per_v_tile" and choice.backward.launches == KERNELS
    # q, k, v in 2 bytes, two gates in 4, the boundaries.
    assert choice.backward.saved_bytes == 4096 * (2 * (2 + 2 + 4) * 128 + 2 * 4 * 4) + 4 * 4
    # What each token writes, and two states for 64 tokens of a head.
    states = 2 * (4096 // 64 + 3) * 4 * 128 * 128 * 2
    assert choice.backward.workspace_bytes == 4096 * 4 * 128 * 2 + states
    assert f"{choice.backward}" in str(choice) and choice.backward.segment_tokens == 0
    cut = explain(T=32768, parallel=None).backward
    assert cut.kernel == "gdn_hopper_backward_bf16_segments" and cut.launches == KERNELS_OF_SEGMENTS
    assert cut.segment_tokens % 64 == 0 and f"segments of {cut.segment_tokens} tokens" in str(cut)
    assert explain(parallel=4).backward.segment_tokens == 1024
    with torch.no_grad():
        assert explain().backward is None
    state = torch.empty(1, 4, 128, 128, device="meta")
    lies_as_vk = explain(dtype=torch.float16, N=1, initial_state=state, state_v_first=True)
    assert lies_as_vk.backward.kernel == "gdn_hopper_backward_f16_cta_per_v_tile"
    assert explain(K=40, V=60, dtype=torch.float16).backward.kernel == "gdn_hopper_backward_64_f16_cta_per_v_tile"
    norms = explain(use_qk_l2norm_in_kernel=True).backward
    assert norms.kernel == "gdn_hopper_backward_bf16_l2_cta_per_v_tile" and norms.launches == WITH_NORMS
    assert explain(use_qk_l2norm_in_kernel=True, gate_domain="linear").backward.kernel == norms.kernel
    A_log = torch.empty(4, device="meta")
    words = {"use_qk_l2norm_in_kernel": True, "gate_domain": "raw", "use_beta_sigmoid_in_kernel": True, "A_log": A_log}
    of_a_model = explain(N=1, initial_state=state, **words).backward
    assert of_a_model.kernel == "gdn_hopper_backward_bf16_l2_raw_f32_logit_f32_cta_per_v_tile"
    assert of_a_model.launches == OF_A_MODEL


@pytest.mark.parametrize("heads,saves", [(4, "inputs"), (128, "states")])
def test_explain_channels(heads, saves):
    """A model's call, all of which the kernels compute. Saved states pay with many heads; of few, sequences are cut."""
    make = {"device": "meta"}
    q, v = (torch.empty(1, 4096, count, 128, dtype=torch.bfloat16, **make) for count in (heads // 2, heads))
    beta = torch.empty(1, 4096, heads, dtype=torch.bfloat16, **make)
    A_log, dt_bias = torch.empty(heads, **make), torch.empty(heads * 128, **make)
    choice = gdn.explain(
        q.requires_grad_(), q, v, v, beta, A_log=A_log, dt_bias=dt_bias, use_gate_in_kernel=True, lower_bound=-5.0,
        use_beta_sigmoid_in_kernel=True, use_qk_l2norm_in_kernel=True, device="cuda", function="chunk_kda",
    )  # fmt: skip
    backward = choice.backward
    name = "segments" if saves == "inputs" else "saved_cta_per_v_tile"
    assert backward.kernel == f"gdn_hopper_backward_channel_bf16_l2_bounded_bf16_logit_bf16_{name}"
    # Without the recurrence of states, or with the kernels of segments. The gradients of logits have a program, too.
    more = OF_CUTS if saves == "inputs" else -1
    launches = OF_CHANNELS_WITH_NORMS + OF_RAW + 1 + more
    # Those of groups and of single heads, of which the host runs one side: the latter has no pass over dq and over dk.
    assert backward.launches == 2 * launches - 2 and backward.saves == saves
    assert (backward.why_inputs or "").startswith("time" if saves == "inputs" else "")
    assert bool(backward.segment_tokens) == (saves == "inputs")


@pytest.mark.parametrize("words", [
    {}, {"use_qk_l2norm_in_kernel": True}, {"gate_domain": "linear"}, {"use_beta_sigmoid_in_kernel": True},
    {"scale": 1.0}, {"output_final_state": True}, {"context_parallel": 4},
])  # fmt: skip
def test_supported(words):
    assert explain(ask=gdn.supported, **words)


def test_recurrent_calls_without_a_backward():
    """They are not refused; what writes into given tensors is."""
    q, v = (torch.empty(1, 16, heads, 128, device="meta") for heads in (2, 4))
    g = torch.empty(1, 16, 4, device="meta")
    words = {"beta": g, "device": "cuda", "function": "fused_recurrent_gated_delta_rule"}
    answer = gdn.explain(q.requires_grad_(), q, v, g, **words)
    assert answer.backward is None and answer.kernel.startswith("gdn_hopper")
    assert not gdn.supported(q, q, v, g, out=v, **words)
