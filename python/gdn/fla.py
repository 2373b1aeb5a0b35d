# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FLA's own functions, run by gdn: a backend in FLA's public registry (`fla.backends`, FLA 0.6)."""

from __future__ import annotations

from typing import Any

from . import _api
from ._explain import supported


def install(priority: int = 1) -> None:
    """Registers gdn for `fla.ops.gated_delta_rule.chunk_gated_delta_rule`.

    From then on FLA's function asks gdn first. A call that gdn cannot run goes on to FLA's next backend, and FLA
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

    class GDNBackend(BaseBackend):  # type: ignore[misc]
        """The kernels of gdn, forward only."""

        backend_type = "gdn"
        package_name = "gdn"
        env_var = "FLA_GDN"
        default_enable = True

        def chunk_gated_delta_rule_verifier(self, *args: Any, **kwargs: Any) -> tuple[bool, str | None]:
            """Whether gdn can run the call, and if not, why."""
            answer = supported(*args, **kwargs)
            return answer.ok, None if answer.ok else "; ".join(answer.reasons)

        def chunk_gated_delta_rule(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            """The function itself."""
            return _api.chunk_gated_delta_rule(*args, **kwargs)

    GDNBackend.priority = priority
    register("gated_delta_rule")(GDNBackend)
