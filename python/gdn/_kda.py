# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kimi Delta Attention: the two functions that models call, with FLA's signatures.

The rule is that of `_api.py`, with a gate for each key channel: what is here is how FLA says it.
"""

from __future__ import annotations

import math
from typing import Any

from . import _api, _library
from ._arguments import library_of, number, refuse, shape_of, viewed

_CHUNK_SIZES = (32, 64)
#: The bounds that FLA's fast path takes: over them its factors leave the range of float32. Here any bound is exact.
_SAFE_BOUNDS = (-5.0, 0.0)


def _bounded(g: Any, A_log: Any, dt_bias: Any, lower_bound: float) -> Any:
    """The logarithms lower_bound sigmoid(exp(A_log) (g + dt_bias)) of raw gates [B, T, HV, K], in float32."""
    heads, channels = shape_of("g", g)[2:]
    library = library_of(g)
    is_torch = library.__name__ == "torch"
    # On a CPU in float64, as those with the kernels' bound: float32 has no room for the factors of many a gate.
    wide_type = library.float32 if is_torch and g.device.type != "cpu" else library.float64

    def wide(name: str, x: Any) -> Any:
        return x.to(wide_type) if is_torch else viewed(name, x).astype(wide_type)

    x = wide("g", g)
    x = x if dt_bias is None else x + wide("dt_bias", dt_bias).reshape(heads, channels)
    x = x if A_log is None else x * library.exp(wide("A_log", A_log)).reshape(heads, 1)
    if is_torch:
        return (library.sigmoid(x) * lower_bound).float()
    # Without overflow where x is far below 0.
    return (lower_bound * 0.5 * (1.0 + library.tanh(0.5 * x))).astype(library.float32)


def _check_size(name: str, value: Any, words: str, size: int) -> None:
    """Refuses a parameter that has not so many elements, by the words for them."""
    if value is not None and math.prod(shape := shape_of(name, value)) != size:
        raise ValueError(f"{name}: expected the shape {words} = [{size}], got {list(shape)}")


def _of_heads(parameter: Any) -> Any:
    """A_log as [HV]: FLA and its models keep it as [1, 1, HV, 1]."""
    return parameter.reshape(-1) if getattr(parameter, "ndim", 1) > 1 else parameter


def _gates(
    g: Any, A_log: Any, dt_bias: Any, use_gate_in_kernel: Any, safe_gate: Any, lower_bound: Any
) -> tuple[Any, dict[str, Any]]:
    """The gates of a call as `_api.py` takes them, with what it says of them."""
    shape = shape_of("g", g)
    if len(shape) != 4:
        raise ValueError(f"g: expected the shape [B, T, HV, K], got {list(shape)}")
    if not use_gate_in_kernel:
        return g, {}
    A_log = _of_heads(A_log)
    if lower_bound is None:
        if safe_gate:
            raise ValueError("`lower_bound` must be specified when `safe_gate=True` and `use_gate_in_kernel=True`.")
        if A_log is None:
            raise ValueError(
                "`A_log` must be provided when `use_gate_in_kernel=True` and `lower_bound` is not set."
            )
        return g, {"A_log": A_log, "dt_bias": dt_bias, "use_gate_in_kernel": True}
    bound = number("lower_bound", lower_bound)
    if safe_gate and not _SAFE_BOUNDS[0] <= bound < _SAFE_BOUNDS[1]:
        raise ValueError(f"`lower_bound` must be in the safe range [-5, 0), got {lower_bound}.")
    if not bound < 0 or bound == -float("inf"):
        raise ValueError(f"lower_bound: expected a finite number below 0, got {lower_bound}")
    # Gates with another bound than that of kernels become logarithms first.
    if bound == _library.BOUND:
        return g, {"A_log": A_log, "dt_bias": dt_bias, "gate_domain": "bounded"}
    heads, channels = shape[2:]
    _check_size("A_log", A_log, "[HV]", heads)
    _check_size("dt_bias", dt_bias, "[HV * K]", heads * channels)
    return _bounded(g, A_log, dt_bias, bound), {}


@_api.explained
def chunk_kda(
    q: Any, k: Any, v: Any, g: Any, beta: Any, scale: float | None = None, initial_state: Any = None,
    output_final_state: bool = False, use_qk_l2norm_in_kernel: bool = False, use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False, allow_neg_eigval: bool = False, safe_gate: bool = False,
    lower_bound: float | None = None, disable_recompute: bool = False, return_intermediate_states: bool = False,
    state_v_first: bool = False, cu_seqlens: Any = None, cu_seqlens_cpu: Any = None, cp_context: Any = None,
    use_graph: bool = False, max_num_seqs: int | None = None, *, A_log: Any = None, dt_bias: Any = None,
    chunk_size: int = 64, **kwargs: Any,
) -> tuple[Any, Any]:  # fmt: skip
    r"""Kimi Delta Attention over whole sequences, computed in chunks: prefill.

    It is `chunk_gated_delta_rule` with a gate for each key channel: per value head, with the state S [K, V]::

        S_t = Diag(exp(g_t)) S_{t-1}
        S_t = S_t + k_t (beta_t (v_t - S_t^T k_t))^T
        o_t = scale S_t^T q_t

    The signature is that of FLA 0.6's function of this name. Any gate is exact: no clamp, no bound.

    Args:
        q, k, v, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_beta_sigmoid_in_kernel,
            allow_neg_eigval, state_v_first, cu_seqlens, cu_seqlens_cpu, cp_context: as `chunk_gated_delta_rule`.
        g: gates [B, T, HV, K], float32, float16 or bfloat16: logarithms, or raw with `use_gate_in_kernel`.
        use_gate_in_kernel: the logarithm is -exp(A_log) softplus(g + dt_bias), and with `lower_bound`
            lower_bound sigmoid(exp(A_log) (g + dt_bias)).
        safe_gate: taken for FLA's sake, whose fast path it chooses; a `lower_bound` is checked to be in [-5, 0) then.
        lower_bound: the bound of raw gates, below 0. It alone chooses the bounded gate.
        disable_recompute, use_graph, max_num_seqs: taken for FLA's sake, not needed.
        return_intermediate_states: False (others are refused).
        A_log: parameters [HV] of a raw gate, or of any shape with as many elements, as [1, 1, HV, 1]; None with
            `lower_bound` is 0.
        dt_bias: biases [HV * K] of a raw gate, or [HV, K]; None is 0.
        chunk_size: 32 or 64, for FLA's sake: results do not depend on it.
        kwargs: the other keywords of `chunk_gated_delta_rule`, as `out`, `final_state`, `state_indices`,
            `segment_length`.

    Returns:
        (o, final_state): as `chunk_gated_delta_rule`.

    Raises:
        TypeError, ValueError, RuntimeError: as `chunk_gated_delta_rule`.
        NotImplementedError: what is refused above; on a GPU inputs in float32 that require gradients, which a CPU
            takes, and what docs/Python.md and docs/Training.md do not list.

    Example:
        >>> import gdn, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v, g = (random.standard_normal((1, 100, 4, 64), "float32") for _ in range(4))
        >>> beta, A_log = random.standard_normal((1, 100, 4), "float32"), numpy.zeros(4, "float32")
        >>> o, state = gdn.chunk_kda(
        ...     q, k, v, g, beta, A_log=A_log, lower_bound=-5.0, use_gate_in_kernel=True, use_qk_l2norm_in_kernel=True,
        ...     use_beta_sigmoid_in_kernel=True, output_final_state=True)
        >>> o.shape, state.shape
        ((1, 100, 4, 64), (1, 4, 64, 64))
    """
    if return_intermediate_states:
        refuse("return_intermediate_states", "states between chunks are not returned in this version; expected False")
    if chunk_size not in _CHUNK_SIZES:
        raise ValueError(f"`chunk_size` must be either 32 or 64 for KDA, got {chunk_size}.")
    g, gates = _gates(g, A_log, dt_bias, use_gate_in_kernel, safe_gate, lower_bound)
    return _api.chunk_gated_delta_rule(
        q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_beta_sigmoid_in_kernel,
        allow_neg_eigval, state_v_first, cu_seqlens, cu_seqlens_cpu, cp_context=cp_context, **gates, **kwargs,
    )  # fmt: skip


@_api.explained
def fused_recurrent_kda(
    q: Any, k: Any, v: Any, g: Any, beta: Any, A_log: Any = None, dt_bias: Any = None, scale: float | None = None,
    initial_state: Any = None, output_final_state: bool = False, use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False, use_beta_sigmoid_in_kernel: bool = False, allow_neg_eigval: bool = False,
    lower_bound: float | None = None, state_v_first: bool = False, cu_seqlens: Any = None, **kwargs: Any,
) -> tuple[Any, Any]:  # fmt: skip
    r"""Kimi Delta Attention token by token, in float32: the function of decoding.

    It computes what `chunk_kda` does, whose page explains the arguments, with FLA 0.6's signature of this name. `kwargs`
    are the other keywords of `fused_recurrent_gated_delta_rule`.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `chunk_kda`.

    Example:
        >>> import gdn, numpy
        >>> random = numpy.random.default_rng(0)
        >>> state = numpy.zeros((8, 4, 64, 64), "float32")
        >>> q, k, v = (random.standard_normal((8, 1, 4, 64), "float32") for _ in range(3))
        >>> g, beta = -random.random((8, 1, 4, 64), "float32"), random.random((8, 1, 4), "float32")
        >>> o, state = gdn.fused_recurrent_kda(q, k, v, g, beta, initial_state=state, final_state=state)
        >>> o.shape
        (8, 1, 4, 64)
    """
    g, gates = _gates(g, A_log, dt_bias, use_gate_in_kernel, False, lower_bound)
    return _api.fused_recurrent_gated_delta_rule(
        q, k, v, g, beta=beta, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
        use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, use_beta_sigmoid_in_kernel=use_beta_sigmoid_in_kernel,
        allow_neg_eigval=allow_neg_eigval, state_v_first=state_v_first, cu_seqlens=cu_seqlens, **gates, **kwargs,
    )  # fmt: skip
