# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of the plug-ins of engines on a GPU: `pytest -p engines_plugin test/python/test_vllm.py test/python/test_sglang.py -k
TEXT`, with this folder and that of the tests on PYTHONPATH, and the engines' Python as scripts/test-engines.sh has it.

Heads have 128 channels, as kernels have. What the tests draw and make is on the GPU, and float64 stays on the CPU. A GPU's kernels
with pools take no tokens in float32: those tests, and others that a GPU leaves to an engine, are not for it.
"""

import functools

import engines_times  # What the engines' modules import, and no test calls, is found from here on.
import reference
import sglang_stand_in
import torch
import vllm_stand_in


def to_cpu(x):
    return x.cpu() if isinstance(x, torch.Tensor) else x


def on_cpu(function):
    """The function of arrays on the CPU."""

    @functools.wraps(function)
    def call(*arguments, **words):
        return function(*map(to_cpu, arguments), **{name: to_cpu(x) for name, x in words.items()})

    return call


def drawn_on_cpu(*shape, generator=None, **words):
    return _randn(*shape, generator=generator, device="cpu").cuda()


_randn, _from_numpy, _concatenate = torch.randn, torch.from_numpy, vllm_stand_in.np.concatenate


def pytest_configure(config):
    """Before test files import these names."""
    # gdn runs the steps that it leaves to vLLM, too.
    engines_times.gdn.vllm.KEPT.clear()
    torch.set_default_device("cuda")
    torch.randn = drawn_on_cpu
    torch.from_numpy = lambda x: _from_numpy(x).cuda()
    reference.rms_error = on_cpu(reference.rms_error)
    for module in (vllm_stand_in, sglang_stand_in):
        module.CHANNELS = 128
        module.gated_delta_rule = on_cpu(module.gated_delta_rule)
    vllm_stand_in.KimiGatedDeltaNetAttention.facts = {"gates": 128, "allow_neg_eigval": False}
