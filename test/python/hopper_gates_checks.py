# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which kernels of chunks serve gates, beta and states of all forms in both 16-bit types.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import pytest
from hopper_checks import device, meta  # noqa: F401: device is a fixture
from matrix import crossed

import gdn

GATES = {
    "log_f32_value_f32": {},
    "log_f32_logit_f32": {"use_beta_sigmoid_in_kernel": True},
    "linear_f32_value_f32": {"gate_domain": "linear"},
    "raw_f32_logit_f32": {"gate_domain": "raw", "use_beta_sigmoid_in_kernel": True},
}


def of_type(dtype, states=None, **kwargs):
    """What a call on q of this type runs; the kernel's name without its ends."""
    q, g = meta(1, 4096, 64, 128, dtype=dtype), meta(1, 4096, 64, dtype="float32")
    if kwargs.get("gate_domain") == "raw":
        kwargs |= {"A_log": meta(64, dtype="float32"), "dt_bias": meta(64, dtype="float32")}
    given = {name: meta(1, 64, 128, 128, dtype=kind) for name, kind in (states or {}).items()}
    name = gdn.explain(q, q, q, g, g, device="cuda", **given, **kwargs).kernel
    return name.removeprefix("gdn_hopper_").removesuffix("_cta_per_v_tile")


@pytest.mark.parametrize(
    "name,l2norm,dtype,states",
    crossed(
        list(GATES), [False, True], ["bfloat16", "float16"], ["none", "16 bits", "float32", "final"],
        each_time=[
            ("log_f32_value_f32", False, "bfloat16", "none"), ("log_f32_value_f32", False, "bfloat16", "16 bits"),
            ("log_f32_value_f32", False, "bfloat16", "final"), ("log_f32_logit_f32", True, "bfloat16", "float32"),
            ("linear_f32_value_f32", False, "float16", "none"), ("raw_f32_logit_f32", True, "float16", "16 bits"),
        ],
    ),
)  # fmt: skip
def test_gates_and_states_of_both_types(name, l2norm, dtype, states):
    """Kernels of chunks for each gate form, with and without norms, with states of 16 bits and of 32."""
    short = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    norm, kwargs = "l2" if l2norm else "plain", {**GATES[name], "use_qk_l2norm_in_kernel": l2norm}
    if l2norm and "log_f32_logit" in name:
        # By values, which the call makes of the logits.
        name = "log_f32_value_f32"
    # A kernel serves all states of a type.
    held = short if states == "16 bits" else "f32"
    if states == "final":
        kwargs["output_final_state"] = True
    elif states != "none":
        kwargs["states"] = dict.fromkeys(("initial_state", "final_state"), dtype if states == "16 bits" else states)
    assert of_type(dtype, **kwargs) == f"{short}_fixed_any_{held}_{name}_{norm}"
