# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Few tokens on a GPU that is not there: which calls run token by token.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import pytest
from hopper_checks import device, meta  # noqa: F401 (a fixture)
from matrix import crossed

import gdn

FORMS = [
    {},
    {"use_beta_sigmoid_in_kernel": True},
    {"gate_domain": "linear"},
    {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True},
]


@pytest.mark.parametrize(
    "form,norm,dtype,states",
    crossed(FORMS, [False, True], ["bfloat16", "float16"], ["none", "final", "float32", "16 bits"]),
)
def test_few_tokens_go_by_token(form, norm, dtype, states):
    """In every form, in the chunk function too; many tokens go by chunks where there is a kernel."""
    q, v, g = meta(8, 1, 16, 128, dtype=dtype), meta(8, 1, 32, 128, dtype=dtype), meta(8, 1, 32, dtype="float32")
    kwargs = {**form, "use_qk_l2norm_in_kernel": norm}
    if "use_gate_in_kernel" in form:
        kwargs |= {"A_log": meta(32, dtype="float32"), "dt_bias": meta(32, dtype="float32")}
    if states == "final":
        kwargs["output_final_state"] = True
    elif states != "none":
        state = meta(8, 32, 128, 128, dtype=dtype if states == "16 bits" else "float32")
        kwargs |= {"initial_state": state, "final_state": state}
    for v_first in (False, True):
        choice = gdn.explain(q, q, v, g, g, device="cuda", state_v_first=v_first, **kwargs)
        assert (choice.schedule, choice.algorithm) == ("token", "recurrent")
        assert choice.ctas == 8 * 32 * (8 if v_first and states != "none" else 4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", [False, True])
def test_many_tokens_with_states_of_16_bits(form, norm):
    """By chunks, with a copy of the states in float32, if there is no other kernel of chunks."""
    q, g, state = meta(1, 65, 32, 128), meta(1, 65, 32, dtype="float32"), meta(1, 32, 128, 128)
    kwargs = {**form, "use_qk_l2norm_in_kernel": norm, "initial_state": state, "final_state": state}
    if "use_gate_in_kernel" in form:
        kwargs |= {"A_log": meta(32, dtype="float32"), "dt_bias": meta(32, dtype="float32")}
    for function, algorithm in (("chunk_gated_delta_rule", "chunk"), ("fused_recurrent_gated_delta_rule", "recurrent")):
        assert gdn.explain(q, q, q, g=g, beta=g, function=function, device="cuda", **kwargs).algorithm == algorithm
