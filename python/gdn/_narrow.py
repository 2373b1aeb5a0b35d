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
from ._arguments import TENSORS, Call

_TYPES = frozenset((torch.float8_e4m3fn, torch.float8_e5m2))
_INITIAL, _FINAL, _ROWS, _KEPT, _TABLE = map(
    TENSORS.index, ("initial_state", "final_state", "state_indices", "step_states", "step_indices")
)


def _is_narrow(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in _TYPES


def has_narrow(tensors: Any) -> bool:
    """Whether states of a call have 8 bits."""
    return any(_is_narrow(tensors[place]) for place in (_INITIAL, _FINAL, _KEPT))


def forward(run: Callable[..., Any], tensors: Any, scale: Any, options: int, *rest: Any) -> tuple[Any, Any]:
    """Runs such a call by `run`."""
    given, rows = list(tensors), tensors[_ROWS]
    if tensors[_TABLE] is not None or (rows is not None and rows.dim() != 1):
        raise NotImplementedError("state_indices: expected no states after tokens (step_indices) with states of 8 bits")
    initial, final, kept = (tensors[place] for place in (_INITIAL, _FINAL, _KEPT))
    is_pool = rows is not None and _is_narrow(initial)
    if is_pool:
        if final is not None and final is not initial:
            raise ValueError("final_state: expected initial_state, the pool, with state_indices, got another tensor")
        first = _library.first_state_of(options)
        options -= _library.pack_first_state(first)
        is_there = (rows >= first) & (rows < len(initial))
        numbers, places = torch.arange(len(rows), device=rows.device), rows.where(is_there, 0).long()
        given[_ROWS] = numbers.where(is_there, -1).int()
        # Not all of torch's functions on rows take elements of 8 bits.
        pool, dtype = initial.view(torch.uint8), initial.dtype
        initial = pool[places].view(dtype)
    wide = None if initial is None else initial.float()
    given[_INITIAL] = wide
    if final is not None:
        is_one = final is tensors[_INITIAL]
        given[_FINAL] = wide if is_one else torch.empty_like(final, dtype=torch.float32) if _is_narrow(final) else final
    if _is_narrow(kept):
        # Rows that are not written stay.
        given[_KEPT] = kept.float()
    o, state = run(tuple(given), scale, options, *rest)
    if is_pool and final is not None:
        # A sequence without a row stores what another one does: the first that has one, or what the pool has.
        source = numbers.where(is_there, is_there.int().argmax())
        pool.index_copy_(0, places[source], given[_FINAL].to(dtype).view(torch.uint8)[source])
    elif _is_narrow(final):
        final.copy_(given[_FINAL])
    if _is_narrow(kept):
        kept.copy_(given[_KEPT])
    return o, state if tensors[_FINAL] is None else tensors[_FINAL]


def explained(call: Call) -> Call:
    """The call that is run for this one. Nothing runs: states that it makes have no data here."""
    if not has_narrow(call):
        return call
    tensors = list(call.tensors)
    run: list[Any] = []
    made: dict[int, Any] = {}
    for place in (_INITIAL, _FINAL, _ROWS, _KEPT):
        x = tensors[place]
        if x is not None:
            # One tensor stays one.
            tensors[place] = made.setdefault(id(x), x.to("meta"))

    def catch(given: Any, *rest: Any) -> tuple[None, None]:
        run.extend((*given, *rest))
        return None, None

    forward(catch, tensors, call.scale, call.options, call.output_final_state, call.max_seqlen)
    return Call(*run)
