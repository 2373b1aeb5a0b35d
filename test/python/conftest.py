# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that are marked `full` want a wheel with all kernels, or take long beside others that see the same:
scripts/test-full.sh runs them, the others run each time."""

import os

# Threads of torch's OpenMP that wait for each other spin, and two processes of tests have more of them than a machine of
# two processors runs: so tests took six times as long. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Inductor asks the C++ compiler in each process what vectors this CPU has; torch knows it.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: run by scripts/test-full.sh alone (GDN_TEST_FULL=1)")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("GDN_TEST_FULL", "0") == "1":
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
