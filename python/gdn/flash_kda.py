# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashKDA's call, run by gdn: `import gdn.flash_kda as flash_kda`."""

from __future__ import annotations

from typing import Any

from ._kda import chunk_kda


def fwd(
    q: Any, k: Any, v: Any, g: Any, beta: Any, scale: float, out: Any, A_log: Any, dt_bias: Any, lower_bound: float,
    initial_state: Any = None, final_state: Any = None, cu_seqlens: Any = None,
) -> None:  # fmt: skip
    """Kimi Delta Attention with all transforms inside: raw bounded gates, logits of beta, norms of q and k.

    Args:
        q, k, v: [B, T, H, K] and [B, T, H, V]; the rows of q and k are divided by their norms first.
        g: raw gates [B, T, H, K]: the logarithm is lower_bound sigmoid(exp(A_log) (g + dt_bias)).
        beta: logits of write strengths [B, T, H].
        scale: factor of the read-out.
        out: where o is written, as v.
        A_log, dt_bias: parameters [H] and [H, K] of the gates.
        lower_bound: the bound of the gates, below 0.
        initial_state, final_state: states [N, H, V, K]; where the final one is written, if it is asked for.
        cu_seqlens: boundaries [N + 1] of packed sequences; then B = 1.

    Unlike FlashKDA's this function takes every type, stride, number of channels and bound that `chunk_kda` takes, and
    tensors on a CPU.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: as `chunk_kda`.

    Example:
        >>> import gdn.flash_kda, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v, g = (random.standard_normal((1, 32, 2, 64), "float32") for _ in range(4))
        >>> beta, out = random.standard_normal((1, 32, 2), "float32"), numpy.empty_like(v)
        >>> A_log, dt_bias = numpy.zeros(2, "float32"), numpy.zeros((2, 64), "float32")
        >>> gdn.flash_kda.fwd(q, k, v, g, beta, 0.125, out, A_log, dt_bias, -5.0)
    """
    chunk_kda(
        q, k, v, g, beta, scale, initial_state, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True, lower_bound=lower_bound, state_v_first=True, cu_seqlens=cu_seqlens, A_log=A_log,
        dt_bias=dt_bias, out=out, final_state=final_state,
    )  # fmt: skip


def get_workspace_size(T: int, H: int, N: int = 1) -> int:
    """Bytes that a caller of FlashKDA allocates beside a call: none here."""
    return 0
