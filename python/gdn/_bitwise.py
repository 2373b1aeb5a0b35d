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
from ._arguments import Back, Call, library_of

#: Tokens of an open chunk: a sequence that is computed in chunks goes on at multiples of so many.
CHUNK = _library.MANIFEST["decays"]["Head"]["kept_tokens"]


def options_of(split: int, initial_state: Any, final_state: Any) -> int:
    """What a call with `bitwise` says about segments, as options; `split` is what it says else."""
    if split:
        raise ValueError("bitwise: expected no segments (segment_length, context_parallel) with bitwise=True")
    for name, states in (("initial_state", initial_state), ("final_state", final_state)):
        if states is not None and str(getattr(states, "dtype", "")).removeprefix("torch.") != "float32":
            raise TypeError(f"{name}: expected float32 with bitwise=True, got {getattr(states, 'dtype', type(states))}")
    return _library.BITWISE


def _same(o: Any, state: Any) -> tuple[Any, Any]:
    return o, state


def settled(call: Call, device: str) -> tuple[Call, Back]:
    """What runs a call with `bitwise` on a device: kernels of chunks, or kernels token by token. With a gate a channel those of
    chunks scale tokens by decays to one in the middle. On a GPU batch rows become packed sequences for the latter: kernels that
    take rows may have other bits."""
    if device == "cuda" and (call.g is None or call.g.ndim == 3):
        from . import _torch_saved

        if _torch_saved.why_inputs(call.tensors, call.scale, call.options) is None:
            return call._replace(options=call.options | _library.SAVES_STATES), _same
    call = call._replace(options=call.options & ~_library.SAVES_STATES | _library.RECURRENT)
    if device != "cuda" or call.cu_seqlens is not None or call.q.ndim != 4:
        return call, _same
    from ._torch_backward_gpu import boundaries, packed

    q, k, v, g, beta = map(packed, call[:5])

    def back(o: Any, state: Any) -> tuple[Any, Any]:
        o = o.view(call.v.shape)
        return (o if call.out is None else call.out.copy_(o)), state

    return call._replace(q=q, k=k, v=v, g=g, beta=beta, cu_seqlens=boundaries(call.q), out=None), back


def forward(run: Callable[..., tuple[Any, Any]], *arguments: Any) -> tuple[Any, Any]:
    """Runs a call with `bitwise`."""
    call = Call.of(*arguments)
    given, back = settled(call, call.v.device.type if library_of(call.v).__name__ == "torch" else "cpu")
    return back(*run(*given.arguments))
