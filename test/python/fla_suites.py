# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's tests of the function that engines call over pools of states, against gdn.fla: `pytest -p fla_suites
tests/ops/test_kda.py -k vllm_decode` in a checkout of FLA's, with this folder on PYTHONPATH, and FLA, torch and gdn installed.
What gdn refuses is skipped, and counted at the end by the reason.
"""

import os

os.environ["FLA_DISABLE_BACKEND_DISPATCH"] = "1"  # Read when FLA is imported.

import collections  # noqa: E402
import functools  # noqa: E402
import importlib  # noqa: E402

import pytest  # noqa: E402

import gdn.fla  # noqa: E402

_counts = collections.Counter()


def _counted(function):
    """The function, whose refusals are skips."""

    @functools.wraps(function)
    def call(*arguments, **words):
        try:
            result = function(*arguments, **words)
        except NotImplementedError as error:
            _counts[f"refused: {error}"[:140]] += 1
            pytest.skip(f"refused: {error}")
        _counts["calls that gdn ran"] += 1
        return result

    return call


def pytest_configure(config):
    """Before test files import this name."""
    module = importlib.import_module("fla.ops.kda.fused_recurrent")
    module.fused_recurrent_kda_fwd = _counted(gdn.fla.fused_recurrent_kda_fwd)


def pytest_terminal_summary(terminalreporter):
    for what, count in _counts.most_common():
        terminalreporter.write_line(f"{what}: {count}")
