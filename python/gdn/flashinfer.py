# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's call: packed tokens, linear gates, states [N, H, V, K], outputs by the caller."""

from __future__ import annotations

from typing import Any

from . import _api
from ._arguments import refuse, shape_of


def _share_heads(tensor: Any, times: int) -> Any:
    """[T, H, V] with each head `times` times in a row."""
    if hasattr(tensor, "repeat_interleave"):
        return tensor.repeat_interleave(times, 1)
    return tensor.repeat(times, 1)


def _row(tensor: Any) -> Any:
    """A batch of one row around packed tokens."""
    return None if tensor is None else tensor[None]


def chunk_gated_delta_rule(
    q: Any,
    k: Any,
    v: Any,
    g: Any = None,
    beta: Any = None,
    scale: float | None = None,
    initial_state: Any = None,
    output_final_state: bool = False,
    cu_seqlens: Any = None,
    use_qk_l2norm_in_kernel: bool = False,
    output: Any = None,
    output_state: Any = None,
    state_checkpoints: Any = None,
    checkpoint_cu_starts: Any = None,
    checkpoint_every_n_tokens: int = 0,
    use_cp: bool | str = "auto",
    state_indices: Any = None,
    _cp_chunk_len: int | None = None,
    backend: str = "auto",
    max_seqlen: int | None = None,
) -> Any:
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
        use_qk_l2norm_in_kernel: q and k are normalised first.
        output, output_state: where to write o and the final states.
        use_cp, backend, max_seqlen: hints, which change no result.
        state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens, state_indices: refused if given.

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
        ...     q, k, v, alpha, beta, cu_seqlens=numpy.array([0, 30, 100]), use_qk_l2norm_in_kernel=True)
        >>> o.shape
        (100, 4, 64)
    """
    if cu_seqlens is None:
        raise ValueError("cu_seqlens: expected a tensor of boundaries [N + 1], got None")
    if state_indices is not None:
        refuse("state_indices", "pools of states are not there yet; gather the states into initial_state")
    if state_checkpoints is not None or checkpoint_cu_starts is not None or checkpoint_every_n_tokens:
        refuse("state_checkpoints", "states inside a sequence are not there yet; expected none")
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
        k, v = _share_heads(k, heads // shared), _share_heads(v, heads // shared)
    o, state = _api.chunk_gated_delta_rule(
        q[None],
        k[None],
        v[None],
        _row(g),
        _row(beta),
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel,
        cu_seqlens=cu_seqlens,
        gate_domain="linear",
        state_layout="vk",
        out=_row(output),
        final_state=output_state,
        max_seqlen=max_seqlen,
    )
    o = o[0] if output is None else output
    return (o, state) if output_final_state else o
