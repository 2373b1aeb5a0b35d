# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's calls: a prefill of packed tokens, linear gates, states [N, H, V, K], and outputs by the caller; steps of
decoding and of verification from raw gates and logits, with states that are updated in place (_flashinfer_decode.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _api, _kda
from ._arguments import check_rules, library_of, made, refuse, repeat_heads, shape_of, type_name, viewed
from ._flashinfer_decode import gated_delta_rule_decode as gated_delta_rule_decode
from ._flashinfer_decode import gated_delta_rule_decode_pretranspose as gated_delta_rule_decode_pretranspose
from ._flashinfer_decode import gated_delta_rule_mtp as gated_delta_rule_mtp
from ._steps import numbers_of_rows


def _named(inside: dict[str, Any], rows: Any, tokens: int) -> dict[str, Any]:
    """Such arguments, with a table of the rows that each sequence names for its states; `tokens` bounds their number."""
    if not inside:
        raise ValueError("checkpoint_state_indices: expected None with checkpoint_every_n_tokens == 0, got a tensor")
    starts, every = inside.pop("checkpoint_cu_starts"), inside["checkpoint_every_n_tokens"]
    places = starts[:-1, None] + made("arange", max(tokens // every, 1), starts)
    is_there = places < starts[1:, None]
    named = viewed("checkpoint_state_indices", rows)[places * is_there]
    return {**inside, "checkpoint_state_indices": named * is_there - 1 * ~is_there}


def _row(tensor: Any) -> Any:
    """A batch of one row around packed tokens."""
    return None if tensor is None else tensor[None]


#: Types that FlashInfer's states have.
_STATE_TYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def _checkpoints_of(every: int, states: Any, starts: Any, sequences: int) -> dict[str, Any]:
    """FlashInfer's checkpoint arguments as gdn's, by FlashInfer's rules and in its words; `sequences` is negative if not
    known."""
    if every < 0:
        raise ValueError(f"checkpoint_every_n_tokens must be non-negative, got {every}")
    if every % 64:
        raise ValueError(f"checkpoint_every_n_tokens must be a multiple of the chunk size (64), got {every}")
    if every and (states is None or starts is None):
        raise ValueError(
            "state_checkpoints and checkpoint_cu_starts must both be provided when checkpoint_every_n_tokens > 0"
        )
    if not every and (states is not None or starts is not None):
        raise ValueError("state_checkpoints and checkpoint_cu_starts must be None when checkpoint_every_n_tokens == 0")
    words = {"state_checkpoints": states, "checkpoint_cu_starts": starts, "checkpoint_every_n_tokens": every}
    if not every or sequences < 0:
        return words if every else {}
    shape, start_shape = shape_of("state_checkpoints", states), shape_of("checkpoint_cu_starts", starts)
    if type_name(states) not in _STATE_TYPES:
        raise ValueError(f"state_checkpoints must have dtype {', '.join(_STATE_TYPES)}, got {states.dtype}")
    if len(shape) != 4:
        raise ValueError(
            f"state_checkpoints must be 4D [total_checkpoints, num_sab_heads, head_size, head_size], got {len(shape)}D"
        )
    if not type_name(starts).startswith(("int", "uint")):
        raise ValueError(f"checkpoint_cu_starts must have an integer dtype, got {starts.dtype}")
    if len(start_shape) != 1:
        raise ValueError(f"checkpoint_cu_starts must be 1D [num_seqs + 1], got {len(start_shape)}D")
    if start_shape[0] != sequences + 1:
        raise ValueError(f"checkpoint_cu_starts must have {sequences + 1} elements, got {start_shape[0]}")
    return words


def _has_tokens(cu_seqlens: Any) -> Any:
    """Whether sequences have tokens, beside their states."""
    ends = viewed("cu_seqlens", cu_seqlens)
    return (ends[1:] > ends[:-1]).reshape(-1, 1, 1, 1)


def _run_beside(states: Any, cu_seqlens: Any, run: Callable[[Any], Any]) -> Any:
    """Runs a call that writes `states`, and leaves those of sequences without tokens as they are: a kernel writes the initial
    state of such a sequence. The others come from a copy, because nobody reads boundaries on a GPU."""
    written = viewed("output_state", states)
    o, new = run(made("empty", written.shape, written))
    written[...] = library_of(written).where(_has_tokens(cu_seqlens), new, written)
    return o, states


def _check_pool(indices: Any, output_final_state: bool, output_state: Any, sequences: int) -> None:
    """FlashInfer's rules of `state_indices`, in FlashInfer's words; `sequences` is negative if not known."""
    if not type_name(indices).startswith(("int", "uint")):
        raise ValueError(f"state_indices must have an integer dtype, got {indices.dtype}")
    if sequences >= 0 and tuple(shape_of("state_indices", indices)) != (sequences,):
        raise ValueError(f"state_indices must have shape {(sequences,)}, got {tuple(indices.shape)}")
    if output_final_state and output_state is None:
        raise ValueError("state_indices requires an explicit output_state pool sized like initial_state")


def _copy_rows(indices: Any, cu_seqlens: Any, initial_state: Any, output_state: Any) -> None:
    """Brings the rows that sequences with tokens name from one pool to another; zeros without one."""
    written, rows = viewed("output_state", output_state), viewed("state_indices", indices)
    kept, library = written[rows], library_of(written)
    taken = library.zeros_like(kept)
    if initial_state is not None:
        taken[...] = viewed("initial_state", initial_state)[rows]
    written[rows] = library.where(_has_tokens(cu_seqlens), taken, kept)


def chunk_gated_delta_rule(
    q: Any, k: Any, v: Any, g: Any = None, beta: Any = None, scale: float | None = None, initial_state: Any = None,
    output_final_state: bool = False, cu_seqlens: Any = None, use_qk_l2norm_in_kernel: bool = False,
    output: Any = None, output_state: Any = None, state_checkpoints: Any = None, checkpoint_cu_starts: Any = None,
    checkpoint_every_n_tokens: int = 0, use_cp: bool | str = "auto", state_indices: Any = None,
    _cp_chunk_len: int | None = None, backend: str = "auto", max_seqlen: int | None = None,
) -> Any:  # fmt: skip
    """`flashinfer.chunk_gated_delta_rule`, FlashInfer 0.7's prefill, with its signature and conventions.

    Args:
        q: [T, Hq, K], packed; float32, float16 or bfloat16.
        k: [T, Hk, K]. Hk is Hq, or, where query heads share keys and values (GQA), Hv.
        v: [T, Hv, V]. Hv is a multiple of Hq (GVA), or divides it (GQA: k and v are copied for each query head).
        g: the decay itself (not its logarithm) [T, max(Hq, Hv)]; None is 1.
        beta: write strengths [T, max(Hq, Hv)]; None is 1.
        scale: factor of the read-out; None is K ** -0.5.
        initial_state: [N, H, V, K]; None is zero.
        output_final_state: return the final states too.
        cu_seqlens: boundaries [N + 1], required.
        use_qk_l2norm_in_kernel: taken and ignored, as FlashInfer does. Normalise q and k before the call, or call
            `gdn.chunk_gated_delta_rule`, which obeys it.
        output, output_state: where to write o and the final states. The state of a sequence without tokens is left as
            it is. With torch that costs a copy of the states, unless `output_state` is `initial_state`.
        use_cp, backend, max_seqlen: hints, which change no result.
        state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens: as `gdn.chunk_gated_delta_rule`.
        state_indices: rows [N] of pools of states [P, H, V, K], no two of them equal: sequence n begins with row
            state_indices[n] of `initial_state` and ends with that of `output_state`. In place, if these are one pool,
            which negative rows do not touch. Otherwise the named rows are copied first.

    Returns:
        o [T, max(Hq, Hv), V], or (o, final states) with `output_final_state`.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `gdn.chunk_gated_delta_rule`.

    Example:
        >>> import gdn.flashinfer, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v = (random.standard_normal((100, heads, 64), "float32") for heads in (2, 2, 4))
        >>> alpha, beta = random.random((2, 100, 4), "float32")
        >>> o = gdn.flashinfer.chunk_gated_delta_rule(
        ...     q, k / 8, v, alpha, beta, cu_seqlens=numpy.array([0, 30, 100]))
        >>> o.shape
        (100, 4, 64)
    """
    cu_shape = shape_of("cu_seqlens", cu_seqlens) if cu_seqlens is not None else ()
    sequences = cu_shape[0] - 1 if len(cu_shape) == 1 else -1
    words = _checkpoints_of(checkpoint_every_n_tokens, state_checkpoints, checkpoint_cu_starts, sequences)
    if cu_seqlens is None:
        raise ValueError("cu_seqlens: expected a tensor of boundaries [N + 1], got None")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if len(shape_of(name, tensor)) != 3:
            raise ValueError(f"{name}: expected the shape [T, H, channels], got {list(tensor.shape)}")
    heads, shared = q.shape[1], v.shape[1]
    if shared and heads > shared:
        for name, tensor in (("k", k), ("v", v)):
            if heads % shared or tensor.shape[1] != shared:
                raise ValueError(
                    f"{name}: expected as many heads as v has, a number that divides q's {heads}, "
                    f"got {tensor.shape[1]} with {shared} of v"
                )
        k, v = (repeat_heads(x, heads // shared, 1) for x in (k, v))
    if state_indices is not None:
        _check_pool(state_indices, output_final_state, output_state, sequences)
        if output_state is None and initial_state is not None:
            initial_state = initial_state[state_indices]
        elif output_state is not None:
            if output_state is not initial_state:
                _copy_rows(state_indices, cu_seqlens, initial_state, output_state)
            initial_state = output_state
            words["state_indices"] = state_indices
    run = functools.partial(
        _api.chunk_gated_delta_rule,
        q[None], k[None], v[None], _row(g), _row(beta), scale=scale, initial_state=initial_state,
        output_final_state=output_final_state, cu_seqlens=cu_seqlens, gate_domain="linear", state_layout="vk",
        out=_row(output), max_seqlen=max_seqlen, **words,
    )  # fmt: skip
    if output_state is None or output_state is initial_state or sequences < 0:
        o, state = run(final_state=output_state)
    else:
        o, state = _run_beside(output_state, cu_seqlens, lambda states: run(final_state=states))
    o = o[0] if output is None else output
    return (o, state) if output_final_state else o


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
        state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens: of a prefill, as `gdn.chunk_kda`.
        checkpoint_state_indices: [C], int32 or int64: the row of `state_checkpoints` that has entry c of these.
        correction_cache, kg_cache: refused.

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
    for name, given in (("correction_cache", correction_cache), ("kg_cache", kg_cache)):
        if given is not None:
            refuse(name, "what is inside a sequence is not there yet; expected none")
    if (initial_state_source is None) != (initial_state_indices is None):
        raise ValueError("initial_state_source and initial_state_indices must be provided together")
    (batch, tokens, heads), value_heads = shape_of("q", q)[:3], shape_of("v", v)[2]
    sequences = batch if cu_seqlens is None else shape_of("cu_seqlens", cu_seqlens)[0] - 1
    steps = 1 + (num_spec_tokens or 0)
    prefills = num_spec_tokens is None and batch * tokens > sequences and not disable_state_update
    inside = _checkpoints_of(checkpoint_every_n_tokens, state_checkpoints, checkpoint_cu_starts, sequences)
    if inside and not prefills:
        refuse("state_checkpoints", "states inside are those of a prefill; expected none")
    if checkpoint_state_indices is not None:
        inside = _named(inside, checkpoint_state_indices, tokens)
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
        use_beta_sigmoid_in_kernel=beta_is_logit, lower_bound=lower_bound, cu_seqlens=cu_seqlens, **words, **inside,
    )  # fmt: skip
    o = o if output is None else output
    if not output_final_state:
        return o, None
    is_indexed = states is not None and cu_seqlens is None and tokens == 1 and slots is not None and num_spec_tokens is None
    return o, states[ssm_state_indices] if is_indexed else state if states is None else states
