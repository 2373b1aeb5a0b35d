# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of every level that this CPU has, each in a process of its own."""

import json
import os

import pytest
from fresh import fresh

#: With the words of their kernels' names.
LEVELS = {"x86-64-v3": "v3", "x86-64-v4": "v4", "x86-64-v4+avx512bf16": "v4bf16"}

PROGRAM = """
import json, ml_dtypes, numpy as np
from reference import gated_delta_rule, make_inputs, rms_error
import gdn
from gdn import _library
errors = {}
for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
    for channels in (64, 128, 256):
        x = make_inputs(T=72, K=channels, V=channels)
        q, k, v = (a.astype(dtype) for a in (x.q, x.k, x.v))
        o, _ = gdn.chunk_gated_delta_rule(q, k, v, x.g, x.beta)
        kernel = gdn.explain(q, k, v, x.g, x.beta).kernel
        errors[f"{channels} channels by {kernel}"] = rms_error(o, gated_delta_rule(q, k, v, x.g, x.beta)[0])
print(json.dumps({"isa": json.loads(_library.load().kernels())["isa"], "errors": errors}))
"""

GRADIENTS = """
import json, torch
from gradient_cases import make, recurrence
import gdn
from gdn import _library
errors = []
for channels in (False, True):
    for size in (64, 128, 256):
        given = make(T=40, K=size, V=size, channels=channels)
        exact = {name: x.detach().double().requires_grad_() for name, x in given.items()}
        o, _ = gdn.chunk_gated_delta_rule(**given)
        expected, _ = recurrence(**exact, **dict.fromkeys(("A_log", "dt_bias", "initial_state", "cu_seqlens")),
                                 scale=size**-0.5, l2norm=False, gate="log", logits=0, v_first=False)
        weight = torch.randn(o.shape)
        for got, wanted in zip(torch.autograd.grad(o, list(given.values()), weight),
                               torch.autograd.grad(expected, list(exact.values()), weight.double())):
            errors.append(((got - wanted).norm() / wanted.norm()).item())
print(json.dumps({"isa": json.loads(_library.load().kernels())["isa"], "errors": errors}))
"""


def run_at(level, program):
    """What a program prints that runs at a level."""
    folder = os.path.dirname(__file__)
    run = fresh(f"import sys; sys.path.append({folder!r})\n{program}", GDN_CPU_ISA=level)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    if result["isa"] != level:
        pytest.skip(f"this CPU has {result['isa']}, not {level}")
    return result


@pytest.mark.parametrize("level", ["x86-64-v3", pytest.param("x86-64-v4", marks=pytest.mark.full)])
def test_gradients(level):
    """Of gates of heads and of channels: the third level has no kernels of its own, and other tests of gradients run at
    the highest that this CPU has."""
    pytest.importorskip("torch")
    errors = run_at(level, GRADIENTS)["errors"]
    assert len(errors) == 2 * 3 * 5 and max(errors) < 2e-6


@pytest.mark.parametrize("level", LEVELS)
def test_level(level):
    result = run_at(level, PROGRAM)
    assert len(result["errors"]) == 9
    for kernel, error in result["errors"].items():
        assert error < (1e-5 if "_f32_" in kernel else 6e-3), kernel
    # Where a level has no kernel of its own, that of a lower one serves.
    assert any(kernel.endswith(f"_{LEVELS[level]}") for kernel in result["errors"])
