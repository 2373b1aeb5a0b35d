# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's own files of tests, against gdn: `pytest -p flashinfer_suites FILE...` in a checkout of FlashInfer's, with this
folder on PYTHONPATH, and FlashInfer, torch and gdn installed.

| FILE | runs |
|---|---|
| tests/gdn/test_prefill_delta_rule.py, test_prefill_cp_delta_rule.py, test_prefill_state_indices.py | prefills |
| tests/gdn/test_decode_delta_rule.py, test_decode_pretranspose_noncontiguous_pool.py | decoding, verification |
| tests/kda/test_recurrent_kda.py | Kimi Delta Attention; FlashInfer's own needs a newer GPU, which this says it has |

What gdn refuses is skipped, and counted at the end by the reason. Tests of modules below these functions stay FlashInfer's.
"""

import collections
import functools
import importlib

import pytest

import gdn.flashinfer

#: What is replaced, wherever it can be imported from.
_FUNCTIONS = {
    "flashinfer.gdn_prefill": ("chunk_gated_delta_rule",),
    "flashinfer.gdn_decode": (
        "gated_delta_rule_decode", "gated_delta_rule_decode_pretranspose", "gated_delta_rule_mtp",
    ),
    "flashinfer.kda_decode": ("recurrent_kda",),
}  # fmt: skip
_refused = collections.Counter()


def _counted(function):
    """The function, whose refusals are skips."""

    @functools.wraps(function)
    def call(*arguments, **words):
        try:
            return function(*arguments, **words)
        except NotImplementedError as error:
            _refused[f"{function.__name__}: {error}"[:140]] += 1
            pytest.skip(f"refused: {error}")

    return call


def pytest_configure(config):
    """Before test files import these names."""
    package, utils = importlib.import_module("flashinfer"), importlib.import_module("flashinfer.utils")
    if any("kda" in argument for argument in config.args):
        utils.is_sm100a_supported = lambda device: True
    for name, functions in _FUNCTIONS.items():
        module = importlib.import_module(name)
        if name.endswith("kda_decode"):
            module._RECURRENT_KDA_AVAILABLE = True
        for function in functions:
            call = _counted(getattr(gdn.flashinfer, function))
            for place in (module, package):
                setattr(place, function, call)


def pytest_terminal_summary(terminalreporter):
    for reason, count in _refused.most_common():
        terminalreporter.write_line(f"refused {count}: {reason}")
