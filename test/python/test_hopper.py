# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU path without a GPU: the files *_checks.py over the fake driver, in a process of its own."""

import pathlib

import fake_cuda
import pytest
from fresh import fresh

FOLDER = pathlib.Path(__file__).parent
CHECKS = (
    "exchange_checks.py",
    "hopper_checks.py",
    "hopper_gates_checks.py",
    "hopper_host_checks.py",
    "hopper_token_checks.py",
    "kda_checks.py",
    "pools_checks.py",
    "relayout_checks.py",
    "convert_checks.py",
    "hopper_gradients_checks.py",
    "saved_checks.py",
    "segments_checks.py",
)


def test_over_the_fake_driver():
    if not fake_cuda.DRIVER.is_file():
        pytest.skip("the fake driver of the C++ tests is not built (scripts/test.sh)")
    arguments = ["-q", "-rs", "-p", "no:cacheprovider", *(str(FOLDER / name) for name in CHECKS)]
    run = fresh(f"import pytest; raise SystemExit(pytest.main({arguments}))", **fake_cuda.ENVIRONMENT)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
