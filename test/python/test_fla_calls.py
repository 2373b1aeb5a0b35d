# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.fla's functions for callers of FLA's, without FLA."""

import inspect
import warnings

import pytest
from test_torch import tensors

import gdn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("function", ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"])
def test_unknown_keywords(function):
    """The functions for FLA's callers ignore them, with one warning a name; our own refuse them."""
    q, k, v, g, beta = tensors()
    name = f"use_cache_{function}"
    ours, for_fla = getattr(gdn, function), getattr(gdn.fla, function)
    with pytest.raises(TypeError, match=f"{name}: expected an argument that the function has"):
        ours(q, k, v, g, beta=beta, **{name: True})
    with pytest.warns(UserWarning, match=f"gdn.fla: {name} is ignored"):
        o, _ = for_fla(q, k, v, g, beta=beta, **{name: True})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for_fla(q, k, v, g, beta=beta, **{name: True})
    assert torch.equal(o, ours(q, k, v, g, beta=beta)[0])
    assert inspect.signature(for_fla) == inspect.signature(ours)
