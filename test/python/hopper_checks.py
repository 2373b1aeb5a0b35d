# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on a GPU that is not there: which kernel is chosen, what is launched, what is refused.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import concurrent.futures
import ctypes
import json

import pytest
from fake_cuda import Driver, Tensor
from matrix import crossed

import gdn
from gdn import _library

SCALE = 128**-0.5
ARGUMENTS = (
    "q", "k", "v", "g", "beta", "A_log", "dt_bias", "initial_state", "cu_seqlens", "out", "final_state",
    "state_indices", "has_initial_state", "step_states", "step_indices", "num_accepted", "parents",
    "checkpoint_cu_starts", "checkpoint_every_n_tokens",
)
driver = Driver()


@pytest.fixture(autouse=True, scope="module")
def device():
    """cuda:0 is current, as it is after torch has been used."""
    if "gpu_kernels" not in (kernels := json.loads(_library.load().kernels())) or not kernels["gpu_kernels"]:
        pytest.skip("built without GPU kernels")
    assert ctypes.CDLL(str(_library.path())).gdnDeviceMakeCurrent(0) == 0


def tensors(B=1, T=256, H=2, HV=4, N=None, dtype="bfloat16", boundaries="int32", initial=True, final=True, **changes):
    """The tensors of a call by name; `N` packs them, `changes` replaces some."""
    cu = None if N is None else Tensor(boundaries, N + 1)
    states = (B if N is None else N, HV, 128, 128)
    found = {
        "q": Tensor(dtype, B, T, H, 128),
        "k": Tensor(dtype, B, T, H, 128),
        "v": Tensor(dtype, B, T, HV, 128),
        "g": Tensor("float32", B, T, HV),
        "beta": Tensor("float32", B, T, HV),
        "initial_state": Tensor("float32", *states) if initial else None,
        "cu_seqlens": cu,
        "out": Tensor(dtype, B, T, HV, 128),
        "final_state": Tensor("float32", *states) if final else None,
    }
    return {**found, **changes}


def run(arguments, scale=SCALE, options=0, max_seqlen=0):
    """Calls the library's forward."""
    import tvm_ffi

    values = [arguments.get(name) for name in ARGUMENTS]
    held = [None if value is None else tvm_ffi.from_dlpack(value) for value in values]
    _library.load().forward(*held, scale, options, 1, max_seqlen)


@pytest.mark.parametrize("B,HV,ctas", [(1, 4, 8), (8, 64, 132), (1, 64, 128), (1, 128, 128)])
def test_grid(B, HV, ctas):
    """A CTA an item, or two where that is predicted to be faster; CTAs that take whole heads in turn."""
    run(tensors(B=B, HV=HV, T=4096), options=_library.NO_SEGMENTS)
    assert list(driver.last_launch.config.grid) == [ctas, 1, 1]


def test_longest_sequence_splits():
    """256 items are whole heads, unless one of the sequences is known to be most of them."""
    run(tensors(N=4, HV=64, T=4096))
    assert driver.last_launch.config.grid[0] == 256
    run(tensors(N=4, HV=64, T=4096), max_seqlen=4000)
    assert driver.last_launch.config.grid[0] == 512


@pytest.mark.parametrize("N,HV,longest,ctas", [(2, 64, 0, 256), (2, 64, 2048, 128), (4, 32, 0, 128), (8, 16, 0, 128)])
def test_lengths_that_nobody_tells(N, HV, longest, ctas):
    """Two sequences are taken for unequal ones, more for equal ones."""
    run(tensors(N=N, HV=HV, T=4096), max_seqlen=longest)
    assert driver.last_launch.config.grid[0] == ctas


@pytest.mark.parametrize(
    "boundaries,dtype,ends",
    crossed(["int32", "int64"], ["bfloat16", "float16"], [(False, False), (False, True), (True, True)]),
)
def test_packed(boundaries, dtype, ends):
    initial, final = ends
    launches = driver.count("cuLaunchKernelEx")
    run(tensors(N=3, dtype=dtype, boundaries=boundaries, initial=initial, final=final))
    assert driver.count("cuLaunchKernelEx") == launches + 1


def test_a_call_does_only_its_launch():
    """The second call of a kernel loads, allocates and waits for nothing."""
    arguments = tensors(N=5)
    run(arguments)
    functions = ("cuLibraryLoadData", "cuMemAlloc", "cuCtxSynchronize", "cuKernelGetFunction", "cuKernelSetAttribute")
    before = [driver.count(name) for name in functions]
    launches = driver.count("cuLaunchKernelEx")
    run(arguments)
    assert [driver.count(name) for name in functions] == before
    assert driver.count("cuLaunchKernelEx") == launches + 1


def test_strided_views():
    """q, k and v out of one projection; the last map of a launch is that of o."""
    row = (2 * 2 + 4) * 128
    T, strides = 300, [300 * row, row, 128, 1]
    views = {
        "q": Tensor("bfloat16", 1, T, 2, 128, strides=strides),
        "k": Tensor("bfloat16", 1, T, 2, 128, strides=strides, offset=2 * 256),
        "v": Tensor("bfloat16", 1, T, 4, 128, strides=strides, offset=2 * 512),
        "out": Tensor("bfloat16", 1, T, 4, 128, strides=strides),
    }
    run(tensors(T=T, **views))
    assert row * 2 in list(driver.last_map.strides)


def test_empty():
    """No sequence is no launch; a sequence without tokens still has a final state."""
    launches = driver.count("cuLaunchKernelEx")
    run(tensors(B=0))
    assert driver.count("cuLaunchKernelEx") == launches
    run(tensors(T=0))
    assert driver.count("cuLaunchKernelEx") == launches + 1


def test_failed_launch():
    run(tensors())
    driver.fail("cuLaunchKernelEx", 719)
    try:
        with pytest.raises(RuntimeError, match="gdn: launching kernel .* failed: CUDA_ERROR_LAUNCH_FAILED"):
            run(tensors())
    finally:
        driver.fail("cuLaunchKernelEx", 0)


def options(**kwargs):
    return _library.pack_options(**kwargs)


def with_channels(channels):
    arguments = tensors()
    for name in ("q", "k", "v", "out"):
        arguments[name] = Tensor("bfloat16", 1, 256, 4, channels)
    for name in ("initial_state", "final_state"):
        arguments[name] = Tensor("float32", 1, 4, channels, channels)
    return arguments


#: Calls that no function takes as they are, with what is launched around the one that takes the rest: casts and fills.
CONVERTED = {
    "gate type": (tensors(g=Tensor("bfloat16", 1, 256, 4)), {}, ["cast_bf16_f32"], []),
    "no gate": (tensors(g=None), {}, ["fill_f32"], []),
    "no beta": (tensors(beta=None), {}, ["fill_f32"], []),
    "scale": (tensors(), {"scale": 1.0}, [], ["cast_bf16_bf16"]),
    "no scale": (tensors(), {"scale": None}, [], []),
    "a scale of 0": (tensors(), {"scale": 0.0}, [], ["cast_bf16_bf16"]),
    "state types": (tensors(initial_state=Tensor("bfloat16", 1, 4, 128, 128)), {}, ["cast_bf16_f32"], []),
    "no final state": (tensors(final=False), {}, [], []),
    "a misaligned output": (tensors(out=Tensor("bfloat16", 1, 256, 4, 128, offset=2)), {}, [], ["cast_bf16_bf16"]),
    "channels of an output side by side": (
        tensors(out=Tensor("bfloat16", 1, 256, 4, 128, strides=[256 * 512, 1, 128 * 256, 256])), {}, [], ["cast_bf16_bf16"],
    ),
    "channels": (
        with_channels(96), {"scale": 96**-0.5}, [*3 * ["cast_bf16_bf16"], "cast_f32_f32"], ["cast_bf16_bf16", "cast_f32_f32"],
    ),
    "gates and channels": (
        {**with_channels(96), "g": None, "beta": Tensor("bfloat16", 1, 256, 4)}, {"options": 2 << 2},
        [*3 * ["cast_bf16_bf16"], "fill_f32", "logit_to_value_bf16_f32", "cast_f32_f32"], ["cast_bf16_bf16", "cast_f32_f32"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVERTED)
def test_converted(case):
    arguments, settings, before, behind = CONVERTED[case]
    for _ in range(2):
        kernels = driver.kernels_of(lambda: run(arguments, **settings))
        assert driver.are_conversions(kernels[: len(before)], before)
        assert driver.are_conversions(kernels[len(before) + 1 :], behind)


def test_a_failed_conversion():
    """Behind the function, too; nothing is launched behind what fails."""
    arguments = tensors(g=None)
    run(arguments, scale=1.0)
    driver.fail("cuLaunchKernelEx", 719)
    try:
        with pytest.raises(RuntimeError, match="^gdn: g: expected a conversion .*, got: launching .*gdn_convert_.* failed"):
            run(arguments, scale=1.0)
    finally:
        driver.fail("cuLaunchKernelEx", 0)


def test_types_that_nothing_converts():
    """There are no functions of segments in float32."""
    arguments = tensors(dtype="float32")
    with pytest.raises(NotImplementedError, match="segment_length: expected a form of q, v, g, beta and states"):
        run(arguments, options=_library.pack_segment_length(64))


@pytest.mark.parametrize("arguments,settings", [
    (tensors(dtype="float32"), {}), (with_channels(64), {"scale": 64**-0.5}),
])
def test_token_by_token(arguments, settings):
    """What has no kernel of chunks runs token by token."""
    launches = driver.count("cuLaunchKernelEx")
    run(arguments, **settings)
    assert driver.count("cuLaunchKernelEx") == launches + 1


def test_devices_must_agree():
    with pytest.raises(ValueError, match="k: expected a tensor on cuda:0 as q is, got one on cuda:1"):
        run(tensors(k=Tensor("bfloat16", 1, 256, 2, 128, device=1)))


def test_current_device():
    """Tensors of another device than the current one, which stays current; and of one where none is."""
    on_second = {
        name: Tensor(value.dtype, *value.shape, device=1) for name, value in tensors().items() if value is not None
    }
    for _ in range(2):
        run(on_second)
        assert driver.last_launch.device == 1
        assert driver.current_device == 0
    run(tensors())
    assert driver.last_launch.device == 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: driver.current_device).result() == -1
        for device, arguments in enumerate((tensors(), on_second)):
            pool.submit(run, arguments).result()
            assert driver.last_launch.device == device


def raw(**changes):
    """The tensors of a call with a raw gate."""
    return tensors(A_log=Tensor("float32", 4), dt_bias=Tensor("float32", 4), **changes)


@pytest.mark.parametrize(
    "types,l2norm",
    crossed([("float32", "float32"), ("float32", "bfloat16"), ("bfloat16", "bfloat16")], [False, True]),
)
def test_raw_gates(types, l2norm):
    gate, beta = types
    launches = driver.count("cuLaunchKernelEx")
    tensors_of_gates = {"g": Tensor(gate, 1, 256, 4), "beta": Tensor(beta, 1, 256, 4)}
    run(raw(**tensors_of_gates), options=options(gate_domain=2, beta_domain=1, l2norm=l2norm))
    assert driver.count("cuLaunchKernelEx") == launches + 1


def test_gate_parameters():
    """Those of 16 bits are cast, and an absent bias is zeros."""
    for name, value in (("A_log", Tensor("bfloat16", 4)), ("dt_bias", None)):
        changed = {**raw(), name: value}
        kernels = driver.kernels_of(lambda: run(changed, options=options(gate_domain=2, beta_domain=1)))
        assert driver.are_conversions(kernels[:-1], ["fill_f32" if value is None else "cast_bf16_f32"])
    # As logarithms, where functions take those alone.
    arguments = {**raw(), "A_log": Tensor("bfloat16", 4), "dt_bias": None}
    kernels = driver.kernels_of(lambda: run(arguments, options=options(gate_domain=2)))
    assert driver.are_conversions(kernels[:-1], ["cast_bf16_f32", "softplus_to_log_f32_f32"])


def meta(*shape, dtype="bfloat16"):
    torch = pytest.importorskip("torch")
    return torch.empty(*shape, dtype=getattr(torch, dtype), device="meta")


def explain(T=4096, HV=64, B=1, beta="float32", **kwargs):
    q, v, g = meta(B, T, 16, 128), meta(B, T, HV, 128), meta(B, T, HV, dtype="float32")
    return gdn.explain(q, q, v, g, meta(B, T, HV, dtype=beta), device="cuda", **kwargs)


def test_explain():
    choice = explain(B=8, output_final_state=True)
    assert choice.kernel == "gdn_hopper_bf16_fixed_any_f32_log_f32_value_f32_plain_cta_per_head"
    assert (choice.device, choice.isa, choice.schedule, choice.ctas, choice.items) == ("cuda:0", "sm_90a", "cta_per_head", 132, 512)
    assert choice.alternatives[0][0] == "cta_per_v_tile" and choice.seconds > 0
    assert "512 items (sequence x value head) in 132 CTAs, cta_per_head" in str(choice)
    assert 0 < choice.floor_seconds < choice.seconds and (choice.longest, choice.knows_longest) == (4096, True)
    assert "floor " in str(choice) and "guessed" not in str(choice)
    assert explain().schedule == "cta_per_v_tile"


def test_explain_a_guess():
    torch = pytest.importorskip("torch")
    boundaries = torch.empty(3, dtype=torch.int32, device="meta")
    choice = explain(cu_seqlens=boundaries)
    assert (choice.schedule, choice.longest, choice.knows_longest) == ("cta_per_v_tile", 3072, False)
    assert "a longest sequence of 3072 tokens" in str(choice)
    choice = explain(cu_seqlens=boundaries, cu_seqlens_cpu=torch.tensor([0, 2048, 4096]))
    assert (choice.schedule, choice.longest, choice.knows_longest) == ("cta_per_head", 2048, True)
    name, reason = choice.alternatives[0]
    assert name == "cta_per_v_tile" and reason.startswith("cta_per_v_tile: ") and "256 CTAs" in reason


@pytest.mark.parametrize("name,kwargs", [
    ("any_f32_log_f32_value_bf16", {"beta": "bfloat16"}),
    ("any_f32_log_f32_value_f32", {"beta": "float16"}),
    ("any_f32_log_f32_value_f32", {"scale": 1.0}),
    ("any_f32_log_f32_value_f32", {"initial_state": ("float32",)}),
    ("any_bf16_log_f32_value_f32", {"initial_state": ("bfloat16",), "state_v_first": True}),
    ("any_f32_log_f32_value_f32", {"initial_state": ("bfloat16",), "output_final_state": True}),
    ("any_f32_linear_f32_value_f32", {"gate_domain": "linear", "beta": "bfloat16"}),
    ("any_f32_log_f32_logit_bf16", {"beta": "bfloat16", "use_beta_sigmoid_in_kernel": True}),
])
def test_explain_what_is_adapted(name, kwargs):
    """The kernel behind the copies that a call of torch makes."""
    if "initial_state" in kwargs:
        kwargs = {**kwargs, "initial_state": meta(1, 64, 128, 128, dtype=kwargs["initial_state"][0])}
    assert explain(**kwargs).kernel == f"gdn_hopper_bf16_fixed_{name}_plain_cta_per_v_tile"


@pytest.mark.parametrize("states", [{}, {"final_state": "bfloat16"}, {"initial_state": "bfloat16"}])
@pytest.mark.parametrize("kwargs", [
    {}, {"use_qk_l2norm_in_kernel": True}, {"use_beta_sigmoid_in_kernel": True}, {"gate_domain": "linear"},
])
def test_states_of_16_bits(states, kwargs):
    """By kernels with such states, or in float32."""
    given = {name: meta(1, 64, 128, 128, dtype=dtype) for name, dtype in states.items()}
    choice = explain(**given, **kwargs)
    if "initial_state" in states and not kwargs:
        assert "_any_bf16_" in choice.kernel
    assert choice.conversions or not states or "_any_bf16_" in choice.kernel
    if "initial_state" in states:
        assert "_any_f32_" in explain(**given, **kwargs, output_final_state=True).kernel


def test_states_in_float16():
    state = meta(1, 64, 128, 128, dtype="float16")
    for given in ({"initial_state": state}, {"final_state": state}, {"initial_state": state, "final_state": state}):
        assert "_any_f32_log_f32_" in explain(**given).kernel


def test_linear_gates_with_logits():
    choice = explain(gate_domain="linear", use_beta_sigmoid_in_kernel=True)
    assert [x.what for x in choice.conversions] == ["beta from logits (of the sigmoid) to values"]


def test_explain_what_is_made_and_widened():
    q, g = meta(1, 4096, 64, 128), meta(1, 4096, 64, dtype="float32")
    choice = gdn.explain(q, q, q, None, g, gate_domain="linear", device="cuda")
    assert choice.kernel == "gdn_hopper_bf16_fixed_any_f32_linear_f32_value_f32_plain_cta_per_v_tile"
    q = meta(1, 4096, 64, 128, dtype="float16")
    choice = gdn.explain(q, q, q, g, meta(1, 4096, 64), device="cuda")
    assert choice.kernel == "gdn_hopper_f16_fixed_any_f32_log_f32_value_f32_plain_cta_per_v_tile"
    choice = gdn.explain(q, q, q, g, meta(1, 4096, 64), gate_domain="linear", device="cuda")
    assert choice.kernel == "gdn_hopper_f16_fixed_any_f32_linear_f32_value_f32_plain_cta_per_v_tile"
    choice = gdn.explain(q, q, q, g, meta(1, 4096, 64), use_beta_sigmoid_in_kernel=True, device="cuda")
    assert choice.kernel == "gdn_hopper_f16_fixed_any_f32_log_f32_logit_f32_plain_cta_per_v_tile"


def reason(*arguments, **kwargs):
    answer = gdn.supported(*arguments, device="cuda", **kwargs)
    assert not answer
    return answer.reasons[0]


def test_supported_knows_the_rules_of_a_launch():
    """The number of blocks."""
    many, gates = meta(2**29, 1, 4, 128), meta(2**29, 1, 4, dtype="float32")
    assert "expected a grid of 0 to 2^31 - 1 blocks" in reason(many, many, many, gates, gates)


def test_supported():
    q, g = meta(1, 64, 2, 128), meta(1, 64, 2, dtype="float32")
    answer = gdn.supported(q, q, q, g, g, device="cuda", use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True)
    assert answer and not answer.reasons
