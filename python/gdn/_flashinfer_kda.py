# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's call of Kimi Delta Attention, for flashinfer.py."""

from __future__ import annotations

from typing import Any

from . import _kda
from ._arguments import check_rules, made, refuse, repeat_heads, shape_of, viewed
from ._steps import numbers_of_rows


def _of_value_heads(parameter: Any, heads: int, times: int) -> Any:
    """A parameter of query heads, [H] or [H * K], for value heads."""
    if parameter is None or times == 1:
        return parameter
    return repeat_heads(parameter.reshape(heads, -1), times, 0).reshape(-1)


def _check_speculation(count: int, tokens: int, sequences: int, is_packed: bool, slots: Any) -> None:
    """FlashInfer's rules of calls with `num_spec_tokens`, in FlashInfer's words."""
    steps, shape = 1 + count, None if slots is None else shape_of("ssm_state_indices", slots)
    is_table = shape is None or (len(shape) == 2 and shape[1] == steps)
    rows = sequences if shape is None else shape[0] if shape else 0
    check_rules(
        ValueError,
        (not is_packed or shape is not None, "ssm_state_indices is required when num_spec_tokens is set with cu_seqlens"),
        (
            is_packed or tokens == steps,
            f"q.shape[1]={tokens} must equal 1+num_spec_tokens={steps} when cu_seqlens is not provided",
        ),
        (count > 0, f"num_spec_tokens must be >= 1, got {count}. Use num_spec_tokens=None for standard decode."),
        (is_table, f"ssm_state_indices must be 2D [N, {steps}] in spec mode, got shape {list(shape or ())}"),
        (rows == sequences, f"ssm_state_indices.shape[0]={rows} must equal N={sequences} (cu_seqlens.shape[0]-1)"),
    )


def recurrent_kda(
    q: Any, k: Any, v: Any, g: Any, beta: Any, A_log: Any = None, dt_bias: Any = None, scale: float | None = None,
    initial_state: Any = None, output_final_state: bool = False, use_qk_l2norm_in_kernel: bool = True,
    use_gate_in_kernel: bool = False, lower_bound: float | None = None, cu_seqlens: Any = None,
    ssm_state_indices: Any = None, num_spec_tokens: int | None = None, num_accepted_tokens: Any = None,
    output: Any = None, initial_state_source: Any = None, initial_state_indices: Any = None,
    beta_is_logit: bool = False, seq_order: Any = None, prefill_workspace: Any = None, state_checkpoints: Any = None,
    checkpoint_cu_starts: Any = None, checkpoint_every_n_tokens: int = 0, checkpoint_state_indices: Any = None, *,
    disable_state_update: bool = False, correction_cache: Any = None, kg_cache: Any = None, backend: str = "auto",
) -> tuple[Any, Any]:  # fmt: skip
    """`flashinfer.recurrent_kda`, with the signature of FlashInfer 0.7: steps of decoding, verification and prefills.

    More tokens than sequences without `num_spec_tokens` are a prefill, which `gdn.chunk_kda` runs; others run by
    `gdn.fused_recurrent_kda`, whose pages explain types and gates. FlashInfer's own needs a newer GPU than Hopper's.

    Args:
        q, k, v, g, beta, scale, use_qk_l2norm_in_kernel, use_gate_in_kernel, lower_bound, cu_seqlens: as `gdn.chunk_kda`.
        A_log, dt_bias: parameters [H] and [H * K] of the gate, of query heads.
        initial_state: [N, HV, V, K], updated in place, or a pool with `ssm_state_indices`; None is zeros.
        output_final_state: whether the second result is not None: the states, or the pool, or of a pool with rows [N] the
            states of a token of each batch row, copied.
        ssm_state_indices: rows of the pool, [N], or [N, 1 + S] for the states after tokens. A negative row is none.
        num_spec_tokens: S, with 1 + S tokens a sequence. Without indices, sequence n has the rows from n (1 + S) on.
        num_accepted_tokens: [N]: sequence n begins with row ssm_state_indices[n, num_accepted_tokens[n] - 1], not [n, 0].
        output: where to write o.
        initial_state_source, initial_state_indices: another pool and rows [N] of it that sequences begin with.
        beta_is_logit: whether beta is the sigmoid of `beta`.
        disable_state_update: no state is written.
        seq_order, prefill_workspace, backend: hints, which change no result.
        state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens, checkpoint_state_indices, correction_cache,
            kg_cache: refused.

    Returns:
        (o, states or None).

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `gdn.chunk_kda`.

    Example:
        >>> import gdn.flashinfer, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v, g = (random.standard_normal((2, 3, 4, 64), "float32") for _ in range(4))
        >>> pool = numpy.zeros((7, 4, 64, 64), "float32")
        >>> o, _ = gdn.flashinfer.recurrent_kda(
        ...     q, k, v, -abs(g), random.random((2, 3, 4), "float32"), initial_state=pool, num_spec_tokens=2,
        ...     ssm_state_indices=numpy.array([[6, 2, 3], [1, 5, 4]]))
        >>> [bool(state.any()) for state in pool]
        [False, True, True, True, True, True, True]
    """
    for name, given in (
        ("state_checkpoints", state_checkpoints is not None or checkpoint_every_n_tokens),
        ("correction_cache", correction_cache is not None),
        ("kg_cache", kg_cache is not None),
    ):
        if given:
            refuse(name, "what is inside a sequence is not there yet; expected none")
    if (initial_state_source is None) != (initial_state_indices is None):
        raise ValueError("initial_state_source and initial_state_indices must be provided together")
    (batch, tokens, heads), value_heads = shape_of("q", q)[:3], shape_of("v", v)[2]
    sequences = batch if cu_seqlens is None else shape_of("cu_seqlens", cu_seqlens)[0] - 1
    steps = 1 + (num_spec_tokens or 0)
    prefills = num_spec_tokens is None and batch * tokens > sequences and not disable_state_update
    states, slots, accepted = initial_state, ssm_state_indices, num_accepted_tokens
    if num_spec_tokens is not None:
        _check_speculation(num_spec_tokens, tokens, sequences, cu_seqlens is not None, slots)
    if states is None and slots is not None and not prefills:
        # As FlashInfer does, which waits for a GPU too: a pool of zeros that is as long as the rows say.
        states = made("zeros", (max(int(slots.max()) + 1, 1), value_heads, v.shape[3], q.shape[3]), viewed("q", q))
    if slots is None and states is not None and (num_spec_tokens is not None or initial_state_source is not None):
        slots = numbers_of_rows(q, sequences, steps, steps)
    if disable_state_update:
        if output_final_state or accepted is not None:
            raise ValueError("output_final_state and num_accepted_tokens: expected none with disable_state_update")
        states = states if initial_state_source is None else initial_state_source
        slots = slots if initial_state_source is None else initial_state_indices
        slots = numbers_of_rows(q, sequences, 1, 1) if slots is None else slots
        slots = slots if len(slots.shape) == 1 else slots[:, 0]
        keeps = {"state_indices": slots, "step_indices": numbers_of_rows(q, sequences, 1, -1)} if states is not None else {}
        words = {"initial_state": states, "final_state": states, **keeps}
    elif prefills or slots is None or states is None:
        if initial_state_source is not None or (states is None and slots is not None):
            refuse("initial_state_source", "a prefill has one pool, initial_state; expected None with that")
        words = {"initial_state": states, "final_state": states, "state_indices": slots}
    else:
        slots = slots if len(slots.shape) == 2 else slots[:, None]
        words = {"initial_state": states, "final_state": states, "state_indices": slots, "num_accepted_tokens": accepted}
        if initial_state_source is not None:
            words = {"initial_state": initial_state_source, "state_indices": initial_state_indices}
            words |= {"step_states": states, "step_indices": slots}
    function = _kda.chunk_kda if prefills else _kda.fused_recurrent_kda
    times = max(value_heads // max(heads, 1), 1)
    o, state = function(
        q, k, v, g, beta, A_log=_of_value_heads(A_log, heads, times), dt_bias=_of_value_heads(dt_bias, heads, times),
        scale=scale, output_final_state=output_final_state and states is None, out=output, state_v_first=True,
        use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, use_gate_in_kernel=use_gate_in_kernel,
        use_beta_sigmoid_in_kernel=beta_is_logit, lower_bound=lower_bound, cu_seqlens=cu_seqlens, **words,
    )  # fmt: skip
    o = o if output is None else output
    if not output_final_state:
        return o, None
    is_indexed = states is not None and cu_seqlens is None and tokens == 1 and slots is not None and num_spec_tokens is None
    return o, states[ssm_state_indices] if is_indexed else state if states is None else states
