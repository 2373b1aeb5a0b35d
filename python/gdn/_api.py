# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two functions that models call, with FLA's signatures."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from . import _bitwise, _library
from ._arguments import (
    KNOWN_OPTIONS,
    KNOWN_POOLS,
    NO_STEPS,
    Call,
    check_chunk_size,
    longest_sequence,
    number,
    old_arguments,
    options_of,
    pool_of,
    refuse,
    saves_of,
    shape_of,
    split_of,
)
from ._steps import checkpoints_of

# Looked up once: each call asks them.
_gate_domain_of, _PARAMETRIC_GATES = _library.gate_domain_of, _library.PARAMETRIC_GATES

F = TypeVar("F", bound=Callable[..., Any])


#: What runs a call on tensors of a type, as far as there have been calls.
_FORWARDS: dict[type, Callable[..., tuple[Any, Any]]] = {}


def _find_forward(q: Any) -> Callable[..., tuple[Any, Any]]:
    """What runs a call on tensors like q."""
    shape_of("q", q)
    torch = sys.modules.get("torch")
    # Statements, which torch.compile can follow.
    if torch is not None and isinstance(q, torch.Tensor):
        from . import _torch

        forward: Callable[..., tuple[Any, Any]] = _torch.forward
    else:
        from . import _arrays

        forward = _arrays.forward
    _FORWARDS[type(q)] = forward
    return forward


#: The public functions that give the `Call` that they would run, by name: for `explain`.
BUILDERS: dict[str, Callable[..., Call]] = {}
#: How these are asked, by a keyword that is nobody else's. A function around the functions would cost a call as much
#: as all that they look at.
_THEN = "_gdn_then"


def explained(function: F) -> F:
    """Makes the function one that `explain` knows."""
    BUILDERS[function.__name__] = functools.partial(function, **{_THEN: Call.of})
    return function


def _run(
    q: Any, k: Any, v: Any, g: Any, beta: Any, A_log: Any, dt_bias: Any, initial_state: Any, cu_seqlens: Any, out: Any,
    final_state: Any, state_indices: Any, first_state: Any, has_initial_state: Any, scale: Any, output_final_state: Any,
    longest: int, raw_gate: Any, gate_domain: str | None, beta_sigmoid: Any, allow_neg_eigval: Any, l2norm: Any,
    state_v_first: Any, state_layout: str | None, recurrent: bool, then: Callable[..., tuple[Any, Any]] | None,
    split: int = 0, steps: tuple[Any, ...] = NO_STEPS,
) -> tuple[Any, Any]:  # fmt: skip
    """What both functions do with arguments whose values no tensor depends on."""
    is_known = state_indices is not None and final_state is not None and type(first_state) is int
    if is_known and first_state in KNOWN_POOLS:
        split |= KNOWN_POOLS[first_state]
    elif state_indices is not None or first_state != 0 or has_initial_state is not None:
        split |= pool_of(state_indices, first_state, has_initial_state, output_final_state, final_state)
    forward = _FORWARDS.get(type(q)) or _find_forward(q)
    if scale is not None and type(scale) is not float:
        scale = number("scale", scale)
    said = (raw_gate, gate_domain, beta_sigmoid, allow_neg_eigval, l2norm, state_v_first, state_layout, recurrent)
    try:
        options = KNOWN_OPTIONS[said]
    except (KeyError, TypeError):
        options = options_of(*said)
    options |= split
    if (A_log is not None or dt_bias is not None) and _gate_domain_of(options) not in _PARAMETRIC_GATES:
        # FLA takes the parameters and leaves them unused.
        A_log = dt_bias = None
    wants_state = bool(output_final_state) or final_state is not None
    tensors = (
        q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out, final_state, state_indices, has_initial_state,
    )  # fmt: skip
    return (then or forward)(tensors + steps, scale, options, wants_state, longest)


@explained
def chunk_gated_delta_rule(
    q: Any,
    k: Any,
    v: Any,
    g: Any,
    beta: Any,
    scale: float | None = None,
    initial_state: Any = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Any = None,
    cu_seqlens_cpu: Any = None,
    chunk_indices: Any = None,
    cp_context: Any = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: Any = None,
    dt_bias: Any = None,
    chunk_size: int = 64,
    gate_domain: str | None = None,
    state_layout: str | None = None,
    out: Any = None,
    final_state: Any = None,
    max_seqlen: int | None = None,
    state_indices: Any = None,
    first_state: int = 0,
    has_initial_state: Any = None,
    state_checkpoints: Any = None,
    checkpoint_cu_starts: Any = None,
    checkpoint_every_n_tokens: Any = None,
    checkpoint_state_indices: Any = None,
    context_parallel: bool | int | None = None,
    segment_length: int | None = None,
    save_for_backward: str | None = None,
    bitwise: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    r"""The gated delta rule over whole sequences, computed in chunks: prefill and training.

    Per value head, with the state S of shape [K, V] that starts at `initial_state` (or zero) at the first token of
    each sequence::

        S_t = exp(g_t) S_{t-1}
        S_t = S_t + k_t (beta_t (v_t - S_t^T k_t))^T
        o_t = scale S_t^T q_t

    The signature is that of FLA 0.6's function of this name; what stands after `cp_context` is by keyword only. All
    tensors are torch tensors, or all are arrays: NumPy's (bfloat16 by ml_dtypes), or any with `__dlpack__`. B is
    the batch, T the tokens, H the query and key heads, HV the value heads, K and V the channels of a head (1 to
    256), N the sequences (B, or one less than the entries of `cu_seqlens`). Strides are free: views of one projection
    need no copy. docs/Python.md has what a GPU asks for.

    Args:
        q, k: queries and keys [B, T, H, K]; float32, float16 or bfloat16.
        v: values [B, T, HV, V] of the same type. Value head h reads query/key head h // (HV // H).
        g: gates [B, T, HV], float32, float16 or bfloat16; see `gate_domain`. None is no decay (DeltaNet). Gates
            [B, T, HV, K] decay a key channel each, as in Kimi Delta Attention (`chunk_kda`): on a GPU with gradients
            of bounded gates in this version.
        beta: write strengths [B, T, HV], types as g; None is 1.
        scale: factor of the read-out; None is K ** -0.5.
        initial_state: states [N, HV, K, V], types as g; None is zero. With `state_indices` a pool [P, HV, K, V] of such.
            These, `final_state` and `state_checkpoints` may also be torch's float8_e4m3fn and float8_e5m2: they are cast
            around kernels of float32 states, without a scale. Autograd and torch.compile have none.
        output_final_state: return the state after each sequence's last token as well.
        use_qk_l2norm_in_kernel: q and k are first divided by sqrt(sum(x ** 2) + 1e-6), head by head.
        use_beta_sigmoid_in_kernel: beta is logits, its sigmoid is taken.
        allow_neg_eigval: with logits, twice the sigmoid.
        state_v_first: states are [N, HV, V, K].
        cu_seqlens: boundaries [N + 1] of packed sequences (int32 or int64), ascending from 0; then B = 1. Outputs
            after the last boundary are zero.
        cu_seqlens_cpu: the same on the host, where the caller has it: a hint for GPUs, as `max_seqlen` is.
        chunk_indices: taken for FLA's sake, not needed.
        cp_context: None (refused until there is context parallelism).
        use_gate_in_kernel: `gate_domain="raw"`, as FLA says it.
        A_log, dt_bias: parameters [HV] of a raw gate; dt_bias may be None. With gates per channel dt_bias is [HV * K]
            or [HV, K].
        chunk_size: 16, 32 or 64, for FLA's sake: results do not depend on it.
        gate_domain: "log" (the default): g is the logarithm of the decay. "linear": g is the decay itself. "raw":
            the logarithm is -exp(A_log) softplus(g + dt_bias). "bounded": it is -5 sigmoid(exp(A_log) (g + dt_bias)).
        state_layout: "kv" or "vk", another word for `state_v_first`.
        out: where to write o.
        final_state: where to write the final state: float32, float16 or bfloat16. It may be `initial_state`.
        max_seqlen: the longest sequence's tokens: a hint for GPUs, by which a schedule is chosen; it changes no
            shape and is not trusted.
        state_indices: rows [N] of the pool `initial_state` (int32 or int64), one for each sequence, which no other
            sequence may name. States are read and written in place: `final_state` is the pool, or None to read alone
            (on a CPU). A sequence with a row below `first_state`, or of P and more, touches no state, and its outputs
            are zeros. On a GPU int64 counts by its lower 32 bits.
        first_state: the first row of the pool that sequences may name, at most 2^18 - 1.
        has_initial_state: with `state_indices`, bool [N]: a sequence with False begins with zeros, whatever its row
            holds, and ends in that row.
        state_checkpoints: where states inside the sequences are written, as prefix caches want them: [C, HV, K, V] (with
            `state_v_first` [C, HV, V, K]), float32, float16 or bfloat16; on a GPU of the type of the other states.
        checkpoint_cu_starts: [N + 1], int32 or int64: sequence n writes rows from entry n to before entry n + 1.
        checkpoint_every_n_tokens: the state after each multiple of so many tokens of a sequence is written to its next row,
            the one after the last token too if their number is a multiple. A multiple of 64, with gates a channel of 16;
            or a tensor [N] of such, int32 or int64, one a sequence, with 0 for none. Such calls are never cut into segments.
        checkpoint_state_indices: in the place of `checkpoint_cu_starts` rows [N, S], or [N] for one state each, int32 or
            int64: of `state_checkpoints`, or without that of the pool. Rows below `first_state`, or of as many as there
            are and more, are none; no two entries, nor one of `state_indices`, name one row.
        context_parallel: whether sequences are cut into segments that are computed side by side: None or True for
            what is predicted to be the fastest, False or 1 for never, a number n for n segments of the longest
            sequence (`max_seqlen`, if given). Others are cut at the same length. On a CPU nothing is cut by itself.
        segment_length: cut every sequence at multiples of so many tokens, a multiple of 32, whatever is faster. Types
            and options alone choose the kernels then: the outputs, the final state and the gradients of a sequence
            have the same bits alone and beside any others. Short sequences run by chunks, too, and take longer
            (docs/Python.md has the times).
        save_for_backward: what gradients on a GPU are computed from. "states" (the default): the forward saves a state
            every 128 tokens, and what tokens write instead of v, where there are kernels that do and a step is
            predicted to take less time. "inputs": what the call was given; the backward computes the rest again, in
            three quarters of that memory (docs/Training.md has what both cost).
        bitwise: no later token changes a bit of an earlier one's output, so that decoding (`OpenChunks`), prefills and
            training have the same bits (docs/Numerics.md has the promise). States are float32.

    Returns:
        (o, final_state): o [B, T, HV, V] in v's type; the state in float32 (or `final_state`'s type), or None if it
        was not asked for.

    Raises:
        TypeError: an argument that is no tensor, or one of another type.
        ValueError: a shape, stride, device or value; the message has the rule and what came.
        NotImplementedError: what is marked as refused above; inputs that require gradients, with `out`, `final_state`,
            `state_indices` or `state_checkpoints`, or on a GPU in float32 or with K or V above 128 (docs/Training.md); a double backward.
        RuntimeError: no kernel for this device or CPU.

    Example:
        >>> import gdn, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v = (random.standard_normal((1, 100, heads, 64), "float32") for heads in (2, 2, 4))
        >>> g, beta = -random.random((1, 100, 4), "float32"), random.random((1, 100, 4), "float32")
        >>> o, state = gdn.chunk_gated_delta_rule(
        ...     q, k, v, g, beta, output_final_state=True, use_qk_l2norm_in_kernel=True)
        >>> o.shape, state.shape
        ((1, 100, 4, 64), (1, 4, 64, 64))
    """
    then = None
    if kwargs:
        then = kwargs.pop(_THEN, None)
        state_v_first = old_arguments(kwargs, state_v_first)
    if chunk_size != 64:
        check_chunk_size(chunk_size)
    longest = 0
    if max_seqlen is not None or cu_seqlens_cpu is not None or chunk_indices is not None:
        longest = longest_sequence(max_seqlen, cu_seqlens_cpu, chunk_indices)
    split = 0
    if context_parallel is not None or segment_length is not None:
        split = split_of(context_parallel, segment_length)
    steps = NO_STEPS
    if (
        state_checkpoints is not None
        or checkpoint_cu_starts is not None
        or checkpoint_every_n_tokens is not None
        or checkpoint_state_indices is not None
    ):
        inside = state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens, checkpoint_state_indices
        steps = checkpoints_of(q, g, cu_seqlens, *inside, split)
    if bitwise:
        split |= _bitwise.options_of(split, initial_state, final_state)
        then = then or functools.partial(_bitwise.forward, _find_forward(q))
    split |= _library.SAVES_STATES if save_for_backward is None else saves_of(save_for_backward)
    if cp_context is not None:
        refuse("cp_context", "context parallelism over several GPUs is not there yet; expected None")
    return _run(
        q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out, final_state, state_indices, first_state,
        has_initial_state, scale, output_final_state, longest, use_gate_in_kernel, gate_domain,
        use_beta_sigmoid_in_kernel, allow_neg_eigval, use_qk_l2norm_in_kernel, state_v_first, state_layout, False, then,
        split, steps,
    )  # fmt: skip


@explained
def fused_recurrent_gated_delta_rule(
    q: Any,
    k: Any,
    v: Any,
    g: Any = None,
    gk: Any = None,
    gv: Any = None,
    beta: Any = None,
    scale: float | None = None,
    initial_state: Any = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    A_log: Any = None,
    dt_bias: Any = None,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Any = None,
    *,
    gate_domain: str | None = None,
    state_layout: str | None = None,
    out: Any = None,
    final_state: Any = None,
    state_indices: Any = None,
    first_state: int = 0,
    has_initial_state: Any = None,
    step_states: Any = None,
    step_indices: Any = None,
    num_accepted_tokens: Any = None,
    parents: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any]:
    r"""The gated delta rule token by token, in float32: the function of decoding.

    A call that no such kernel serves on a GPU runs those of `chunk_gated_delta_rule`, with their roundings
    (docs/Python.md). It computes what that function does, whose page explains the arguments, with FLA 0.6's signature
    of this name: `gk` are gates [B, T, HV, K] per key channel, in the place of `g`; both of them, and `gv`, are refused.
    `beta` may be None for 1, and what stands after `cu_seqlens` is by keyword only.

    Speculated tokens are verified with the state after each of them kept (docs/Python.md):

    Args:
        state_indices: also rows [N, S]: the state after token t of sequence n goes to row state_indices[n, t] of the pool,
            and the sequence begins with its first row, or as `num_accepted_tokens` says. No two entries name one row.
        num_accepted_tokens: [N], int32 or int64: sequence n begins with row state_indices[n, num_accepted_tokens[n] - 1].
            Numbers below 1 and above S count as 1 and S.
        step_indices: rows [N, S] for these states if `state_indices` [N] says where sequences begin.
        step_states: states [R, HV, K, V] in the type of `initial_state`, of which these are rows; None is the pool. On a GPU
            the pool stays as it is then, and `final_state` is None.
        parents: [N, S], int32 or int64: token t begins with the state after token parents[n, t] if that is below t - 1 and
            was kept, else with that after token t - 1.

    States of float8 are cast after each of the S tokens, each of which is then a launch; with `step_states`, `final_state`
    is None.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `chunk_gated_delta_rule`. But inputs that require
            gradients which a GPU has no kernels for are not refused here: the backward raises NotImplementedError.

    Example:
        >>> import gdn, numpy
        >>> random = numpy.random.default_rng(0)
        >>> state = numpy.zeros((8, 4, 64, 64), "float32")
        >>> for token in range(3):
        ...     q, k, v = (random.standard_normal((8, 1, heads, 64), "float32") for heads in (2, 2, 4))
        ...     g, beta = -random.random((8, 1, 4), "float32"), random.random((8, 1, 4), "float32")
        ...     o, state = gdn.fused_recurrent_gated_delta_rule(
        ...         q, k, v, g, beta=beta, initial_state=state, final_state=state,
        ...         use_qk_l2norm_in_kernel=True)
        >>> o.shape
        (8, 1, 4, 64)
    """
    then = None
    if kwargs:
        then = kwargs.pop(_THEN, None)
        state_v_first = old_arguments(kwargs, state_v_first)
    if gv is not None or (g is not None and gk is not None):
        refuse("gk" if gv is None else "gv", "gates are those of a head, or of its key channels; expected None")
    g = gk if g is None else g
    return _run(
        q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out, final_state, state_indices, first_state,
        has_initial_state, scale, output_final_state, 0, use_gate_in_kernel, gate_domain, use_beta_sigmoid_in_kernel,
        allow_neg_eigval, use_qk_l2norm_in_kernel, state_v_first, state_layout, True, then, 0,
        (step_states, step_indices, num_accepted_tokens, parents, None, None),
    )  # fmt: skip


chunk_gdn = chunk_gated_delta_rule
fused_recurrent_gdn = fused_recurrent_gated_delta_rule
