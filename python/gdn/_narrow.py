# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of torch in 8 bits, as FlashInfer stores them: float8_e4m3fn and float8_e5m2, cast without a scale.

Kernels compute with states in float32, which torch makes of them, and what they write is cast once. Of a pool only the rows of
a call's sequences are, so memory follows from these. Nothing waits for the host, and a CUDA graph may capture it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _library
from ._arguments import Back, Call

_TYPES = frozenset((torch.float8_e4m3fn, torch.float8_e5m2))


def _is_narrow(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in _TYPES


def has_narrow(call: Call) -> bool:
    """Whether states of a call have 8 bits."""
    return any(map(_is_narrow, (call.initial_state, call.final_state, call.step_states)))


def _widened(call: Call) -> tuple[Call, Back]:
    """The call with states in float32."""
    initial, final, kept, rows = call.initial_state, call.final_state, call.step_states, call.state_indices
    if call.step_indices is not None or (rows is not None and rows.dim() != 1):
        raise NotImplementedError("state_indices: expected no states after tokens (step_indices) with states of 8 bits")
    is_pool = rows is not None and _is_narrow(initial)
    given = call
    if is_pool:
        if final is not None and final is not initial:
            raise ValueError("final_state: expected initial_state, the pool, with state_indices, got another tensor")
        first = _library.first_state_of(call.options)
        is_there = (rows >= first) & (rows < len(initial))
        numbers, places = torch.arange(len(rows), device=rows.device), rows.where(is_there, 0).long()
        # Not all of torch's functions on rows take elements of 8 bits.
        pool, dtype = initial.view(torch.uint8), initial.dtype
        initial = pool[places].view(dtype)
        given = call._replace(
            state_indices=numbers.where(is_there, -1).int(), options=call.options - _library.pack_first_state(first)
        )
    wide = None if initial is None else initial.float()
    given = given._replace(initial_state=wide)
    if final is not None and final is call.initial_state:
        given = given._replace(final_state=wide)
    elif _is_narrow(final):
        given = given._replace(final_state=torch.empty_like(final, dtype=torch.float32))
    if _is_narrow(kept):
        # Rows that are not written stay.
        given = given._replace(step_states=kept.float())

    def back(o: Any, state: Any) -> tuple[Any, Any]:
        if is_pool and final is not None:
            # A sequence without a row stores what another one does: the first that has one, or what the pool has.
            source = numbers.where(is_there, is_there.int().argmax())
            pool.index_copy_(0, places[source], given.final_state.to(dtype).view(torch.uint8)[source])
        elif _is_narrow(final):
            final.copy_(given.final_state)
        if _is_narrow(kept):
            kept.copy_(given.step_states)
        return o, state if final is None else final

    return given, back


def run(forward: Callable[..., tuple[Any, Any]], call: Call) -> tuple[Any, Any]:
    """Runs such a call by `forward`."""
    given, back = _widened(call)
    return back(*forward(*given.arguments))


def explained(call: Call) -> Call:
    """The call that is run for this one. Nothing runs: states that it makes have no data here."""
    if not has_narrow(call):
        return call
    states = {name: getattr(call, name) for name in ("initial_state", "final_state", "state_indices", "step_states")}
    # One tensor stays one.
    made: dict[int, Any] = {id(x): None if x is None else x.to("meta") for x in states.values()}
    return _widened(call._replace(**{name: made[id(x)] for name, x in states.items()}))[0]
