# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated DeltaNet layers, compiled ahead of time.

- `chunk_gated_delta_rule`, `fused_recurrent_gated_delta_rule`: FLA's functions, on torch tensors, NumPy arrays and
  everything with `__dlpack__`.
- `chunk_kda`, `fused_recurrent_kda`: the same of Kimi Delta Attention.
- `segment_map`, `compose`: what spans of tokens make of a state, for callers who split sequences themselves.
- `explain`, `supported`: what a call would run, and whether it can.
- `gdn.flashinfer`, `gdn.flash_kda`: FlashInfer's and FlashKDA's calls; `gdn.fla.install()`: FLA's own functions run ours.
- `gdn.transformers.install()`: the models of Transformers run ours. `gdn.vllm`: a plug-in of vLLM, for GDN_VLLM=1.
- `python -m gdn`: what is installed, with a self-test; `python -m gdn bench`: times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._api import (
    chunk_gated_delta_rule,
    chunk_gdn,
    fused_recurrent_gated_delta_rule,
    fused_recurrent_gdn,
)
from ._explain import KernelChoice, Support, explain, supported
from ._kda import chunk_kda, fused_recurrent_kda
from ._open_chunks import OpenChunks
from ._registration import register_with_torch
from ._segments import compose, segment_map

if TYPE_CHECKING:
    from . import fla, flash_kda, flashinfer, transformers, vllm

__version__ = "0.1.0"

__all__ = [
    "KernelChoice",
    "OpenChunks",
    "Support",
    "chunk_gated_delta_rule",
    "chunk_gdn",
    "chunk_kda",
    "compose",
    "explain",
    "fla",
    "flash_kda",
    "flashinfer",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gdn",
    "fused_recurrent_kda",
    "segment_map",
    "supported",
    "transformers",
    "vllm",
]


def __getattr__(name: str) -> Any:
    """The modules for other libraries, imported when they are first asked for."""
    if name in ("fla", "flash_kda", "flashinfer", "transformers", "vllm"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_with_torch()
