# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a span of tokens makes of any state: for callers who split sequences themselves, over several GPUs for instance."""

from __future__ import annotations

from typing import Any

from ._api import chunk_gated_delta_rule
from ._arguments import made, shape_of, v_first_of, viewed


def segment_map(
    k: Any,
    v: Any,
    g: Any = None,
    beta: Any = None,
    *,
    cu_seqlens: Any = None,
    state_v_first: bool = False,
    state_layout: str | None = None,
    **words: Any,
) -> tuple[Any, Any]:
    r"""What a span of tokens makes of the state before it: the state behind it is M S + B.

    Neither M nor B depends on S, so spans can be computed side by side, on several GPUs for instance, and put together
    by `compose`. The span is all tokens of the call; with `cu_seqlens` each sequence is one.

    Args:
        k, v, g, beta, cu_seqlens: as `chunk_gated_delta_rule` takes them.
        state_v_first, state_layout: states are [N, HV, V, K], and so is B. M is the same.
        words: the other arguments of `chunk_gated_delta_rule` that say how k, g and beta are read, as
            `use_qk_l2norm_in_kernel`, `gate_domain`, `A_log`, `dt_bias`; and `max_seqlen`.

    Returns:
        (M, B): [N, HV, K, K] and [N, HV, K, V], in float32. They are final states of two calls of
        `chunk_gated_delta_rule`: from the identity with values of zero, and from zero.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `chunk_gated_delta_rule`.

    Example:
        >>> import gdn, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v = (random.standard_normal((1, 96, 2, 64), "float32") / 8 for _ in range(3))
        >>> g, beta = -random.random((1, 96, 2), "float32"), random.random((1, 96, 2), "float32")
        >>> _, whole = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
        >>> first, second = (
        ...     gdn.segment_map(k[:, part], v[:, part], g[:, part], beta[:, part])
        ...     for part in (slice(0, 40), slice(40, 96)))
        >>> state = numpy.zeros((1, 2, 64, 64), "float32")
        >>> numpy.allclose(gdn.compose(state, first, second), whole, atol=1e-6)
        True
    """
    for name in ("q", "initial_state", "output_final_state", "out", "final_state", "scale"):
        if name in words:
            raise TypeError(f"{name}: expected an argument that the function has, got an unexpected one")
    shape, v_shape = shape_of("k", k), shape_of("v", v)
    if len(shape) != 4 or len(v_shape) != 4:
        name, got = ("k", shape) if len(shape) != 4 else ("v", v_shape)
        raise ValueError(f"{name}: expected the shape [B, T, H, {name.upper()}], got {list(got)}")
    sequences = shape[0] if cu_seqlens is None else max(shape_of("cu_seqlens", cu_seqlens)[0] - 1, 0)
    K, like = shape[3], viewed("k", k)
    identity = made("zeros", (sequences, v_shape[2], K, K), like, "float32") + made("eye", K, like, "float32")
    v_first = v_first_of(state_v_first, state_layout)
    # Queries change no state.
    _, added = chunk_gated_delta_rule(
        k, k, v, g, beta, output_final_state=True, cu_seqlens=cu_seqlens, state_v_first=v_first, **words
    )
    _, map_ = chunk_gated_delta_rule(
        k, k, made("zeros", (*v_shape[:3], K), viewed("v", v)), g, beta, initial_state=identity, output_final_state=True, cu_seqlens=cu_seqlens,
        **words,
    )  # fmt: skip
    return map_, added


def _check_span(name: str, span: Any, state: Any, v_first: bool) -> None:
    """Refuses what is no map of such states."""
    if not isinstance(span, tuple) or len(span) != 2:
        raise TypeError(f"{name}: expected pairs (M, B) of segment_map, got {type(span).__name__}")
    shape, got = tuple(shape_of("first", state)), [tuple(shape_of(name, x)) for x in span]
    if len(shape) != 4:
        raise ValueError(f"first: expected states [N, HV, K, V], got the shape {list(shape)}")
    K = shape[3 if v_first else 2]
    expected = [(*shape[:2], K, K), shape]
    if got != expected:
        raise ValueError(
            f"{name}: expected M and B of the shapes {list(expected[0])} and {list(expected[1])}, as the states are, "
            f"got {list(got[0])} and {list(got[1])}"
        )
    for x in span:
        if x.dtype != state.dtype:
            raise TypeError(f"{name}: expected M and B of {state.dtype} as the states are, got {x.dtype}")


def compose(first: Any, *spans: tuple[Any, Any], state_v_first: bool = False, state_layout: str | None = None) -> Any:
    """The state behind spans of tokens, or the map of all of them as one span.

    Args:
        first: the state before the spans, [N, HV, K, V], or the map (M, B) of a first span.
        spans: the maps of spans by `segment_map`, in the order of their tokens.
        state_v_first, state_layout: states are [N, HV, V, K].

    Returns:
        The state behind the last span if `first` is a state. Otherwise (M, B) of all spans together: for two of them
        (M2 M1, M2 B1 + B2).

    Raises:
        TypeError, ValueError: maps that are none, or of states of another shape or type than `first`.

    Example:
        >>> import gdn, numpy
        >>> half = numpy.full((1, 1, 2, 2), 0.5), numpy.ones((1, 1, 2, 3))
        >>> gdn.compose(numpy.zeros((1, 1, 2, 3)), half, half)[0, 0].tolist()
        [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
    """
    v_first = v_first_of(state_v_first, state_layout)
    composed, state = None, first
    if isinstance(first, tuple):
        if len(first) != 2:
            raise TypeError(f"first: expected a state or a pair (M, B), got {len(first)} values")
        composed, state = first
        _check_span("first", first, state, v_first)
    for span in spans:
        _check_span("spans", span, state, v_first)
    for map_, added in spans:
        state = (state @ map_.swapaxes(-1, -2) if v_first else map_ @ state) + added
        composed = None if composed is None else map_ @ composed
    return state if composed is None else (composed, state)
