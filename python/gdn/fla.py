# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's own functions, run by gdn.

`chunk_gated_delta_rule`, `fused_recurrent_gated_delta_rule`, `chunk_kda` and `fused_recurrent_kda` are those of `gdn` for
callers of FLA's, and `fused_recurrent_kda_fwd` is what FLA has below the last: they ignore keywords that they do not know, as FLA does. `install` puts gdn into FLA's public registry
(`fla.backends`, FLA 0.6).
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from . import _api, _kda
from ._explain import supported

#: Keywords of older FLA releases, which the functions read from **kwargs.
_OLD = frozenset(("transpose_state_layout", "head_first"))

_warned: set[str] = set()


@functools.cache
def _known(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters) | _OLD


def _drop_unknown(function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that the function knows; of each other one there is one warning."""
    known = _known(function)
    for name in kwargs.keys() - known - _warned:
        _warned.add(name)
        warnings.warn(f"gdn.fla: {name} is ignored, as FLA ignores what it does not know", stacklevel=3)
    return {name: value for name, value in kwargs.items() if name in known}


def _as_fla(function: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """The function for callers of FLA's of this name."""
    known = _known(function)

    def call(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if not known.issuperset(kwargs):
            kwargs = _drop_unknown(function, kwargs)
        return function(*args, **kwargs)

    functools.update_wrapper(call, function)
    call.__doc__ = f"`gdn.{function.__name__}`, which ignores keywords that it does not know, as FLA's function does."
    return call


chunk_gated_delta_rule = _as_fla(_api.chunk_gated_delta_rule)
fused_recurrent_gated_delta_rule = _as_fla(_api.fused_recurrent_gated_delta_rule)
chunk_kda = _as_fla(_kda.chunk_kda)
fused_recurrent_kda = _as_fla(_kda.fused_recurrent_kda)


def fused_recurrent_kda_fwd(
    q: Any, k: Any, v: Any, g: Any, beta: Any, A_log: Any = None, dt_bias: Any = None, initial_state: Any = None,
    scale: float | None = None, output_final_state: bool = False, inplace_final_state: bool = True,
    state_v_first: bool = False, cu_seqlens: Any = None, ssm_state_indices: Any = None, num_accepted_tokens: Any = None,
    use_qk_l2norm_in_kernel: bool = False, use_gate_in_kernel: bool = False, use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False, lower_bound: float | None = None, out: Any = None, **kwargs: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """FLA's function below `fused_recurrent_kda`, which engines call over pools of states: `gdn.fused_recurrent_kda`.

    `inplace_final_state` writes states where they are read: `ssm_state_indices` are rows of the pool `initial_state`, one of
    each sequence or [N, S], as gdn's `state_indices`. `kwargs` are ignored, as there.

    Example:
        >>> import gdn.fla, numpy
        >>> random = numpy.random.default_rng(0)
        >>> q, k, v, g = (random.standard_normal((1, 2, 4, 64), "float32") for _ in range(4))
        >>> beta, pool = random.random((1, 2, 4), "float32"), numpy.zeros((9, 4, 64, 64), "float32")
        >>> rows, ends = numpy.array([7, 3]), numpy.array([0, 1, 2])
        >>> o, _ = gdn.fla.fused_recurrent_kda_fwd(
        ...     q, k, v, -abs(g), beta, initial_state=pool, cu_seqlens=ends, ssm_state_indices=rows)
        >>> [row for row in range(9) if pool[row].any()]
        [3, 7]
    """
    return _kda.fused_recurrent_kda(
        q, k, v, g, beta, A_log, dt_bias, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
        use_gate_in_kernel, use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound, state_v_first, cu_seqlens, out=out,
        final_state=initial_state if inplace_final_state else None, state_indices=ssm_state_indices,
        num_accepted_tokens=num_accepted_tokens,
    )  # fmt: skip


def install(priority: int = 1) -> None:
    """Registers gdn for `fla.ops.gated_delta_rule.chunk_gated_delta_rule` and `fla.ops.kda.chunk_kda`.

    From then on FLA's functions ask gdn first. A call that gdn cannot run goes on to FLA's next backend, and FLA
    logs the reason (logger "fla.backends", level INFO). The environment variable FLA_GDN=0 turns the backend off.

    Args:
        priority: FLA's order, the lowest first; its own kernels come last.

    Raises:
        ImportError: FLA 0.6 or newer is not installed.

    Example:
        >>> import gdn.fla
        >>> gdn.fla.install()  # doctest: +SKIP
    """
    try:
        from fla.backends import BaseBackend, register
    except ImportError as error:
        raise ImportError(
            "gdn.fla: expected FLA 0.6 or newer (pip install 'flash-linear-attention>=0.6'), "
            f"got an import error: {error}"
        ) from error

    def make_backend(function: Callable[..., tuple[Any, Any]]) -> Any:
        """A backend of FLA's that runs one function, which it has beside a `_verifier` of its name."""

        def verify(self: Any, *args: Any, **kwargs: Any) -> tuple[bool, str | None]:
            """Whether gdn can run the call, and if not, why."""
            ours = function.__wrapped__  # type: ignore[attr-defined]
            answer = supported(*args, function=ours.__name__, **_drop_unknown(ours, kwargs))
            return answer.ok, None if answer.ok else "; ".join(answer.reasons)

        def run(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            return function(*args, **kwargs)

        name = function.__name__
        facts = {
            "__doc__": "The kernels of gdn.", "backend_type": "gdn", "package_name": "gdn", "env_var": "FLA_GDN",
            "default_enable": True, "priority": priority, f"{name}_verifier": verify, name: run,
        }  # fmt: skip
        return type("GDNBackend", (BaseBackend,), facts)

    register("gated_delta_rule")(make_backend(chunk_gated_delta_rule))
    # FLA 0.6 asks the backends of this function, and not those of all functions of its name.
    from fla.ops.kda import chunk_kda as theirs

    register(theirs)(make_backend(chunk_kda))
