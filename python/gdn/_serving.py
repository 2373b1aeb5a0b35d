# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plug-ins of inference engines share: which kinds of calls gdn runs, and parameters in float32."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

#: What has been said of calls that an engine runs as before.
_said: set[tuple[str, str, str]] = set()


def log_of(plugin: str) -> logging.Logger:
    """The logger `gdn.vllm` or `gdn.sglang`."""
    return logging.getLogger(f"gdn.{plugin.lower()}")


class Asked:
    """Which kinds of calls gdn runs for a layer or a backend of `engine`: each kind is asked for once, by all that a call
    itself checks. What gdn does not run, the engine does as before, with one line of log."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        #: The answers so far.
        self.runs: dict[str, bool] = {}

    def decide(self, kind: str, reason: str = "") -> bool:
        """Remembers whether gdn runs a kind of call, and says once for all layers why not."""
        if kind not in self.runs:
            self.runs[kind] = not reason
            if reason and (self.engine, kind, reason) not in _said:
                _said.add((self.engine, kind, reason))
                log_of(self.engine).warning("gdn: %s runs %s as before: %s", self.engine, kind, reason)
        return self.runs[kind]

    def serves(self, kind: str, calls: Any, on_gpu: bool) -> bool:
        """Whether gdn runs a kind of call. `calls` makes what is to be called, by function; it is asked only once, and not
        while a CUDA graph is captured."""
        import torch

        import gdn

        if kind in self.runs:
            return self.runs[kind]
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return False
        try:
            made: Iterable[tuple[str, dict[str, Any]]] = calls()
            for name, call in made:
                if not (answer := gdn.supported(**call, function=name)):
                    return self.decide(kind, answer.reasons[0])
        except Exception as error:
            return self.decide(kind, f"{type(error).__name__}: {error}")
        return self.decide(kind)


class Floats:
    """Parameters in float32, as kernels read them: converted once, and again when they have changed."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[int, Any]] = {}

    def of(self, given: Any) -> Any:
        if given.element_size() == 4:
            return given
        mark = 0 if given.is_inference() else given._version
        known = self._made.get(given.data_ptr())
        if known is None or known[0] != mark:
            known = self._made[given.data_ptr()] = mark, given.detach().float()
        return known[1]
