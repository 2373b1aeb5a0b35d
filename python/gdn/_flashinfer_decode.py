# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's calls of decoding and of verification, for flashinfer.py."""

from __future__ import annotations

import warnings
from typing import Any

from . import _api
from ._arguments import check_rules, library_of, refuse, shape_of, viewed
from ._steps import numbers_of_rows, states_of


def _decode(
    q: Any, k: Any, v: Any, states: Any, rows: Any, A_log: Any, a: Any, dt_bias: Any, b: Any, scale: Any, output: Any,
    use_qk_l2norm: bool, state_layout: str, steps: dict[str, Any] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Token by token from raw gates and logits; `states` are those of batch rows, or a pool with `rows`."""
    if steps is None or "step_states" not in steps:
        steps = {"final_state": states, **(steps or {})}
    is_written = output is None or output.dtype == v.dtype
    o, _ = _api.fused_recurrent_gated_delta_rule(
        q, k, v, a, beta=b, scale=scale, initial_state=states, A_log=A_log, dt_bias=dt_bias, use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True, out=output if is_written else None, use_qk_l2norm_in_kernel=use_qk_l2norm,
        state_layout=state_layout, state_indices=rows, **steps,
    )  # fmt: skip
    if not is_written:
        # As FlashInfer does: what nobody's rows had stays.
        written, there = viewed("output", output), None if rows is None else viewed("rows", rows) >= 0
        written[...] = o if there is None else library_of(written).where(there[:, None, None, None], o, written)
    return o if output is None else output, states


def _verify(
    q: Any, k: Any, v: Any, states: Any, rows: Any, A_log: Any, a: Any, dt_bias: Any, b: Any, scale: Any, output: Any,
    use_qk_l2norm: bool, buffer: Any, updates: bool, target: Any, scatter: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Tokens one after the other, with the states after them where FlashInfer puts them: in a buffer, in the rows `scatter`
    of the pool, nowhere, or only the last one in the row that it was read from, or in that of `target`."""
    batch, tokens = q.shape[:2]
    keeps: dict[str, Any] = {}
    if rows is None and (buffer is not None or scatter is not None or target is not None or not updates):
        rows = numbers_of_rows(q, batch, 1, 1)[:, 0]
    target = rows if target is None else target
    if scatter is not None:
        keeps = {"step_indices": scatter}
    elif not updates:
        keeps = {"step_indices": numbers_of_rows(q, batch, 1, -1)}
    elif target is not rows or buffer is not None:
        # Behind a buffer the state is rounded after each token, as there.
        fits = tuple(target.shape) == (batch,)
        check_rules(AssertionError, (fits, f"Expected output_state_indices shape [{batch}], got {target.shape}"))
        # A table of its own.
        keeps = {"step_indices": numbers_of_rows(q, batch, tokens, -1) + 0}
        keeps["step_indices"][:, -1] = target
    arguments = (A_log, a, dt_bias, b, scale)
    if buffer is not None:
        kept, between = states_of(buffer)
        steps = {"step_states": kept, "step_indices": numbers_of_rows(q, batch, tokens, between)}
        output, _ = _decode(q, k, v, states, rows, *arguments, output, use_qk_l2norm, "vk", steps)
    if buffer is None or updates:
        # Behind a buffer the same tokens once more: what they do to the pool is the last of these states.
        output, _ = _decode(q, k, v, states, rows, *arguments, output, use_qk_l2norm, "vk", keeps)
    return output, states


def gated_delta_rule_decode(
    q: Any, k: Any, v: Any, state: Any, A_log: Any, a: Any, dt_bias: Any, b: Any, scale: float | None = None,
    output: Any = None, use_qk_l2norm: bool = True, backend: str = "auto",
) -> tuple[Any, Any]:  # fmt: skip
    """`flashinfer.gated_delta_rule_decode`, with its signature: tokens [B, T, ...], states [B, HV, K, V].

    `gated_delta_rule_decode_pretranspose` explains the arguments.
    """
    return _decode(q, k, v, state, None, A_log, a, dt_bias, b, scale, output, use_qk_l2norm, "kv")


def gated_delta_rule_decode_pretranspose(
    q: Any, k: Any, v: Any, state: Any, A_log: Any, a: Any, dt_bias: Any, b: Any, scale: float | None = None,
    output: Any = None, use_qk_l2norm: bool = True, initial_state: Any = None, initial_state_indices: Any = None,
    output_state_indices: Any = None, intermediate_states_buffer: Any = None, disable_state_update: bool = False,
    backend: str = "auto",
) -> tuple[Any, Any]:  # fmt: skip
    """`flashinfer.gated_delta_rule_decode_pretranspose`, with its signature: states [B, HV, V, K], or a pool of them.

    Tokens are one after the other; the state is rounded to its type behind the last one alone, unless those after tokens
    are kept. Views of one convolution's output are read where they lie.

    Args:
        q, k: [B, T, H, K]; float32, float16 or bfloat16.
        v: [B, T, HV, V].
        state: [B, HV, V, K], updated in place; None with `initial_state`.
        A_log, dt_bias: parameters [HV] of the gate, -exp(A_log) softplus(a + dt_bias). On a GPU a dt_bias of 16 bits costs
            a launch of its own.
        a, b: raw gates, and logits of beta, [B, T, HV].
        scale: factor of the read-out; None is K ** -0.5.
        output: where to write o; that of another type than v's is converted, and keeps what it has for negative rows.
        use_qk_l2norm: q and k are divided by their norms first.
        initial_state, initial_state_indices: a pool [P, HV, V, K], updated in place, and the row [B] of each sequence in
            it. A negative row is none, also of a pool in bfloat16: no state is touched, and the outputs are zeros.
        output_state_indices: the row [B] of the pool that each sequence's state goes to, instead of its own. Nobody else
            may read it.
        intermediate_states_buffer: with T > 1, as of `gated_delta_rule_mtp`.
        disable_state_update: with T > 1, states stay as they are.
        backend: a hint, which changes no result.

    Returns:
        (o, the states or the pool).

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `gdn.fused_recurrent_gated_delta_rule`.

    Example:
        >>> import gdn.flashinfer, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v = (random.standard_normal((3, 1, heads, 64), "float32") for heads in (2, 2, 4))
        >>> a, b = random.standard_normal((2, 3, 1, 4), "float32")
        >>> o, pool = gdn.flashinfer.gated_delta_rule_decode_pretranspose(
        ...     q, k, v, None, numpy.zeros(4, "float32"), a, numpy.zeros(4, "float32"), b,
        ...     initial_state=numpy.zeros((9, 4, 64, 64), "float32"), initial_state_indices=numpy.array([7, -1, 2]))
        >>> o.shape, bool(o[1].any())
        ((3, 1, 4, 64), False)
    """
    tokens = shape_of("q", q)[1:2]
    has_pool, has_rows, are_several = initial_state is not None, initial_state_indices is not None, tokens != (1,)
    check_rules(
        ValueError,
        (are_several or intermediate_states_buffer is None, "intermediate_states_buffer is supported only for T > 1"),
        (are_several or not disable_state_update, "disable_state_update is supported only for T > 1"),
        (has_pool == has_rows, "initial_state and initial_state_indices must be provided together"),
        (has_pool or state is not None, "Either state or initial_state must be provided"),
    )
    of_pools = "output_state_indices can only be used with initial_state (pool mode)"
    check_rules(AssertionError, (has_pool or output_state_indices is None, of_pools))
    return _verify(
        q, k, v, initial_state if has_pool else state, initial_state_indices, A_log, a, dt_bias, b, scale,
        output, use_qk_l2norm, intermediate_states_buffer, not disable_state_update, output_state_indices,
    )  # fmt: skip


def gated_delta_rule_mtp(
    q: Any, k: Any, v: Any, initial_state: Any, initial_state_indices: Any, A_log: Any, a: Any, dt_bias: Any, b: Any,
    scale: float | None = None, output: Any = None, intermediate_states_buffer: Any = None,
    ssm_state_indices: Any = None, disable_state_update: bool | None = None, use_qk_l2norm: bool = True,
    output_state_indices: Any = None, cache_replayssm: bool = False, replayssm_rawv: Any = None,
    replayssm_rawk: Any = None, replayssm_g: Any = None, replayssm_beta: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`flashinfer.gated_delta_rule_mtp`, with the signature of FlashInfer 0.7: speculated tokens [B, T, ...] are verified.

    Args:
        q, k, v, A_log, a, dt_bias, b, scale, output, use_qk_l2norm: as `gated_delta_rule_decode_pretranspose`.
        initial_state, initial_state_indices: a pool [P, HV, V, K] and the row [B] of each sequence. A negative row is none:
            no state is touched, and the outputs are zeros. States may have any of the package's types.
        intermediate_states_buffer: where to keep the states after tokens, [B, S, HV, V, K] with S >= T, or the leading steps
            of a longer one.
        ssm_state_indices: in place of it, the rows of the pool [B, T] that keep them. Those outside the pool keep nothing.
        disable_state_update: whether the row of a sequence stays as it is; None is True, with FlashInfer's warning. With
            a buffer, False costs a second launch.
        output_state_indices: as of `gated_delta_rule_decode_pretranspose`.
        cache_replayssm, replayssm_rawv, replayssm_rawk, replayssm_g, replayssm_beta: refused; of newer GPUs.

    Returns:
        (o, initial_state).

    Raises:
        AssertionError: by FlashInfer's own messages.
        TypeError, ValueError, NotImplementedError, RuntimeError: as `gdn.fused_recurrent_gated_delta_rule`.

    Example:
        >>> import gdn.flashinfer, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v = (random.standard_normal((2, 4, heads, 64), "float32") for heads in (2, 2, 4))
        >>> a, b = random.standard_normal((2, 2, 4, 4), "float32")
        >>> kept = numpy.zeros((2, 4, 4, 64, 64), "float32")
        >>> o, pool = gdn.flashinfer.gated_delta_rule_mtp(
        ...     q, k, v, numpy.zeros((9, 4, 64, 64), "float32"), numpy.array([7, 2]), numpy.zeros(4, "float32"), a,
        ...     numpy.zeros(4, "float32"), b, intermediate_states_buffer=kept, disable_state_update=True)
        >>> bool(pool.any()), bool(kept[:, 3].any())
        (False, True)
    """
    if cache_replayssm or any(x is not None for x in (replayssm_rawv, replayssm_rawk, replayssm_g, replayssm_beta)):
        refuse("cache_replayssm", "windows of raw inputs are not kept in this version; expected False")
    if disable_state_update is None:
        if ssm_state_indices is None:
            warnings.warn(
                "gated_delta_rule_mtp(): disable_state_update will be False by default in FlashInfer 0.8.0; pass it",
                DeprecationWarning,
                stacklevel=2,
            )
        disable_state_update = True
    batch, tokens = shape_of("q", q)[:2]
    if intermediate_states_buffer is not None:
        shape = shape_of("intermediate_states_buffer", intermediate_states_buffer)
        fits = len(shape) == 5 and shape[0] >= batch and shape[1] >= tokens
        logical = f"logical shape [>={batch}, >={tokens}, HV, V, K]"
        check_rules(AssertionError, (fits, f"intermediate_states_buffer must have {logical}, got {tuple(shape)}"))
    if ssm_state_indices is not None:
        shape = tuple(ssm_state_indices.shape)
        check_rules(
            AssertionError,
            (intermediate_states_buffer is None, "ssm_state_indices and intermediate_states_buffer are mutually exclusive"),
            (not disable_state_update, "ssm_state_indices requires state writes; disable_state_update must be False"),
            (tokens >= 2, f"ssm_state_indices requires T >= 2 (got T={tokens})"),
            (shape == (batch, tokens), f"ssm_state_indices must have shape [B={batch}, T={tokens}], got {shape}"),
        )
    return _verify(
        q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b, scale, output, use_qk_l2norm,
        intermediate_states_buffer, not disable_state_update, output_state_indices, ssm_state_indices,
    )  # fmt: skip
