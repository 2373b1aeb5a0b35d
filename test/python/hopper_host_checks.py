# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call on a GPU that is not there costs the host, and what of it is done once (as hopper_checks.py)."""

import statistics
import time

import pytest
from hopper_checks import ARGUMENTS, SCALE, device, driver, run, tensors  # noqa: F401

from gdn import _library


def test_calls_alike():
    """What was checked is not checked again, but for addresses."""
    first = tensors(HV=6)
    for _ in range(2):
        run(first)
    launches = driver.count("cuLaunchKernelEx")
    overlapping, misaligned, null, in_place = (tensors(HV=6) for _ in range(4))
    overlapping["out"].address = overlapping["v"].address
    with pytest.raises(ValueError, match="out: expected memory apart from v, got tensors that overlap"):
        run(overlapping)
    null["k"].address = None
    with pytest.raises(ValueError, match="k: expected a tensor whose elements have memory, got a null address"):
        run(null)
    assert driver.count("cuLaunchKernelEx") == launches
    misaligned["out"].address += 2
    assert len(driver.kernels_of(lambda: run(misaligned))) == 2
    launches = driver.count("cuLaunchKernelEx")
    in_place["final_state"].address = in_place["initial_state"].address
    run(in_place)
    assert driver.count("cuLaunchKernelEx") == launches + 1


@pytest.mark.parametrize("name,launches,shape", [
    ("whole sequences", 1, {"N": 4, "T": 4096, "HV": 32}),
    ("segments with own starts", 6, {"T": 65536, "HV": 4}),
])
def test_host_time(name, launches, shape):
    """Of the library's part of a call, in CPU time, over a driver that costs little."""
    import tvm_ffi

    arguments = tensors(**shape)
    held = [None if v is None else tvm_ffi.from_dlpack(v) for v in map(arguments.get, ARGUMENTS)]
    forward = _library.load().forward
    before = driver.count("cuLaunchKernelEx")
    forward(*held, SCALE, 0, 1, 0)
    assert driver.count("cuLaunchKernelEx") == before + launches
    times = []
    for _ in range(30):
        start = time.thread_time()
        for _ in range(100):
            forward(*held, SCALE, 0, 1, 0)
        times.append((time.thread_time() - start) / 100)
    print(f"{name}: minimum {min(times) * 1e6:.2f}, median {statistics.median(times) * 1e6:.2f} us")
    # Far above what it is, for a machine that does other things as well.
    assert min(times) < 50e-6
