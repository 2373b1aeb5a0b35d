# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bounds of docs/Numerics.md."""

import numpy as np
import pytest
from reference import make_inputs
from test_numbers import FUNCTIONS, TYPES, chunk


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 1e-2)])
def test_what_follows_a_prefix(dtype, bound):
    """docs/Numerics.md: later gates and tokens change no more than a chunk's roundings, and nothing token by token."""
    for seed in range(3):
        x = make_inputs(T=80, HV=2, seed=seed)
        q, k, v = (a.astype(TYPES[dtype]) for a in (x.q, x.k, x.v))

        def run(function, g, end=80):
            o, _ = function(*(a[:, :end] for a in (q, k, v, g, x.beta)), use_qk_l2norm_in_kernel=True)
            return o.astype(np.float32)

        whole = {function: run(function, x.g) for function in FUNCTIONS}
        for prefix in (1, 9, 33, 40, 63, 65):
            g = np.concatenate([x.g[:, :prefix], 6 * x.g[:, prefix:]], axis=1)
            for function, o in whole.items():
                for other in (run(function, g), run(function, x.g, prefix)):
                    apart = np.abs(other[:, :prefix] - o[:, :prefix]).max()
                    assert apart <= (bound * np.abs(o).max() if function is chunk else 0)
