# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plug-ins of inference engines share: which versions they know, which kinds of calls gdn runs, and what calls have."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Callable, Iterable
from typing import Any

#: What has been said of calls that an engine runs as before.
_said: set[tuple[str, str, str]] = set()


def log_of(engine: str) -> logging.Logger:
    """The logger `gdn.vllm` or `gdn.sglang`."""
    return logging.getLogger(f"gdn.{engine.lower()}")


def asks_for_invariance(engine: str, variable: str) -> bool:
    """Whether an engine's variable asks for results that do not depend on the batch: then its layers stay as they are."""
    asks = os.environ.get(variable, "0") != "0"
    if asks:
        message = "gdn: expected %s=0, got %s: sizes of batches choose gdn's kernels; layers of %s stay as they are"
        log_of(engine).warning(message, variable, os.environ[variable], engine)
    return asks


def is_tested(engine: str, versions: tuple[str, ...]) -> bool:
    """Whether the engine that is installed is of these versions, by what they begin with; another one stays as it is."""
    version = importlib.metadata.version(engine.lower())
    if not version.startswith(versions):
        message = "gdn: expected %s %s*, got %s; its layers stay as they are"
        log_of(engine).warning(message, engine, "* or ".join(versions), version)
    return version.startswith(versions)


def leave(engine: str, name: str, other: type) -> None:
    """Says that another plug-in has what gdn would replace."""
    message = "gdn: expected %s's own %s, got %s of another plug-in, which stays"
    log_of(engine).warning(message, engine, name, other.__qualname__)


def heads_of(x: Any, pool: Any) -> dict[str, Any]:
    """q, k and v as views of the convolution's output [T, 2 H K + HV V], for states [rows, HV, V, K]."""
    heads, wide, channels = pool.shape[1:]
    keys = (x.shape[-1] - heads * wide) // 2
    parts = zip("qkv", x.split((keys, keys, heads * wide), -1), (channels, channels, wide))
    return {name: part.unflatten(-1, (-1, width)) for name, part, width in parts}


def functions_of(is_kda: bool) -> tuple[str, str]:
    """The names of the functions for tokens one at a time, and for prefills."""
    rule = "kda" if is_kda else "gated_delta_rule"
    return f"fused_recurrent_{rule}", f"chunk_{rule}"


#: Tokens of a prefill that is asked for, and the arrays [1, T, ...] of a call.
_LONG, _TOKENS = 8192, ("q", "k", "v", "g", "beta", "out")


def _lengthened(call: dict[str, Any]) -> dict[str, Any]:
    """The call with many tokens, of tensors without memory."""
    import torch

    def without_memory(name: str, given: Any) -> Any:
        if not isinstance(given, torch.Tensor):
            return given
        shape = (1, _LONG, *given.shape[2:]) if name in _TOKENS else given.shape
        return torch.empty(shape, dtype=given.dtype, device="meta")

    return {name: without_memory(name, given) for name, given in call.items()}


class Served:
    """What gdn runs for a layer or a backend of `engine`. Each kind of call is asked for once, by all that a call itself
    checks. What gdn does not run, the engine does as before, with one line of log."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        #: The answers so far.
        self.runs: dict[str, bool] = {}
        self._floats: dict[int, tuple[int, Any]] = {}

    def decide(self, kind: str, reason: str = "") -> bool:
        """Remembers whether gdn runs a kind of call, and says once for all layers why not."""
        if kind not in self.runs:
            self.runs[kind] = not reason
            if reason and (self.engine, kind, reason) not in _said:
                _said.add((self.engine, kind, reason))
                log_of(self.engine).warning("gdn: %s runs %s as before: %s", self.engine, kind, reason)
        return self.runs[kind]

    def serves(self, kind: str, calls: Callable[[], Iterable[tuple[str, dict[str, Any]]]], on_gpu: bool) -> bool:
        """Whether gdn runs a kind of call. `calls` makes what is to be called, by function; it is asked only once, and not
        while a CUDA graph is captured."""
        import torch

        import gdn

        if kind in self.runs:
            return self.runs[kind]
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return False
        try:
            for name, call in calls():
                answer = gdn.supported(**call, function=name)
                # A short prefill may run token by token, which a long one never does.
                if answer and name.startswith("chunk"):
                    answer = gdn.supported(**_lengthened(call), function=name, device="cuda" if on_gpu else "cpu")
                if not answer:
                    return self.decide(kind, answer.reasons[0])
        except Exception as error:
            return self.decide(kind, f"{type(error).__name__}: {error}")
        return self.decide(kind)

    def raw(self, A_log: Any, dt_bias: Any) -> dict[str, Any]:
        """What a call says of raw gates, logits of beta, q and k without norms, and states [V, K]."""
        return {
            "A_log": self.floats(A_log), "dt_bias": self.floats(dt_bias), "use_gate_in_kernel": True,
            "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True, "state_layout": "vk",
        }  # fmt: skip

    def floats(self, given: Any) -> Any:
        """A parameter in float32, as kernels read it: converted once, and again when it has changed."""
        if given.element_size() == 4:
            return given
        mark = 0 if given.is_inference() else given._version
        known = self._floats.get(given.data_ptr())
        if known is None or known[0] != mark:
            known = self._floats[given.data_ptr()] = mark, given.detach().float()
        return known[1]
