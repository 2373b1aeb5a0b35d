# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Python does in a call, counted: times would depend on the machine."""

import sys

import pytest

import gdn
import gdn.fla

torch = pytest.importorskip("torch")


def count_calls(run):
    """The functions of Python and of C that are called, by name, from the second run on."""
    run()
    found = {"call": [], "c_call": []}

    def note(frame, event, argument):
        if event in found:
            found[event].append(frame.f_code.co_name if event == "call" else argument.__name__)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def one_token(**changes):
    q, k, v = (torch.randn(1, 1, heads, 64, dtype=torch.bfloat16) for heads in (2, 2, 4))
    g, beta, state = -torch.rand(1, 1, 4), torch.rand(1, 1, 4), torch.zeros(1, 4, 64, 64)
    return {"q": q, "k": k, "v": v, "g": g, "beta": beta, "initial_state": state, "output_final_state": True, **changes}


@pytest.mark.parametrize("function", [
    gdn.fused_recurrent_gated_delta_rule, gdn.chunk_gated_delta_rule,
    gdn.fla.fused_recurrent_gated_delta_rule, gdn.fla.chunk_gated_delta_rule,
])
def test_calls_of_a_token(function):
    """A plain call asks torch little, and loads, formats and searches nothing."""
    arguments = one_token()
    with torch.no_grad():
        found = count_calls(lambda: function(**arguments))
    assert len(found["call"]) <= 13, found["call"]
    assert len(found["c_call"]) <= 20, found["c_call"]
