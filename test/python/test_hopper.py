# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU path without a GPU: the files *_checks.py over the fake driver, in a process of its own."""

import os
import pathlib
import subprocess
import sys

import fake_cuda
import pytest

FOLDER = pathlib.Path(__file__).parent
CHECKS = (
    "hopper_checks.py",
    "hopper_gates_checks.py",
    "hopper_host_checks.py",
    "hopper_token_checks.py",
    "relayout_checks.py",
    "convert_checks.py",
    "hopper_gradients_checks.py",
    "saved_checks.py",
    "segments_checks.py",
)


def test_over_the_fake_driver():
    if not fake_cuda.DRIVER.is_file():
        pytest.skip("the fake driver of the C++ tests is not built (scripts/test.sh)")
    environment = {**os.environ, **fake_cuda.ENVIRONMENT}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *CHECKS]
    run = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, cwd=FOLDER)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
