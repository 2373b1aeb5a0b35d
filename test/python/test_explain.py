# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.explain and gdn.supported."""

import pathlib

import numpy as np
import pytest
from fresh import fresh
from reference import gated_delta_rule, make_inputs, rms_error

import gdn


def arguments(**sizes):
    x = make_inputs(**sizes)
    return x.q, x.k, x.v, x.g, x.beta


@pytest.mark.parametrize("function", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
@pytest.mark.parametrize("channels", [64, 60])
def test_small_scales_of_float16_take_float32(function, channels):
    """With K^(-1/2), the scale of the kernels, float16 could not hold o."""
    x = make_inputs(K=channels, V=channels)
    q, k, v = (a.astype("float16") for a in (1e4 * x.q / np.abs(x.q).max(), x.k, 100 * x.v))
    words = {"g": x.g, "beta": x.beta}
    assert np.abs(gated_delta_rule(q, k, v, **words)[0]).max() > np.finfo(np.float16).max
    o, _ = getattr(gdn, function)(q, k, v, **words, scale=1e-4)
    assert rms_error(o, gated_delta_rule(q, k, v, **words, scale=1e-4)[0]) < 6e-3
    assert "_f32_" in gdn.explain(q, k, v, **words, scale=1e-4, function=function).kernel
    assert "_f16_" in gdn.explain(q, k, v, **words, function=function).kernel


def test_a_long_sequence_goes_in_chunks():
    choice = gdn.explain(*arguments(T=1000, H=2, HV=4, K=128, V=128), output_final_state=True)
    assert choice.algorithm == "chunk" and choice.kernel.startswith("gdn_cpu_chunk_f32_128_")
    assert (choice.items, choice.padded, choice.kernel_channels) == (4, False, 128)
    # 163,840 FLOP a token and value head (docs/Performance.md).
    assert choice.flop == 163840 * 1000 * 4
    assert choice.bytes == 4 * (2 * 1000 * 2 * 128 + 2 * 1000 * 4 * 128 + 2 * 1000 * 4)
    assert choice.seconds > 0 and choice.workspace_bytes > 0
    (name, reason), = choice.alternatives
    assert name == "recurrent" and "predicted" in reason


def test_one_token_goes_by_token():
    choice = gdn.explain(*arguments(T=1, K=128, V=128))
    assert choice.algorithm == "recurrent" and choice.threads == 1 and choice.chunk_size == 1
    assert choice.alternatives[0][0] == "chunk"


def test_the_recurrent_function_is_recurrent():
    q, k, v, g, beta = arguments(T=1000)
    choice = gdn.explain(q, k, v, g, beta=beta, function="fused_recurrent_gated_delta_rule")
    assert choice.algorithm == "recurrent" and "token by token" in choice.alternatives[0][1]


def test_padded_heads_are_told():
    choice = gdn.explain(*arguments(K=60, V=100))
    assert choice.padded and choice.kernel_channels == 128
    assert "copies" in str(choice) and "to 128 channels a head" in str(choice)


def test_it_prints_a_table():
    lines = str(gdn.explain(*arguments(T=500))).splitlines()
    assert lines[0] == "chunk_gated_delta_rule on cpu"
    assert [line.split()[0] for line in lines[1:]] == [
        "kernel", "schedule", "chunk", "copies", "FLOP", "bytes", "workspace", "predicted", "not"
    ]


def test_it_runs_nothing():
    x = make_inputs()
    out = np.full_like(x.v, 7)
    gdn.explain(x.q, x.k, x.v, x.g, x.beta, out=out)
    assert (out == 7).all()


def test_supported():
    good = gdn.supported(*arguments())
    assert good and good.reasons == ()
    bad = gdn.supported(*arguments(K=300))
    assert not bad and bad.reasons == ("q: expected K of 1 to 256, got K = 300",)


def test_unknown_function_and_device():
    with pytest.raises(ValueError, match="function: expected one of chunk_gated_delta_rule, fused_recurrent"):
        gdn.explain(*arguments(), function="delta_net")


def test_tensors_without_data():
    torch = pytest.importorskip("torch")
    real = [torch.from_numpy(a) for a in arguments(T=500)]
    meta = [a.to("meta") for a in real]
    assert gdn.explain(*meta) == gdn.explain(*real)
    with pytest.raises(ValueError, match="device: expected 'cpu' or 'cuda', got 'tpu'"):
        gdn.explain(*meta, device="tpu")
    boundaries = torch.tensor([0, 250, 500]).to("meta")
    assert gdn.explain(*meta, cu_seqlens=boundaries).items == 8


def refusals(driver, **settings):
    """Why cuda:0 and cuda:3 are refused with that driver, in a process of its own: it is opened once."""
    pytest.importorskip("torch")
    program = (
        "import gdn, torch\n"
        "q = torch.empty(1, 64, 2, 128, device='meta'); g = torch.empty(1, 64, 2, device='meta')\n"
        "for device in ('cuda', 'cuda:3'):\n"
        "    print(*gdn.supported(q, q, q, g, g, device=device).reasons or ['served'])\n"
    )
    run = fresh(program, GDN_CUDA_DRIVER=driver, **settings)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_no_driver():
    first, second = refusals("libcuda-that-is-not-there.so")
    assert first.startswith("gdn: expected cuda:0 to be a GPU of compute capability 9.0 (Hopper), got none: ")
    assert "driver" in first and "cuda:3" in second


@pytest.mark.parametrize("settings,first,second", [
    ({"FAKE_CUDA_INIT": "999"}, "got none: ", "got none: "),
    ({"FAKE_CUDA_MISSING": "cuLibraryLoadData"}, "got none: ", "got none: "),
    ({"FAKE_CUDA_DEVICES": "80,89,90,100"}, "Fake GPU of compute capability 8.0", "of compute capability 10.0"),
    ({"FAKE_CUDA_DEVICES": "90,90"}, "served", "got 2 devices in this machine"),
])
def test_drivers_and_devices(settings, first, second):
    """A driver that fails, one that is too old, other chips, and fewer devices than asked for."""
    driver = pathlib.Path(__file__).parents[2] / "build" / "lib" / "libgdn-fake-cuda.so"
    if not driver.is_file():
        pytest.skip("the fake driver of the C++ tests is not built (scripts/test.sh)")
    reasons = refusals(str(driver), **settings)
    assert first in reasons[0] and second in reasons[1], reasons
