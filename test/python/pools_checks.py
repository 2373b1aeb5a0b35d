# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States in a pool on a GPU that is not there: which kernels run, how many, and what is refused.

test_hopper.py runs this file in a process that opens the fake driver.
"""

import pytest
from fake_cuda import Tensor
from hopper_checks import device, driver, meta, run, tensors  # noqa: F401

import gdn
from gdn import _library

torch = pytest.importorskip("torch")


def explain(T, N=4, dtype="float32", index="int32", data="bfloat16", layout="kv", **words):
    """A call of packed sequences with rows in a pool."""
    q, v, g = meta(1, T, 2, 128, dtype=data), meta(1, T, 4, 128, dtype=data), meta(1, T, 4, dtype="float32")
    pool, rows = meta(64, 4, 128, 128, dtype=dtype), meta(N, dtype=index)
    return gdn.explain(
        q, q, v, g, beta=g, initial_state=pool, final_state=pool, state_indices=rows, first_state=1, state_layout=layout,
        cu_seqlens=meta(N + 1, dtype="int32"), device="cuda", **words,
    )  # fmt: skip


@pytest.mark.parametrize("layout", ["kv", "vk"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_chunks(layout, index):
    """One kernel for both layouts; nothing is converted."""
    choice = explain(4096, layout=layout, index=index, context_parallel=False)
    assert choice.kernel.startswith("gdn_hopper_bf16_packed_pool_f32_log_f32_value_f32_plain_cta_per_")
    assert not choice.conversions


@pytest.mark.parametrize("strides", [(4 * 128 * 128 + 3, 128 * 128, 128, 1), (9 * 128 * 128, 2 * 128 * 128, 256, 2)])
def test_strides(strides):
    """A pool is read and written where it is."""
    q, v, g = meta(1, 4096, 2, 128), meta(1, 4096, 4, 128), meta(1, 4096, 4, dtype="float32")
    pool = torch.empty_strided((8, 4, 128, 128), strides, device="meta")
    choice = gdn.explain(
        q, q, v, g, g, initial_state=pool, final_state=pool, state_indices=meta(2, dtype="int32"),
        cu_seqlens=meta(3, dtype="int32"), device="cuda",
    )  # fmt: skip
    assert "_pool_f32_" in choice.kernel and not choice.conversions and not choice.copies


def test_segments():
    choice = explain(65536, N=1)
    assert "_pool_f32_" in choice.kernel and choice.split.splits and "waiting" in choice.kernel


@pytest.mark.parametrize("layout,dtype", [("kv", "float32"), ("vk", "float32"), ("kv", "bfloat16"), ("vk", "bfloat16")])
def test_tokens(layout, dtype):
    q, v, g = meta(8, 1, 2, 128), meta(8, 1, 4, 128), meta(8, 1, 4, dtype="float32")
    pool = meta(64, 4, 128, 128, dtype=dtype)
    choice = gdn.explain(
        q, q, v, g, beta=g, initial_state=pool, final_state=pool, state_indices=meta(8, dtype="int32"),
        state_layout=layout, device="cuda", function="fused_recurrent_gated_delta_rule",
    )  # fmt: skip
    name = {"float32": "f32", "bfloat16": "bf16"}[dtype]
    assert choice.kernel == f"gdn_hopper_bf16_fixed_pool_{layout}_{name}_log_f32_value_f32_plain_token"


@pytest.mark.parametrize("T", [1, 256])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("gap", [0, 64])
def test_launches(T, index, gap):
    """One, whatever the strides of slots are; a call alike is known."""
    size = 4 * 128 * 128
    pool, same = (Tensor("float32", 64, 4, 128, 128, strides=[size + gap, 128 * 128, 128, 1]) for _ in range(2))
    same.address = pool.address
    arguments = tensors(N=4, T=4 * T, initial_state=pool, final_state=same, state_indices=Tensor(index, 4))
    for _ in range(2):
        before = driver.count("cuLaunchKernelEx")
        run(arguments)
        assert driver.count("cuLaunchKernelEx") == before + 1


def test_sequences_that_begin_with_zeros():
    """The same kernel, and one launch; kernels token by token have no such flags, so few tokens run by chunks."""
    flags = meta(4, dtype="bool")
    assert explain(4096, has_initial_state=flags).kernel == explain(4096).kernel
    few = explain(4, function="fused_recurrent_gated_delta_rule", has_initial_state=flags)
    assert "_pool_f32_log_f32_value_f32_plain_cta_per_" in few.kernel
    pool, same = (Tensor("float32", 64, 4, 128, 128) for _ in range(2))
    same.address = pool.address
    words = {"state_indices": Tensor("int32", 4), "has_initial_state": Tensor("bool", 4)}
    arguments = tensors(N=4, initial_state=pool, final_state=same, **words)
    before = driver.count("cuLaunchKernelEx")
    run(arguments)
    run({**arguments, "has_initial_state": None})
    assert driver.count("cuLaunchKernelEx") == before + 2


@pytest.mark.parametrize("message,words", [
    ("(state_indices|cu_seqlens): expected None on a GPU in this version, got", {"data": "float32"}),
    ("initial_state, final_state: expected float32 .* got float16", {"dtype": "float16"}),
])  # fmt: skip
def test_what_is_not_there(message, words):
    """A pool is not converted."""
    with pytest.raises(NotImplementedError, match=message):
        explain(4096, **words)


def test_a_pool_is_updated():
    """Also if a call that is alike but for that is known."""
    arguments = tensors(N=4, state_indices=Tensor("int32", 4))
    same = Tensor("float32", 4, 4, 128, 128)
    same.address = arguments["initial_state"].address
    run({**arguments, "final_state": same})
    with pytest.raises(ValueError, match="final_state: expected initial_state, the pool, with state_indices"):
        run(arguments)
    with pytest.raises(ValueError, match="final_state: expected initial_state, the pool, with state_indices, got None"):
        run({**arguments, "final_state": None})


def verify(form, dtype="float32", index="int32", **changed):
    """A call of four sequences of 4 speculated tokens each, from raw gates and logits."""
    q, v, g = meta(1, 16, 2, 128), meta(1, 16, 4, 128), meta(1, 16, 4)
    pool, rows, slots = meta(64, 4, 128, 128, dtype=dtype), meta(4, dtype=index), meta(4, 4, dtype=index)
    A_log = meta(4, dtype="float32")
    words = {
        "pool": {"state_indices": slots, "num_accepted_tokens": rows, "final_state": pool},
        "rows": {"state_indices": rows, "step_indices": slots, "final_state": pool},
        "apart": {"state_indices": rows, "step_indices": slots, "step_states": meta(32, 4, 128, 128, dtype=dtype)},
    }[form]
    return gdn.explain(
        q, q, v, g, beta=g, initial_state=pool, first_state=1, state_layout="vk", cu_seqlens=meta(5, dtype="int32"),
        A_log=A_log, dt_bias=A_log, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        use_qk_l2norm_in_kernel=True, device="cuda", function="fused_recurrent_gated_delta_rule", **{**words, **changed},
    )  # fmt: skip


@pytest.mark.parametrize("form", ["pool", "rows", "apart"])
@pytest.mark.parametrize("dtype,name", [("float32", "f32"), ("bfloat16", "bf16")])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_states_after_tokens(form, dtype, name, index):
    """One kernel for all places of these states, and another one for trees."""
    choice = verify(form, dtype, index)
    assert choice.kernel == f"gdn_hopper_bf16_packed_steps_vk_{name}_raw_bf16_logit_bf16_l2_token"
    assert not choice.conversions and not choice.copies
    tree = verify(form, dtype, index, parents=meta(4, 4, dtype="int32"))
    assert tree.kernel == f"gdn_hopper_bf16_packed_tree_vk_{name}_raw_bf16_logit_bf16_l2_token"


def test_a_pool_beside_states_after_tokens_stays():
    with pytest.raises(ValueError, match="step_states: expected states as initial_state has, without final_state, on a GPU"):
        verify("apart", final_state=meta(64, 4, 128, 128, dtype="float32"))


@pytest.mark.parametrize("form", ["pool", "apart"])
def test_a_verification_is_one_launch(form):
    pool, same, kept = (Tensor("float32", rows, 4, 128, 128) for rows in (64, 64, 32))
    same.address = pool.address
    words = {"num_accepted": Tensor("int32", 4)} if form == "pool" else {"step_states": kept, "step_indices": Tensor("int32", 4, 4)}
    words |= {"state_indices": Tensor("int32", 4, 4) if form == "pool" else Tensor("int32", 4)}
    words |= {"final_state": same if form == "pool" else None, "A_log": Tensor("float32", 4), "dt_bias": Tensor("float32", 4)}
    gates = {name: Tensor("bfloat16", 1, 16, 4) for name in ("g", "beta")}
    options = _library.pack_options(
        gate_domain=_library.GATE_DOMAINS["raw"], beta_domain=_library.BETA_LOGIT, l2norm=1, state_v_first=1, recurrent=1,
        first_state=1,
    )  # fmt: skip
    arguments = tensors(N=4, T=16, initial_state=pool, **gates, **words)
    for _ in range(2):
        before = driver.count("cuLaunchKernelEx")
        run(arguments, options=options)
        assert driver.count("cuLaunchKernelEx") == before + 1


def prefill(states="bfloat16", pool=True, data="bfloat16", kept=None, **words):
    """A prefill of packed sequences by FlashInfer's call, with states inside."""
    q, v, g = meta(4096, 2, 128, dtype=data), meta(4096, 4, 128, dtype=data), meta(4096, 4, dtype="float32")
    first = meta(64 if pool else 4, 4, 128, 128, dtype=states)
    words = {"state_layout": "vk", "gate_domain": "linear", "state_checkpoints": meta(32, 4, 128, 128, dtype=kept or states), **words}
    if pool:
        words |= {"final_state": first, "state_indices": meta(4, dtype="int32")}
    return gdn.explain(
        q[None], q[None], v[None], g[None], beta=g[None], initial_state=first, output_final_state=True,
        cu_seqlens=meta(5, dtype="int32"), device="cuda", **{
            "checkpoint_cu_starts": meta(5, dtype="int64"), "checkpoint_every_n_tokens": meta(4, dtype="int32"), **words,
        },
    )  # fmt: skip


@pytest.mark.parametrize("states,pool,form", [
    ("float32", True, "poolkept_f32"), ("bfloat16", True, "poolkept_bf16"), ("float32", False, "kept_f32"),
])  # fmt: skip
@pytest.mark.parametrize("every", [{}, {"checkpoint_every_n_tokens": 1024}])
@pytest.mark.parametrize("layout", ["kv", "vk"])
def test_states_inside_a_prefill(states, pool, form, every, layout):
    """One kernel that is not cut, for both layouts and any distance."""
    choice = prefill(states, pool, state_layout=layout, **every)
    assert choice.kernel.startswith(f"gdn_hopper_bf16_packed_{form}_linear_f32_value_f32_plain_cta_per_")
    assert not choice.conversions and not choice.copies and choice.split is None


NAMED = {"checkpoint_cu_starts": None, "checkpoint_state_indices": meta(4, 3, dtype="int32")}


@pytest.mark.parametrize("states", ["float32", "bfloat16"])
@pytest.mark.parametrize("words", [{}, {"state_checkpoints": None}])
def test_states_inside_in_named_rows(states, words):
    """The kernel that has rows one after the other, for rows of the pool too."""
    in_order, named = prefill(states), prefill(states, **NAMED, **words)
    assert named.kernel == in_order.kernel and not named.conversions and not named.copies


@pytest.mark.parametrize("message,words", [
    ("checkpoint_state_indices: expected None on a GPU", {"pool": False, **NAMED}),
    ("state_checkpoints: expected float32 on a GPU in this version, got bfloat16", {"states": "float32", "kept": "bfloat16"}),
    ("segment_length", {"segment_length": 1024}),
])  # fmt: skip
def test_states_inside_that_are_not_there(message, words):
    with pytest.raises(NotImplementedError, match=message):
        prefill(**words)


def test_a_prefill_that_keeps_states_is_one_launch():
    """With a number for all sequences that has memory for one."""
    words = {
        "step_states": Tensor("float32", 32, 4, 128, 128), "checkpoint_cu_starts": Tensor("int64", 5),
        "checkpoint_every_n_tokens": Tensor("int32", 4, strides=(0,)),
    }  # fmt: skip
    arguments = tensors(N=4, T=4096, **words)
    for _ in range(2):
        before = driver.count("cuLaunchKernelEx")
        run(arguments, options=_library.pack_options(gate_domain=_library.GATE_DOMAINS["linear"]))
        assert driver.count("cuLaunchKernelEx") == before + 1
