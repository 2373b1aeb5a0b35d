# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose bits are those of any prefix (`bitwise`): which kernels compute them, and sequences that go on.

On a GPU the kernels that save states for gradients take a gate a head. Their arithmetic has no reference point: what they
compute of a token depends on no later one, and states between chunks are float32. All else is computed token by token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _library
from ._arguments import library_of

#: Tokens of an open chunk: a sequence that is computed in chunks goes on at multiples of so many.
CHUNK = _library.MANIFEST["kept_tokens"]


def options_of(split: int, initial_state: Any, final_state: Any) -> int:
    """What a call with `bitwise` says about segments, as options; `split` is what it says else."""
    if split:
        raise ValueError("bitwise: expected no segments (segment_length, context_parallel) with bitwise=True")
    for name, states in (("initial_state", initial_state), ("final_state", final_state)):
        if states is not None and str(getattr(states, "dtype", "")).removeprefix("torch.") != "float32":
            raise TypeError(f"{name}: expected float32 with bitwise=True, got {getattr(states, 'dtype', type(states))}")
    return _library.BITWISE


def settle(tensors: Any, scale: float | None, options: int, device: str) -> tuple[tuple[Any, ...], int]:
    """Tensors and options of a call with `bitwise` on a device: kernels of chunks compute it, or kernels token by token. With a
    gate a channel those of chunks scale tokens by decays to one in the middle. On a GPU batch rows become packed sequences for
    the latter: kernels that take rows may have other bits."""
    q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, _, *others = tensors
    if device == "cuda" and (g is None or g.ndim == 3):
        from . import _torch_saved

        if _torch_saved.why_inputs(tensors, scale, options) is None:
            return tensors, options | _library.SAVES_STATES
    options = options & ~_library.SAVES_STATES | _library.RECURRENT
    if device == "cuda" and cu_seqlens is None and q.ndim == 4:
        from ._torch_backward_gpu import boundaries, packed

        rows = map(packed, (q, k, v, g, beta))
        return (*rows, A_log, dt_bias, initial_state, boundaries(q), None, *others), options
    return tensors, options


def forward(
    run: Callable[..., tuple[Any, Any]], tensors: tuple[Any, ...], scale: float | None, options: int, *rest: Any
) -> tuple[Any, Any]:
    """Runs a call with `bitwise`."""
    v, out = tensors[2], tensors[9]
    device = v.device.type if library_of(v).__name__ == "torch" else "cpu"
    given, options = settle(tensors, scale, options, device)
    o, state = run(given, scale, options, *rest)
    if given is tensors:
        return o, state
    o = o.view(v.shape)
    return (o if out is None else out.copy_(o)), state
